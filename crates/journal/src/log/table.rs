//! Where blobs lie in a file.
//!
//! A log segment's table is dense by record: finding a blob is two reads. On disk (`N.table`): `u64` index of
//! the first record, `u32` records, `u32` blobs, then per record the `u32` ordinal of its first blob (and one
//! more for the end), then per blob `u32` offset and `u32` length; in an encrypted segment `u32` batches and
//! per batch the `u32` offset of its head follow, since a blob is read with its batch's head. A blob file's
//! table stands at its end, sorted by key: `u32` blobs, then per blob `u64` index, `u32` item, `u32` offset,
//! `u32` length. Offsets are of the blob itself; its checksum stands before it.

use crate::codec::{Put, Reader};
use crate::log::header::front;
use crate::seam::batch::Records;
use crate::seam::blob::BlobKey;

/// Bytes of one blob in the table of a file of copied blobs.
pub(crate) const BLOB_ENTRY: usize = 20;

/// Where one blob lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlobPlace {
    pub(crate) offset: u32,
    pub(crate) len: u32,
}

/// Blobs of a log segment.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct LogTable {
    first_index: u64,
    /// Per record the ordinal of its first blob.
    ordinals: Vec<u32>,
    places: Vec<BlobPlace>,
    /// Where the heads of batches lie; `None`: the segment is not encrypted.
    batches: Option<Vec<u32>>,
}

impl LogTable {
    pub(crate) fn new(first_index: u64, sealed: bool) -> LogTable {
        LogTable { first_index, batches: sealed.then(Vec::new), ..LogTable::default() }
    }

    /// Adds a batch whose records lie at this offset of the file.
    pub(crate) fn push(&mut self, records: &[u8], offset: u64) {
        let mut at = offset as u32;
        if let Some(batches) = &mut self.batches {
            batches.push(at - front(records.len(), true) as u32);
        }
        for record in Records::new(records) {
            self.ordinals.push(self.places.len() as u32);
            for item in 0..record.blob_count() {
                let (start, end) = record.encoded_blob_range(item).unwrap_or_default();
                self.places.push(BlobPlace { offset: at + start as u32, len: (end - start) as u32 });
            }
            at += record.encoded_len() as u32;
        }
    }

    fn ordinal(&self, key: BlobKey) -> Option<u32> {
        let record = key.index.checked_sub(self.first_index)? as usize;
        let first = *self.ordinals.get(record)?;
        let end = self.ordinals.get(record + 1).map_or(self.places.len() as u32, |ordinal| *ordinal);
        let ordinal = first.checked_add(key.item)?;
        (ordinal < end).then_some(ordinal)
    }

    fn key(&self, ordinal: u32) -> BlobKey {
        let record = self.ordinals.partition_point(|first| *first <= ordinal) - 1;
        BlobKey { index: self.first_index + record as u64, item: ordinal - self.ordinals[record] }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + self.ordinals.len() * 4 + self.places.len() * 8);
        out.put_u64(self.first_index);
        out.put_u32(self.ordinals.len() as u32);
        out.put_u32(self.places.len() as u32);
        self.ordinals.iter().for_each(|ordinal| out.put_u32(*ordinal));
        for place in &self.places {
            out.put_u32(place.offset);
            out.put_u32(place.len);
        }
        if let Some(batches) = &self.batches {
            out.put_u32(batches.len() as u32);
            batches.iter().for_each(|offset| out.put_u32(*offset));
        }
        out
    }

    fn decode(bytes: &[u8], sealed: bool) -> Option<LogTable> {
        let mut reader = Reader(bytes);
        let mut table = LogTable::new(reader.u64()?, sealed);
        let (records, blobs) = (reader.u32()? as usize, reader.u32()? as usize);
        if records.checked_mul(4)?.checked_add(blobs.checked_mul(8)?)? > reader.0.len() {
            return None;
        }
        table.ordinals = (0..records).map(|_| reader.u32()).collect::<Option<_>>()?;
        let ends = table.ordinals.iter().copied().chain([blobs as u32]);
        if !ends.is_sorted() {
            return None;
        }
        table.places = (0..blobs)
            .map(|_| Some(BlobPlace { offset: reader.u32()?, len: reader.u32()? }))
            .collect::<Option<_>>()?;
        if let Some(batches) = &mut table.batches {
            for _ in 0..reader.count(4)? {
                batches.push(reader.u32()?);
            }
        }
        reader.0.is_empty().then_some(table)
    }
}

