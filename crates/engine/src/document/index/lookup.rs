//! Reads of indexes.

use std::ops::RangeInclusive;

use crate::core::Core;
use crate::document::DocumentModule;
use crate::document::index::Indexes;
use crate::document::state::DocumentSlot;
use crate::documents::DocumentView;
use crate::id::NamespaceId;
use crate::indexes::{IndexLookup, IndexView, IndexWork, TERM_UNKNOWN};

/// Documents that one look for work goes through.
const LOOKED_AT_MAX: usize = 1_000;

impl DocumentModule {
    pub(crate) fn index_views(&self, namespace: NamespaceId, core: &Core) -> Vec<IndexView> {
        let Some(namespace) = core.namespace_slot(namespace) else { return Vec::new() };
        let view = |place: &u16| {
            let index = self.indexes.at(*place);
            IndexView {
                number: index.number,
                name: index.name.clone(),
                pointer: index.pointer.clone(),
                is_built: index.is_built,
                terms: self.indexes.order[usize::from(*place)].count,
            }
        };
        let mut views: Vec<IndexView> = self.indexes.places(namespace).iter().map(view).collect();
        views.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        views
    }

    /// Documents by key with a term in one of some ranges, and those whose terms are not known. `None`: the
    /// index does not know all documents, or finds more than `most`.
    pub(crate) fn indexed(
        &self,
        namespace: NamespaceId,
        lookup: &IndexLookup<'_>,
        most: usize,
        core: &Core,
    ) -> Option<Vec<DocumentView>> {
        let IndexLookup { index, ranges, prefix, after } = *lookup;
        let place = self.indexes.find(core.namespace_slot(namespace)?, index)?;
        if !self.indexes.at(place).is_built {
            return None;
        }
        let mut found = Vec::new();
        for range in ranges.iter().chain([&(TERM_UNKNOWN..=TERM_UNKNOWN)]) {
            found.extend(self.indexes.in_range(place, range).take(most + 1));
            if found.len() > most {
                return None;
            }
        }
        found.sort_unstable();
        found.dedup();
        found.retain(|slot| {
            let key = &*self.documents.slots.get(*slot).key;
            let is_behind = after.is_none_or(|after| key > after.as_bytes());
            key.starts_with(prefix.as_bytes()) && is_behind && !self.is_over(*slot, core)
        });
        let mut views: Vec<DocumentView> = found.into_iter().map(|slot| self.view(slot)).collect();
        views.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        Some(views)
    }

    /// Documents whose terms an index does not know, at most `most`; `None`: there are none. Indexes take
    /// turns, by their numbers: that behind `behind` is the first.
    pub(crate) fn index_work(&self, behind: u64, most: usize, core: &Core) -> Option<IndexWork> {
        let number = |place: u16| self.indexes.at(place).number;
        let mut live: Vec<u16> = self.indexes.of_namespace.values().flatten().copied().collect();
        live.sort_unstable_by_key(|place| (number(*place) <= behind, number(*place)));
        live.into_iter().find_map(|place| {
            let index = self.indexes.at(place);
            let work = IndexWork {
                namespace: NamespaceId(core.namespaces.get(index.namespace).number),
                index: index.number,
                pointer: index.pointer.clone(),
                documents: Vec::new(),
                until: None,
                is_last: false,
            };
            if index.is_built { self.unknown(place, work, most) } else { Some(self.older(place, work, most)) }
        })
    }

    /// The next documents, by key, that are older than an index.
    fn older(&self, place: u16, mut work: IndexWork, most: usize) -> IndexWork {
        let index = self.indexes.at(place);
        let after = Some(&*index.until).filter(|key| !key.is_empty());
        let mut behind = self.order.page(index.namespace.index(), "", after, &self.documents.slots);
        for _ in 0..LOOKED_AT_MAX {
            if work.documents.len() == most {
                return work;
            }
            let Some(slot) = behind.next() else {
                work.is_last = true;
                return work;
            };
            let document = self.documents.slots.get(slot);
            if document.body.version.revision < index.number {
                work.documents.push(self.view(slot));
            }
            work.until = Some(String::from_utf8_lossy(&document.key).into_owned());
        }
        work
    }

    /// Documents that were written without their terms.
    fn unknown(&self, place: u16, work: IndexWork, most: usize) -> Option<IndexWork> {
        let slots = self.indexes.in_range(place, &(TERM_UNKNOWN..=TERM_UNKNOWN)).take(most);
        let documents: Vec<DocumentView> = slots.map(|slot| self.view(slot)).collect();
        (!documents.is_empty()).then_some(IndexWork { documents, ..work })
    }
}

impl Indexes {
    fn in_range<'a>(
        &'a self,
        place: u16,
        range: &RangeInclusive<u128>,
    ) -> impl Iterator<Item = DocumentSlot> + use<'a> {
        let (first, last) = (*range.start(), *range.end());
        let entries = &self.entries;
        let from = self.order[usize::from(place)].slots.from(move |slot| {
            // Never equal, so that all entries of the first term are behind.
            entries.get(slot).term.cmp(&first).then(std::cmp::Ordering::Greater)
        });
        from.map(move |slot| entries.get(slot))
            .take_while(move |entry| entry.term <= last)
            .map(|entry| entry.document)
    }
}
