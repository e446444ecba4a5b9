//! Changes of documents, in their order: each document with its last change, and the ends of those that are
//! gone, which are remembered for a time.

use std::collections::VecDeque;

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::document::DocumentModule;
use crate::document::state::document::{Document, Documents};
use crate::document::state::gone::{Gone, GoneSlots};
use crate::document::state::{DocumentSlot, GoneSlot};
use crate::documents::{ChangePosition, DocumentChange, DocumentChanges, DocumentVersion};
use crate::id::NamespaceId;
use crate::limits::{DOCUMENT_ENDS_MAX, DOCUMENT_ENDS_MS};
use crate::plant::{self, Plant};
use crate::store::arena::Arena;
use crate::store::list::{List, PLACE};
use crate::store::sorted_index::SortedIndex;
use crate::wire::{HeadPart, Put, Reader};

/// Documents and ends that one look at changes goes through.
const LOOKED_AT_MAX: usize = 4_096;

/// Documents of each namespace in the order of their last changes. Derived.
#[derive(Debug, Default)]
pub(crate) struct ChangeOrder(Arena<SortedIndex<Document>, 64>);

impl ChangeOrder {
    /// Adds empty indexes until there are as many as slots of namespaces.
    pub(crate) fn cover(&mut self, slots: u32) {
        while self.0.len() < slots as usize {
            self.0.push(SortedIndex::default());
        }
    }

    pub(crate) fn insert(&mut self, slot: DocumentSlot, documents: &Documents) {
        let revision = |slot| documents.slots.get(slot).body.version.revision;
        let (own, namespace) = (revision(slot), documents.slots.get(slot).namespace);
        self.0.get_mut(namespace.index()).insert(slot, |other| revision(other).cmp(&own));
    }

    pub(crate) fn remove(&mut self, slot: DocumentSlot, documents: &Documents) {
        let revision = |slot| documents.slots.get(slot).body.version.revision;
        let (own, namespace) = (revision(slot), documents.slots.get(slot).namespace);
        self.0.get_mut(namespace.index()).remove(|other| revision(other).cmp(&own));
    }

    /// Documents of a namespace that have changed after a revision, in the order of their changes.
    fn after<'a>(
        &'a self,
        namespace: NamespaceSlot,
        revision: u64,
        documents: &'a Documents,
    ) -> impl Iterator<Item = DocumentSlot> + 'a {
        let first = revision.saturating_add(1);
        let of_namespace = self.0.get(namespace.index());
        of_namespace.from(move |other| documents.slots.get(other).body.version.revision.cmp(&first))
    }

    /// The number of documents that are in order.
    pub(crate) fn recount(&self, documents: &Documents) -> Result<u64, String> {
        let mut count = 0;
        for (slot, document) in documents.slots.iter() {
            let before = document.body.version.revision - 1;
            count += u64::from(self.after(document.namespace, before, documents).next() == Some(slot));
        }
        let listed = self.0.iter().map(SortedIndex::len).sum::<usize>() as u64;
        crate::core::agree("documents in the order of changes", count, listed)?;
        Ok(count)
    }
}

/// The ends of documents that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(crate) slots: GoneSlots,
    /// In the order of their changes.
    listed: List<Gone, PLACE>,
    /// The last change of which the end is not remembered any more; 0: none.
    forgotten: u64,
    /// The same as `listed`, with revisions. Derived.
    order: VecDeque<(u64, GoneSlot)>,
}

impl HeadPart for Ends {
    fn write_head(&self, out: &mut Vec<u8>) {
        let Ends { slots, listed, forgotten, order: _ } = self;
        listed.write(out);
        out.u64(*forgotten);
        slots.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let (listed, forgotten) = (List::read(reader)?, reader.u64()?);
        Some(Ends { listed, forgotten, slots: GoneSlots::read_head(reader)?, order: VecDeque::new() })
    }
}

impl Ends {
    pub(crate) fn rebuild(&mut self) {
        let revision = |slot| (self.slots.get(slot).revision, slot);
        self.order = self.listed.iter(&self.slots).map(revision).collect();
    }

