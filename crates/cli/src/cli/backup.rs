//! `sluice backup`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use sluice_client::Download;

use super::connect::{Connection, ServerFlags};
use super::format::size;
use super::progress::Progress;
use super::{CliError, Fault, Out, Result};
use crate::atomic_file::AtomicFile;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice backup monday.sluice\n  sluice backup - | zstd > monday.sluice.zst\n\n\
    The server continues to work. The copy is consistent as of one moment. Restore it with `sluice restore`."
)]
pub(crate) struct BackupArgs {
    /// File to write, readable by its owner only; it appears when it is complete. `-`: stdout.
    file: PathBuf,
    /// Replace the file if it exists.
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(args: BackupArgs, out: Out) -> Result<u8> {
    let connection = args.server.connect()?;
    let to_stdout = args.file == Path::new("-");
    if !to_stdout && args.file.is_dir() {
        return Err(CliError::usage(format!(
            "{} is a directory: give the path of a file",
            args.file.display()
        )));
    }
    if !to_stdout && !args.overwrite && args.file.exists() {
        return Err(CliError::of(
            Fault::Exists,
            format!("{} exists: --overwrite replaces it", args.file.display()),
        ));
    }
    let mut download = connection.client.backup().await.map_err(|e| connection.error(&e))?;
    let progress = Progress::bytes(out, None, "copied");
    let result = if to_stdout {
        copy(&connection, &mut download, &progress, |piece| out.bytes(piece)).await
    } else {
        to_file(&args.file, &connection, &mut download, &progress).await
    };
    progress.finish();
    let bytes = result?;
    if to_stdout {
        return Ok(0);
    }
    let name = args.file.display();
    let keys = root_keys(&connection).await;
    out.show(&json!({"file": name.to_string(), "bytes": bytes, "root_keys": keys}), |_| {
        let takes = keys.filter(|keys| !keys.is_empty()).map(|keys| {
            let server = connection.client.server();
            format!("to restore it takes the root keys of {server}: {}\n", keys.join(", "))
        });
        format!("wrote {name}, {}\n{}", size(bytes), takes.unwrap_or_default())
    })?;
    Ok(0)
}

/// Ids of the root keys of the server that has written a backup, which a restore takes. `None`: it does not
/// answer any more; another one has other keys.
async fn root_keys(connection: &Connection) -> Option<Vec<String>> {
    let server = connection.client.server().to_owned();
    let keys = connection.client.keys().await.ok()?;
    let is_same = connection.client.server() == server;
    is_same.then(|| keys.keys.into_iter().map(|key| key.id).collect())
}

/// Writes a file that only its owner can read, and that appears under its name when it is complete.
async fn to_file(
    path: &Path,
    connection: &Connection,
    download: &mut Download,
    progress: &Progress,
) -> Result<u64> {
    let failed = |e: std::io::Error| CliError::unwritable(path, &e);
    let mut part = AtomicFile::create(path, 0o600).map_err(failed)?;
    let bytes = copy(connection, download, progress, |piece| part.write_all(piece).map_err(failed)).await?;
    part.finish().map_err(failed)?;
    Ok(bytes)
}

async fn copy(
    connection: &Connection,
    download: &mut Download,
    progress: &Progress,
    mut write: impl FnMut(&[u8]) -> Result<()>,
) -> Result<u64> {
    let mut bytes = 0;
    while let Some(piece) = download.next().await.map_err(|e| connection.error(&e))? {
        write(&piece)?;
        bytes += piece.len() as u64;
        progress.add(piece.len() as u64);
    }
    Ok(bytes)
}
