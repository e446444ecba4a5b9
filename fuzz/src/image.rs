//! A small data directory with everything in it: sealed segments, their tables, copied blobs, a snapshot, a
//! tail.
//!
//! Its state is the list of its records, as far as they are not settled: a record with blobs keeps them live
//! until a record `settle` with its index (`u64`) follows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sluice_journal::{
    Batch, BlobKey, Class, Committed, DiskJournal, Durability, Encryption, Event, Journal, OpenError, Opened, Options,
    Random, RootKey, RootKeys, check,
};

use crate::disk::MemDisk;

/// A data directory, and what was written to it.
#[derive(Debug)]
pub struct Image {
    pub disk: MemDisk,
    /// Bodies by index.
    pub bodies: BTreeMap<u64, Vec<u8>>,
    /// A backup of it.
    pub backup: Vec<u8>,
}

/// Where it lies.
pub fn dir() -> PathBuf {
    PathBuf::from("/data")
}

/// Small segments, nothing prefilled, no reserve.
pub fn options() -> Options {
    Options {
        durability: Durability::Os,
        cache_bytes: 0,
        reserve_bytes: 0,
        low_water_bytes: 0,
        full_margin_bytes: 0,
        segment_bytes: 4 << 10,
        snapshot_log_bytes: 4 << 10,
        scrub_bytes_per_s: 0,
        identity: 7,
        ..Options::new(dir())
    }
}

/// As [`options`], encrypted, with the same bytes each time.
pub fn encrypted() -> Options {
    let random = Arc::new(Counted::default());
    Options { encryption: Encryption { random, ..Encryption::with(roots()) }, ..options() }
}

/// The root keys of [`encrypted`].
pub fn roots() -> RootKeys {
    RootKeys::new(vec![RootKey::new([7; 32])])
}

/// Counts instead of drawing.
#[derive(Debug, Default)]
struct Counted(AtomicU64);

impl Random for Counted {
    fn fill(&self, bytes: &mut [u8]) -> std::io::Result<()> {
        for part in bytes.chunks_mut(8) {
            let count = self.0.fetch_add(1, Ordering::Relaxed);
            part.copy_from_slice(&count.to_le_bytes()[..part.len()]);
        }
        Ok(())
    }
}

/// Writes one.
pub fn make() -> Image {
    make_with(&options())
}

/// Writes one, with these options.
pub fn make_with(options: &Options) -> Image {
    let disk = MemDisk::default();
    let mut writing = Writing::open(&disk, options);
    for number in 0..60u64 {
        writing.send(&vec![number as u8; 200]);
        // Most are settled, so that compaction copies the few that stay.
        if number % 10 != 0 {
            writing.settle(number * 2 - number.div_ceil(10) + 1);
        }
    }
    writing.snapshot();
    for number in 0..4 {
        writing.send(&[number; 90]);
    }
    writing.rest();
    let backup = writing.backup();
    Image { bodies: writing.bodies, disk, backup }
}

struct Writing {
    opened: Opened,
    bodies: BTreeMap<u64, Vec<u8>>,
    live: BTreeMap<BlobKey, u32>,
    now_us: u64,
}

impl Writing {
    fn open(disk: &MemDisk, options: &Options) -> Writing {
        let mut opened = DiskJournal::open(Arc::new(disk.clone()), options.clone()).expect("an empty disk opens");
        opened.journal.set_live([]).expect("nothing is live");
        Writing { opened, bodies: BTreeMap::new(), live: BTreeMap::new(), now_us: 0 }
    }

    fn send(&mut self, blob: &[u8]) {
        self.propose(b"send".to_vec(), Some(blob));
    }

    fn settle(&mut self, index: u64) {
        let key = BlobKey { index, item: 0 };
        self.propose([&b"settle"[..], &index.to_le_bytes()].concat(), None);
        self.live.remove(&key).expect("a live blob is settled");
        self.opened.journal.release(key);
    }

