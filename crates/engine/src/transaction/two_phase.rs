//! Transactions over several namespaces: parts that are prepared here, and those decided here whose parts are
//! not known to be finished everywhere.

use std::collections::{BTreeMap, VecDeque};

use crate::core::field::{ReadField, WriteField};
use crate::core::namespace::NamespaceSlot;
use crate::document::writing::Room;
use crate::error::Error;
use crate::id::{BlobRef, NamespaceId, TransactionId};
use crate::limits::{TRANSACTIONS_PREPARED_BYTES_MAX, TRANSACTIONS_PREPARED_MAX};
use crate::lock::state::ClaimSlot;
use crate::plant::{self, Plant};
use crate::store::slot;
use crate::store::slot::Slot;
use crate::transaction::record::{TransactionRecord, decode};
use crate::transactions::{DecidedView, InDoubtTotals, OperationView, PreparedView};
use crate::wire::{HeadPart, Put, Reader};

/// The state of both.
#[derive(Debug, Default)]
pub(crate) struct TwoPhase {
    prepared: BTreeMap<(TransactionId, NamespaceId), Prepared>,
    decided: BTreeMap<TransactionId, Decided>,
    /// Bytes of all prepared parts. Derived.
    bytes: usize,
}

/// A part that is prepared.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) namespace_slot: NamespaceSlot,
    /// Shard of the coordinator.
    pub(crate) shard: u32,
    /// Index of the record that prepared it, which has its blobs.
    pub(crate) index: u64,
    pub(crate) at_us: u64,
    pub(crate) until_us: u64,
    /// Room that is reserved for its documents.
    pub(crate) room: Room,
    /// Claims that it is granted, and then those that it pins beside.
    pub(crate) granted: VecDeque<ClaimSlot>,
    pub(crate) pinned: VecDeque<ClaimSlot>,
    /// The operations, as [`decode`] reads them.
    pub(crate) bytes: Box<[u8]>,
}

#[derive(Debug)]
struct Decided {
    at_us: u64,
    participants: Box<[(NamespaceId, u32)]>,
}

impl Prepared {
    /// The operations.
    pub(crate) fn part(&self) -> Option<TransactionRecord<'_>> {
        decode(&mut Reader::new(&self.bytes))
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.namespace_slot.write(out);
        out.u32(self.shard);
        [self.index, self.at_us, self.until_us].iter().for_each(|field| out.u64(*field));
        self.room.write(out);
        slot::write_all(&self.granted, out);
        slot::write_all(&self.pinned, out);
        out.u32(self.bytes.len() as u32);
        out.raw(&self.bytes);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Prepared> {
        let (namespace_slot, shard) = (Slot::read(reader)?, reader.u32()?);
        let (index, at_us, until_us) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let room = Room::read(reader)?;
        let (granted, pinned) = (slot::read_all(reader)?, slot::read_all(reader)?);
        let len = reader.u32()? as usize;
        let bytes = reader.raw(len)?.into();
        Some(Prepared { namespace_slot, shard, index, at_us, until_us, room, granted, pinned, bytes })
    }
}

impl HeadPart for TwoPhase {
    fn write_head(&self, out: &mut Vec<u8>) {
        let kept = self.prepared.len().saturating_sub(plant::is(Plant::LosePreparedPart).into());
        out.u32(kept as u32);
        for ((id, namespace), prepared) in self.prepared.iter().take(kept) {
            id.write(out);
            namespace.write(out);
            prepared.write(out);
        }
        out.u32(self.decided.len() as u32);
        for (id, decided) in &self.decided {
            id.write(out);
            out.u64(decided.at_us);
            out.u32(decided.participants.len() as u32);
            for (namespace, shard) in &decided.participants {
                namespace.write(out);
                out.u32(*shard);
            }
        }
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let mut state = TwoPhase::default();
        for _ in 0..reader.u32()? {
            let key = (TransactionId::read(reader)?, NamespaceId::read(reader)?);
            let prepared = Prepared::read(reader)?;
            prepared.part()?;
            state.bytes += prepared.bytes.len();
            state.prepared.insert(key, prepared);
        }
        for _ in 0..reader.u32()? {
            let (id, at_us, count) = (TransactionId::read(reader)?, reader.u64()?, reader.u32()?);
            let mut read = || Some((NamespaceId::read(reader)?, reader.u32()?));
            let participants = (0..count).map(|_| read()).collect::<Option<_>>()?;
            state.decided.insert(id, Decided { at_us, participants });
        }
        Some(state)
    }
}

impl TwoPhase {
    pub(crate) fn is_prepared(&self, id: TransactionId, namespace: NamespaceId) -> bool {
        self.prepared.contains_key(&(id, namespace))
    }

