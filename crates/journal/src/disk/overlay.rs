//! A disk whose changes stay in memory: what would come of them can be looked at, and nothing is written.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::{DirLock, Disk, File, LockError, OpenMode};
use crate::lock::lock;

/// Length of the pieces in which changes are kept, in bytes.
const PAGE: u64 = 4 << 10;

/// A disk that reads another one and changes nothing of it. Takes the memory of all that is written. A file
/// that was opened to read before it was first opened to write shows what it was before.
#[derive(Debug)]
pub struct Overlay {
    base: Arc<dyn Disk>,
    /// Files that were made or opened to write; `None`: removed.
    files: Mutex<HashMap<PathBuf, Option<Arc<OverlayFile>>>>,
}

impl Overlay {
    /// A disk that begins as this one is.
    pub fn new(base: Arc<dyn Disk>) -> Overlay {
        Overlay { base, files: Mutex::default() }
    }

    /// The file of the other disk, where it was not changed here.
    fn unchanged(&self, path: &Path) -> io::Result<OverlayFile> {
        OverlayFile::over(self.base.open(path, OpenMode::Read)?)
    }
}

impl Disk for Overlay {
    fn create_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut files = lock(&self.files);
        let file = match (files.get(path), mode) {
            (Some(Some(file)), OpenMode::Read | OpenMode::Write) => return Ok(file.clone()),
            (Some(None), OpenMode::Read | OpenMode::Write) => return Err(io::ErrorKind::NotFound.into()),
            (None, OpenMode::Read) => return self.base.open(path, mode),
            (None, OpenMode::Write) => self.unchanged(path)?,
            (Some(None), OpenMode::CreateNew) => OverlayFile::default(),
            (Some(Some(_)), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (None, OpenMode::CreateNew) => match self.base.open(path, OpenMode::Read) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => OverlayFile::default(),
                Err(error) => return Err(error),
                Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            },
        };
        let file = Arc::new(file);
        files.insert(path.to_owned(), Some(file.clone()));
        Ok(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = lock(&self.files);
        let file = match files.get(from) {
            Some(Some(file)) => file.clone(),
            Some(None) => return Err(io::ErrorKind::NotFound.into()),
            None => Arc::new(self.unchanged(from)?),
        };
        files.insert(from.to_owned(), None);
        files.insert(to.to_owned(), Some(file));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut files = lock(&self.files);
        match files.get(path) {
            Some(Some(_)) => {}
            Some(None) => return Err(io::ErrorKind::NotFound.into()),
            None => _ = self.base.open(path, OpenMode::Read)?,
        }
        files.insert(path.to_owned(), None);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let files = lock(&self.files);
        let mut names = self.base.list(dir)?;
        names.retain(|name| !files.contains_key(&dir.join(name)));
        let here = files.iter().filter(|(path, file)| file.is_some() && path.parent() == Some(dir));
        names.extend(here.filter_map(|(path, _)| Some(path.file_name()?.to_string_lossy().into_owned())));
        Ok(names)
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.base.free_bytes(dir)
    }

    /// Refuses a directory that another process has, and does not keep others from taking it.
    fn lock(&self, dir: &Path) -> Result<Box<dyn DirLock>, LockError> {
        match self.base.is_locked(dir) {
            Ok(true) => Err(LockError::Held { pid: None }),
            Ok(false) => Ok(Box::new(NotHeld)),
            Err(error) => Err(LockError::Io(error)),
        }
    }

    fn is_locked(&self, dir: &Path) -> io::Result<bool> {
        self.base.is_locked(dir)
    }
}

#[derive(Debug)]
struct NotHeld;

impl DirLock for NotHeld {}

/// A file of the other disk with its changes, or a new one.
#[derive(Default, Debug)]
struct OverlayFile {
    base: Option<Arc<dyn File>>,
    content: Mutex<Content>,
}

#[derive(Default, Debug)]
struct Content {
    len: u64,
    /// Length up to which the other file shows where no page lies over it.
    shown: u64,
    /// Changed pages, by their numbers.
    pages: HashMap<u64, Vec<u8>>,
}

impl OverlayFile {
    fn over(base: Arc<dyn File>) -> io::Result<OverlayFile> {
        let len = base.len()?;
        let content = Content { len, shown: len, pages: HashMap::new() };
        Ok(OverlayFile { base: Some(base), content: Mutex::new(content) })
    }

    /// The content of a page, with zeros behind the end.
    fn page(&self, content: &Content, number: u64) -> io::Result<Vec<u8>> {
        if let Some(page) = content.pages.get(&number) {
            return Ok(page.clone());
        }
        let mut page = vec![0; PAGE as usize];
        let shown = content.shown.saturating_sub(number * PAGE).min(PAGE) as usize;
        if let Some(base) = &self.base {
            base.read_at(&mut page[..shown], number * PAGE)?;
        }
        Ok(page)
    }
}