/// Blobs of a file that compaction has written.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct BlobTable {
    keys: Vec<BlobKey>,
    places: Vec<BlobPlace>,
}

impl BlobTable {
    /// Adds a blob; keys must come in order.
    pub(crate) fn push(&mut self, key: BlobKey, place: BlobPlace) {
        debug_assert!(self.keys.last().is_none_or(|last| *last < key), "keys come in order");
        self.keys.push(key);
        self.places.push(place);
    }

    /// True when it has this blob.
    pub(crate) fn has(&self, key: BlobKey) -> bool {
        self.keys.binary_search(&key).is_ok()
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(4 + self.keys.len() * BLOB_ENTRY);
        out.put_u32(self.keys.len() as u32);
        for (key, place) in self.keys.iter().zip(&self.places) {
            out.put_u64(key.index);
            out.put_u32(key.item);
            out.put_u32(place.offset);
            out.put_u32(place.len);
        }
        out
    }

    fn decode(bytes: &[u8]) -> Option<BlobTable> {
        let mut reader = Reader(bytes);
        let count = reader.count(BLOB_ENTRY)?;
        let mut table = BlobTable::default();
        for _ in 0..count {
            table.keys.push(BlobKey { index: reader.u64()?, item: reader.u32()? });
            table.places.push(BlobPlace { offset: reader.u32()?, len: reader.u32()? });
        }
        (reader.0.is_empty() && table.keys.is_sorted()).then_some(table)
    }
}

/// A table of either kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Table {
    Log(LogTable),
    Blobs(BlobTable),
}

impl Table {
    /// Number of blobs.
    pub(crate) fn len(&self) -> u32 {
        self.places().len() as u32
    }

    /// An empty table for the segment after this one, with room for as much as is here: growing moves what is
    /// there.
    pub(crate) fn next_log(&self, first_index: u64, sealed: bool) -> LogTable {
        let (records, blobs, batches) = match self {
            Table::Log(table) => {
                (table.ordinals.len(), table.places.len(), table.batches.as_ref().map_or(0, Vec::len))
            }
            Table::Blobs(_) => (0, 0, 0),
        };
        let (ordinals, places) = (Vec::with_capacity(records), Vec::with_capacity(blobs));
        LogTable { first_index, ordinals, places, batches: sealed.then(|| Vec::with_capacity(batches)) }
    }

    /// Where the head of the batch lies that this blob came with; of use in an encrypted segment only.
    pub(crate) fn batch_of(&self, place: BlobPlace) -> u64 {
        let Table::Log(LogTable { batches: Some(batches), .. }) = self else { return 0 };
        // A blob lies behind its batch's head; an empty one at the end lies where the next head may begin.
        let after = batches.partition_point(|offset| *offset < place.offset);
        after.checked_sub(1).map_or(0, |at| u64::from(batches[at]))
    }

    /// Number of a blob within the file.
    pub(crate) fn ordinal(&self, key: BlobKey) -> Option<u32> {
        match self {
            Table::Log(table) => table.ordinal(key),
            Table::Blobs(table) => table.keys.binary_search(&key).ok().map(|at| at as u32),
        }
    }

    /// The blob with this number, which must be below [`Table::len`].
    pub(crate) fn key(&self, ordinal: u32) -> BlobKey {
        match self {
            Table::Log(table) => table.key(ordinal),
            Table::Blobs(table) => table.keys[ordinal as usize],
        }
    }

    /// Where the blob with this number lies, which must be below [`Table::len`].
    pub(crate) fn place(&self, ordinal: u32) -> BlobPlace {
        self.places()[ordinal as usize]
    }

