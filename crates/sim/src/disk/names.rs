//! Directory entries: as processes see them, and as a power loss would leave them without a sync of the
//! directory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::rng::Rng;

/// Number of a file, independent of its names.
pub(super) type Inode = u64;

/// One change of a directory.
#[derive(Clone, Debug)]
enum Change {
    Insert(PathBuf, Inode),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf, Inode),
    MakeDir(PathBuf),
}

/// One view of the tree.
#[derive(Clone, Debug, Default)]
struct View {
    files: BTreeMap<PathBuf, Inode>,
    directories: BTreeSet<PathBuf>,
}

impl View {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Insert(path, inode) => {
                self.files.insert(path.clone(), *inode);
            }
            Change::Remove(path) => {
                self.files.remove(path);
            }
            Change::Rename(from, to, inode) => {
                self.files.remove(from);
                self.files.insert(to.clone(), *inode);
            }
            Change::MakeDir(path) => {
                self.directories.insert(path.clone());
            }
        }
    }

    /// Drops entries of directories that do not exist (any more).
    fn prune(&mut self) {
        let directories = self.directories.clone();
        let reachable = |path: &Path| {
            path.ancestors().skip(1).filter(|a| !a.as_os_str().is_empty()).all(|a| directories.contains(a))
        };
        self.directories.retain(|path| reachable(path));
        self.files.retain(|path, _| reachable(path));
    }
}

/// The names of all files.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    live: View,
    durable: View,
    /// Changes not yet durable, in order, each with the directory whose sync makes it durable.
    pending: Vec<(PathBuf, Change)>,
}

impl Names {
    /// A tree with this one directory, durable from the start.
    pub(super) fn with_root(root: &Path) -> Names {
        let mut names = Names::default();
        for view in [&mut names.live, &mut names.durable] {
            view.directories
                .extend(root.ancestors().filter(|a| !a.as_os_str().is_empty()).map(Path::to_path_buf));
        }
        names
    }

    pub(super) fn file(&self, path: &Path) -> Option<Inode> {
        self.live.files.get(path).copied()
    }

    pub(super) fn is_directory(&self, path: &Path) -> bool {
        self.live.directories.contains(path)
    }

    /// Files right inside a directory.
    pub(super) fn children<'a>(&'a self, directory: &'a Path) -> impl Iterator<Item = &'a PathBuf> {
        self.live.files.keys().filter(move |path| path.parent() == Some(directory))
    }

    /// All files, by path.
    pub(super) fn files(&self) -> impl Iterator<Item = (&PathBuf, Inode)> {
        self.live.files.iter().map(|(path, inode)| (path, *inode))
    }

    pub(super) fn insert(&mut self, path: &Path, inode: Inode) {
        self.change(Change::Insert(path.to_path_buf(), inode), path);
    }

    pub(super) fn remove(&mut self, path: &Path) {
        self.change(Change::Remove(path.to_path_buf()), path);
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path, inode: Inode) {
        self.change(Change::Rename(from.to_path_buf(), to.to_path_buf(), inode), to);
    }

    pub(super) fn make_directory(&mut self, path: &Path) {
        self.change(Change::MakeDir(path.to_path_buf()), path);
    }

    fn change(&mut self, change: Change, at: &Path) {
        self.live.apply(&change);
        let directory = at.parent().map(Path::to_path_buf).unwrap_or_default();
        self.pending.push((directory, change));
    }

    /// Makes all changes of this directory durable.
    pub(super) fn sync(&mut self, directory: &Path) {
        let durable = &mut self.durable;
        self.pending.retain(|(at, change)| {
            let covered = at == directory;
            if covered {
                durable.apply(change);
            }
            !covered
        });
    }

    /// Loses power: of the changes not synced, none, all, the first so many, or any survive.
    pub(super) fn lose_power(&mut self, rng: &mut Rng) {
        let pending = std::mem::take(&mut self.pending);
        let mode = rng.below(4);
        let first = rng.index(pending.len() + 1);
        for (number, (_, change)) in pending.iter().enumerate() {
            let survives = match mode {
                0 => false,
                1 => true,
                2 => number < first,
                _ => rng.chance(1, 2),
            };
            if survives {
                self.durable.apply(change);
            }
        }
        self.durable.prune();
        self.live = self.durable.clone();
    }

    /// Removes these names, and the directory; makes pending changes durable first.
    pub(super) fn lose(&mut self, files: &[(PathBuf, Inode)], directory: Option<&Path>) {
        for (_, change) in std::mem::take(&mut self.pending) {
            self.durable.apply(&change);
        }
        for view in [&mut self.live, &mut self.durable] {
            for (path, _) in files {
                view.files.remove(path);
            }
            if let Some(directory) = directory {
                view.directories.remove(directory);
            }
        }
    }

    /// Puts back what [`Names::lose`] has removed.
    pub(super) fn put_back(&mut self, files: &[(PathBuf, Inode)], directory: Option<&Path>) {
        for view in [&mut self.live, &mut self.durable] {
            view.files.extend(files.iter().cloned());
            view.directories.extend(directory.map(Path::to_path_buf));
        }
    }

    /// Inodes that some view can still reach.
    pub(super) fn reachable(&self) -> BTreeSet<Inode> {
        let pending = self.pending.iter().filter_map(|(_, change)| match change {
            Change::Insert(_, inode) | Change::Rename(_, _, inode) => Some(*inode),
            _ => None,
        });
        self.live.files.values().chain(self.durable.files.values()).copied().chain(pending).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_lost_without_a_sync_of_its_directory() {
        let root = Path::new("/data");
        let mut lost = 0;
        for seed in 0..64 {
            let mut names = Names::with_root(root);
            names.insert(Path::new("/data/synced"), 1);
            names.sync(root);
            names.insert(Path::new("/data/new"), 2);
            names.rename(Path::new("/data/new"), Path::new("/data/synced"), 2);
            names.lose_power(&mut Rng::new(seed));
            let found = names.file(Path::new("/data/synced"));
            assert!(found == Some(1) || found == Some(2), "a rename is whole or not at all");
            lost += u32::from(found == Some(1));
        }
        assert!((10..54).contains(&lost), "{lost}");
    }

    #[test]
    fn files_in_a_lost_directory_are_lost() {
        let root = Path::new("/data");
        let inner = root.join("inner");
        let kept = (0..64).filter(|&seed| {
            let mut names = Names::with_root(root);
            names.make_directory(&inner);
            names.insert(&inner.join("file"), 1);
            names.sync(&inner);
            names.lose_power(&mut Rng::new(seed));
            names.file(&inner.join("file")).is_some()
        });
        assert!((1..63).contains(&kept.count()), "the directory's own name was never synced");
    }
}
