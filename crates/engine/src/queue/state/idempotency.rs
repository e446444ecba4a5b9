//! Idempotency keys: what the first send with a key gave, within a window.

use crate::hash::hash;
use crate::queue::state::RememberedSlot;
use crate::store::NIL;
use crate::store::hash_index::HashIndex;
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// Keys that one send forgets at most, when they are over age or number.
const FORGET_PER_SEND: usize = 8;

/// A send that is remembered by its idempotency key.
#[derive(Clone, Debug)]
pub(crate) struct Remembered {
    /// Number of the queue: the key is its own in each.
    queue: u32,
    key: Box<[u8]>,
    pub(crate) request_digest: u64,
    /// Sequence of the first message.
    pub(crate) first: u64,
    pub(crate) count: u32,
    /// Items that were duplicates by their unique key, and the sequences of the messages that they are
    /// duplicates of.
    pub(crate) duplicates: Box<[(u32, u64)]>,
    at_us: u64,
    /// The next younger one, or the next vacant slot.
    next: RememberedSlot,
    vacant: bool,
}

impl PlainItem for Remembered {
    const BLOCK: usize = 32;

    fn vacant(next: RememberedSlot) -> Self {
        Remembered {
            queue: NIL,
            key: Box::default(),
            request_digest: 0,
            first: 0,
            count: 0,
            duplicates: Box::default(),
            at_us: 0,
            next,
            vacant: true,
        }
    }

    fn next_vacant(&self) -> Option<RememberedSlot> {
        self.vacant.then_some(self.next)
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.next.write(out);
        out.u32(self.queue);
        out.bytes16(&self.key);
        out.u64(self.request_digest);
        out.u64(self.first);
        out.u32(self.count);
        out.u64(self.at_us);
        out.u32(self.duplicates.len() as u32);
        for &(item, sequence) in &self.duplicates {
            out.u32(item);
            out.u64(sequence);
        }
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let next = Slot::read(reader)?;
        let mut remembered = Remembered {
            queue: reader.u32()?,
            key: reader.bytes16()?.into(),
            request_digest: reader.u64()?,
            first: reader.u64()?,
            count: reader.u32()?,
            duplicates: Box::default(),
            at_us: reader.u64()?,
            next,
            vacant: false,
        };
        let count = reader.u32()?;
        let read = |_| Some((reader.u32()?, reader.u64()?));
        remembered.duplicates = (0..count).map(read).collect::<Option<_>>()?;
        Some(remembered)
    }
}

impl Remembered {
    /// The sequence of each item's message, in order: new ones follow each other from the first on.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = u64> + '_ {
        let (mut fresh, mut duplicates) = (self.first, self.duplicates.iter().peekable());
        (0..self.count).map(move |item| match duplicates.next_if(|(at, _)| *at == item) {
            Some((_, sequence)) => *sequence,
            None => {
                fresh += 1;
                fresh - 1
            }
        })
    }
}

/// All keys, in the order of their first use.
#[derive(Debug)]
pub(crate) struct Idempotency {
    pub(crate) slots: Slab<Remembered, 1024>,
    index: HashIndex<Remembered>,
    oldest: RememberedSlot,
    newest: RememberedSlot,
    /// Duplicates that all of them remember. Derived.
    duplicates: u64,
}

impl Default for Idempotency {
    fn default() -> Self {
        Idempotency {
            slots: Slab::default(),
            index: HashIndex::default(),
            oldest: Slot::NIL,
            newest: Slot::NIL,
            duplicates: 0,
        }
    }
}

fn key_hash(queue: u32, key: &[u8]) -> u64 {
    hash(u64::from(queue), key)
}

impl HeadPart for Idempotency {
    fn write_head(&self, out: &mut Vec<u8>) {
        self.oldest.write(out);
        self.newest.write(out);
        self.slots.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let (oldest, newest) = (Slot::read(reader)?, Slot::read(reader)?);
        Some(Idempotency { slots: Slab::read_head(reader)?, oldest, newest, ..Idempotency::default() })
    }
}

impl Idempotency {
    /// The first send with this key, if it is within the window.
    pub(crate) fn find(&self, queue: u32, key: &[u8], now_us: u64, window_us: u64) -> Option<&Remembered> {
        let slot = self.lookup(queue, key)?;
        let remembered = self.slots.get(slot);
        (now_us.saturating_sub(remembered.at_us) < window_us).then_some(remembered)
    }

    fn lookup(&self, queue: u32, key: &[u8]) -> Option<RememberedSlot> {
        self.index.find(key_hash(queue, key), |slot| {
            let remembered = self.slots.get(slot);
            remembered.queue == queue && *remembered.key == *key
        })
    }

