//! `sluice attach`.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_client::{Attachment, AttachmentCondition, Transaction, Uploading};
use tokio::io::{AsyncRead, ReadBuf};

use super::attach_get::{self, GetArgs};
use super::connect::{Connection, ReadFlags, ServerFlags};
use super::doc_edit;
use super::format::{relative, size};
use super::joined::{self, JoinFlag};
use super::output::Table;
use super::progress::Progress;
use super::{CliError, Out, Result, number};

#[derive(Debug, Subcommand)]
pub(crate) enum AttachVerb {
    /// Attach a file to a document, in the place of an attachment with the same name.
    Put(PutArgs),
    /// Get an attachment, or what is missing of it, and compare its SHA-256.
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
        join: JoinFlag,
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
    Prints the version and the ETag. The document has to be there. With --transaction the bytes come at once,\n\
    and the attachment with the commit, for which there is an hour.")]
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
    join: JoinFlag,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(verb: AttachVerb, out: Out) -> Result<u8> {
    match verb {
        AttachVerb::Put(args) => put(&args, out).await?,
        AttachVerb::Get(args) => attach_get::run(&args, out).await?,
        AttachVerb::List { key, server } => {
            let connection = server.connect()?;
            let found = connection.client.attachments(&key).await.map_err(|e| connection.error(&e))?;
            if found.is_empty() {
                out.note(&format!("document {key} has no attachments"));
                return Ok(0);
            }
            out.list(&found, table)?;
        }
        AttachVerb::Delete { key, name, when, join, server } => {
            let connection = server.connect()?;
            let when = when.condition(false);
            let staged = || Transaction::new().delete_attachment(&key, &name, &when);
            if let Some(results) = join.stage(&connection, staged).await? {
                joined::told(out, &results)?;
                return Ok(0);
            }
            let deleted = connection.client.attachment_delete(&key, &name, &when).await;
            deleted.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "deleted": name }), |_| format!("deleted {name}\n"))?;
        }
    }
    Ok(0)
}

async fn put(args: &PutArgs, out: Out) -> Result<()> {
    let name = name_of(args)?;
    let connection = args.server.connect()?;
    let uploading = match args.file == Path::new("-") {
        true => send_stdin(&connection, args, &name, out).await?,
        false => send_file(&connection, args, &name, out).await?,
    };
    let when = args.when.condition(args.if_absent);
    let staged = || Transaction::new().attach(&uploading, &when);
    if let Some(results) = args.join.stage(&connection, staged).await? {
        return joined::told(out, &results);
    }
    let written = uploading.commit(&when).await;
    out.show(&written.map_err(|e| connection.error(&e))?, doc_edit::written)
}

async fn begin(connection: &Connection, args: &PutArgs, name: &str) -> Result<Uploading> {
    let begun = connection.client.upload_begin(&args.key, name, args.content_type.as_deref()).await;
    begun.map_err(|e| connection.error(&e))
}

/// Sends stdin. If that fails nobody can go on with it, and nothing is left of it.
async fn send_stdin(connection: &Connection, args: &PutArgs, name: &str, out: Out) -> Result<Uploading> {
    if args.resume {
        return Err(CliError::usage("stdin cannot be read again: give a file to resume with"));
    }
    let mut uploading = begin(connection, args, name).await?;
    match send(connection, &mut uploading, tokio::io::stdin(), None, out).await {
        Ok(()) => Ok(uploading),
        Err(error) => {
            // The error that stopped it says more than one of this.
            let _ = uploading.abort().await;
            Err(error)
        }
    }
}

/// Sends a file; from where an upload was interrupted, if that is asked for and the bytes are the same.
async fn send_file(connection: &Connection, args: &PutArgs, name: &str, out: Out) -> Result<Uploading> {
    let unreadable = |e: std::io::Error| CliError::unreadable(&args.file.display().to_string(), &e);
    let mut file = File::open(&args.file).map_err(unreadable)?;
    let total = file.metadata().map_err(unreadable)?.len();
    if args.resume {
        let found = connection.client.upload_resume(&args.key, name).await;
        let found = found.map_err(|e| connection.error(&e))?;
        if let Some(mut uploading) = found.filter(|uploading| uploading.upload().bytes <= total) {
            out.note(&format!("going on behind {}", size(uploading.upload().bytes)));
            match send(connection, &mut uploading, Blocking(&file), Some(total), out).await {
                Err(error) if error.code() == "digest_mismatch" => {
                    out.note("the upload that was interrupted has other bytes: beginning anew");
                    file.rewind().map_err(unreadable)?;
                }
                sent => return sent.map(|()| uploading),
            }
        }
    }
    let mut uploading = begin(connection, args, name).await?;
    send(connection, &mut uploading, Blocking(&file), Some(total), out).await?;
    Ok(uploading)
}

async fn send(
    connection: &Connection,
    uploading: &mut Uploading,
    reader: impl AsyncRead + Unpin,
    total: Option<u64>,
    out: Out,
) -> Result<()> {
    let progress = Progress::bytes(out, total, "uploaded");
    let sent = uploading.add_all(&mut Counted { reader, progress: progress.clone() }).await;
    progress.finish();
    sent.map_err(|e| connection.error(&e))
}

/// A file that is read as it is needed; the thread waits for the disk.
struct Blocking<'f>(&'f File);

impl AsyncRead for Blocking<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.0.read(into.initialize_unfilled());
        Poll::Ready(read.map(|count| into.advance(count)))
    }
}

/// A reader whose bytes are counted.
struct Counted<R> {
    reader: R,
    progress: Progress,
}

impl<R: AsyncRead + Unpin> AsyncRead for Counted<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        waker: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(waker, into))?;
        self.progress.add((into.filled().len() - before) as u64);
        Poll::Ready(Ok(()))
    }
}

/// The name of the attachment.
fn name_of(args: &PutArgs) -> Result<String> {
    let of_file = || Some(args.file.file_name()?.to_str()?.to_owned()).filter(|name| name != "-");
    let name = args.name.clone().or_else(of_file);
    name.ok_or_else(|| CliError::usage("the attachment has no name").hint("Give one with --name."))
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
