//! `sluice attach get`: into a file, by way of a part that stays until all bytes have come, or to stdout.

use std::fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, IsTerminal as _, Read as _, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use clap::Args;
use rustix::fs::OFlags;
use sluice_client::{Attachment, Downloading};

use super::connect::{Connection, ServerFlags};
use super::format::size;
use super::progress::Progress;
use super::{CliError, Out, Result};
use crate::atomic_file::sync_folder_of;

/// Bytes of a part that are read at a time.
const READ_BYTES: usize = 1 << 20;
/// Permission bits of a new file, less those that the umask takes.
const NEW_FILE_MODE: u32 = 0o666;
/// Permission bits without which a part could not be gone on with.
const PART_MODE: u32 = 0o600;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sluice attach get orders/17 video.mp4 -o video.mp4\n  \
    sluice attach get orders/17 data.tar | tar x\n\n\
    What has come when it fails or is interrupted stays in FILE.ETAG.part. The next call goes on behind it, if \
    the attachment still has this ETag.")]
pub(crate) struct GetArgs {
    /// Key of the document.
    key: String,
    /// Name of the attachment.
    name: String,
    /// File to write; it is replaced when all bytes have come, and keeps its permissions. A device, pipe or
    /// link is written as the bytes come. `-`: stdout, as without this flag.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(args: &GetArgs, out: Out) -> Result<()> {
    let connection = args.server.connect()?;
    let output = args.output.as_deref().filter(|path| *path != Path::new("-"));
    if let Some(path) = output.filter(|path| path.is_dir()) {
        let reason = format!("{} is a directory: give the path of a file", path.display());
        return Err(CliError::usage(reason));
    }
    if let Some(path) = output.filter(|path| is_written_through(path)) {
        // What is behind a link is truncated when it is opened: only where there is something to write.
        let mut downloading = begin(&connection, args).await?;
        let unwritable = |e: io::Error| CliError::unwritable(path, &e);
        let mut file = File::create(path).map_err(unwritable)?;
        receive(&connection, &mut downloading, 0, &mut file, unwritable, out).await?;
        // Text beside the bytes would come into what reads the pipe or the terminal itself.
        return if leads_to_file(path) { written(downloading.attachment(), path, out) } else { Ok(()) };
    }
    if let Some(path) = output {
        return written(&to_file(&connection, args, path, out).await?, path, out);
    }
    if io::stdout().is_terminal() {
        return Err(CliError::usage("an attachment is not written to a terminal")
            .hint("Give a file with --output, or redirect stdout."));
    }
    let mut downloading = begin(&connection, args).await?;
    receive(&connection, &mut downloading, 0, &mut io::stdout(), |e| CliError::output(&e), out).await
}

fn written(attachment: &Attachment, path: &Path, out: Out) -> Result<()> {
    out.show(attachment, |it| format!("{} written to {}\n", size(it.bytes), path.display()))
}

/// True for a link to a file that is not stdout, as that behind `/dev/stdout` may be.
fn leads_to_file(path: &Path) -> bool {
    let is_stdout = |file: &Metadata| {
        let stdout = rustix::fs::fstat(io::stdout());
        stdout.is_ok_and(|stdout| (stdout.st_dev, stdout.st_ino) == (file.dev(), file.ino()))
    };
    fs::metadata(path).is_ok_and(|file| file.is_file() && !is_stdout(&file))
}

/// True for a device, a pipe or a link, which stays what it is: nothing takes its place.
fn is_written_through(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_file())
}

async fn begin(connection: &Connection, args: &GetArgs) -> Result<Downloading> {
    let begun = connection.client.download_begin(&args.key, &args.name).await;
    begun.map_err(|e| connection.error(&e))
}

/// Writes the attachment to a file, behind what a call before has got of it.
async fn to_file(connection: &Connection, args: &GetArgs, path: &Path, out: Out) -> Result<Attachment> {
    let mut downloading = begin(connection, args).await?;
    let mut part = Part::open(path, downloading.attachment())?;
    let mut known = part.read_into(&mut downloading)?;
    if known > downloading.attachment().bytes {
        (downloading, known) = (begin(connection, args).await?, 0);
        part.clear()?;
    }
    if known > 0 {
        out.note(&format!("going on behind {}", size(known)));
    }
    loop {
        let unwritable = |e: io::Error| CliError::unwritable(&part.path, &e);
        let received = receive(connection, &mut downloading, known, &mut part.file, unwritable, out).await;
        match received {
            Ok(()) => break,
            Err(error) if error.code() == "digest_mismatch" && known > 0 => {
                out.note("what was there had other bytes: beginning anew");
                part.clear()?;
                (downloading, known) = (begin(connection, args).await?, 0);
            }
            Err(error) if error.code() == "digest_mismatch" => {
                part.remove();
                return Err(error);
            }
            Err(error) => return Err(part.kept(error)),
        }
    }
    part.place(path)?;
    Ok(downloading.attachment().clone())
}