    fn propose(&mut self, body: Vec<u8>, blob: Option<&[u8]>) {
        let mut batch = Batch::new();
        let mut record = batch.record(u32::from(blob.is_some()));
        record.body(&body);
        if let Some(blob) = blob {
            record.blob(&[blob]);
        }
        drop(record);
        self.now_us += 1_000;
        let index = self.opened.journal.propose(&mut batch, self.now_us, Class::Growing).expect("there is room");
        if let Some(blob) = blob {
            self.live.insert(BlobKey { index, item: 0 }, blob.len() as u32);
        }
        self.bodies.insert(index, body);
        self.opened.writer.step();
        self.poll();
    }

    fn poll(&mut self) {
        while let Some(event) = self.opened.journal.poll() {
            assert!(matches!(event, Event::Committed(_)), "{event:?}");
        }
    }

    fn snapshot(&mut self) {
        let index = *self.bodies.keys().last().expect("something was written");
        self.opened.journal.snapshot_begin(index, self.now_us, 1);
        for (key, len) in &self.live {
            let piece = [key.index.to_le_bytes().as_slice(), &len.to_le_bytes()].concat();
            self.opened.journal.snapshot_piece(piece).expect("little waits");
        }
        self.opened.journal.snapshot_finish();
        self.rest();
    }

    /// Lets maintenance come to rest, over some seconds.
    fn rest(&mut self) {
        for _ in 0..400 {
            self.now_us += 10_000;
            while self.opened.maintenance.step(self.now_us) {}
            self.poll();
        }
    }

    fn backup(&self) -> Vec<u8> {
        let mut backup = self.opened.backups.begin();
        let mut stream = Vec::new();
        while let Some(chunk) = backup.next_chunk().expect("memory is read") {
            stream.extend_from_slice(&chunk);
        }
        stream
    }
}

/// Opens what may be damaged, and reads everything in it. Returns the bodies that replay gave, by index; and
/// what the snapshot says is live.
pub fn read(disk: &MemDisk) -> Result<BTreeMap<u64, Vec<u8>>, OpenError> {
    read_with(disk, &options())
}

/// As [`read`], with these options.
pub fn read_with(disk: &MemDisk, options: &Options) -> Result<BTreeMap<u64, Vec<u8>>, OpenError> {
    // For what it finds, an offline check may say anything; it may not panic, nor change what follows.
    let _ = check(Arc::new(disk.clone()), Path::new("/data"), &roots());
    let Opened { mut journal, snapshot, mut replay, .. } =
        DiskJournal::open(Arc::new(disk.clone()), options.clone())?;
    let mut live = BTreeMap::new();
    if let Some(mut snapshot) = snapshot {
        while let Some(piece) = snapshot.next_piece()? {
            if let Some((index, len)) = piece.split_first_chunk::<8>() {
                let len = u32::from_le_bytes(len.try_into().unwrap_or_default());
                live.insert(BlobKey { index: u64::from_le_bytes(*index), item: 0 }, len);
            }
        }
    }
    let mut bodies = BTreeMap::new();
    while let Some(batch) = replay.next_batch()? {
        take(&batch, &mut bodies, &mut live);
    }
    journal.set_live(live.clone())?;
    for key in live.into_keys() {
        if let sluice_journal::BlobRead::OnDisk(location) = journal.read(key) {
            // Damage of a blob is told, and harms nothing else.
            let _ = location.read();
        }
    }
    Ok(bodies)
}

fn take(batch: &Committed, bodies: &mut BTreeMap<u64, Vec<u8>>, live: &mut BTreeMap<BlobKey, u32>) {
    for (index, record) in (batch.first_index..).zip(batch.records()) {
        bodies.insert(index, record.body.to_vec());
        if let Some(blob) = record.blob(0) {
            live.insert(BlobKey { index, item: 0 }, blob.len() as u32);
        }
        if let Some(Ok(settled)) = record.body.strip_prefix(b"settle").map(<[u8; 8]>::try_from) {
            live.remove(&BlobKey { index: u64::from_le_bytes(settled), item: 0 });
        }
    }
}
