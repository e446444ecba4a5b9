//! Indexes of documents: `chain` the terms of documents, `record` layouts in the log, `declaring` how indexes
//! begin and end, `filling` how they come to the terms of documents, `lookup` reads.
//!
//! - A document has entries, one for each of its terms, in a chain. An index has its entries in order.
//! - A version that is written without terms for an index has an entry there that each lookup finds, until
//!   somebody adds its terms. Documents that are older than an index have no entry there until they are
//!   reached, by key; before, the index answers nothing.
//! - An index that is deleted is gone at once for all who ask; its entries go in slices.

pub(crate) mod chain;
pub(crate) mod declaring;
pub(crate) mod filling;
pub(crate) mod lookup;
pub(crate) mod record;

use std::collections::BTreeMap;

use crate::core::namespace::NamespaceSlot;
use crate::document::state::EntrySlot;
use crate::document::state::entry::{Entries, Entry};
use crate::store::slab::Slab;
use crate::store::slot::Slot;
use crate::store::sorted_index::SortedIndex;
use crate::wire::{HeadPart, Put, Reader};

/// An index, or a vacant place.
#[derive(Clone, Default, Debug)]
pub(crate) struct Index {
    /// A fencing token: documents that were written since have later revisions. 0: the place is vacant.
    pub(crate) number: u64,
    pub(crate) namespace: NamespaceSlot,
    pub(crate) name: String,
    pub(crate) pointer: String,
    /// Key up to which older documents have their terms.
    pub(crate) until: String,
    pub(crate) is_built: bool,
    /// True: its entries are still to be let go of.
    pub(crate) is_deleted: bool,
}

impl Index {
    /// True if it is there for those who ask.
    fn is_live(&self) -> bool {
        self.number != 0 && !self.is_deleted
    }
}

/// The entries of an index, by term, document and slot.
#[derive(Debug, Default)]
struct Ordered {
    slots: SortedIndex<Entry>,
    /// Number of them.
    count: u64,
}

/// The indexes of a shard.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    /// By place.
    list: Vec<Index>,
    pub(crate) entries: Entries,
    /// The entries of each place. Derived.
    order: Vec<Ordered>,
    /// The places of a namespace's indexes that are live, in order. Derived.
    of_namespace: BTreeMap<NamespaceSlot, Vec<u16>>,
    /// Number of indexes whose entries are still to be let go of. Derived.
    deleted: usize,
}

impl HeadPart for Indexes {
    fn write_head(&self, out: &mut Vec<u8>) {
        let Indexes { list, entries, order: _, of_namespace: _, deleted: _ } = self;
        out.u32(list.len() as u32);
        for index in list {
            let Index { number, namespace, name, pointer, until, is_built, is_deleted } = index;
            out.u64(*number);
            namespace.write(out);
            [name, pointer, until].into_iter().for_each(|text| out.bytes16(text.as_bytes()));
            out.bool(*is_built);
            out.bool(*is_deleted);
        }
        entries.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let count = reader.u32()?;
        let list = (0..count).map(|_| read_index(reader)).collect::<Option<Vec<Index>>>()?;
        Some(Indexes { list, entries: Slab::read_head(reader)?, ..Indexes::default() })
    }
}

fn read_index(reader: &mut Reader<'_>) -> Option<Index> {
    fn text(reader: &mut Reader<'_>) -> Option<String> {
        String::from_utf8(reader.bytes16()?.to_vec()).ok()
    }
    Some(Index {
        number: reader.u64()?,
        namespace: Slot::read(reader)?,
        name: text(reader)?,
        pointer: text(reader)?,
        until: text(reader)?,
        is_built: reader.bool()?,
        is_deleted: reader.bool()?,
    })
}

impl Indexes {
    /// Derives what a snapshot leaves out, after all entries were read.
    pub(crate) fn rebuild(&mut self) {
        self.order = self.list.iter().map(|_| Ordered::default()).collect();
        let slots: Vec<EntrySlot> = self.entries.iter().map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.put_in_order(slot));
        for (place, index) in self.list.iter().enumerate() {
            if index.is_live() {
                self.of_namespace.entry(index.namespace).or_default().push(place as u16);
            }
            self.deleted += usize::from(index.is_deleted);
        }
    }

    /// The places of a namespace's indexes.
    fn places(&self, namespace: NamespaceSlot) -> &[u16] {
        self.of_namespace.get(&namespace).map_or(&[], Vec::as_slice)
    }

    /// The place of a namespace's index with this number.
    fn find(&self, namespace: NamespaceSlot, number: u64) -> Option<u16> {
        let is_it = |place: &u16| self.list[usize::from(*place)].number == number;
        self.places(namespace).iter().copied().find(is_it)
    }

    /// Compares what is derived with entries; their number. Slow: looks at everything.
    pub(crate) fn recount(&self) -> Result<u64, String> {
        let mut listed = 0;
        for (place, order) in self.order.iter().enumerate() {
            let keys: Vec<_> =
                order.slots.from(|_| std::cmp::Ordering::Greater).map(|slot| self.rank(slot)).collect();
            let is_of_place = |slot: EntrySlot| usize::from(self.entries.get(slot).index) == place;
            if !keys.is_sorted_by(|one, next| one < next) || !keys.iter().all(|key| is_of_place(key.2)) {
                return Err(format!("entries of index {place} are not in order"));
            }
            crate::core::agree("terms of an index", keys.len() as u64, order.count)?;
            if !keys.is_empty() && self.list[place].number == 0 {
                return Err(format!("there is no index {place}, and it has entries"));
            }
            listed += keys.len() as u64;
        }
        let live = self.list.iter().filter(|index| index.is_live()).count();
        let named = self.of_namespace.values().map(Vec::len).sum::<usize>();
        crate::core::agree("indexes by namespace", named as u64, live as u64)?;
        if !self.of_namespace.values().all(|places| places.is_sorted()) {
            return Err("indexes of a namespace are not in order".to_owned());
        }
        crate::core::agree("terms in order", listed, self.entries.used().into())?;
        Ok(listed)
    }
}
