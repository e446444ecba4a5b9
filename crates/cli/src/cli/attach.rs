//! `sluice attach`.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use sluice_client::{Attachment, AttachmentCondition, ClientError, Transaction, Uploading};
use sluice_engine::limits::ATTACHMENT_BYTES_MAX;
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};

use super::attach_get::{self, GetArgs};
use super::connect::{Connection, ReadFlags, ServerFlags};
use super::doc_edit;
use super::format::{quoted, relative, size};
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
    Prints the version and the ETag. The document has to be there. With --transaction the bytes come at once, \
    and the attachment with the commit, for which there is an hour. A put that is refused leaves nothing; what \
    has come of one that is interrupted stays for an hour, for --resume.")]
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
    /// Go on with the upload that has most bytes of the file but not all, of those that were interrupted
    /// within the last hour. It keeps the media type with which it was begun: leave --type out.
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
    let file = open(args)?;
    let name = name_of(args)?;
    let connection = args.server.connect()?;
    let when = args.when.condition(args.if_absent);
    // In a transaction the document may be staged only: that is told at the commit.
    if args.join.transaction().is_none() {
        let checked = connection.client.upload_check(&args.key, &name, &when).await;
        checked.map_err(|e| connection.error(&e))?;
    }
    let uploading = match &file {
        Some(file) => send_file(&connection, args, &name, file, out).await?,
        None => {
            let uploading = begin(&connection, args, &name).await?;
            send(&connection, args, uploading, tokio::io::stdin(), None, out).await?
        }
    };
    if let Some(transaction) = args.join.transaction() {
        let operations = Transaction::new().attach(&uploading, &when);
        let staged = connection.client.transaction_stage(transaction, &operations).await;
        return joined::told(out, &or_end(&connection, args, uploading, staged, Step::Commit).await?);
    }
    let written = uploading.commit(&when).await;
    out.show(&or_end(&connection, args, uploading, written, Step::Commit).await?, doc_edit::written)
}

fn is_stdin(args: &PutArgs) -> bool {
    args.file == Path::new("-")
}

/// The file to attach; `None`: stdin.
fn open(args: &PutArgs) -> Result<Option<File>> {
    let name = args.file.display();
    let unreadable = |e: io::Error| CliError::unreadable(&name.to_string(), &e);
    let file = match is_stdin(args) {
        true => None,
        false => Some(File::open(&args.file).map_err(unreadable)?),
    };
    let found = file.as_ref().map(File::metadata).transpose().map_err(unreadable)?;
    if found.as_ref().is_some_and(Metadata::is_dir) {
        return Err(CliError::usage(format!("{name} is a directory: give the path of a file")));
    }
    expect_length(&name.to_string(), found.as_ref().map_or(0, Metadata::len))?;
    if args.resume && !found.is_some_and(|found| found.is_file()) {
        let what = if is_stdin(args) { "stdin".to_owned() } else { name.to_string() };
        return Err(CliError::usage(format!("{what} cannot be read again: give a file to resume with")));
    }
    Ok(file)
}

/// Refuses a file that is longer than any attachment.
fn expect_length(name: &str, bytes: u64) -> Result<()> {
    if bytes <= ATTACHMENT_BYTES_MAX {
        return Ok(());
    }
    let most = size(ATTACHMENT_BYTES_MAX);
    let reason = format!("{name} has {bytes} bytes, an attachment at most {ATTACHMENT_BYTES_MAX} ({most})");
    Err(CliError::server("payload_too_large", &reason, &Value::Null))
}

/// The step of an upload that has an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Its bytes are sent.
    Send,
    /// End: the attachment is made, or staged.
    Commit,
}

