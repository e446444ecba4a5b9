//! The module of documents: keys with a content, which has a version.
//!
//! - `state`: what is kept, and its layout in a snapshot; `record`: the layouts of commands in the log.
//! - Rooms: `writing` put and delete; `condition` their conditions; `ending` the end of documents by time and
//!   with their namespace; `changes` what has changed since when. `check` is what is refused whatever the
//!   state is.
//! - For others: `view` reads, `recount`.
//!
//! - `index` finds documents by what is in them; `attachment` keeps what is attached to them.
//!
//! Decided here:
//!
//! - A document has a version, which counts from 1, and a revision, which is a fencing token: so a document
//!   that was deleted and created again may have the same version, and never the same revision.
//! - Each change has a revision, and so has each end. Of a document its last change is known, and ends are
//!   remembered for a time: so who watches gets the latest state of each key, and not each state.
//! - Whether a document is over is a question of the time, not of whether its timer has fired.

pub(crate) mod attachment;
pub(crate) mod changes;
pub(crate) mod check;
pub(crate) mod condition;
pub(crate) mod ending;
pub(crate) mod index;
pub(crate) mod pins;
pub(crate) mod record;
pub(crate) mod recount;
pub(crate) mod state;
pub(crate) mod view;
pub(crate) mod writing;

use std::collections::VecDeque;

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::document::attachment::Attachments;
use crate::document::changes::{ChangeOrder, Ends};
use crate::document::index::Indexes;
use crate::document::pins::Pins;
use crate::document::state::document::{Document, Documents};
use crate::document::state::former::Formers;
use crate::id::BlobRef;
use crate::store::key_order::KeyOrder;
use crate::store::slab::Slab;
use crate::store::slot;
use crate::wire::{HeadPart, Put, Reader};

/// The behaviour version since which there are documents.
pub(crate) const DOCUMENTS_SINCE: u16 = 13;

/// Versions that one record lets go of, and those of a document more at most; the rest is left to ticks.
const SLICE_VERSIONS: usize = 256;
/// Terms that take as long to let go of as a version.
const ENTRIES_PER_VERSION: usize = 8;

/// The state of the module.
#[derive(Debug, Default)]
pub(crate) struct DocumentModule {
    pub(crate) documents: Documents,
    pub(crate) formers: Formers,
    /// Deleted namespaces whose documents are still to be let go of.
    pub(crate) swept: VecDeque<NamespaceSlot>,
    /// Ends of documents, for those who watch.
    pub(crate) ends: Ends,
    /// The last change; 0: none.
    pub(crate) latest: u64,
    pub(crate) indexes: Indexes,
    pub(crate) attachments: Attachments,
    pub(crate) pins: Pins,
    /// Documents in the order of their keys. Derived.
    pub(crate) order: KeyOrder<Document>,
    /// Documents in the order of their last changes. Derived.
    pub(crate) order_of_changes: ChangeOrder,
}

impl HeadPart for DocumentModule {
    fn write_head(&self, out: &mut Vec<u8>) {
        let DocumentModule {
            documents,
            formers,
            swept,
            ends,
            latest,
            indexes,
            attachments,
            pins,
            order: _,
            order_of_changes: _,
        } = self;
        documents.write_head(out);
        formers.write_head(out);
        slot::write_all(swept, out);
        ends.write_head(out);
        out.u64(*latest);
        indexes.write_head(out);
        attachments.write_head(out);
        pins.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        Some(DocumentModule {
            documents: Documents::read_head(reader)?,
            formers: Slab::read_head(reader)?,
            swept: slot::read_all(reader)?,
            ends: Ends::read_head(reader)?,
            latest: reader.u64()?,
            indexes: Indexes::read_head(reader)?,
            attachments: Attachments::read_head(reader)?,
            pins: Pins::read_head(reader)?,
            order: KeyOrder::default(),
            order_of_changes: ChangeOrder::default(),
        })
    }
}

impl DocumentModule {
    /// Derives what a snapshot leaves out, after all slots were read.
    pub(crate) fn rebuild(&mut self, core: &mut Core) {
        self.cover_namespaces(core);
        self.documents.rebuild();
        self.ends.rebuild();
        self.indexes.rebuild();
        self.attachments.rebuild();
        for (slot, _) in self.documents.slots.iter() {
            self.order.insert(slot, &self.documents.slots);
            self.order_of_changes.insert(slot, &self.documents);
        }
        self.swept.iter().for_each(|slot| core.begin_sweep(*slot));
    }

    /// Makes room for what new namespaces will hold.
    pub(crate) fn cover_namespaces(&mut self, core: &Core) {
        self.order.cover(core.namespaces.slots());
        self.order_of_changes.cover(core.namespaces.slots());
        self.attachments.cover_namespaces(core);
    }

    /// Every blob of the module, each once.
    pub(crate) fn owned_blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let current = self.documents.slots.iter().map(|(_, document)| document.body.blob);
        let formers = self.formers.iter().map(|(_, former)| former.body.blob);
        current.chain(formers).chain(self.attachments.owned_blobs())
    }
}
