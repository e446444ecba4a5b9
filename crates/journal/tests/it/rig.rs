//! A server in miniature: a journal whose state is the set of live blobs, which is also its snapshot.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sluice_journal::*;

use crate::faulty::Faults;

/// What every snapshot here is given as its behaviour version.
pub(crate) const BEHAVIOUR: u32 = 0x0102_0304;

pub(crate) struct Rig {
    pub(crate) journal: DiskJournal,
    pub(crate) writer: Writer,
    pub(crate) maintenance: Maintenance,
    pub(crate) backups: Backups,
    pub(crate) keyring: Keyring,
    pub(crate) report: RecoveryReport,
    /// What the engine would refer to: live blobs with the text that each must hold.
    pub(crate) live: BTreeMap<BlobKey, Vec<u8>>,
    /// Bodies of the records after the snapshot that were replayed.
    pub(crate) replayed: Vec<(u64, Vec<u8>)>,
    pub(crate) applied: u64,
    /// The behaviour version of the snapshot that was found.
    pub(crate) behaviour: Option<u32>,
    pub(crate) now_us: u64,
}

/// Small segments and caches, and everything encrypted.
pub(crate) fn options(dir: &Path) -> Options {
    Options { encryption: encryption(roots()), ..plain(dir) }
}

/// As [`options`], and nothing encrypted.
pub(crate) fn plain(dir: &Path) -> Options {
    Options {
        durability: Durability::Always,
        segment_bytes: 64 << 10,
        snapshot_log_bytes: 64 << 10,
        reserve_bytes: 64 << 10,
        full_margin_bytes: 64 << 10,
        low_water_bytes: 0,
        cache_bytes: 8 << 10,
        identity: 7,
        ..Options::new(dir)
    }
}

/// The root key that [`options`] gives.
pub(crate) fn roots() -> RootKeys {
    RootKeys::new(vec![root(1)])
}

/// A root key of this name.
pub(crate) fn root(number: u8) -> RootKey {
    RootKey::new([number; 32])
}

/// Encrypts under the first of these.
pub(crate) fn encryption(roots: RootKeys) -> Encryption {
    Encryption { random: Arc::new(Counted), ..Encryption::with(roots) }
}

/// Bytes that are new each time, the same in each run of a test by itself.
#[derive(Debug)]
struct Counted;

impl Random for Counted {
    fn fill(&self, bytes: &mut [u8]) -> std::io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        for part in bytes.chunks_mut(8) {
            // An odd factor: no two counts give the same.
            let value = COUNT.fetch_add(1, Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            part.copy_from_slice(&value.to_le_bytes()[..part.len()]);
        }
        Ok(())
    }
}

