//! Attachments of documents: `record` layouts in the log, `uploading` how bytes come in, `committing` how
//! they become an attachment, `letting_go` how they go, `check` what is refused whatever the state is,
//! `view` reads, `recount`.
//!
//! - An upload has chunks, each a blob of the log, and ends by itself when no chunk comes. A commit hands its
//!   chunks over to an attachment; no byte is copied.
//! - Attachments of a document are a *set*, which the document names. A document that ends lets go of its set
//!   at once; the attachments in it go in slices, and so do the chunks of each.
//! - A write of a document leaves its attachments as they are.

pub(crate) mod check;
pub(crate) mod committing;
pub(crate) mod letting_go;
pub(crate) mod record;
pub(crate) mod recount;
pub(crate) mod uploading;
pub(crate) mod view;

use std::collections::{BTreeMap, VecDeque};

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::core::wheel::Wheel;
use crate::document::state::attachment::{
    Attachment, AttachmentSlot, Chain, EXTENT_CHUNKS, Extent, ExtentSlot, Set, SetSlot, Upload,
};
use crate::id::BlobRef;
use crate::store::key_order::KeyOrder;
use crate::store::slab::Slab;
use crate::store::slot::{self, Slot};
use crate::store::sorted_index::SortedIndex;
use crate::wire::{HeadPart, Reader};

/// The attachments and uploads of a shard.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    pub(crate) uploads: Slab<Upload, 64>,
    wheel: Wheel<Upload>,
    pub(crate) slots: Slab<Attachment, 1024>,
    pub(crate) sets: Slab<Set, 1024>,
    pub(crate) extents: Slab<Extent, 1024>,
    /// Sets of documents that are gone, whose attachments are still to be let go of.
    orphans: VecDeque<SetSlot>,
    /// The first extents of chains that are still to be let go of.
    freed: VecDeque<ExtentSlot>,
    /// Uploads of each namespace by document and name. Derived.
    order_of_uploads: KeyOrder<Upload>,
    /// Number of uploads of each namespace. Derived.
    uploads_of: BTreeMap<NamespaceSlot, u32>,
    /// Attachments by set and name. Derived.
    order: SortedIndex<Attachment>,
    /// Chunks of all extents. Derived.
    chunks: u32,
}

impl HeadPart for Attachments {
    fn write_head(&self, out: &mut Vec<u8>) {
        let Attachments {
            uploads,
            wheel,
            slots,
            sets,
            extents,
            orphans,
            freed,
            order_of_uploads: _,
            uploads_of: _,
            order: _,
            chunks: _,
        } = self;
        wheel.write_head(out);
        uploads.write_head(out);
        slots.write_head(out);
        sets.write_head(out);
        extents.write_head(out);
        slot::write_all(orphans, out);
        slot::write_all(freed, out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Attachments {
            wheel: Wheel::read_head(reader)?,
            uploads: Slab::read_head(reader)?,
            slots: Slab::read_head(reader)?,
            sets: Slab::read_head(reader)?,
            extents: Slab::read_head(reader)?,
            orphans: slot::read_all(reader)?,
            freed: slot::read_all(reader)?,
            ..Attachments::default()
        })
    }
}

impl Attachments {
    /// Derives what a snapshot leaves out, after all slots were read.
    pub(crate) fn rebuild(&mut self) {
        for (slot, upload) in self.uploads.iter() {
            self.order_of_uploads.insert(slot, &self.uploads);
            *self.uploads_of.entry(upload.namespace).or_default() += 1;
        }
        let slots: Vec<AttachmentSlot> = self.slots.iter().map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.put_in_order(slot));
        self.chunks = self.extents.iter().map(|(_, extent)| extent.chunks.len() as u32).sum();
    }

    /// Makes room for what new namespaces will hold.
    pub(crate) fn cover_namespaces(&mut self, core: &Core) {
        self.order_of_uploads.cover(core.namespaces.slots());
    }

    /// Every chunk, each once.
    pub(crate) fn owned_blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        self.extents.iter().flat_map(|(_, extent)| extent.chunks.iter().copied())
    }

    fn rank(&self, slot: AttachmentSlot) -> (SetSlot, &[u8]) {
        let attachment = self.slots.get(slot);
        (attachment.set, &attachment.name)
    }

    fn put_in_order(&mut self, slot: AttachmentSlot) {
        let mut order = std::mem::take(&mut self.order);
        order.insert(slot, |other| self.rank(other).cmp(&self.rank(slot)));
        self.order = order;
    }

    fn take_out_of_order(&mut self, slot: AttachmentSlot) {
        let mut order = std::mem::take(&mut self.order);
        order.remove(|other| self.rank(other).cmp(&self.rank(slot)));
        self.order = order;
    }

    /// Attachments of a set, in the order of their names, from `name` on.
    fn of_set(&self, set: SetSlot, name: &[u8]) -> impl Iterator<Item = AttachmentSlot> {
        let from = self.order.from(move |other| self.rank(other).cmp(&(set, name)));
        from.take_while(move |slot| self.slots.get(*slot).set == set)
    }

    /// The attachment with a name; none is in the set NIL.
    pub(crate) fn find(&self, set: SetSlot, name: &str) -> Option<AttachmentSlot> {
        let first = self.of_set(set, name.as_bytes()).next();
        first.filter(|slot| *self.slots.get(*slot).name == *name.as_bytes())
    }

    /// Adds a chunk to a chain.
    fn append(&mut self, chain: &mut Chain, blob: BlobRef) {
        let has_room = |slot: &ExtentSlot| self.extents.get(*slot).chunks.len() < EXTENT_CHUNKS;
        match chain.last.some().filter(has_room) {
            Some(last) => self.extents.get_mut(last).chunks.push(blob),
            None => {
                let next = self.extents.insert(Extent { chunks: vec![blob], next: Slot::NIL });
                match chain.last.some() {
                    Some(last) => self.extents.get_mut(last).next = next,
                    None => chain.first = next,
                }
                chain.last = next;
            }
        }
        chain.chunks += 1;
        self.chunks += 1;
    }

    /// The extents of a chain, in order.
    fn extents_of(&self, chain: Chain) -> impl Iterator<Item = ExtentSlot> + '_ {
        std::iter::successors(chain.first.some(), |slot| self.extents.get(*slot).next.some())
    }
}