/// Writes what is missing behind the first `known` bytes.
async fn receive(
    connection: &Connection,
    downloading: &mut Downloading,
    known: u64,
    writer: &mut impl Write,
    unwritable: impl Fn(io::Error) -> CliError,
    out: Out,
) -> Result<()> {
    let progress = Progress::bytes(out, Some(downloading.attachment().bytes), "downloaded");
    progress.begin_at(known);
    let received = async {
        while let Some(bytes) = downloading.next().await.map_err(|e| connection.error(&e))? {
            writer.write_all(&bytes).map_err(&unwritable)?;
            progress.add(bytes.len() as u64);
        }
        writer.flush().map_err(&unwritable)
    };
    let received = received.await;
    progress.finish();
    received
}

/// The file beside the target that has what came so far of one version of an attachment.
struct Part {
    file: File,
    path: PathBuf,
}

impl Part {
    /// Opens the part of this version, which nobody else writes meanwhile.
    fn open(target: &Path, attachment: &Attachment) -> Result<Part> {
        let mut path = target.to_owned().into_os_string();
        path.push(format!(".{}.part", attachment.etag));
        let path = PathBuf::from(path);
        let unwritable = |e: io::Error| CliError::unwritable(&path, &e);
        // Its name can be foreseen: another may have put something there that leads elsewhere.
        if let Ok(found) = fs::symlink_metadata(&path) {
            expect_own(&path, &found)?;
        }
        let replaced = mode_of(target);
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        options.mode(replaced.unwrap_or(NEW_FILE_MODE) | PART_MODE);
        let file = options.open(&path).map_err(unwritable)?;
        expect_own(&path, &file.metadata().map_err(unwritable)?)?;
        if let Some(mode) = replaced {
            // Who may not read the target may not read what comes in its place either.
            set_mode(&file, mode | PART_MODE).map_err(unwritable)?;
        }
        match file.try_lock() {
            Ok(()) => Ok(Part { file, path }),
            Err(TryLockError::WouldBlock) => Err(CliError::failed(format!(
                "another call is writing {}: wait until it has ended",
                path.display()
            ))),
            Err(TryLockError::Error(error)) => Err(CliError::unwritable(&path, &error)),
        }
    }

    /// Lets a download skip what is there; the number of these bytes.
    fn read_into(&mut self, downloading: &mut Downloading) -> Result<u64> {
        let (mut known, mut bytes) = (0, vec![0; READ_BYTES]);
        loop {
            let read = self.file.read(&mut bytes);
            let count = read.map_err(|e| CliError::unreadable(&self.path.display().to_string(), &e))?;
            if count == 0 {
                return Ok(known);
            }
            downloading.skip(&bytes[..count]);
            known += count as u64;
        }
    }

    fn clear(&mut self) -> Result<()> {
        self.file.set_len(0).map_err(|e| CliError::unwritable(&self.path, &e))
    }

    fn remove(self) {
        // The error that stopped the call says more than one of this.
        let _ = fs::remove_file(&self.path);
    }

    /// Tells with an error where the next call goes on.
    fn kept(self, error: CliError) -> CliError {
        match self.file.metadata() {
            Ok(found) if found.len() > 0 => {
                let (bytes, path) = (size(found.len()), self.path.display());
                error.hint(format!("{bytes} are kept in {path}: the same command goes on behind them."))
            }
            _ => {
                self.remove();
                error
            }
        }
    }

    /// Makes it the target, durably, with the permissions of the file that it replaces.
    fn place(self, target: &Path) -> Result<()> {
        let placed = || {
            if let Some(mode) = mode_of(target) {
                set_mode(&self.file, mode)?;
            }
            self.file.sync_all()?;
            fs::rename(&self.path, target)?;
            sync_folder_of(target)
        };
        placed().map_err(|e| CliError::unwritable(target, &e))
    }
}

/// Refuses what is no regular file, or has another name beside this one.
fn expect_own(path: &Path, found: &Metadata) -> Result<()> {
    if found.is_file() && found.nlink() == 1 {
        return Ok(());
    }
    let reason =
        format!("{} is not a regular file without other names: nothing is written into it", path.display());
    Err(CliError::usage(reason).hint("Remove it, or write another file: the bytes come there first."))
}

/// The permission bits of a file; `None`: there is none.
fn mode_of(path: &Path) -> Option<u32> {
    let found = fs::symlink_metadata(path).ok().filter(Metadata::is_file);
    found.map(|found| found.permissions().mode() & 0o777)
}

/// Gives a file these permission bits, if it has others: some file systems cannot.
fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    match file.metadata()?.permissions().mode() & 0o777 == mode {
        true => Ok(()),
        false => file.set_permissions(Permissions::from_mode(mode)),
    }
}