    fn add(&mut self, gone: Gone) {
        let revision = gone.revision;
        let slot = self.slots.insert(gone);
        self.listed.push_back(&mut self.slots, slot);
        self.order.push_back((revision, slot));
        if self.slots.used() > DOCUMENT_ENDS_MAX {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((revision, slot)) = self.order.pop_front() {
            self.listed.unlink(&mut self.slots, slot);
            self.slots.free(slot);
            self.forgotten = revision;
        }
    }

    fn first_due_us(&self) -> Option<u64> {
        let &(_, slot) = self.order.front()?;
        Some(self.slots.get(slot).at_us + DOCUMENT_ENDS_MS * 1_000)
    }

    fn after(&self, revision: u64) -> impl Iterator<Item = &Gone> {
        let first = self.order.partition_point(|(other, _)| *other <= revision);
        self.order.range(first..).map(|(_, slot)| self.slots.get(*slot))
    }

    pub(crate) fn recount(&self) -> Result<(), String> {
        let listed = self.listed.iter(&self.slots).map(|slot| (self.slots.get(slot).revision, slot));
        if !self.order.iter().copied().eq(listed) || !self.order.iter().is_sorted() {
            return Err("ends of documents are not in the order of changes".to_owned());
        }
        crate::core::agree("ends of documents", self.order.len() as u64, self.slots.used().into())
    }
}

impl DocumentModule {
    /// Remembers that a document ends in this record.
    pub(crate) fn remember_end(&mut self, slot: DocumentSlot, core: &mut Core) {
        // Without one the end goes unnoticed: there is no change any more to be behind it.
        let Some(revision) = core.tokens.give() else { return };
        let document = self.documents.slots.get(slot);
        let namespace = core.namespaces.get(document.namespace).number;
        if !plant::is(Plant::ForgetEnds) {
            self.ends.add(Gone::new(namespace, &document.key, revision, core.now_us));
        }
        self.latest = revision;
    }

    /// Forgets ends that were remembered for long enough, until `budget` of them are.
    pub(crate) fn forget_ends(&mut self, budget: &mut usize, core: &Core) {
        while *budget > 0 && self.ends.first_due_us().is_some_and(|due_us| due_us <= core.now_us) {
            self.ends.forget_first();
            *budget -= 1;
        }
    }

    /// Time at which an end is to be forgotten, in microseconds.
    pub(crate) fn forget_us(&self) -> Option<u64> {
        self.ends.first_due_us()
    }

    pub(crate) fn changes(
        &self,
        namespace: NamespaceId,
        prefix: &str,
        from: ChangePosition,
        limit: usize,
        core: &Core,
    ) -> Option<DocumentChanges> {
        let ChangePosition { after, begun } = from;
        let begun = if from == ChangePosition::default() { self.latest } else { begun };
        // Ends up to here are told to nobody: whoever reads all documents has never heard of these.
        let known = after.max(begun);
        if self.ends.forgotten > known || (known > 0 && !core.tokens.was_given(known)) {
            return None;
        }
        let slot = core.namespace_slot(namespace);
        let documents =
            slot.into_iter().flat_map(|slot| self.order_of_changes.after(slot, after, &self.documents));
        // One that is over, and whose timer has not fired yet, is told: its end follows.
        let mut documents = documents.peekable();
        let mut ends = self.ends.after(known).filter(|gone| gone.namespace == namespace.0).peekable();
        let revision_of = |slot: &DocumentSlot| self.documents.slots.get(*slot).body.version.revision;
        let latest = self.latest.max(after);
        let until = ChangePosition { after, begun };
        let mut found = DocumentChanges { changes: Vec::new(), until, is_last: false };
        for looked_at in 0.. {
            let (document, end) = (documents.peek().map(revision_of), ends.peek().map(|gone| gone.revision));
            let Some(next) = document.into_iter().chain(end).min() else {
                let until = ChangePosition { after: latest, begun: latest };
                return Some(DocumentChanges { until, is_last: true, ..found });
            };
            if looked_at == LOOKED_AT_MAX || found.changes.len() == limit {
                return Some(found);
            }
            found.until.after = next;
            let change = if document == Some(next) {
                documents.next().map(|slot| DocumentChange::Written(self.view(slot)))
            } else {
                ends.next().map(|gone| DocumentChange::Gone {
                    key: String::from_utf8_lossy(&gone.key).into_owned(),
                    at: DocumentVersion { version: 0, revision: gone.revision, changed_at_us: gone.at_us },
                })
            };
            found.changes.extend(change.filter(|change| change.key().starts_with(prefix)));
        }
        Some(found)
    }
}
