//! Idempotency keys: what the first request with a key gave, within a window.

use crate::core::agree;
use crate::error::Error;
use crate::hash::hash;
use crate::store::NIL;
use crate::store::hash_index::HashIndex;
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// Keys that one request forgets at most, when they are over age or number.
const FORGET_AT_ONCE: usize = 8;

/// The part of an outcome that a repeat of the request is answered with.
pub(crate) trait Gave: Clone + std::fmt::Debug + Default {
    /// Entries that it takes besides its slot.
    fn entries(&self) -> u64;
    /// Writes what has a fixed length into a snapshot.
    fn write_fixed(&self, out: &mut Vec<u8>);
    /// Writes the entries into a snapshot.
    fn write_entries(&self, out: &mut Vec<u8>);
    /// Reads what [`Gave::write_fixed`] wrote.
    fn read_fixed(reader: &mut Reader<'_>) -> Option<Self>;
    /// Reads what [`Gave::write_entries`] wrote.
    fn read_entries(&mut self, reader: &mut Reader<'_>) -> Option<()>;
}

/// A request that is remembered by its idempotency key.
#[derive(Clone, Debug)]
pub(crate) struct Remembered<T> {
    /// The number of what it was made of: the key is its own in each.
    scope: u32,
    key: Box<[u8]>,
    pub(crate) request_digest: u64,
    pub(crate) gave: T,
    at_us: u64,
    /// The next younger one, or the next vacant slot.
    next: Slot<Remembered<T>>,
    vacant: bool,
}

impl<T: Gave> PlainItem for Remembered<T> {
    const BLOCK: usize = 32;

    fn vacant(next: Slot<Self>) -> Self {
        Remembered {
            scope: NIL,
            key: Box::default(),
            request_digest: 0,
            gave: T::default(),
            at_us: 0,
            next,
            vacant: true,
        }
    }

    fn next_vacant(&self) -> Option<Slot<Self>> {
        self.vacant.then_some(self.next)
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.next.write(out);
        out.u32(self.scope);
        out.bytes16(&self.key);
        out.u64(self.request_digest);
        self.gave.write_fixed(out);
        out.u64(self.at_us);
        self.gave.write_entries(out);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let mut remembered = Remembered {
            next: Slot::read(reader)?,
            scope: reader.u32()?,
            key: reader.bytes16()?.into(),
            request_digest: reader.u64()?,
            gave: T::read_fixed(reader)?,
            at_us: reader.u64()?,
            vacant: false,
        };
        remembered.gave.read_entries(reader)?;
        Some(remembered)
    }
}

/// All keys, in the order of their first use.
#[derive(Debug)]
pub(crate) struct Idempotency<T> {
    pub(crate) slots: Slab<Remembered<T>, 1024>,
    index: HashIndex<Remembered<T>>,
    oldest: Slot<Remembered<T>>,
    newest: Slot<Remembered<T>>,
    /// Entries that all of them take together. Derived.
    entries: u64,
}

impl<T: Gave> Default for Idempotency<T> {
    fn default() -> Self {
        Idempotency {
            slots: Slab::default(),
            index: HashIndex::default(),
            oldest: Slot::NIL,
            newest: Slot::NIL,
            entries: 0,
        }
    }
}

fn key_hash(scope: u32, key: &[u8]) -> u64 {
    hash(u64::from(scope), key)
}

impl<T: Gave> HeadPart for Idempotency<T> {
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

impl<T: Gave> Idempotency<T> {
    /// The first request with this key, if it is within the window.
    ///
    /// # Errors
    /// `idempotency_mismatch`: it was another request.
    pub(crate) fn find(
        &self,
        (scope, key, request_digest): (u32, &[u8], u64),
        now_us: u64,
        window_us: u64,
    ) -> Result<Option<&T>, Error> {
        let remembered = self.lookup(scope, key).map(|slot| self.slots.get(slot));
        match remembered.filter(|found| now_us.saturating_sub(found.at_us) < window_us) {
            Some(found) if found.request_digest != request_digest => {
                Err(Error::IdempotencyMismatch { key: String::from_utf8_lossy(key).into_owned() })
            }
            found => Ok(found.map(|found| &found.gave)),
        }
    }

    fn lookup(&self, scope: u32, key: &[u8]) -> Option<Slot<Remembered<T>>> {
        self.index.find(key_hash(scope, key), |slot| {
            let remembered = self.slots.get(slot);
            remembered.scope == scope && *remembered.key == *key
        })
    }

    /// Remembers what a request gave, and forgets a few that are over age or number. The key is not within
    /// the window.
    pub(crate) fn remember(
        &mut self,
        (scope, key, request_digest): (u32, &[u8], u64),
        gave: T,
        now_us: u64,
        window_us: u64,
        keys_max: u32,
    ) {
        self.forget(now_us, window_us, keys_max);
        if keys_max == 0 {
            return;
        }
        let hash = key_hash(scope, key);
        if let Some(outdated) = self.lookup(scope, key) {
            // The newer one takes its place in the index; the outdated one is forgotten in its turn.
            self.index.remove(hash, outdated);
        }
        self.entries += gave.entries();
        let (key, at_us, next) = (key.into(), now_us, Slot::NIL);
        let remembered = Remembered { scope, key, request_digest, gave, at_us, next, vacant: false };
        let slot = self.slots.insert(remembered);
        self.index.insert(hash, slot);
        let before = std::mem::replace(&mut self.newest, slot);
        if before == Slot::NIL {
            self.oldest = slot;
        } else {
            self.slots.get_mut(before).next = slot;
        }
    }

    /// Entries that all keys take together, besides their slots.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Forgets a few keys that are over age or number.
    pub(crate) fn forget(&mut self, now_us: u64, window_us: u64, keys_max: u32) {
        for _ in 0..FORGET_AT_ONCE {
            if self.oldest == Slot::NIL {
                return;
            }
            let oldest = self.slots.get(self.oldest);
            let outdated = now_us.saturating_sub(oldest.at_us) >= window_us;
            if !outdated && self.slots.used() < keys_max {
                return;
            }
            self.forget_oldest();
        }
    }

    /// Forgets the oldest keys until they have at most so many entries together.
    pub(crate) fn forget_down_to(&mut self, entries: u64) {
        while self.entries > entries && self.oldest != Slot::NIL {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let slot = self.oldest;
        let gone = self.slots.remove(slot);
        self.entries -= gone.gave.entries();
        self.index.remove(key_hash(gone.scope, &gone.key), slot);
        self.oldest = gone.next;
        if gone.next == Slot::NIL {
            self.newest = Slot::NIL;
        }
    }

    /// Derives the index after all slots were read.
    pub(crate) fn rebuild(&mut self) {
        let mut at = self.oldest;
        while at != Slot::NIL {
            let remembered = self.slots.get(at);
            self.entries += remembered.gave.entries();
            let hash = key_hash(remembered.scope, &remembered.key);
            let outdated = self.lookup(remembered.scope, &remembered.key);
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
            if self.lookup(remembered.scope, &remembered.key).is_none() {
                return Err(format!("idempotency key in slot {at} is not in the index"));
            }
            seen += 1;
            at = remembered.next;
        }
        let entries: u64 = self.slots.iter().map(|(_, remembered)| remembered.gave.entries()).sum();
        agree("entries of idempotency keys", entries, self.entries)?;
        if seen != self.slots.used() || self.index.len() > seen {
            let (used, indexed) = (self.slots.used(), self.index.len());
            return Err(format!("idempotency: {seen} listed, {used} slots, {indexed} indexed"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Gave for u64 {
        fn entries(&self) -> u64 {
            1
        }

        fn write_fixed(&self, out: &mut Vec<u8>) {
            out.u64(*self);
        }

        fn write_entries(&self, _out: &mut Vec<u8>) {}

        fn read_fixed(reader: &mut Reader<'_>) -> Option<u64> {
            reader.u64()
        }

        fn read_entries(&mut self, _reader: &mut Reader<'_>) -> Option<()> {
            Some(())
        }
    }

    #[test]
    fn keys_are_forgotten_by_age_and_by_number() {
        let mut keys = Idempotency::<u64>::default();
        let numbers: Vec<[u8; 8]> = (0..10u64).map(u64::to_le_bytes).collect();
        for (n, key) in (0..).zip(&numbers) {
            keys.remember((1, key, 5), n, n, 100, 5);
        }
        assert_eq!((keys.slots.used(), keys.entries), (5, 5));
        let find = |keys: &Idempotency<u64>, scope, n: usize, now_us| {
            keys.find((scope, &numbers[n], 5), now_us, 100).unwrap().copied()
        };
        assert_eq!(find(&keys, 1, 4, 10), None);
        assert_eq!(find(&keys, 1, 5, 10), Some(5));
        assert_eq!(find(&keys, 2, 5, 10), None);
        assert_eq!(find(&keys, 1, 5, 105), None);
        keys.remember((1, &numbers[5], 5), 77, 105, 100, 5);
        assert_eq!(find(&keys, 1, 5, 106), Some(77));
        assert!(keys.find((1, &numbers[5], 6), 106, 100).is_err(), "another request");
        keys.recount().unwrap();
        keys.forget_down_to(2);
        assert_eq!((keys.slots.used(), keys.entries), (2, 2));
        assert_eq!(find(&keys, 1, 5, 106), Some(77), "the newest stay");
        keys.recount().unwrap();
        keys.remember((1, b"last", 5), 1, 1_000, 100, 5);
        assert_eq!((keys.slots.used(), keys.entries), (1, 1));
        keys.recount().unwrap();
    }
}
