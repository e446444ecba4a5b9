//! `sluice attach`.

use std::fs::File;
use std::io::{IsTerminal as _, Read, Seek as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_client::{Attachment, AttachmentCondition, Uploading};

use super::connect::{Connection, ReadFlags, ServerFlags};
use super::doc_edit;
use super::format::{relative, size};
use super::output::Table;
use super::progress::Progress;
use super::{CliError, Out, Result, number};

/// Bytes that are read at a time.
const READ_BYTES: u64 = 1 << 20;

#[derive(Debug, Subcommand)]
pub(crate) enum AttachVerb {
    /// Attach a file to a document, in the place of an attachment with the same name.
    Put(PutArgs),
    /// Get an attachment, and compare its SHA-256.
    Get(GetArgs),
    /// List the attachments of a document by name.
    List {
        /// Key of the document.
        key: String,
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Delete an attachment.
    Delete {
        /// Key of the document.
        key: String,
        /// Name of the attachment.
        name: String,
        #[command(flatten)]
        when: ConditionFlags,
        #[command(flatten)]
        server: ServerFlags,
    },
}

/// Conditions under which an attachment is written or deleted.
#[derive(Debug, Args)]
pub(crate) struct ConditionFlags {
    /// Only if the attachment has this version.
    #[arg(long, value_name = "N", value_parser = number(1u64..))]
    if_version: Option<u64>,
    /// Only if the attachment has this ETag.
    #[arg(long, value_name = "ETAG")]
    if_etag: Option<String>,
    /// Only while the lock of the document's key is held, whose token this is.
    #[arg(long)]
    token: Option<String>,
}

impl ConditionFlags {
    fn condition(&self, if_absent: bool) -> AttachmentCondition<'_> {
        AttachmentCondition {
            if_version: self.if_version,
            if_etag: self.if_etag.as_deref(),
            if_absent,
            token: self.token.as_deref(),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sluice attach put orders/17 invoice.pdf --type application/pdf\n  \
    sluice attach put orders/17 video.mp4 --resume\n  \
    tar c data | sluice attach put orders/17 - --name data.tar\n\n\
    Prints the version and the ETag. The document has to be there.")]
pub(crate) struct PutArgs {
    /// Key of the document.
    key: String,
    /// File to attach; `-`: stdin.
    file: PathBuf,
    /// Name of the attachment [default: that of the file].
    #[arg(long)]
    name: Option<String>,
    /// Media type of the bytes.
    #[arg(long = "type", value_name = "TYPE")]
    content_type: Option<String>,
    /// Go on with an upload that was interrupted within the last hour, if its bytes are those of the file.
    #[arg(long)]
    resume: bool,
    /// Only if there is no attachment with this name.
    #[arg(long, conflicts_with_all = ["if_version", "if_etag"])]
    if_absent: bool,
    #[command(flatten)]
    when: ConditionFlags,
    #[command(flatten)]
    server: ServerFlags,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Key of the document.
    key: String,
    /// Name of the attachment.
    name: String,
    /// File to write; it is replaced when all bytes have come [default: stdout].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(verb: AttachVerb, out: Out) -> Result<u8> {
    match verb {
        AttachVerb::Put(args) => put(&args, out).await?,
        AttachVerb::Get(args) => get(&args, out).await?,
        AttachVerb::List { key, server } => {
            let connection = server.connect()?;
            let found = connection.client.attachments(&key).await.map_err(|e| connection.error(&e))?;
            if found.is_empty() {
                out.note(&format!("document {key} has no attachments"));
                return Ok(0);
            }
            out.list(&found, table)?;
        }
        AttachVerb::Delete { key, name, when, server } => {
            let connection = server.connect()?;
            let deleted = connection.client.attachment_delete(&key, &name, &when.condition(false)).await;
            deleted.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "deleted": name }), |_| format!("deleted {name}\n"))?;
        }
    }
    Ok(0)
}

async fn put(args: &PutArgs, out: Out) -> Result<()> {
    let name = name_of(args)?;
    let connection = args.server.connect()?;
    let written = if args.file == Path::new("-") {
        if args.resume {
            return Err(CliError::usage("stdin cannot be read again: give a file to resume with"));
        }
        let uploading = begin(&connection, args, &name).await?;
        let uploading = send(&connection, uploading, &mut std::io::stdin(), None, out).await?;
        uploading.commit(&args.when.condition(args.if_absent)).await
    } else {
        let uploading = send_file(&connection, args, &name, out).await?;
        uploading.commit(&args.when.condition(args.if_absent)).await
    };
    out.show(&written.map_err(|e| connection.error(&e))?, doc_edit::written)
}

async fn begin(connection: &Connection, args: &PutArgs, name: &str) -> Result<Uploading> {
    let begun = connection.client.upload_begin(&args.key, name, args.content_type.as_deref()).await;
    begun.map_err(|e| connection.error(&e))
}

/// Sends a file; from where an upload was interrupted, if that is asked for and the bytes are the same.
async fn send_file(connection: &Connection, args: &PutArgs, name: &str, out: Out) -> Result<Uploading> {
    let unreadable = |e: std::io::Error| CliError::unreadable(&args.file.display().to_string(), &e);
    let mut file = File::open(&args.file).map_err(unreadable)?;
    let total = file.metadata().map_err(unreadable)?.len();
    if args.resume {
        let found = connection.client.upload_resume(&args.key, name).await;
        let found = found.map_err(|e| connection.error(&e))?;
        if let Some(uploading) = found.filter(|uploading| uploading.upload().bytes <= total) {
            out.note(&format!("going on behind {}", size(uploading.upload().bytes)));
            match send(connection, uploading, &mut file, Some(total), out).await {
                Err(error) if error.code() == "digest_mismatch" => {
                    out.note("the upload that was interrupted has other bytes: beginning anew");
                    file.rewind().map_err(unreadable)?;
                }
                sent => return sent,
            }
        }
    }
    let uploading = begin(connection, args, name).await?;
    send(connection, uploading, &mut file, Some(total), out).await
}

async fn send(
    connection: &Connection,
    mut uploading: Uploading,
    reader: &mut impl Read,
    total: Option<u64>,
    out: Out,
) -> Result<Uploading> {
    let progress = Progress::bytes(out, total, "uploaded");
    let mut chunk = Vec::new();
    loop {
        chunk.clear();
        let read = reader.by_ref().take(READ_BYTES).read_to_end(&mut chunk);
        if read.map_err(|e| CliError::unreadable("the bytes to attach", &e))? == 0 {
            progress.finish();
            return Ok(uploading);
        }
        uploading.add(&chunk).await.map_err(|e| connection.error(&e))?;
        progress.add(chunk.len() as u64);
    }
}

/// The name of the attachment.
fn name_of(args: &PutArgs) -> Result<String> {
    let of_file = || Some(args.file.file_name()?.to_str()?.to_owned()).filter(|name| name != "-");
    let name = args.name.clone().or_else(of_file);
    name.ok_or_else(|| CliError::usage("the attachment has no name").hint("Give one with --name."))
}

async fn get(args: &GetArgs, out: Out) -> Result<()> {
    let connection = args.server.connect()?;
    if args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(CliError::usage("an attachment is not written to a terminal")
            .hint("Give a file with --output, or redirect stdout."));
    }
    let Some(path) = &args.output else {
        receive(&connection, args, &mut std::io::stdout(), out).await?;
        return Ok(());
    };
    // What is there stays until all has come.
    let mut part = path.clone().into_os_string();
    part.push(".part");
    let unwritable = |e: std::io::Error| CliError::unwritable(path, &e);
    let mut file = File::create(&part).map_err(unwritable)?;
    let received = receive(&connection, args, &mut file, out).await;
    let placed = received.and_then(|attachment| {
        std::fs::rename(&part, path).map_err(unwritable)?;
        Ok(attachment)
    });
    match placed {
        Ok(attachment) => out.show(&attachment, |attachment| {
            format!("{} written to {}\n", size(attachment.bytes), path.display())
        }),
        Err(error) => {
            // The error that stopped it says more than one of this.
            let _ = std::fs::remove_file(&part);
            Err(error)
        }
    }
}

async fn receive(
    connection: &Connection,
    args: &GetArgs,
    writer: &mut impl std::io::Write,
    out: Out,
) -> Result<Attachment> {
    let begun = connection.client.download_begin(&args.key, &args.name).await;
    let mut downloading = begun.map_err(|e| connection.error(&e))?;
    let progress = Progress::bytes(out, Some(downloading.attachment().bytes), "downloaded");
    let unwritable = |e: std::io::Error| CliError::output(&e);
    while let Some(bytes) = downloading.next().await.map_err(|e| connection.error(&e))? {
        writer.write_all(&bytes).map_err(unwritable)?;
        progress.add(bytes.len() as u64);
    }
    writer.flush().map_err(unwritable)?;
    progress.finish();
    Ok(downloading.attachment().clone())
}

fn table(attachments: &[Attachment]) -> String {
    let mut table = Table::new(&["NAME", ">VERSION", ">SIZE", ">CHANGED", "TYPE", "SHA-256"]);
    for attachment in attachments {
        table.row([
            attachment.name.clone(),
            attachment.version.to_string(),
            size(attachment.bytes),
            relative(attachment.changed_at_ms),
            attachment.content_type.clone(),
            attachment.sha256.clone(),
        ]);
    }
    table.render()
}