    /// True if the transaction was decided to commit, and is not forgotten.
    pub(crate) fn is_committed(&self, id: TransactionId) -> bool {
        self.decided.contains_key(&id)
    }

    /// Refuses a part of so many bytes for which there is no room.
    pub(crate) fn admit_part(&self, bytes: usize) -> Result<(), Error> {
        let (most, bytes_max) = (TRANSACTIONS_PREPARED_MAX, TRANSACTIONS_PREPARED_BYTES_MAX);
        if self.prepared.len() >= most {
            return Err(limit("prepared transactions", most));
        }
        if self.bytes + bytes > bytes_max {
            return Err(limit("bytes of prepared transactions", bytes_max));
        }
        Ok(())
    }

    /// Refuses one more decision for which there is no room.
    pub(crate) fn admit_decision(&self) -> Result<(), Error> {
        if self.decided.len() >= TRANSACTIONS_PREPARED_MAX {
            return Err(limit("transactions that are not finished", TRANSACTIONS_PREPARED_MAX));
        }
        Ok(())
    }

    pub(crate) fn enter(&mut self, id: TransactionId, namespace: NamespaceId, part: Prepared) {
        self.bytes += part.bytes.len();
        self.prepared.insert((id, namespace), part);
    }

    pub(crate) fn take(&mut self, id: TransactionId, namespace: NamespaceId) -> Option<Prepared> {
        let part = self.prepared.remove(&(id, namespace))?;
        self.bytes -= part.bytes.len();
        Some(part)
    }

    pub(crate) fn decide(
        &mut self,
        id: TransactionId,
        participants: impl Iterator<Item = (NamespaceId, u32)>,
        at_us: u64,
    ) {
        self.decided.insert(id, Decided { at_us, participants: participants.collect() });
    }

    /// False: the transaction was not decided to commit, or is forgotten already.
    pub(crate) fn forget(&mut self, id: TransactionId) -> bool {
        self.decided.remove(&id).is_some()
    }

    /// Transactions that are prepared in a namespace.
    pub(crate) fn prepared_in(&self, namespace: NamespaceId) -> Vec<TransactionId> {
        self.prepared.keys().filter(|(_, of)| *of == namespace).map(|(id, _)| *id).collect()
    }

    /// Refuses a part while one of the same request, by its idempotency key, is prepared.
    pub(crate) fn expect_only(&self, part: &TransactionRecord<'_>) -> Result<(), Error> {
        let of_namespace = self.prepared.iter().filter(|((_, namespace), _)| *namespace == part.namespace);
        let mut parts = of_namespace.filter_map(|(_, prepared)| prepared.part());
        let is_same = |other: TransactionRecord<'_>| other.idempotency_key == part.idempotency_key;
        if !part.idempotency_key.is_empty() && parts.any(is_same) {
            return Err(Error::InDoubt { what: "the first request with this idempotency key".into() });
        }
        Ok(())
    }

    /// Blobs of all prepared parts.
    pub(crate) fn owned_blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let blobs = |part: &Prepared| Some(part.part()?.blobs(part.index));
        self.prepared.values().filter_map(blobs).flatten()
    }

    /// All prepared parts with their namespaces.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Prepared> {
        self.prepared.values()
    }

    pub(crate) fn prepared_views(&self) -> impl Iterator<Item = PreparedView> + '_ {
        self.prepared.iter().map(|((id, namespace), part)| PreparedView {
            id: *id,
            shard: part.shard,
            namespace: *namespace,
            prepared_at_us: part.at_us,
            until_us: part.until_us,
            operations: part.part().map_or(0, |part| part.count),
        })
    }

    /// Operations of a part, in order; `None`: it is not prepared.
    pub(crate) fn operations(&self, id: TransactionId, namespace: NamespaceId) -> Option<Vec<OperationView>> {
        let part = self.prepared.get(&(id, namespace))?.part()?;
        Some(part.operations().map(|operation| operation.view()).collect())
    }

    pub(crate) fn totals(&self) -> InDoubtTotals {
        let prepared = self.prepared.values().map(|part| part.at_us);
        let oldest = prepared.chain(self.decided.values().map(|decided| decided.at_us)).min();
        let count = (self.prepared.len() + self.decided.len()) as u64;
        InDoubtTotals { count, oldest_us: oldest.unwrap_or_default() }
    }

    pub(crate) fn decided_views(&self) -> impl Iterator<Item = DecidedView> + '_ {
        self.decided.iter().map(|(id, decided)| DecidedView {
            id: *id,
            decided_at_us: decided.at_us,
            participants: decided.participants.to_vec(),
        })
    }
}

#[cold]
fn limit(what: &'static str, limit: usize) -> Error {
    Error::LimitExceeded { what, limit: limit as u64 }
}
