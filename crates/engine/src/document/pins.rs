//! Pins: keys that prepared transactions are about, and the room that they will take. Until such a
//! transaction is finished nothing else reads or writes the document of the key, and it does not end.

use std::collections::BTreeMap;

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::document::DocumentModule;
use crate::document::state::DocumentSlot;
use crate::document::writing::Room;
use crate::error::Error;
use crate::id::NamespaceId;
use crate::plant::{self, Plant};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

#[derive(Debug, Default)]
pub(crate) struct Pins {
    keys: BTreeMap<(NamespaceSlot, Box<str>), Pin>,
    /// Room that is not taken by others.
    pub(crate) reserved: Room,
}

/// A key that is pinned.
#[derive(Debug)]
struct Pin {
    /// When its document would end, in microseconds since the Unix epoch; 0: it stays, or there is none.
    due_us: u64,
    /// Terms that are reserved for indexes which were declared, or filled, since.
    terms: u32,
}

impl HeadPart for Pins {
    fn write_head(&self, out: &mut Vec<u8>) {
        out.u32(self.keys.len() as u32);
        for ((namespace, key), pin) in &self.keys {
            namespace.write(out);
            out.bytes16(key.as_bytes());
            out.u64(pin.due_us);
            out.u32(pin.terms);
        }
        self.reserved.write(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let mut pins = Pins::default();
        for _ in 0..reader.u32()? {
            let (namespace, key) = (Slot::read(reader)?, std::str::from_utf8(reader.bytes16()?).ok()?);
            let pin = Pin { due_us: reader.u64()?, terms: reader.u32()? };
            pins.keys.insert((namespace, key.into()), pin);
        }
        pins.reserved = Room::read(reader)?;
        Some(pins)
    }
}

impl Pins {
    /// Number of keys.
    pub(crate) fn len(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Number of the terms that are reserved for indexes which were declared, or filled, since keys were
    /// pinned.
    pub(crate) fn terms(&self) -> u32 {
        self.keys.values().map(|pin| pin.terms).sum()
    }

    /// Number of the keys of a namespace.
    pub(crate) fn count_in(&self, namespace: NamespaceSlot) -> u32 {
        self.keys.keys().filter(|(of, _)| *of == namespace).count() as u32
    }

    /// Reserves terms for a key, if it is pinned, whose document has lost so many.
    pub(crate) fn reserve_lost_terms(&mut self, namespace: NamespaceSlot, key: &str, terms: u32) {
        if let Some(pin) = self.keys.get_mut(&(namespace, Box::from(key))) {
            pin.terms += terms;
            self.reserved.terms += terms;
        }
    }

    /// Reserves a term for each key of a namespace, in which an index is declared.
    pub(crate) fn reserve_terms(&mut self, namespace: NamespaceSlot) {
        for (_, pin) in self.keys.iter_mut().filter(|((of, _), _)| *of == namespace) {
            pin.terms += 1;
            self.reserved.terms += 1;
        }
    }

    /// Refuses a key that a prepared transaction is about.
    pub(crate) fn expect_free(&self, namespace: NamespaceSlot, key: &str) -> Result<(), Error> {
        if self.keys.is_empty() || !self.keys.contains_key(&(namespace, key.into())) {
            return Ok(());
        }
        Err(Error::InDoubt { what: format!("document {key:?}") })
    }
}

impl DocumentModule {
    /// Refuses a key that a prepared transaction is about.
    pub(crate) fn expect_decided(&self, namespace: NamespaceId, key: &str, core: &Core) -> Result<(), Error> {
        core.namespace_slot(namespace).map_or(Ok(()), |slot| self.pins.expect_free(slot, key))
    }

    /// When a document ends, in microseconds since the Unix epoch; 0: it stays. Of one that is pinned, once
    /// nothing pins it.
    pub(crate) fn due_us(&self, slot: DocumentSlot) -> u64 {
        let document = self.documents.slots.get(slot);
        if self.pins.keys.is_empty() {
            return document.due_us;
        }
        let key = String::from_utf8_lossy(&document.key).into_owned().into_boxed_str();
        self.pins.keys.get(&(document.namespace, key)).map_or(document.due_us, |pin| pin.due_us)
    }

    /// Numbers of documents, former versions and terms that there are, or that are reserved.
    pub(crate) fn claimed(&self) -> [u32; 3] {
        let reserved = self.pins.reserved;
        [
            self.documents.slots.used() + reserved.documents,
            self.formers.used() + reserved.formers,
            self.indexes.entries.used() + reserved.terms,
        ]
    }

    /// Pins a key.
    pub(crate) fn pin(&mut self, namespace: NamespaceSlot, key: &str, core: &Core) {
        if plant::is(Plant::SkipPin) {
            return;
        }
        let found = self.documents.find(namespace, key);
        let due_us = found.map_or(0, |slot| self.documents.slots.get(slot).due_us);
        if let Some(slot) = found {
            self.documents.set_due(slot, 0, core.now_us);
        }
        self.pins.keys.insert((namespace, key.into()), Pin { due_us, terms: 0 });
    }

    /// Lets go of a key. `is_written`: its document is written now, and so is not over although its time has
    /// come: it has no end then, like one that is written when it is over.
    pub(crate) fn unpin(&mut self, namespace: NamespaceSlot, key: &str, is_written: bool, core: &Core) {
        let Some(pin) = self.pins.keys.remove(&(namespace, key.into())) else { return };
        self.pins.reserved.terms -= pin.terms;
        if let Some(slot) = self.documents.find(namespace, key) {
            let due_us = if is_written && pin.due_us <= core.now_us { 0 } else { pin.due_us };
            self.documents.set_due(slot, due_us, core.now_us);
        }
    }
}