impl Rig {
    pub(crate) fn open(dir: &Path) -> Rig {
        Rig::try_open(options(dir)).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn try_open(options: Options) -> Result<Rig, OpenError> {
        Rig::try_open_on(Faults::new().1, options)
    }

    pub(crate) fn try_open_on(disk: Arc<dyn Disk>, options: Options) -> Result<Rig, OpenError> {
        let opened = DiskJournal::open(disk, options)?;
        let Opened { journal, writer, maintenance, backups, keyring, snapshot, mut replay, report, .. } =
            opened;
        let mut rig = Rig {
            journal,
            writer,
            maintenance,
            backups,
            keyring,
            report,
            live: BTreeMap::new(),
            replayed: Vec::new(),
            applied: 0,
            behaviour: None,
            now_us: 0,
        };
        if let Some(mut snapshot) = snapshot {
            rig.applied = snapshot.applied_index;
            rig.behaviour = Some(snapshot.behaviour);
            while let Some(piece) = snapshot.next_piece()? {
                rig.restore_piece(&piece);
            }
        }
        while let Some(batch) = replay.next_batch()? {
            rig.apply(&batch, true);
        }
        let live: Vec<_> = rig.live.iter().map(|(key, blob)| (*key, blob.len() as u32)).collect();
        rig.journal.set_live(live)?;
        Ok(rig)
    }

    /// A record whose blobs become live.
    pub(crate) fn send(&mut self, blobs: &[&[u8]]) -> u64 {
        self.propose(b"send", blobs, Class::Growing).unwrap()
    }

    /// A record that settles a blob.
    pub(crate) fn settle(&mut self, key: BlobKey) {
        let mut body = b"settle".to_vec();
        body.extend_from_slice(&key.index.to_le_bytes());
        body.extend_from_slice(&key.item.to_le_bytes());
        self.propose(&body, &[], Class::Draining).unwrap();
    }

    pub(crate) fn propose(&mut self, body: &[u8], blobs: &[&[u8]], class: Class) -> Result<u64, Refused> {
        let mut batch = Batch::new();
        let mut record = batch.record(blobs.len() as u32);
        record.body(body);
        for blob in blobs {
            record.blob(&[blob]);
        }
        drop(record);
        self.now_us += 10;
        self.journal.propose(&mut batch, 1_000_000 + self.now_us, class)
    }

    /// Writes and applies everything.
    pub(crate) fn commit(&mut self) {
        self.writer.step();
        self.poll();
    }

    pub(crate) fn poll(&mut self) {
        while let Some(event) = self.journal.poll() {
            match event {
                Event::Committed(committed) => self.apply(&committed, false),
                other => panic!("{other:?}"),
            }
        }
    }

    fn apply(&mut self, committed: &Committed, replay: bool) {
        for (index, record) in (committed.first_index..).zip(committed.records()) {
            assert_eq!(index, self.applied + 1, "records come in order");
            self.applied = index;
            if replay {
                self.replayed.push((index, record.body.to_vec()));
            }
            for item in 0..record.blob_count() {
                self.live.insert(BlobKey { index, item }, record.blob(item).unwrap().to_vec());
            }
            if let Some(key) = record.body.strip_prefix(b"settle") {
                let index = u64::from_le_bytes(key[..8].try_into().unwrap());
                let item = u32::from_le_bytes(key[8..12].try_into().unwrap());
                self.live.remove(&BlobKey { index, item });
                self.journal.release(BlobKey { index, item });
            }
        }
    }

    /// Takes a snapshot now, to its end.
    pub(crate) fn snapshot(&mut self) {
        self.journal.snapshot_begin(self.applied, 1_000_000 + self.now_us, BEHAVIOUR);
        for (key, blob) in &self.live {
            let mut piece = key.index.to_le_bytes().to_vec();
            piece.extend_from_slice(&key.item.to_le_bytes());
            piece.extend_from_slice(blob);
            let mut piece = Some(piece);
            while let Some(again) = piece.take() {
                piece = self.journal.snapshot_piece(again).err();
                if piece.is_some() {
                    self.maintenance.step(self.now_us);
                }
            }
        }
        self.journal.snapshot_finish();
        self.settle_down();
        assert!(!self.journal.snapshot_running());
    }

    fn restore_piece(&mut self, piece: &[u8]) {
        let index = u64::from_le_bytes(piece[..8].try_into().unwrap());
        let item = u32::from_le_bytes(piece[8..12].try_into().unwrap());
        self.live.insert(BlobKey { index, item }, piece[12..].to_vec());
    }

    /// Lets everything in the background come to rest, over some seconds.
    pub(crate) fn settle_down(&mut self) {
        for _ in 0..400 {
            self.now_us += 10_000;
            while self.maintenance.step(self.now_us) {}
            self.poll();
        }
    }

    pub(crate) fn read(&mut self, key: BlobKey) -> Vec<u8> {
        match self.journal.read(key) {
            BlobRead::Cached(blob) => blob.to_vec(),
            BlobRead::OnDisk(location) => location.read().unwrap_or_else(|e| panic!("{e:?}")).to_vec(),
            BlobRead::Missing => panic!("{key:?} is missing"),
        }
    }

    /// Every live blob reads back as it was sent.
    pub(crate) fn read_all(&mut self) {
        for (key, blob) in self.live.clone() {
            assert_eq!(self.read(key), blob, "{key:?}");
        }
        assert_eq!(self.journal.live_blobs(), self.live.len() as u64);
    }
}

pub(crate) fn key(index: u64, item: u32) -> BlobKey {
    BlobKey { index, item }
}

/// The stored directory of the present format version, with every kind of file.
pub(crate) fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/every_kind")
}

/// Makes a directory with every kind of file in which five blobs are live.
pub(crate) fn make_every_kind(options: Options) {
    let dir = options.dir.clone();
    let options = Options { segment_bytes: 4 << 10, durability: Durability::Os, reserve_bytes: 0, ..options };
    let mut rig = Rig::try_open(options).unwrap();
    rig.send(&[b"settled", b"in a copied file"]);
    rig.settle(key(1, 0));
    rig.commit();
    for _ in 0..3 {
        let index = rig.send(&[&[7; 3000]]);
        rig.settle(key(index, 0));
        rig.commit();
        rig.settle_down();
    }
    rig.snapshot();
    rig.send(&[b"in a sealed segment", &[8; 3000]]);
    rig.commit();
    rig.send(&[&[9; 2000]]);
    rig.commit();
    rig.settle_down();
    rig.send(&[b"in the tail"]);
    rig.commit();
    assert_eq!(rig.live.len(), 5);
    assert!(!files(&dir, ".blobs").is_empty() && !files(&dir, ".table").is_empty());
}

/// Copies a data directory.
pub(crate) fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Names of the files with this ending.
pub(crate) fn files(dir: &Path, ending: &str) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    found.sort();
    found
}
