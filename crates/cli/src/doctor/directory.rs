//! The data directory: whether it can be written, whose it is, how much room it has, and its format.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::geteuid;
use sluice_journal::{Disk as _, FsDisk, holds_journal, owner_of};
use sluice_node::directory;

use super::finding::{Finding, Level};
use crate::config::Config;
use crate::terminal::format::size;

const CHECK: &str = "data_directory";
/// Most files whose owner is looked at.
const FILES_MAX: usize = 10_000;
/// Files that a file system should still be able to hold.
const FREE_FILES_MIN: u64 = 1_000;
/// Permission of others to write.
const OTHERS_WRITE: u32 = 0o022;
/// Permission of others to read.
const OTHERS_READ: u32 = 0o044;

/// The nearest folder that exists: the directory, or the one in which it will be made.
pub(super) fn existing(data_dir: &Path) -> PathBuf {
    let whole = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
    whole.ancestors().find(|folder| folder.is_dir()).map_or_else(|| PathBuf::from("/"), Path::to_owned)
}

/// True when a server uses the directory.
pub(super) fn in_use(data_dir: &Path) -> bool {
    FsDisk.is_locked(&data_dir.join("shard-000")).unwrap_or(false)
}

/// The findings about the directory of a configuration.
pub(super) fn check(config: &Config) -> Vec<Finding> {
    let path = &config.data_dir;
    let shown = path.display();
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return vec![to_be_made(path)],
        Err(error) => {
            let to_do = "let the user that runs the server enter the folders above it";
            return vec![Finding::problem(CHECK, format!("{shown} cannot be read: {error}"), to_do)];
        }
    };
    if !metadata.is_dir() {
        let to_do = "set `data_dir` to a folder";
        return vec![Finding::problem(CHECK, format!("{shown} is a file"), to_do)];
    }
    let mut found = vec![writable(path, &metadata)];
    found.extend(permissions(path, metadata.mode(), config.no_encryption));
    let stranger = owners(path).into_iter().find(|(_, uid)| *uid != metadata.uid());
    found.extend(stranger.map(|(file, uid)| judge_owner(&file, uid, metadata.uid())));
    found.extend(format_of(path));
    found
}

fn to_be_made(path: &Path) -> Finding {
    let (shown, folder) = (path.display(), existing(path));
    if may_write(&folder) {
        return Finding::ok(CHECK, format!("{shown} will be made in {}", folder.display()));
    }
    Finding::problem(
        CHECK,
        format!("{shown} cannot be made: user {} may not write in {}", geteuid().as_raw(), folder.display()),
        "make it, and give it to the user that runs the server, or set `data_dir` to another place",
    )
}