    /// Remembers a send, and forgets a few that are over age or number. The key is not within the window.
    pub(crate) fn remember(&mut self, sent: Sent<'_>, now_us: u64, window_us: u64, keys_max: u32) {
        self.forget(now_us, window_us, keys_max);
        if keys_max == 0 {
            return;
        }
        let hash = key_hash(sent.queue, sent.key);
        if let Some(outdated) = self.lookup(sent.queue, sent.key) {
            // The newer one takes its place in the index; the outdated one is forgotten in its turn.
            self.index.remove(hash, outdated);
        }
        self.duplicates += sent.duplicates.len() as u64;
        let slot = self.slots.insert(Remembered {
            queue: sent.queue,
            key: sent.key.into(),
            request_digest: sent.request_digest,
            first: sent.first,
            count: sent.count,
            duplicates: sent.duplicates,
            at_us: now_us,
            next: Slot::NIL,
            vacant: false,
        });
        self.index.insert(hash, slot);
        let before = std::mem::replace(&mut self.newest, slot);
        if before == Slot::NIL {
            self.oldest = slot;
        } else {
            self.slots.get_mut(before).next = slot;
        }
    }

    /// Duplicates that all keys remember together.
    pub(crate) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Forgets a few keys that are over age or number.
    pub(crate) fn forget(&mut self, now_us: u64, window_us: u64, keys_max: u32) {
        for _ in 0..FORGET_PER_SEND {
            if self.oldest == Slot::NIL {
                return;
            }
            let oldest = self.slots.get(self.oldest);
            let outdated = now_us.saturating_sub(oldest.at_us) >= window_us;
            if !outdated && self.slots.used() < keys_max {
                return;
            }
            let slot = self.oldest;
            let gone = self.slots.remove(slot);
            self.duplicates -= gone.duplicates.len() as u64;
            self.index.remove(key_hash(gone.queue, &gone.key), slot);
            self.oldest = gone.next;
            if gone.next == Slot::NIL {
                self.newest = Slot::NIL;
            }
        }
    }

    /// Derives the index after all slots were read.
    pub(crate) fn rebuild(&mut self) {
        let mut at = self.oldest;
        while at != Slot::NIL {
            let remembered = self.slots.get(at);
            self.duplicates += remembered.duplicates.len() as u64;
            let hash = key_hash(remembered.queue, &remembered.key);
            let outdated = self.lookup(remembered.queue, &remembered.key);
            if let Some(outdated) = outdated {
                self.index.remove(hash, outdated);
            }
            self.index.insert(hash, at);
            at = self.slots.get(at).next;
        }
    }

    /// Compares index and slots.
    pub(crate) fn recount(&self) -> Result<(), String> {
        let (mut at, mut seen) = (self.oldest, 0u32);
        while at != Slot::NIL {
            let remembered = self.slots.get(at);
            if self.lookup(remembered.queue, &remembered.key).is_none() {
                return Err(format!("idempotency key in slot {at} is not in the index"));
            }
            seen += 1;
            at = remembered.next;
        }
        let duplicates: u64 =
            self.slots.iter().map(|(_, remembered)| remembered.duplicates.len() as u64).sum();
        if duplicates != self.duplicates {
            return Err(format!("idempotency: {duplicates} duplicates, kept {}", self.duplicates));
        }
        if seen != self.slots.used() || self.index.len() > seen {
            let (used, indexed) = (self.slots.used(), self.index.len());
            return Err(format!("idempotency: {seen} listed, {used} slots, {indexed} indexed"));
        }
        Ok(())
    }
}

/// A send to be remembered.
pub(crate) struct Sent<'a> {
    pub(crate) queue: u32,
    pub(crate) key: &'a [u8],
    pub(crate) request_digest: u64,
    pub(crate) first: u64,
    pub(crate) count: u32,
    pub(crate) duplicates: Box<[(u32, u64)]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(key: &[u8], first: u64) -> Sent<'_> {
        Sent { queue: 1, key, request_digest: 5, first, count: 1, duplicates: Box::default() }
    }

    #[test]
    fn keys_are_forgotten_by_age_and_by_number() {
        let mut keys = Idempotency::default();
        for n in 0..10u64 {
            keys.remember(sent(&n.to_le_bytes(), n), n, 100, 5);
        }
        assert_eq!(keys.slots.used(), 5);
        assert!(keys.find(1, &4u64.to_le_bytes(), 10, 100).is_none());
        assert_eq!(keys.find(1, &5u64.to_le_bytes(), 10, 100).map(|r| r.first), Some(5));
        assert!(keys.find(2, &5u64.to_le_bytes(), 10, 100).is_none());
        assert!(keys.find(1, &5u64.to_le_bytes(), 105, 100).is_none());
        keys.remember(sent(&5u64.to_le_bytes(), 77), 105, 100, 5);
        assert_eq!(keys.find(1, &5u64.to_le_bytes(), 106, 100).map(|r| r.first), Some(77));
        keys.recount().unwrap();
        keys.remember(sent(b"last", 1), 1_000, 100, 5);
        assert_eq!(keys.slots.used(), 1);
        keys.recount().unwrap();
    }
}
