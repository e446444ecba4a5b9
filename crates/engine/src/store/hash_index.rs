//! A hash index that grows one bucket at a time (linear hashing, Litwin 1980), from hashes to slots
//! elsewhere.
//!
//! It holds no keys: who asks compares them in its own slots. It is derived from them, and is rebuilt after a
//! restart.

use crate::store::NIL;
use crate::store::arena::Arena;
use crate::store::slot::Slot;

/// Buckets at the start.
const BUCKETS_MIN: u32 = 16;

#[derive(Debug)]
struct Node<T> {
    hash: u32,
    value: Slot<T>,
    next: u32,
}

/// Values by hash; several values may share one.
#[derive(Debug)]
pub(crate) struct HashIndex<T> {
    heads: Arena<u32, 4096>,
    nodes: Arena<Node<T>, 4096>,
    vacant: u32,
    len: u32,
}

impl<T> Default for HashIndex<T> {
    fn default() -> Self {
        let mut heads = Arena::default();
        for _ in 0..BUCKETS_MIN {
            heads.push(NIL);
        }
        HashIndex { heads, nodes: Arena::default(), vacant: NIL, len: 0 }
    }
}

impl<T> HashIndex<T> {
    /// Values in the index.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The value with this hash for which `is_it` holds.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut is_it: impl FnMut(Slot<T>) -> bool) -> Option<Slot<T>> {
        let hash = hash as u32;
        let mut at = *self.heads.get(self.bucket(hash));
        while at != NIL {
            let node = self.nodes.get(at);
            if node.hash == hash && is_it(node.value) {
                return Some(node.value);
            }
            at = node.next;
        }
        None
    }

    /// Adds a value, which is not in the index yet.
    pub(crate) fn insert(&mut self, hash: u64, value: Slot<T>) {
        let hash = hash as u32;
        if self.len as usize >= self.heads.len() {
            self.split();
        }
        let is_new = self.vacant == NIL;
        let at = if is_new { self.nodes.len() as u32 } else { self.vacant };
        let bucket = self.bucket(hash);
        let next = std::mem::replace(self.heads.get_mut(bucket), at);
        let node = Node { hash, value, next };
        if is_new {
            self.nodes.push(node);
        } else {
            let place = self.nodes.get_mut(at);
            self.vacant = place.next;
            *place = node;
        }
        self.len += 1;
    }

    /// Takes a value out; false if it was not in.
    pub(crate) fn remove(&mut self, hash: u64, value: Slot<T>) -> bool {
        let hash = hash as u32;
        let bucket = self.bucket(hash);
        let (mut before, mut at) = (NIL, *self.heads.get(bucket));
        while at != NIL {
            let node = self.nodes.get(at);
            let next = node.next;
            if node.hash == hash && node.value == value {
                if before == NIL {
                    *self.heads.get_mut(bucket) = next;
                } else {
                    self.nodes.get_mut(before).next = next;
                }
                self.nodes.get_mut(at).next = self.vacant;
                self.vacant = at;
                self.len -= 1;
                return true;
            }
            (before, at) = (at, next);
        }
        false
    }

    #[inline]
    fn bucket(&self, hash: u32) -> u32 {
        let buckets = self.heads.len() as u32;
        let mask = buckets.next_power_of_two() - 1;
        let bucket = hash & mask;
        if bucket < buckets { bucket } else { bucket & (mask >> 1) }
    }

    /// Adds one bucket, and moves to it what belongs there from the one bucket that shared its hashes.
    fn split(&mut self) {
        let new = self.heads.len() as u32;
        let old = new - (1 << new.ilog2());
        self.heads.push(NIL);
        let mut at = std::mem::replace(self.heads.get_mut(old), NIL);
        while at != NIL {
            let bucket = self.bucket(self.nodes.get(at).hash);
            let head = std::mem::replace(self.heads.get_mut(bucket), at);
            at = std::mem::replace(&mut self.nodes.get_mut(at).next, head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn finds_what_was_put_in_while_it_grows_and_shrinks() {
        let mut index = HashIndex::<()>::default();
        for value in 0..10_000u32 {
            index.insert(mix(u64::from(value)), Slot::new(value));
            let earlier = value / 2;
            assert_eq!(
                index.find(mix(u64::from(earlier)), |v| v.index() == earlier),
                Some(Slot::new(earlier))
            );
        }
        for value in (0..10_000u32).step_by(2) {
            assert!(index.remove(mix(u64::from(value)), Slot::new(value)));
            assert!(!index.remove(mix(u64::from(value)), Slot::new(value)));
        }
        for value in 0..10_000u32 {
            let found = index.find(mix(u64::from(value)), |v| v.index() == value);
            assert_eq!(found.is_some(), value % 2 == 1, "value {value}");
        }
        assert_eq!(index.len(), 5_000);
    }

    #[test]
    fn equal_hashes_are_told_apart_by_the_asker() {
        let mut index = HashIndex::<()>::default();
        for value in 0..100 {
            index.insert(7, Slot::new(value));
        }
        assert_eq!(index.find(7, |v| v.index() == 42), Some(Slot::new(42)));
        assert_eq!(index.find(7, |_| false), None);
        assert!(index.remove(7, Slot::new(42)));
        assert_eq!(index.find(7, |v| v.index() == 42), None);
    }
}
