//! The end of documents: by time, and with their namespace.

use crate::core::namespace::NamespaceSlot;
use crate::core::wheel::FIRE_COST;
use crate::core::{Core, earlier};
use crate::document::state::{DocumentSlot, FormerSlot};
use crate::document::{DocumentModule, ENTRIES_PER_VERSION, SLICE_VERSIONS};
use crate::outcome::Outcome;
use crate::plant::{self, Plant};
use crate::store::slot::Slot;

impl DocumentModule {
    /// Lets go of documents that are over, or of deleted namespaces, a slice at a time.
    pub(crate) fn tick(&mut self, core: &mut Core, out: &mut Outcome) {
        let mut budget = SLICE_VERSIONS;
        self.end_due(&mut budget, core, out);
        self.sweep(&mut budget, core, out);
        self.forget_ends(&mut budget, core);
        self.sweep_indexes(&mut budget);
        self.attachments.end_due(&mut budget, core);
        self.attachments.let_go(&mut budget, core, out);
    }

    /// Time at which a `Tick` is due, in microseconds; a time that is past while a slice is left.
    pub(crate) fn next_deadline(&self, core: &Core) -> Option<u64> {
        if !self.swept.is_empty() || self.indexes.has_deleted() || self.attachments.has_leftovers() {
            return Some(core.now_us);
        }
        let of_documents = self.documents.wheel.next_us(&self.documents.slots);
        earlier(earlier(of_documents, self.forget_us()), self.attachments.next_end_us())
    }

    /// Begins to let go of what a deleted namespace holds.
    pub(crate) fn begin_sweep(&mut self, namespace: NamespaceSlot, core: &mut Core) {
        core.begin_sweep(namespace);
        self.indexes.delete_all(namespace);
        self.swept.push_back(namespace);
    }

    /// Lets go of a slice of the documents of deleted namespaces.
    pub(crate) fn sweep_slice(&mut self, core: &mut Core, out: &mut Outcome) {
        self.sweep(&mut { SLICE_VERSIONS }, core, out);
    }

    fn sweep(&mut self, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        while *budget > 0
            && let Some(&namespace) = self.swept.front()
        {
            let first = self.order.from(namespace.index(), &[], &self.documents.slots).next();
            let Some(slot) = first else {
                if let Some(upload) = self.attachments.first_upload(namespace) {
                    self.attachments.end_upload(upload, core);
                    *budget -= 1;
                    continue;
                }
                self.swept.pop_front();
                core.end_sweep(namespace);
                continue;
            };
            *budget = budget.saturating_sub(self.remove(slot, core, out));
        }
    }

    /// Lets go of a slice of the documents whose time has come.
    pub(crate) fn end_some(&mut self, core: &mut Core, out: &mut Outcome) {
        self.end_due(&mut { SLICE_VERSIONS }, core, out);
    }

    /// Lets go of documents whose time has come, until they had `budget` versions.
    pub(crate) fn end_due(&mut self, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        if self.documents.wheel.len() == 0 {
            return;
        }
        let mut left = *budget * FIRE_COST;
        while let Some(slot) = self.documents.wheel.due(&mut self.documents.slots, core.now_us, &mut left) {
            // The wheel has counted one of them.
            left = left.saturating_sub((self.end(slot, core, out) - 1) * FIRE_COST);
        }
        *budget = left / FIRE_COST;
    }

    /// True if the time of a document has come, whether its timer has fired or not.
    pub(crate) fn is_over(&self, slot: DocumentSlot, core: &Core) -> bool {
        let due_us = self.documents.slots.get(slot).due_us;
        due_us != 0 && due_us <= core.now_us && !plant::is(Plant::ReadEndedDocument)
    }

    /// Ends a document, and remembers that. Returns the number of its versions.
    pub(crate) fn end(&mut self, slot: DocumentSlot, core: &mut Core, out: &mut Outcome) -> usize {
        self.remember_end(slot, core);
        self.remove(slot, core, out)
    }

    /// Lets go of a document with all of its versions. Returns their number.
    fn remove(&mut self, slot: DocumentSlot, core: &mut Core, out: &mut Outcome) -> usize {
        self.documents.set_due(slot, 0, core.now_us);
        let document = self.documents.slots.get(slot);
        let (namespace, body, before) = (document.namespace, document.body, document.before);
        let attached = self.attachments.orphan(document.attached);
        let formers = self.let_go_of(before, namespace, core, out);
        core.namespaces.get_mut(namespace).bytes -= body.bytes() + attached;
        core.release_blob(body.blob, out);
        let entries = self.change_entries(slot, |indexes, first| indexes.remove(first, None));
        self.order.remove(slot, &self.documents.slots);
        self.order_of_changes.remove(slot, &self.documents);
        self.documents.remove(slot);
        formers + 1 + entries / ENTRIES_PER_VERSION
    }

    /// Lets go of former versions, from `first` back to the oldest. Returns their number.
    pub(crate) fn let_go_of(
        &mut self,
        first: FormerSlot,
        namespace: NamespaceSlot,
        core: &mut Core,
        out: &mut Outcome,
    ) -> usize {
        let (mut at, mut count) = (first, 0);
        while at != Slot::NIL {
            let former = self.formers.remove(at);
            core.namespaces.get_mut(namespace).bytes -= former.body.bytes();
            core.release_blob(former.body.blob, out);
            (at, count) = (former.before, count + 1);
        }
        count
    }

    /// Former versions of a document, the newest first.
    pub(crate) fn formers_of(&self, slot: DocumentSlot) -> impl Iterator<Item = FormerSlot> + '_ {
        let known = |slot: FormerSlot| (slot != Slot::NIL).then_some(slot);
        let first = known(self.documents.slots.get(slot).before);
        std::iter::successors(first, move |former| known(self.formers.get(*former).before))
    }
}
