//! The dynamic table (RFC 7541 §2.3.2, §4): a ring of fields, whose bytes lie one behind the other in one
//! storage.

use std::collections::VecDeque;

use super::{DEFAULT_TABLE_BYTES, field_bytes};

/// Fields that were sent before, newest first. Bounded by its size as §4.1 counts it; its storage is at most
/// twice as large.
#[derive(Debug)]
pub(super) struct DynamicTable {
    /// Oldest first.
    entries: VecDeque<Entry>,
    /// Bytes of the entries, in their order, behind those of entries that are gone.
    bytes: Vec<u8>,
    size_bytes: usize,
    max_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    start: usize,
    name_len: usize,
    value_len: usize,
    /// Hash of name and value, given by the caller that inserts.
    hash: u32,
}

impl Entry {
    fn size_bytes(&self) -> usize {
        self.name_len + self.value_len + super::FIELD_OVERHEAD_BYTES
    }
}

impl DynamicTable {
    /// An empty table of the size with which both sides begin.
    pub(super) fn new() -> DynamicTable {
        let max_bytes = DEFAULT_TABLE_BYTES as usize;
        DynamicTable { entries: VecDeque::new(), bytes: Vec::new(), size_bytes: 0, max_bytes }
    }

    /// Most bytes, counted as §4.1 does.
    pub(super) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    #[cfg(test)]
    pub(super) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Number of fields.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Changes the size, and evicts what has no place any more (§4.3).
    pub(super) fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
        self.evict_to(max_bytes);
        self.reclaim(0);
        self.bytes.shrink_to(2 * max_bytes);
    }

    /// Name and value of the field at an index, of which the newest has 0.
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let entry = self.entries.get(self.entries.len().checked_sub(index + 1)?)?;
        Some(self.field(entry))
    }

    /// The newest field of this name and value, which was inserted with this hash.
    pub(super) fn find(&self, hash: u32, name: &[u8], value: &[u8]) -> Option<usize> {
        self.entries.iter().rev().position(|entry| entry.hash == hash && self.field(entry) == (name, value))
    }

    /// The newest field of this name.
    pub(super) fn find_name(&self, name: &[u8]) -> Option<usize> {
        self.entries
            .iter()
            .rev()
            .position(|entry| entry.name_len == name.len() && self.field(entry).0 == name)
    }

    /// Inserts a field, for which older ones are evicted; a field larger than the table empties it (§4.4).
    pub(super) fn insert(&mut self, hash: u32, name: &[u8], value: &[u8]) {
        let needed = field_bytes(name, value);
        self.evict_to(self.max_bytes.saturating_sub(needed));
        if needed > self.max_bytes {
            return;
        }
        self.reclaim(name.len() + value.len());
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.entries.push_back(Entry { start, name_len: name.len(), value_len: value.len(), hash });
        self.size_bytes += needed;
    }

    fn field(&self, entry: &Entry) -> (&[u8], &[u8]) {
        self.bytes[entry.start..][..entry.name_len + entry.value_len].split_at(entry.name_len)
    }

    fn evict_to(&mut self, size_bytes: usize) {
        while self.size_bytes > size_bytes {
            let Some(oldest) = self.entries.pop_front() else { return };
            self.size_bytes -= oldest.size_bytes();
        }
    }

    /// Makes room for more bytes. Those of evicted entries are taken back when they are more than the others,
    /// so that each byte is moved once at most for each that came; storage grows to twice the table's size at
    /// most.
    fn reclaim(&mut self, more: usize) {
        let gone = self.entries.front().map_or(self.bytes.len(), |oldest| oldest.start);
        if gone > self.bytes.len() - gone {
            self.bytes.drain(..gone);
            self.entries.iter_mut().for_each(|entry| entry.start -= gone);
        }
        let needed = self.bytes.len() + more;
        if needed > self.bytes.capacity() {
            let capacity = (2 * self.bytes.capacity()).max(256).min(2 * self.max_bytes).max(needed);
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_fits_exactly_stays_and_one_byte_more_evicts() {
        let mut table = DynamicTable::new();
        table.set_max_bytes(2 * (32 + 10));
        table.insert(1, b"name1", b"value");
        table.insert(2, b"name2", b"value");
        assert_eq!((table.len(), table.size_bytes()), (2, 84));
        table.insert(3, b"name3", b"value6");
        assert_eq!((table.len(), table.size_bytes()), (1, 43), "both had to go");
        assert_eq!(table.get(0), Some((&b"name3"[..], &b"value6"[..])));
        assert_eq!((table.get(1), table.get(usize::MAX - 1)), (None, None));
        table.insert(4, &[b'n'; 60], b"");
        assert_eq!((table.len(), table.size_bytes()), (0, 0), "larger than the table: §4.4");
    }

    #[test]
    fn finds_the_newest() {
        let mut table = DynamicTable::new();
        for (hash, value) in [(1, b"a"), (2, b"b"), (1, b"a"), (3, b"c")] {
            table.insert(hash, b"name", value);
        }
        assert_eq!(table.find(1, b"name", b"a"), Some(1));
        assert_eq!(table.find(2, b"name", b"b"), Some(2));
        assert_eq!(table.find(1, b"name", b"b"), None, "the hash of another");
        assert_eq!(table.find_name(b"name"), Some(0));
        assert_eq!(table.find_name(b"nam"), None);
    }

    #[test]
    fn compared_with_a_plain_list_through_many_changes() {
        let mut table = DynamicTable::new();
        let mut list: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut chance = 7u64;
        let mut below = |bound: u64| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (chance >> 33) % bound
        };
        for _ in 0..3_000 {
            if below(50) == 0 {
                table.set_max_bytes(below(2_000) as usize);
            } else {
                let name = vec![below(256) as u8; below(20) as usize];
                let longest = if below(20) == 0 { 3_000 } else { 60 };
                let value = vec![below(256) as u8; below(longest) as usize];
                table.insert(0, &name, &value);
                list.insert(0, (name, value));
            }
            let size =
                |list: &[(Vec<u8>, Vec<u8>)]| list.iter().map(|(n, v)| n.len() + v.len() + 32).sum::<usize>();
            while size(&list) > table.max_bytes() {
                list.pop();
            }
            assert_eq!((table.len(), table.size_bytes()), (list.len(), size(&list)));
            for (index, (name, value)) in list.iter().enumerate() {
                assert_eq!(table.get(index), Some((&name[..], &value[..])));
            }
            assert!(table.bytes.capacity() <= 2 * 4_096);
        }
    }
}
