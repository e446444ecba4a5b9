//! The disk under the data directory: its file system, and how long a write and a sync take, by a file of
//! some megabytes that has no name and is gone afterwards, whatever happens.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat, statfs, statvfs, unlink};
use rustix::io::Errno;

use super::finding::Finding;
use crate::terminal::format::size;

const CHECK: &str = "disk_speed";
/// Bytes of a write before a sync.
const BLOCK_BYTES: usize = 4 << 10;
/// Bytes of the file in which single blocks are written.
const FILE_BYTES: u64 = 4 << 20;
/// Most syncs that are measured.
const SYNCS_MAX: usize = 200;
/// Bytes that are written at once, where the throughput is measured.
const CHUNK_BYTES: usize = 1 << 20;
/// Most bytes written for the throughput.
const BULK_BYTES_MAX: u64 = 64 << 20;
/// Time after which either measurement ends.
const TIME_MAX: Duration = Duration::from_millis(1_500);
/// Room below which nothing is measured, so that a full disk does not become fuller.
pub(super) const FREE_MIN: u64 = 512 << 20;
/// Time of a sync from which a warning is given.
const SYNC_SLOW: Duration = Duration::from_millis(20);
/// Throughput below which a warning is given, in bytes per second.
const BYTES_PER_S_MIN: u64 = 20 << 20;

/// Times that were measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Speed {
    /// Median time of a write of 4 KiB and its fdatasync.
    pub(super) sync: Duration,
    /// The longest of these times.
    pub(super) longest: Duration,
    /// Throughput of large writes with a sync at their end.
    pub(super) bytes_per_s: u64,
}

/// Free room in bytes and in files; `None`: the file system does not count files.
pub(super) fn room(folder: &Path) -> io::Result<(u64, Option<u64>)> {
    let stat = statvfs(folder)?;
    let files = (stat.f_files > 0).then_some(stat.f_favail);
    Ok((stat.f_bavail.saturating_mul(stat.f_frsize), files))
}

/// Measures in a folder.
///
/// # Errors
/// The file cannot be made, written or synced.
pub(super) fn measure(folder: &Path) -> io::Result<Speed> {
    let file = nameless(folder)?;
    let block = vec![0x5a; BLOCK_BYTES];
    let mut at = 0;
    while at < FILE_BYTES {
        file.write_all_at(&block, at)?;
        at += BLOCK_BYTES as u64;
    }
    file.sync_data()?;
    let began = Instant::now();
    let mut times = Vec::with_capacity(SYNCS_MAX);
    while times.len() < SYNCS_MAX && began.elapsed() < TIME_MAX {
        let (at, one) = (times.len() as u64 * BLOCK_BYTES as u64 % FILE_BYTES, Instant::now());
        file.write_all_at(&block, at)?;
        file.sync_data()?;
        times.push(one.elapsed());
    }
    times.sort_unstable();
    let chunk = vec![0x5a; CHUNK_BYTES];
    let (began, mut written) = (Instant::now(), 0);
    while written < BULK_BYTES_MAX && began.elapsed() < TIME_MAX {
        file.write_all_at(&chunk, FILE_BYTES + written)?;
        written += CHUNK_BYTES as u64;
    }
    file.sync_data()?;
    let took = began.elapsed().as_secs_f64().max(1e-6);
    Ok(Speed {
        sync: times.get(times.len() / 2).copied().unwrap_or_default(),
        longest: times.last().copied().unwrap_or_default(),
        bytes_per_s: (written as f64 / took) as u64,
    })
}

/// A new file without a name.
fn nameless(folder: &Path) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    let base = OFlags::RDWR | OFlags::CLOEXEC;
    match openat(CWD, folder, base | OFlags::TMPFILE, mode) {
        Ok(file) => return Ok(file.into()),
        // File systems without such files, and kernels that take the flag for a folder that is opened.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let path = folder.join(format!(".sluice-doctor-{}", std::process::id()));
    let file = openat(CWD, &path, base | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, mode)?;
    unlink(&path)?;
    Ok(file.into())
}