    /// Where the last blob ends: whatever of the file lies before will not change any more.
    pub(crate) fn end(&self) -> u64 {
        self.places().last().map_or(0, |place| u64::from(place.offset) + u64::from(place.len))
    }

    fn places(&self) -> &[BlobPlace] {
        match self {
            Table::Log(table) => &table.places,
            Table::Blobs(table) => &table.places,
        }
    }

    /// The table's bytes for the disk; empty when a log segment has no blobs.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Table::Log(table) if table.places.is_empty() => Vec::new(),
            Table::Log(table) => table.encode(),
            Table::Blobs(table) => table.encode(),
        }
    }

    /// Reads a log segment's table.
    pub(crate) fn decode_log(bytes: &[u8], sealed: bool) -> Option<Table> {
        if bytes.is_empty() {
            return Some(Table::Log(LogTable::new(0, sealed)));
        }
        LogTable::decode(bytes, sealed).map(Table::Log)
    }

    /// Reads a blob file's table.
    pub(crate) fn decode_blobs(bytes: &[u8]) -> Option<Table> {
        BlobTable::decode(bytes).map(Table::Blobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seam::batch::Batch;

    fn key(index: u64, item: u32) -> BlobKey {
        BlobKey { index, item }
    }

    #[test]
    fn a_log_table_finds_each_blob() {
        let mut batch = Batch::new();
        let mut record = batch.record(2);
        record.body(b"x");
        record.blob(&[b"one"]);
        record.blob(&[b"three"]);
        drop(record);
        batch.record(0).body(b"bare");
        batch.record(1).blob(&[b"four"]);
        let (bytes, _) = batch.take();
        let mut log = LogTable::new(10, false);
        log.push(&bytes, 1000);
        let table = Table::Log(log);
        for (key, text) in [(key(10, 0), "one"), (key(10, 1), "three"), (key(12, 0), "four")] {
            let ordinal = table.ordinal(key).unwrap();
            let place = table.place(ordinal);
            let start = place.offset as usize - 1000;
            assert_eq!(&bytes[start..start + place.len as usize], text.as_bytes());
            assert_eq!(table.key(ordinal), key);
        }
        for missing in [key(9, 0), key(10, 2), key(11, 0), key(12, 1), key(13, 0)] {
            assert_eq!(table.ordinal(missing), None, "{missing:?}");
        }
        assert_eq!(Table::decode_log(&table.encode(), false), Some(table.clone()));
        assert_eq!(Table::decode_log(&table.encode()[1..], false), None);
        assert_eq!(Table::decode_log(&table.encode(), true), None);
    }

    #[test]
    fn an_encrypted_segments_table_knows_the_batch_of_each_blob() {
        let mut log = LogTable::new(1, true);
        let mut at = 0;
        let mut heads = Vec::new();
        for _ in 0..3 {
            let mut batch = Batch::new();
            batch.record(1).blob(&[&[7; 20_000]]);
            let (bytes, _) = batch.take();
            heads.push(at);
            at += front(bytes.len(), true) as u64;
            log.push(&bytes, at);
            at += bytes.len() as u64;
        }
        let table = Table::Log(log);
        let found: Vec<u64> = (0..3).map(|ordinal| table.batch_of(table.place(ordinal))).collect();
        assert_eq!(found, heads);
        assert_eq!(Table::decode_log(&table.encode(), true), Some(table.clone()));
        assert_eq!(Table::decode_log(&table.encode(), false), None);
    }

    #[test]
    fn a_blob_table_finds_each_blob() {
        let mut blobs = BlobTable::default();
        blobs.push(key(3, 1), BlobPlace { offset: 4, len: 5 });
        blobs.push(key(9, 0), BlobPlace { offset: 13, len: 2 });
        let table = Table::Blobs(blobs);
        assert_eq!(table.ordinal(key(9, 0)), Some(1));
        assert_eq!(table.ordinal(key(4, 0)), None);
        assert_eq!(Table::decode_blobs(&table.encode()), Some(table));
    }
}
