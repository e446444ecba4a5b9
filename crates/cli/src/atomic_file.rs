//! Files that appear under their name only when they are complete.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A file under an unpredictable name beside its target, until [`AtomicFile::finish`] renames it. Dropping it
/// before removes it.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    file: File,
    part: PathBuf,
    target: PathBuf,
    finished: bool,
}

impl AtomicFile {
    /// Creates a file with these permission bits. An existing file or link with the name of the part is never
    /// written to.
    pub(crate) fn create(target: &Path, mode: u32) -> io::Result<AtomicFile> {
        let part = unique_path_beside(target);
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&part)?;
        Ok(AtomicFile { file, part, target: target.to_owned(), finished: false })
    }

    /// Syncs the file, so that a full disk is noticed before anything is replaced.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Renames the file to its target, durably; an existing target is replaced.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.sync()?;
        fs::rename(&self.part, &self.target)?;
        self.finished = true;
        sync_folder_of(&self.target)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.finished {
            // The rest of a failed write is of no use and takes room.
            let _ = fs::remove_file(&self.part);
        }
    }
}

/// Returns an unpredictable path beside `target`, for a file or folder that is renamed when it is complete.
pub(crate) fn unique_path_beside(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:016x}.part", RandomState::new().hash_one(std::process::id())));
    target.with_file_name(name)
}

/// Makes a name durable by a sync of its folder.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_part_is_private_and_nobody_finds_it_under_a_name_that_can_be_foreseen() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("copy");
        let names = || fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
        let mut part = AtomicFile::create(&target, 0o600).unwrap();
        part.write_all(b"secret").unwrap();
        let [path] = &names()[..] else { panic!("{:?}", names()) };
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        let other = AtomicFile::create(&target, 0o600).unwrap();
        assert_ne!(other.part, part.part);
        drop(other);
        part.finish().unwrap();
        assert_eq!(names(), std::slice::from_ref(&target));
        assert_eq!(fs::read(&target).unwrap(), b"secret");
        drop(AtomicFile::create(&target, 0o600).unwrap());
        assert_eq!(names(), [target]);
    }
}
