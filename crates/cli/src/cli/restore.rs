//! `sluice restore`.

use std::fs::{DirBuilder, File};
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use sluice_journal::RootKeys;
use sluice_node::backup::RestoreFailure;

use super::format::{quoted, size};
use super::progress::Progress;
use super::{CliError, Fault, Out, Result};
use crate::atomic_file::unique_path_beside;
use crate::root_keys::KeyFlags;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice restore monday.sluice ./sluice-data\n  sluice restore monday.sluice ./copy --key-source file:./sluice-data.key\n  zstd -d < monday.sluice.zst | sluice restore - ./sluice-data\n\n\
    The directory appears when it is complete. Start it with `sluice serve --data-dir DATA_DIR`. \
    A backup of an encrypted server needs the root keys of that server."
)]
pub(crate) struct RestoreArgs {
    /// Backup file, written by `sluice backup`; `-`: stdin.
    file: PathBuf,
    /// Directory to create; it must not exist, or must be empty.
    data_dir: PathBuf,
    #[command(flatten)]
    keys: KeyFlags,
}

pub(super) fn run(args: &RestoreArgs, out: Out) -> Result<u8> {
    let dir = &args.data_dir;
    expect_nothing(dir)?;
    let roots = args.keys.read(dir).map_err(CliError::usage)?;
    let (source, total): (Box<dyn Read>, Option<u64>) = if args.file == Path::new("-") {
        (Box::new(io::stdin().lock()), None)
    } else {
        let name = args.file.display();
        let failed = |e: io::Error| CliError::unreadable(&name.to_string(), &e);
        let file = File::open(&args.file).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        (Box::new(file), Some(bytes))
    };
    let progress = Progress::bytes(out, total, "restored");
    let mut counted =
        Counted { inner: BufReader::with_capacity(1 << 20, source), progress: &progress, bytes: 0 };
    let result = expect_backup(&mut counted, &args.file).and_then(|()| restore(&mut counted, dir, &roots));
    let bytes = counted.bytes;
    progress.finish();
    let shards = result?;
    let name = dir.display();
    out.show(&json!({"data_dir": name.to_string(), "bytes": bytes, "shards": shards}), |_| {
        let (keys, directory) = (args.keys.flag(), quoted(&name.to_string()));
        let shards = if shards == 1 { String::new() } else { format!(" --shards {shards}") };
        format!(
            "restored {} into {name}\nstart it with: sluice serve --data-dir {directory}{shards}{keys}\n",
            size(bytes)
        )
    })?;
    Ok(0)
}

/// Refuses a directory that is not empty, and a file.
fn expect_nothing(dir: &Path) -> Result<()> {
    let there = match dir.read_dir().map(|mut entries| entries.next().is_some()) {
        Ok(true) => format!("{} is not empty", dir.display()),
        Err(_) if dir.symlink_metadata().is_ok_and(|found| !found.is_dir()) => {
            format!("{} exists and is not a directory", dir.display())
        }
        _ => return Ok(()),
    };
    Err(CliError::of(Fault::Exists, there)
        .hint("Restore into a new directory; existing data is never overwritten."))
}

/// Refuses input that is no backup: that is a wrong argument, while a damaged backup is a failure.
fn expect_backup(source: &mut Counted<'_, BufReader<Box<dyn Read>>>, file: &Path) -> Result<()> {
    let name = if file == Path::new("-") { "stdin".to_owned() } else { file.display().to_string() };
    let start = source.inner.fill_buf();
    match start {
        Ok(start) if sluice_node::backup::is_backup(start) => Ok(()),
        Ok(_) => Err(CliError::usage(format!("{name} is not a backup made by `sluice backup`"))),
        Err(e) if e.kind() == io::ErrorKind::IsADirectory => {
            Err(CliError::usage(format!("{name} is a directory, not a backup made by `sluice backup`")))
        }
        Err(e) => Err(CliError::unreadable(&name, &e)),
    }
}

/// Restores into a directory beside `dir` and renames it, so that `dir` is never incomplete. Returns the
/// number of its shards.
fn restore(source: &mut dyn Read, dir: &Path, roots: &RootKeys) -> Result<u32> {
    let failed = |what: &str| {
        let what = format!("cannot {what} {}", dir.display());
        move |e: io::Error| CliError::of_io(&e, format!("{what}: {e}"))
    };
    dir.file_name()
        .ok_or_else(|| CliError::usage("DATA_DIR is `/` or ends in `..`: name a directory to create"))?;
    let part = unique_path_beside(dir);
    let parent = dir.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(failed("make the directory above"))?;
    // Fails if the name exists, so that nobody else's directory is written to.
    DirBuilder::new().mode(0o700).create(&part).map_err(failed("make a directory beside"))?;
    let result = sluice_node::backup::restore(source, &part, roots)
        .map_err(|e| match e {
            RestoreFailure::Damaged(what) => CliError::of(Fault::Damaged, what),
            RestoreFailure::Directory(error) => CliError::start(&error),
        })
        .and_then(|shards| std::fs::rename(&part, dir).map(|()| shards).map_err(failed("rename to")));
    if result.is_err() {
        // The rest of a failed restore is of no use.
        let _ = std::fs::remove_dir_all(&part);
    }
    let shards = result?;
    File::open(parent).and_then(|p| p.sync_all()).map_err(failed("sync the directory above"))?;
    Ok(shards)
}

/// A reader that counts bytes and reports progress.
struct Counted<'a, R> {
    inner: R,
    progress: &'a Progress,
    bytes: u64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes += count as u64;
        self.progress.add(count as u64);
        Ok(count)
    }
}