impl File for OverlayFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = lock(&self.content);
        let len = content.len.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let mut done = 0;
        while done < len {
            let (number, from) = place(offset + done as u64);
            let page = self.page(&content, number)?;
            let count = (len - done).min(page.len() - from);
            buffer[done..done + count].copy_from_slice(&page[from..from + count]);
            done += count;
        }
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut content = lock(&self.content);
        let mut done = 0;
        while done < bytes.len() {
            let (number, from) = place(offset + done as u64);
            let mut page = self.page(&content, number)?;
            let count = (bytes.len() - done).min(page.len() - from);
            page[from..from + count].copy_from_slice(&bytes[done..done + count]);
            content.pages.insert(number, page);
            done += count;
        }
        content.len = content.len.max(offset + bytes.len() as u64);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut content = lock(&self.content);
        let (last, end) = place(len);
        content.pages.retain(|number, _| *number <= last);
        if let Some(page) = content.pages.get_mut(&last) {
            page[end..].fill(0);
        }
        (content.len, content.shown) = (len, content.shown.min(len));
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut content = lock(&self.content);
        content.len = content.len.max(len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.content).len)
    }
}

/// Number of the page of an offset, and the place in it.
fn place(offset: u64) -> (u64, usize) {
    (offset / PAGE, (offset % PAGE) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FsDisk;
    use crate::disk::read_exact_at;

    fn content(disk: &dyn Disk, path: &Path) -> Vec<u8> {
        let file = disk.open(path, OpenMode::Read).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        read_exact_at(&*file, &mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn a_changed_file_reads_as_on_a_disk_and_the_disk_has_what_it_had() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let before: Vec<u8> = (0..9_000).map(|at| (at % 251) as u8).collect();
        for dir in &dirs {
            std::fs::write(dir.path().join("a"), &before).unwrap();
        }
        let disks: [Arc<dyn Disk>; 2] = [Arc::new(FsDisk), Arc::new(Overlay::new(Arc::new(FsDisk)))];
        let changed = [0, 1].map(|at| {
            let (disk, path) = (&disks[at], dirs[at].path().join("a"));
            let file = disk.open(&path, OpenMode::Write).unwrap();
            file.write_at(&[7; 5_000], 3_000).unwrap();
            file.set_len(4_500).unwrap();
            file.write_at(b"end", 20_000).unwrap();
            file.allocate(30_000).unwrap();
            assert_eq!(file.read_at(&mut [0; 9], 29_996).unwrap(), 4);
            content(&**disk, &path)
        });
        assert_eq!(changed[0], changed[1]);
        assert_eq!(content(&FsDisk, &dirs[1].path().join("a")), before);
    }

    #[test]
    fn names_change_as_on_a_disk_and_the_disk_keeps_its_own() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        for name in ["a", "b", "c"] {
            dirs.iter().for_each(|dir| std::fs::write(dir.path().join(name), name).unwrap());
        }
        let disks: [Arc<dyn Disk>; 2] = [Arc::new(FsDisk), Arc::new(Overlay::new(Arc::new(FsDisk)))];
        for (disk, dir) in disks.iter().zip(&dirs) {
            let at = |name: &str| dir.path().join(name);
            disk.rename(&at("a"), &at("b")).unwrap();
            disk.remove(&at("c")).unwrap();
            disk.open(&at("new"), OpenMode::CreateNew).unwrap().write_at(b"new", 0).unwrap();
            for (name, mode) in [("a", OpenMode::Read), ("c", OpenMode::Write)] {
                assert_eq!(disk.open(&at(name), mode).unwrap_err().kind(), io::ErrorKind::NotFound);
            }
            for name in ["b", "new"] {
                let error = disk.open(&at(name), OpenMode::CreateNew).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            }
            assert!(disk.remove(&at("c")).is_err() && disk.rename(&at("a"), &at("d")).is_err());
            let mut names = disk.list(dir.path()).unwrap();
            names.sort_unstable();
            assert_eq!(names, ["b", "new"]);
            assert_eq!(
                (content(&**disk, &at("b")), content(&**disk, &at("new"))),
                (b"a".into(), b"new".into())
            );
        }
        let mut names = FsDisk.list(dirs[1].path()).unwrap();
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(content(&FsDisk, &dirs[1].path().join("b")), b"b");
    }

    #[test]
    fn a_directory_that_another_process_has_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let overlay = Overlay::new(Arc::new(FsDisk));
        let held = FsDisk.lock(dir.path()).unwrap();
        assert!(overlay.is_locked(dir.path()).unwrap());
        assert!(matches!(overlay.lock(dir.path()), Err(LockError::Held { .. })));
        drop(held);
        overlay.lock(dir.path()).unwrap();
    }
}
