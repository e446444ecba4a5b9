//! The key file: reading it, creating it, adding a key to it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use sluice_journal::RootKey;
use sluice_journal::keys::SystemRandom;
use sluice_node::StartError;
use zeroize::Zeroizing;

/// The comment at the beginning of a key file that a server creates.
const ABOUT: &str = "\
# Root keys of Sluice, the key for new data first.
# Keep a copy elsewhere: without these keys the data cannot be read.
# Anybody who has these keys and the data, or a backup of it, can read everything.
";

/// Suffix of a key file that is being written, after the id of the process.
const PART: &str = ".part";
/// Maximum size of a key file in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// The default path of the key file, beside the data directory.
pub(super) fn default_path(data_dir: &Path) -> Result<PathBuf, String> {
    let path = whole(data_dir);
    let Some(name) = path.file_name() else {
        return Err(format!(
            "there is no place beside the data directory {} for its key file: name a file with --key-source \
            file:PATH",
            data_dir.display()
        ));
    };
    let mut name = OsString::from(name);
    name.push(".key");
    Ok(path.with_file_name(name))
}

/// True when a file lies in a directory or below it, whatever links lead to both.
pub(super) fn is_within(path: &Path, dir: &Path) -> bool {
    let real = |path: &Path| {
        let path = whole(path);
        // A path that does not exist yet cannot be a link.
        let there = path.ancestors().find_map(|above| Some((above.canonicalize().ok()?, above)));
        there.map_or_else(
            || path.clone(),
            |(real, above)| real.join(path.strip_prefix(above).unwrap_or(Path::new(""))),
        )
    };
    real(path).starts_with(real(dir))
}

/// Makes a path absolute, and removes `.` and `..`.
fn whole(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components() {
        match part {
            Component::ParentDir => _ = whole.pop(),
            part => whole.push(part),
        }
    }
    whole
}

/// Reads the file; `None` if it does not exist. Warns if others than the owner may read it.
pub(super) fn read(path: &Path) -> Result<Option<Zeroizing<String>>, String> {
    let failed = |error: io::Error| format!("cannot read the key file {}: {error}", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let about = file.metadata().map_err(failed)?;
    if about.is_file() && about.permissions().mode() & 0o077 != 0 {
        tracing::warn!("others than its owner may read the key file {}: use chmod 600", path.display());
    }
    let mut text = Zeroizing::new(String::new());
    file.take(BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    Ok(Some(text))
}

/// Creates a key file with a new key, readable by the owner only. An existing file is kept.
pub(super) fn make(path: &Path) -> Result<(), StartError> {
    let failed = |error: io::Error| {
        let told = format!(
            "cannot create the key file {}: {error}; name another place with --key-source file:PATH, or turn \
             encryption off with --no-encryption",
            path.display()
        );
        StartError::of_io(&error, told)
    };
    let key = RootKey::generate(&SystemRandom).map_err(failed)?;
    if let Some(above) = path.parent() {
        fs::create_dir_all(above).map_err(failed)?;
    }
    let text = Zeroizing::new(format!("{ABOUT}{}\n", *key.to_text()));
    let aside = write_aside(path, |file| file.write_all(text.as_bytes())).map_err(failed)?;
    // Unlike a rename, a link never replaces an existing key file.
    let linked = fs::hard_link(&aside, path);
    fs::remove_file(&aside).map_err(failed)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
        _ => sync_above(path).map_err(failed),
    }
}

/// Adds a new key before the others in a key file.
pub(super) fn add(path: &Path, key: &RootKey) -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot replace the key file {}: {error}", path.display());
    let old = read(path)?.unwrap_or_default();
    let (about, keys) = old.split_at(head_len(&old));
    let text = Zeroizing::new(format!("{about}{}\n{keys}", *key.to_text()));
    // A symbolic link stays: the file that it leads to is replaced.
    let path = path.canonicalize().map_err(failed)?;
    let aside = write_aside(&path, |file| file.write_all(text.as_bytes())).map_err(failed)?;
    fs::rename(&aside, &path).and_then(|()| sync_above(&path)).map_err(failed)
}

/// Length of the comment lines before the first key, in bytes.
fn head_len(text: &str) -> usize {
    let is_head = |line: &&str| line.trim_start().starts_with('#') || line.trim().is_empty();
    text.split_inclusive('\n').take_while(is_head).map(str::len).sum()
}

/// Removes unfinished key files of servers that were killed while they wrote them: they contain keys.
pub(super) fn remove_leftovers(path: &Path) {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let Some(entries) = path.parent().and_then(|above| fs::read_dir(above).ok()) else { return };
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return };
    for entry in entries.flatten() {
        let number = |part: OsString| {
            part.to_str()?.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(PART)?.parse().ok()
        };
        let Some(writer) = number(entry.file_name()).and_then(Pid::from_raw) else { continue };
        // A file with the id of this process was left by an earlier process with the same id, as in a
        // container.
        let is_this = writer.as_raw_nonzero().get().cast_unsigned() == std::process::id();
        if !is_this && test_kill_process(writer) != Err(Errno::SRCH) {
            continue;
        }
        let left = entry.path();
        match fs::remove_file(&left) {
            Ok(()) => tracing::info!("removed {}, left by a server that was killed", left.display()),
            Err(error) => tracing::warn!("cannot remove {}, which holds keys: {error}", left.display()),
        }
    }
}

/// Writes a file beside another one, readable by the owner only, and syncs it. Removes it if it could not be
/// written completely.
fn write_aside(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<PathBuf> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}{PART}", std::process::id()));
    let aside = path.with_file_name(name);
    // The rest of an earlier process with this id.
    match fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
    match write(&mut file).and_then(|()| file.sync_all()) {
        Ok(()) => Ok(aside),
        Err(error) => {
            let _ = fs::remove_file(&aside);
            Err(error)
        }
    }
}

fn sync_above(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(above)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_written_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.key");
        let full = |file: &mut File| {
            file.write_all(b"a part of a key")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        assert_eq!(write_aside(&path, full).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
