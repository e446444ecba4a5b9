//! The entries of a document, which are a chain, and their places in the order of each index.

use crate::document::index::Indexes;
use crate::document::state::entry::Entry;
use crate::document::state::{DocumentSlot, EntrySlot};
use crate::store::slot::Slot;

impl Indexes {
    /// The place of an entry in its index.
    pub(super) fn rank(&self, slot: EntrySlot) -> (u128, DocumentSlot, EntrySlot) {
        let entry = self.entries.get(slot);
        (entry.term, entry.document, slot)
    }

    pub(super) fn put_in_order(&mut self, slot: EntrySlot) {
        let (own, place) = (self.rank(slot), self.entries.get(slot).index);
        let mut order = std::mem::take(&mut self.order[usize::from(place)]);
        order.slots.insert(slot, |other| self.rank(other).cmp(&own));
        order.count += 1;
        self.order[usize::from(place)] = order;
    }

    fn take_out_of_order(&mut self, slot: EntrySlot) {
        let (own, place) = (self.rank(slot), self.entries.get(slot).index);
        let mut order = std::mem::take(&mut self.order[usize::from(place)]);
        order.slots.remove(|other| self.rank(other).cmp(&own));
        order.count -= 1;
        self.order[usize::from(place)] = order;
    }

    /// Adds a term to a document whose chain of entries begins at `first`.
    pub(super) fn add(&mut self, first: &mut EntrySlot, document: DocumentSlot, index: u16, term: u128) {
        let slot = self.entries.insert(Entry { term, document, next: *first, index });
        self.put_in_order(slot);
        *first = slot;
    }

    /// Removes those entries of a chain that are of an index; `None`: all of them. Tells how many the chain
    /// had.
    pub(crate) fn remove(&mut self, first: &mut EntrySlot, index: Option<u16>) -> usize {
        let mut walked = 0;
        let mut at = std::mem::replace(first, Slot::NIL);
        while at != Slot::NIL {
            let entry = self.entries.get(at);
            let next = entry.next;
            if index.is_none_or(|index| index == entry.index) {
                self.take_out_of_order(at);
                self.entries.free(at);
            } else {
                self.entries.get_mut(at).next = std::mem::replace(first, at);
            }
            (at, walked) = (next, walked + 1);
        }
        walked
    }

    /// The entries of a chain.
    pub(crate) fn chain(&self, first: EntrySlot) -> impl Iterator<Item = EntrySlot> + '_ {
        let known = |slot: EntrySlot| (slot != Slot::NIL).then_some(slot);
        std::iter::successors(known(first), move |slot| known(self.entries.get(*slot).next))
    }
}
