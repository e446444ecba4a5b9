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
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

#[derive(Debug, Default)]
pub(crate) struct Pins {
    /// Keys, each with the time at which its document would end; 0: it stays, or there is none.
    keys: BTreeMap<(NamespaceSlot, Box<str>), u64>,
    /// Room that is not taken by others.
    pub(crate) reserved: Room,
}

impl HeadPart for Pins {
    fn write_head(&self, out: &mut Vec<u8>) {
        out.u32(self.keys.len() as u32);
        for ((namespace, key), due_us) in &self.keys {
            namespace.write(out);
            out.bytes16(key.as_bytes());
            out.u64(*due_us);
        }
        self.reserved.write(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let mut pins = Pins::default();
        for _ in 0..reader.u32()? {
            let (namespace, key) = (Slot::read(reader)?, std::str::from_utf8(reader.bytes16()?).ok()?);
            pins.keys.insert((namespace, key.into()), reader.u64()?);
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
        self.pins.keys.get(&(document.namespace, key)).copied().unwrap_or(document.due_us)
    }

    /// Pins a key.
    pub(crate) fn pin(&mut self, namespace: NamespaceSlot, key: &str, core: &Core) {
        let found = self.documents.find(namespace, key);
        let due_us = found.map_or(0, |slot| self.documents.slots.get(slot).due_us);
        if let Some(slot) = found {
            self.documents.set_due(slot, 0, core.now_us);
        }
        self.pins.keys.insert((namespace, key.into()), due_us);
    }

    /// Lets go of a key.
    pub(crate) fn unpin(&mut self, namespace: NamespaceSlot, key: &str, core: &Core) {
        let Some(due_us) = self.pins.keys.remove(&(namespace, key.into())) else { return };
        if let Some(slot) = self.documents.find(namespace, key) {
            self.documents.set_due(slot, due_us, core.now_us);
        }
    }
}
