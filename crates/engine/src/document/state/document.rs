//! Documents: keys with their current version.

use crate::core::namespace::NamespaceSlot;
use crate::core::wheel::{Timed, Wheel};
use crate::document::state::attachment::SetSlot;
use crate::document::state::body::Body;
use crate::document::state::{DocumentSlot, EntrySlot, FormerSlot};
use crate::store::key::Key;
use crate::store::key_index::{KeyIndex, Keyed};
use crate::store::list::{Link, Linked, PLACE};
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// A key with its current version, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// Empty: the slot is vacant.
    pub(crate) key: Key,
    pub(crate) body: Body,
    /// When it is gone, in microseconds since the Unix epoch; 0: it stays, and has no timer.
    pub(crate) due_us: u64,
    /// Digest of the request that made the current version; 0: a repeat is not known.
    pub(crate) request: u64,
    /// Its place among the timers; of a vacant slot, the next one.
    link: Link<Document>,
    pub(crate) namespace: NamespaceSlot,
    /// The version before the current one, if it is kept.
    pub(crate) before: FormerSlot,
    /// The first of its terms in indexes.
    pub(crate) entries: EntrySlot,
    /// Its attachments; NIL: it never had any.
    pub(crate) attached: SetSlot,
    bucket: u16,
    /// Number of former versions that are kept at most.
    pub(crate) history: u16,
    /// Length of what lies in the blob before the content.
    pub(crate) head_bytes: u16,
}

const _: () = assert!(size_of::<Document>() == 112);

impl Document {
    pub(crate) fn new(namespace: NamespaceSlot, key: &[u8]) -> Document {
        Document {
            key: Key::new(key),
            body: Body::NONE,
            due_us: 0,
            request: 0,
            link: Link::UNLINKED,
            namespace,
            before: Slot::NIL,
            entries: Slot::NIL,
            attached: Slot::NIL,
            bucket: 0,
            history: 0,
            head_bytes: 0,
        }
    }
}

impl PlainItem for Document {
    const BLOCK: usize = 32;

    fn vacant(next: DocumentSlot) -> Self {
        let mut vacant = Document::new(Slot::NIL, &[]);
        vacant.link.next = next;
        vacant
    }

    fn next_vacant(&self) -> Option<DocumentSlot> {
        self.key.is_empty().then_some(self.link.next)
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.key.write(out);
        self.body.write(out);
        out.u64(self.due_us);
        out.u64(self.request);
        self.link.write(out);
        self.namespace.write(out);
        self.before.write(out);
        self.entries.write(out);
        self.attached.write(out);
        out.u16(self.bucket);
        out.u16(self.history);
        out.u16(self.head_bytes);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Document {
            key: Key::read(reader).filter(|key| !key.is_empty())?,
            body: Body::read(reader)?,
            due_us: reader.u64()?,
            request: reader.u64()?,
            link: Link::read(reader)?,
            namespace: Slot::read(reader)?,
            before: Slot::read(reader)?,
            entries: Slot::read(reader)?,
            attached: Slot::read(reader)?,
            bucket: reader.u16()?,
            history: reader.u16()?,
            head_bytes: reader.u16()?,
        })
    }
}

impl Keyed for Document {
    fn scope(&self) -> u64 {
        self.namespace.index().into()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }
}

impl Linked<PLACE> for Document {
    fn link(&self) -> Link<Document> {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link<Document> {
        &mut self.link
    }
}

impl Timed for Document {
    fn due_us(&self) -> u64 {
        self.due_us
    }

    fn bucket(&self) -> u16 {
        self.bucket
    }

    fn set_bucket(&mut self, bucket: u16) {
        self.bucket = bucket;
    }
}

/// All documents, some with a timer.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    pub(crate) slots: Slab<Document, 1024>,
    pub(crate) wheel: Wheel<Document>,
    /// Index by namespace and key. Derived.
    index: KeyIndex<Document>,
}

impl HeadPart for Documents {
    fn write_head(&self, out: &mut Vec<u8>) {
        let Documents { slots, wheel, index: _ } = self;
        wheel.write_head(out);
        slots.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let wheel = Wheel::read_head(reader)?;
        Some(Documents { wheel, slots: Slab::read_head(reader)?, ..Documents::default() })
    }
}

impl Documents {
    pub(crate) fn find(&self, namespace: NamespaceSlot, key: &str) -> Option<DocumentSlot> {
        self.index.find(&self.slots, namespace.index().into(), key.as_bytes())
    }

    /// The document of a key; the second is true when it is new, and has no version yet.
    pub(crate) fn enter(&mut self, namespace: NamespaceSlot, key: &str) -> (DocumentSlot, bool) {
        let key = key.as_bytes();
        self.index.enter(&mut self.slots, namespace.index().into(), key, || Document::new(namespace, key))
    }

    /// Sets when a document is gone, in microseconds since the Unix epoch; 0: it stays.
    pub(crate) fn set_due(&mut self, slot: DocumentSlot, due_us: u64, now_us: u64) {
        if self.slots.get(slot).due_us != 0 {
            self.wheel.remove(&mut self.slots, slot);
        }
        self.slots.get_mut(slot).due_us = due_us;
        if due_us != 0 {
            self.wheel.insert(&mut self.slots, slot, now_us);
        }
    }

    /// Forgets a document that has no timer.
    pub(crate) fn remove(&mut self, slot: DocumentSlot) {
        self.index.remove(&mut self.slots, slot);
    }

    pub(crate) fn rebuild(&mut self) {
        self.index.rebuild(&self.slots);
    }

    /// Compares timers and the index with the documents.
    pub(crate) fn recount(&self) -> Result<(), String> {
        for (slot, document) in self.slots.iter() {
            if self.index.find(&self.slots, document.scope(), &document.key) != Some(slot) {
                return Err(format!("document {slot} is not found by its key"));
            }
        }
        let with_time = self.slots.iter().filter(|(_, document)| document.due_us != 0).count();
        let listed = self.wheel.iter(&self.slots).filter(|&(bucket, slot)| {
            let document = self.slots.get(slot);
            document.due_us != 0 && usize::from(document.bucket) == bucket
        });
        let figures = [listed.count(), self.wheel.len() as usize, with_time];
        if figures != [figures[0]; 3] {
            return Err(format!("documents listed by time, timers, documents with a time: {figures:?}"));
        }
        crate::core::agree("documents by key", self.slots.used().into(), self.index.len().into())
    }
}
