//! The ways in which indexes come to the terms of documents: with a write, and later.

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::document::index::Indexes;
use crate::document::index::record::{FillRecord, FilledRecord, TermsByIndex};
use crate::document::state::{DocumentSlot, EntrySlot};
use crate::document::{DOCUMENTS_SINCE, DocumentModule};
use crate::error::Error;
use crate::indexes::TERM_UNKNOWN;
use crate::limits::TERMS_MAX;
use crate::plant::{self, Plant};
use crate::store::slot::Slot;

impl DocumentModule {
    /// Changes the entries of a document, of which the first is given.
    pub(crate) fn change_entries<T>(
        &mut self,
        slot: DocumentSlot,
        change: impl FnOnce(&mut Indexes, &mut EntrySlot) -> T,
    ) -> T {
        let before = self.documents.slots.get(slot).entries;
        let mut first = before;
        let changed = change(&mut self.indexes, &mut first);
        if first != before {
            self.documents.slots.get_mut(slot).entries = first;
        }
        changed
    }

    /// Puts the terms of a version in the place of those of the one before.
    pub(crate) fn index_version(&mut self, slot: DocumentSlot, terms: TermsByIndex<'_>) {
        let document = self.documents.slots.get(slot);
        if document.entries == Slot::NIL && self.indexes.places(document.namespace).is_empty() {
            return;
        }
        let places = self.indexes.places(document.namespace).to_vec();
        self.change_entries(slot, |indexes, first| {
            indexes.remove(first, None);
            for place in places {
                match terms.of(indexes.at(place).number) {
                    Some(terms) => terms.iter().for_each(|term| indexes.add(first, slot, place, term)),
                    None if plant::is(Plant::ForgetUnknownTerms) => {}
                    None => indexes.add(first, slot, place, TERM_UNKNOWN),
                }
            }
        });
    }

    /// The terms that a version has more than the one before, `found` if there is one. Each index counts by
    /// itself, since others may be deleted before the version is written.
    pub(crate) fn more_terms(
        &self,
        (namespace, found): (NamespaceSlot, Option<DocumentSlot>),
        terms: TermsByIndex<'_>,
    ) -> u32 {
        let more = |place: &u16| {
            let before = found.map_or(0, |slot| self.terms_in(slot, *place));
            let after = terms.of(self.indexes.at(*place).number).map_or(1, |terms| terms.len());
            after.saturating_sub(before) as u32
        };
        self.indexes.places(namespace).iter().map(more).sum()
    }

    /// Refuses more terms than a shard may have.
    pub(crate) fn admit_terms(&self, more: u32) -> Result<(), Error> {
        if more > 0 && self.indexes.entries.used() + self.pins.reserved.terms + more > TERMS_MAX {
            return Err(Error::LimitExceeded { what: "terms of indexes", limit: TERMS_MAX.into() });
        }
        Ok(())
    }

    /// Adds the terms of documents that have none yet.
    pub(crate) fn index_fill(&mut self, fill: &FillRecord<'_>, core: &mut Core) -> Result<(), Error> {
        core.expect_behaviour(DOCUMENTS_SINCE)?;
        let namespace = core.find_namespace(fill.namespace)?;
        let Some(place) = self.indexes.find(namespace, fill.index) else { return Ok(()) };
        let more = |document: FilledRecord<'_>| {
            let before = self.terms_in(self.filled(namespace, &document)?, place);
            Some(document.terms.len().saturating_sub(before) as u32)
        };
        self.admit_terms(fill.documents().filter_map(more).sum())?;
        for document in fill.documents() {
            let Some(slot) = self.filled(namespace, &document) else { continue };
            let lost = self.terms_in(slot, place).saturating_sub(document.terms.len());
            if lost > 0 {
                self.pins.reserve_lost_terms(namespace, document.key, lost as u32);
            }
            self.change_entries(slot, |indexes, first| {
                indexes.remove(first, Some(place));
                document.terms.iter().for_each(|term| indexes.add(first, slot, place, term));
            });
        }
        let index = &mut self.indexes.list[usize::from(place)];
        if let Some(until) = fill.until.filter(|until| *until > &*index.until) {
            until.clone_into(&mut index.until);
        }
        if fill.is_last {
            index.is_built = true;
            index.until = String::new();
        }
        Ok(())
    }

    /// Number of the terms of a document in an index.
    fn terms_in(&self, document: DocumentSlot, place: u16) -> usize {
        let chain = self.indexes.chain(self.documents.slots.get(document).entries);
        chain.filter(|entry| self.indexes.entries.get(*entry).index == place).count()
    }

    /// The document that gets terms, unless it has changed since they were made.
    fn filled(&self, namespace: NamespaceSlot, document: &FilledRecord<'_>) -> Option<DocumentSlot> {
        let slot = self.documents.find(namespace, document.key)?;
        let revision = self.documents.slots.get(slot).body.version.revision;
        (revision == document.revision || plant::is(Plant::FillChangedDocument)).then_some(slot)
    }
}