fn may_write(folder: &Path) -> bool {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

fn writable(path: &Path, metadata: &Metadata) -> Finding {
    let (shown, own, owner) = (path.display(), geteuid().as_raw(), metadata.uid());
    if own != owner && own != 0 || !may_write(path) {
        return Finding::problem(
            CHECK,
            format!("{shown} belongs to user {owner}, and this is user {own}"),
            "run this, and the server, as the owner of the directory; or give the directory to the server's user",
        );
    }
    if own != owner {
        return Finding::warning(
            CHECK,
            format!(
                "{shown} belongs to user {owner}, and this is root, whose new files the owner could not open"
            ),
            format!("start the server as user {owner}, not as root"),
        );
    }
    Finding::ok(CHECK, format!("{shown} can be written by its owner, user {owner}"))
}

fn permissions(path: &Path, mode: u32, is_plain: bool) -> Option<Finding> {
    let shown = path.display();
    let to_do = format!("chmod 700 {shown}");
    if mode & OTHERS_WRITE != 0 {
        return Some(Finding::warning(CHECK, format!("others than the owner may write in {shown}"), to_do));
    }
    let seen = format!("others than the owner may read in {shown}, where nothing is encrypted");
    (is_plain && mode & OTHERS_READ != 0).then(|| Finding::warning(CHECK, seen, to_do))
}

/// Owners of the files in a directory and its folders, of the first [`FILES_MAX`].
fn owners(path: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if found.len() >= FILES_MAX {
                return found;
            }
            found.push((entry.path(), metadata.uid()));
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found
}

fn judge_owner(file: &Path, uid: u32, owner: u32) -> Finding {
    Finding::problem(
        CHECK,
        format!("{} belongs to user {uid}, and the directory to user {owner}", file.display()),
        format!("give all of it to one user, such as: chown -R {owner} DIRECTORY"),
    )
}

/// The finding about what the directory holds, and whether this program reads it.
fn format_of(path: &Path) -> Vec<Finding> {
    const CHECK: &str = "format";
    let shards: Vec<PathBuf> =
        (0..).map(|shard| path.join(format!("shard-{shard:03}"))).take_while(|it| it.is_dir()).collect();
    let wrong: Vec<Finding> = directory::problems(path)
        .into_iter()
        .chain(
            shards.iter().filter_map(|shard| owner_of(&FsDisk, shard).err().map(|error| error.to_string())),
        )
        .map(|wrong| Finding::told(CHECK, Level::Problem, &wrong))
        .collect();
    if !wrong.is_empty() {
        return wrong;
    }
    let full = shards.iter().filter(|shard| holds_journal(shard)).count();
    vec![match full {
        0 => Finding::ok(CHECK, "no data yet"),
        1 => Finding::ok(CHECK, "one shard, in the format of this program"),
        many => Finding::ok(CHECK, format!("{many} shards, in the format of this program")),
    }]
}

/// The finding about free room, in bytes and files; `free_files`: `None`: the file system counts none.
pub(super) fn judge_room(free: u64, free_files: Option<u64>, low_water: u64, reserve: u64) -> Finding {
    const CHECK: &str = "disk_room";
    let (seen, to_do) = (format!("{} free", size(free)), "free room, or enlarge the disk");
    if free < reserve {
        let seen = format!("{seen}, less than `reserve`, {}: sends are refused", size(reserve));
        return Finding::problem(CHECK, seen, to_do);
    }
    if let Some(files) = free_files.filter(|files| *files < FREE_FILES_MIN) {
        return Finding::warning(CHECK, format!("room for no more than {files} files (inodes)"), to_do);
    }
    if free < low_water {
        return Finding::warning(CHECK, format!("{seen}, less than `low_water`, {}", size(low_water)), to_do);
    }
    Finding::ok(CHECK, seen)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config::{Sources, load};

    fn config(data_dir: &Path) -> Config {
        let mut sources = Sources::default();
        sources.flags.given.push(("data_dir", data_dir.display().to_string()));
        load(&sources).unwrap().config
    }

    fn worst(data_dir: &Path) -> (Level, String) {
        let found = check(&config(data_dir)).into_iter().max_by_key(|it| it.level).unwrap();
        (found.level, found.seen)
    }

    #[test]
    fn a_directory_is_made_where_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(worst(&folder.path().join("a/b/c")).0, Level::Ok);
        assert_eq!(existing(&folder.path().join("a/b/c")), folder.path());
        assert_eq!(worst(folder.path()).0, Level::Ok);
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is written");
    }

    #[test]
    fn what_is_no_directory_of_this_program_is_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(worst(&file), (Level::Problem, format!("{} is a file", file.display())));
        assert_eq!(worst(&file.join("below")).0, Level::Problem);
        let data = folder.path().join("data");
        fs::create_dir_all(data.join("shard-000")).unwrap();
        fs::write(data.join("shard-000/manifest"), "from another world").unwrap();
        assert_eq!(worst(&data).0, Level::Problem);
    }

    #[test]
    fn others_must_not_write_nor_read_what_is_plain() {
        let folder = tempfile::tempdir().unwrap();
        for (mode, is_plain, is_told) in
            [(0o700, true, false), (0o755, false, false), (0o755, true, true), (0o770, false, true)]
        {
            assert_eq!(permissions(folder.path(), mode, is_plain).is_some(), is_told, "{mode:o}");
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(worst(folder.path()).0, Level::Warning);
        let found = judge_owner(Path::new("/d/shard-000/x"), 0, 1_000);
        assert!(found.level == Level::Problem && found.seen.contains("user 0"), "{found:?}");
    }

    #[test]
    fn room_is_judged_by_the_settings() {
        for (free, files, level) in [
            (u64::MAX, None, Level::Ok),
            (2_000, Some(1_000), Level::Ok),
            (2_000, Some(0), Level::Warning),
            (999, None, Level::Warning),
            (0, Some(0), Level::Problem),
        ] {
            assert_eq!(judge_room(free, files, 1_000, 100).level, level, "{free}");
        }
        assert_eq!(judge_room(0, None, 0, 0).level, Level::Ok);
    }
}
