//! The disk beneath a benchmark: how long a sync takes on it, and what a directory holds.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use sluice_bench_rows::stats::Samples;

/// Size of the file that is written to, which is all allocated and synced before.
const FILE_BYTES: u64 = 16 << 20;
const WRITE_BYTES: usize = 4 << 10;
const SYNCS: u64 = 300;
/// Bytes of a file that are written at once.
const PIECE_BYTES: usize = 1 << 20;

/// Median time of fdatasync after one write of 4 KiB into a file that is allocated already, in microseconds:
/// what a commit cannot be faster than on this disk.
pub(super) fn fdatasync_us(dir: &Path) -> Result<f64, String> {
    let path = dir.join(format!("sluice-fdatasync-{}.bench", std::process::id()));
    let measured =
        measure(&path).map_err(|error| format!("cannot measure fdatasync in {}: {error}", dir.display()));
    // The figure is what matters; a file that cannot be removed goes with its folder.
    let _ = fs::remove_file(&path);
    measured
}

fn measure(path: &Path) -> io::Result<f64> {
    let file = File::options().create(true).truncate(true).write(true).open(path)?;
    let page = vec![0xa5u8; WRITE_BYTES];
    for offset in (0..FILE_BYTES).step_by(WRITE_BYTES) {
        file.write_all_at(&page, offset)?;
    }
    file.sync_all()?;
    let mut times = Vec::with_capacity(SYNCS as usize);
    for at in 0..SYNCS {
        file.write_all_at(&page, at * WRITE_BYTES as u64)?;
        let start = Instant::now();
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times.into_iter().collect::<Samples>().median())
}

/// Rate at which a plain file of so many bytes is written, without a sync, in MB/s.
pub(super) fn file_mb_per_s(dir: &Path, bytes: u64) -> Result<f64, String> {
    let path = dir.join("written.bench");
    let measured = write_file(&path, bytes);
    // The figure is what matters; a file that cannot be removed goes with its folder.
    let _ = fs::remove_file(&path);
    measured.map_err(|error| format!("cannot measure writes in {}: {error}", dir.display()))
}

fn write_file(path: &Path, bytes: u64) -> io::Result<f64> {
    let piece = vec![0xa5u8; PIECE_BYTES];
    let start = Instant::now();
    let file = File::create(path)?;
    let mut written = 0;
    while written < bytes {
        let length = (bytes - written).min(PIECE_BYTES as u64);
        file.write_all_at(&piece[..length as usize], written)?;
        written += length;
    }
    Ok(bytes as f64 / 1e6 / start.elapsed().as_secs_f64().max(1e-9))
}

/// Bytes that the files of a directory take on the disk, those of its directories included. Files that go
/// away meanwhile do not count.
pub(super) fn directory_bytes(dir: &Path) -> Result<u64, String> {
    let entries = fs::read_dir(dir).map_err(|error| format!("cannot list {}: {error}", dir.display()))?;
    let mut bytes = 0;
    for entry in entries.flatten() {
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += directory_bytes(&entry.path()).unwrap_or(0),
            Ok(metadata) => bytes += std::os::unix::fs::MetadataExt::blocks(&metadata) * 512,
            Err(_) => {}
        }
    }
    Ok(bytes)
}

/// True when the directory is on a file system in memory, where a sync costs nothing.
pub(super) fn is_in_memory(dir: &Path) -> bool {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    rustix::fs::statfs(dir).is_ok_and(|stat| stat.f_type == TMPFS_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_holds_what_is_written_into_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("inner")).unwrap();
        fs::write(dir.path().join("inner/file"), vec![1u8; 100_000]).unwrap();
        let bytes = directory_bytes(dir.path()).unwrap();
        assert!((100_000..300_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_sync_takes_time_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(fdatasync_us(dir.path()).unwrap() > 0.0);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