/// The answer to a step of an upload. Where it is a refusal, or nobody can go on with the upload, nothing is
/// left of that; else its bytes stay, for a call that goes on with it. An upload that another call has begun,
/// or fills, is not this one's to end.
async fn or_end<T>(
    connection: &Connection,
    args: &PutArgs,
    uploading: Uploading,
    answer: std::result::Result<T, ClientError>,
    step: Step,
) -> Result<T> {
    let error = match answer {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    let told = connection.error(&error);
    if let Some("upload_offset" | "upload_incomplete" | "upload_not_found") = error.code() {
        return Err(told.hint("Another call has gone on with this upload, or has ended it."));
    }
    if is_refused(&error) || is_stdin(args) {
        end(uploading).await;
        return Err(told);
    }
    Err(match step {
        Step::Send if uploading.bytes() == 0 => told,
        Step::Send => told.hint(
            "What has come stays for an hour: the same command with --resume, and without --type, goes on behind \
             it.",
        ),
        Step::Commit if args.join.transaction().is_some() => told.hint(
            "All bytes have come, and are perhaps not staged: roll the transaction back, and begin another one.",
        ),
        Step::Commit => told.hint(format!(
            "All bytes have come. Look with `sluice attach list {}` whether they are attached; else repeat the \
             command.",
            quoted(&args.key)
        )),
    })
}

/// True where it is of no use to go on with the upload: the server is neither busy nor out of reach.
fn is_refused(error: &ClientError) -> bool {
    error.is_refusal() || matches!(error.code(), Some("quota_exceeded" | "limit_exceeded"))
}

/// Ends an upload that this call has begun. The error that stopped it says more than one of this.
async fn end(uploading: Uploading) {
    if !uploading.is_resumed() {
        let _ = uploading.abort().await;
    }
}

async fn begin(connection: &Connection, args: &PutArgs, name: &str) -> Result<Uploading> {
    let begun = connection.client.upload_begin(&args.key, name, args.content_type.as_deref()).await;
    begun.map_err(|e| connection.error(&e))
}

/// Sends a file; from where an upload was interrupted, if that is asked for.
async fn send_file(
    connection: &Connection,
    args: &PutArgs,
    name: &str,
    file: &File,
    out: Out,
) -> Result<Uploading> {
    let found = file.metadata();
    let found = found.map_err(|e| CliError::unreadable(&args.file.display().to_string(), &e))?;
    let total = found.is_file().then_some(found.len());
    let interrupted = match args.resume {
        true => resume(connection, args, name, file, out).await?,
        false => None,
    };
    let uploading = match interrupted {
        Some(uploading) => uploading,
        None => begin(connection, args, name).await?,
    };
    send(connection, args, uploading, Blocking(file), total, out).await
}

/// The upload to go on with; the file is behind the bytes that it has.
async fn resume(
    connection: &Connection,
    args: &PutArgs,
    name: &str,
    file: &File,
    out: Out,
) -> Result<Option<Uploading>> {
    let found = connection.client.upload_resume(&args.key, name, &mut Blocking(file)).await;
    let Some(uploading) = found.map_err(|e| connection.error(&e))? else {
        out.note("no upload that was interrupted has the first bytes of the file: beginning anew");
        return Ok(None);
    };
    let known = size(uploading.upload().bytes);
    if args.content_type.is_some() {
        // The server does not tell which type that is.
        let reason =
            format!("the upload that has {known} of the file keeps the type with which it was begun");
        return Err(CliError::usage(reason)
            .hint("Leave out --type to go on with it, or --resume to begin anew with this type."));
    }
    out.note(&format!("going on behind {known}"));
    Ok(Some(uploading))
}

/// Sends all bytes of a reader; `total`: the number that it had at the begin.
async fn send(
    connection: &Connection,
    args: &PutArgs,
    mut uploading: Uploading,
    reader: impl AsyncRead + Unpin,
    total: Option<u64>,
    out: Out,
) -> Result<Uploading> {
    let progress = Progress::bytes(out, total, "uploaded");
    progress.begin_at(uploading.upload().bytes);
    let sent = uploading.add_all(&mut Counted { reader, progress: progress.clone() }).await;
    progress.finish();
    if let Err(error) = sent {
        return or_end(connection, args, uploading, Err(error), Step::Send).await;
    }
    let read = uploading.bytes();
    match total.filter(|total| read < *total) {
        None => Ok(uploading),
        Some(total) => {
            end(uploading).await;
            let name = args.file.display();
            let reason =
                format!("{name} had {total} bytes at first, and {read} came of it: nothing is attached");
            Err(CliError::failed(reason))
        }
    }
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

impl AsyncSeek for Blocking<'_> {
    fn start_seek(mut self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        self.0.seek(to).map(|_| ())
    }

    fn poll_complete(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(self.0.stream_position())
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
            Some(attachment.content_type.clone())
                .filter(|it| !it.is_empty())
                .unwrap_or_else(|| "-".to_owned()),
            attachment.sha256.clone(),
        ]);
    }
    table.render()
}
