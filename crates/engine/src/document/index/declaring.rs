//! The beginning and the end of indexes.

use std::cmp::Ordering;

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::core::tokens::none_left;
use crate::document::index::{Index, Indexes, Ordered};
use crate::document::{DOCUMENTS_SINCE, DocumentModule, ENTRIES_PER_VERSION};
use crate::error::Error;
use crate::id::NamespaceId;
use crate::limits::{INDEXES_MAX, NAMESPACE_INDEXES_MAX};

impl DocumentModule {
    /// Declares an index, in the place of one with this name and another pointer.
    pub(crate) fn index_put(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        pointer: &str,
        core: &mut Core,
    ) -> Result<(), Error> {
        core.expect_behaviour(DOCUMENTS_SINCE)?;
        let slot = core.find_namespace(namespace)?;
        let before = self.indexes.find_named(slot, name);
        if before.is_some_and(|place| self.indexes.at(place).pointer == pointer) {
            return Ok(());
        }
        self.indexes.admit(slot, before)?;
        // Documents of prepared parts will have a term of it, and cannot be refused then.
        self.admit_terms(self.pins.count_in(slot))?;
        let number = core.tokens.give().ok_or_else(none_left)?;
        if let Some(place) = before {
            self.indexes.delete(place);
        }
        self.indexes.enter(Index {
            number,
            namespace: slot,
            name: name.to_owned(),
            pointer: pointer.to_owned(),
            is_built: self.documents_in(slot) == 0,
            ..Index::default()
        });
        self.pins.reserve_terms(slot);
        Ok(())
    }

    pub(crate) fn index_delete(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        core: &mut Core,
    ) -> Result<(), Error> {
        core.expect_behaviour(DOCUMENTS_SINCE)?;
        let slot = core.find_namespace(namespace)?;
        let not_found = || Error::IndexNotFound { index: name.to_owned() };
        let place = self.indexes.find_named(slot, name).ok_or_else(not_found)?;
        self.indexes.delete(place);
        Ok(())
    }

    /// Lets go of entries of deleted indexes, until `budget` of them are.
    pub(crate) fn sweep_indexes(&mut self, budget: &mut usize) {
        while *budget > 0
            && let Some(place) = self.indexes.first_deleted()
        {
            let first = self.indexes.order[usize::from(place)].slots.from(|_| Ordering::Greater).next();
            let Some(slot) = first.map(|entry| self.indexes.entries.get(entry).document) else {
                self.indexes.vacate(place);
                *budget -= 1;
                continue;
            };
            let walked = self.change_entries(slot, |indexes, first| indexes.remove(first, Some(place)));
            *budget = budget.saturating_sub(1 + walked / ENTRIES_PER_VERSION);
        }
    }
}

impl Indexes {
    pub(super) fn at(&self, place: u16) -> &Index {
        &self.list[usize::from(place)]
    }

    fn find_named(&self, namespace: NamespaceSlot, name: &str) -> Option<u16> {
        self.places(namespace).iter().copied().find(|place| self.at(*place).name == name)
    }

    /// Refuses one more index of a namespace than there may be.
    fn admit(&self, namespace: NamespaceSlot, before: Option<u16>) -> Result<(), Error> {
        let count = self.places(namespace).len() - usize::from(before.is_some());
        if count >= NAMESPACE_INDEXES_MAX {
            let (what, limit) = ("indexes of documents in a namespace", NAMESPACE_INDEXES_MAX as u64);
            return Err(Error::LimitExceeded { what, limit });
        }
        if self.list.iter().filter(|index| index.number != 0).count() >= INDEXES_MAX {
            return Err(Error::LimitExceeded { what: "indexes of documents", limit: INDEXES_MAX as u64 });
        }
        Ok(())
    }

    fn enter(&mut self, index: Index) {
        let vacant = self.list.iter().position(|index| index.number == 0);
        let place = vacant.unwrap_or(self.list.len());
        if vacant.is_none() {
            self.list.push(Index::default());
            self.order.push(Ordered::default());
        }
        let places = self.of_namespace.entry(index.namespace).or_default();
        // In the order in which a restored engine has them, since slots of entries are given in this order.
        places.insert(places.partition_point(|other| usize::from(*other) < place), place as u16);
        self.list[place] = index;
    }

    fn delete(&mut self, place: u16) {
        let index = &mut self.list[usize::from(place)];
        index.is_deleted = true;
        let namespace = index.namespace;
        self.deleted += 1;
        if let Some(places) = self.of_namespace.get_mut(&namespace) {
            places.retain(|other| *other != place);
        }
    }

    /// Deletes the indexes of a namespace.
    pub(crate) fn delete_all(&mut self, namespace: NamespaceSlot) {
        self.places(namespace).to_vec().into_iter().for_each(|place| self.delete(place));
        self.of_namespace.remove(&namespace);
    }

    fn vacate(&mut self, place: u16) {
        self.list[usize::from(place)] = Index::default();
        self.deleted -= 1;
    }

    /// True if entries of deleted indexes are left.
    pub(crate) fn has_deleted(&self) -> bool {
        self.deleted > 0
    }

    fn first_deleted(&self) -> Option<u16> {
        if self.deleted == 0 {
            return None;
        }
        self.list.iter().position(|index| index.is_deleted).map(|place| place as u16)
    }
}
