//! A full count of everything that is kept, for the simulator and tests.

use std::collections::BTreeMap;

use crate::core::agree;
use crate::document::writing::Room;
use crate::engine::Engine;
use crate::transaction::record::OperationRecord;

impl Engine {
    /// Compares every kept counter, list, directory entry and timer with a full count. Slow: looks at
    /// everything.
    ///
    /// # Errors
    /// A sentence that tells what does not agree.
    pub fn recount(&self) -> Result<(), String> {
        let Engine { core, queue, locks, documents, transactions, two_phase, snapshot: _ } = self;
        core.recount(self.owned_blobs())?;
        let mut others = BTreeMap::new();
        for (namespace, bytes) in documents.recount()? {
            others.insert(namespace, (0, bytes));
        }
        for part in two_phase.parts() {
            let sent = part.part().into_iter().flat_map(|part| part.messages());
            let of_namespace = others.entry(part.namespace_slot).or_insert((0, 0));
            of_namespace.1 += part.room.bytes;
            for (_, message) in sent {
                of_namespace.0 += 1;
                of_namespace.1 += u64::from(message.blob_len);
            }
        }
        queue.recount(&others, core)?;
        locks.recount(core)?;
        transactions.recount()?;
        self.recount_pins()
    }

    /// Compares what is pinned with the transactions that are prepared.
    fn recount_pins(&self) -> Result<(), String> {
        let (mut room, mut keys, mut leases, mut claims, mut messages) = (Room::default(), 0, 0, 0, 0);
        for prepared in self.two_phase.parts() {
            room += prepared.room;
            claims += (prepared.granted.len() + prepared.pinned.len()) as u64;
            for operation in prepared.part().into_iter().flat_map(|part| part.operations()) {
                keys += u64::from(operation.document().is_some());
                leases += u64::from(matches!(operation, OperationRecord::Settle(_)));
                messages += u64::from(matches!(operation, OperationRecord::Send(..)));
            }
        }
        let of_documents = &self.documents.pins;
        agree("pinned keys", keys, of_documents.len())?;
        agree("reserved documents", room.documents.into(), of_documents.reserved.documents.into())?;
        agree("reserved versions", room.formers.into(), of_documents.reserved.formers.into())?;
        let terms = room.terms + of_documents.terms();
        agree("reserved terms", terms.into(), of_documents.reserved.terms.into())?;
        agree("reserved bytes", room.bytes, of_documents.reserved.bytes)?;
        agree("pinned grants", claims, self.locks.pins.count())?;
        self.queue.pins.recount(leases, messages)
    }
}