/// The finding about these times.
pub(super) fn judge(speed: Speed) -> Finding {
    let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
    let seen = format!(
        "a write of 4 KiB with its sync takes {} (median; the longest {}), and {} are written in a second",
        ms(speed.sync),
        ms(speed.longest),
        size(speed.bytes_per_s)
    );
    if speed.sync >= SYNC_SLOW {
        return Finding::warning(
            CHECK,
            format!("{seen}: a caller alone gets no more than {} answers a second", per_second(speed.sync)),
            "take a disk of flash memory, on this machine, with power-loss protection; or a shorter guarantee, \
             `durability = \"interval:1s\"`",
        );
    }
    if speed.bytes_per_s < BYTES_PER_S_MIN {
        return Finding::warning(CHECK, seen, "take a faster disk, if messages are large or many");
    }
    Finding::ok(CHECK, seen)
}

fn per_second(time: Duration) -> u64 {
    (1.0 / time.as_secs_f64().max(1e-6)) as u64
}

/// Kind of a file system by its number (statfs(2)), if it needs a word.
pub(super) fn file_system(folder: &Path) -> io::Result<Finding> {
    // The number of a negative code is the same 32 bits.
    let number = statfs(folder)?.f_type as u32;
    let is_mount = is_mount(folder);
    Ok(judge_file_system(number, is_mount))
}

/// True when a folder above a path, the root apart, is on another disk than its parent.
fn is_mount(path: &Path) -> bool {
    let device = |path: &Path| statat(CWD, path, AtFlags::empty()).map(|stat| stat.st_dev).ok();
    let own = device(path);
    own.is_some() && own != device(Path::new("/"))
}

fn judge_file_system(number: u32, is_mount: bool) -> Finding {
    const CHECK: &str = "file_system";
    match number {
        0x0102_1994 | 0x8584_58f6 => Finding::warning(
            CHECK,
            "the data directory is in memory (tmpfs), and lost when the machine starts anew",
            "set `data_dir` to a disk; or `memory = true`, if nothing has to stay",
        ),
        0x794c_7630 if !is_mount => Finding::warning(
            CHECK,
            "the data directory is in the layer of a container, which is gone with it",
            "mount a volume for the data directory",
        ),
        0x6969 | 0xff53_4d42 | 0xfe53_4d42 | 0x6573_5546 | 0x0102_1997 | 0x00c3_6400 => Finding::warning(
            CHECK,
            "the data directory is on another machine, or behind a program (NFS, SMB, FUSE): its syncs and locks are \
             not always what they say",
            "take a disk of this machine, or a block device",
        ),
        0xef53 => Finding::ok(CHECK, "ext4"),
        0x5846_5342 => Finding::ok(CHECK, "XFS"),
        0x9123_683e => Finding::ok(CHECK, "btrfs"),
        0x2fc1_2fc1 => Finding::ok(CHECK, "ZFS"),
        number => Finding::ok(CHECK, format!("of kind {number:#x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_disk_is_measured_and_nothing_stays() {
        let folder = tempfile::tempdir().unwrap();
        let speed = measure(folder.path()).unwrap();
        assert!(speed.sync <= speed.longest && speed.bytes_per_s > 0, "{speed:?}");
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
        assert!(measure(&folder.path().join("nowhere")).is_err());
        let (free, _) = room(folder.path()).unwrap();
        assert!(free > 0);
        file_system(folder.path()).unwrap();
    }

    #[test]
    fn slow_disks_are_told() {
        let fast = Speed {
            sync: Duration::from_micros(90),
            longest: Duration::from_millis(9),
            bytes_per_s: 900 << 20,
        };
        assert_eq!(judge(fast).level, Level::Ok);
        let slow = judge(Speed { sync: SYNC_SLOW, ..fast });
        assert!(slow.level == Level::Warning && slow.seen.contains("than 50 answers"), "{slow:?}");
        assert_eq!(judge(Speed { bytes_per_s: 0, ..fast }).level, Level::Warning);
        assert_eq!(judge(Speed { sync: Duration::ZERO, longest: Duration::ZERO, ..fast }).level, Level::Ok);
    }

    #[test]
    fn file_systems_that_forget_are_told() {
        for (number, is_mount, level) in [
            (0xef53, false, Level::Ok),
            (0x0102_1994, true, Level::Warning),
            (0x794c_7630, false, Level::Warning),
            (0x794c_7630, true, Level::Ok),
            (0x6969, true, Level::Warning),
            (0, false, Level::Ok),
            (u32::MAX, false, Level::Ok),
        ] {
            assert_eq!(judge_file_system(number, is_mount).level, level, "{number:#x}");
        }
    }
}
