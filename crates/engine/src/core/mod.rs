//! Core that every module of the engine uses: time, epochs, namespaces, fencing tokens, blobs with several
//! owners, idempotency keys, limits, the timer wheel. It knows no module.
//!
//! A method of a module that needs any of this takes the [`Core`] as an argument.

pub(crate) mod field;
pub(crate) mod idempotency;
pub(crate) mod namespace;
pub(crate) mod namespaces;
pub(crate) mod shared_blobs;
pub(crate) mod tokens;
pub(crate) mod wheel;

use crate::core::namespace::{Namespace, NamespaceSlot};
use crate::core::shared_blobs::SharedBlobs;
use crate::core::tokens::Tokens;
use crate::error::Error;
use crate::event::Watched;
use crate::id::{BlobRef, EPOCH_SHIFT, MessageId, NamespaceId, Receipt, ReceiptKey};
use crate::limits::Limits;
use crate::outcome::Outcome;
use crate::store::directory::Directory;
use crate::store::hash_index::HashIndex;
use crate::store::slab::Slab;

/// Most entries of one page of any listing.
pub const PAGE_ITEMS_MAX: usize = 1_000;

/// All namespaces.
pub(crate) type Namespaces = Slab<Namespace, 64>;

/// The state that modules share.
#[derive(Debug, Default)]
pub(crate) struct Core {
    /// Index of the record that is being applied, or of the last one.
    pub(crate) applied_index: u64,
    /// Time of that record, in microseconds since the Unix epoch.
    pub(crate) now_us: u64,
    /// The epoch in force; 0 before the first.
    pub(crate) epoch: u64,
    /// The behaviour version in force; 0 before the first epoch.
    pub(crate) behaviour: u16,
    pub(crate) receipt_key: ReceiptKey,
    pub(crate) limits: Limits,
    pub(crate) namespaces: Namespaces,
    /// The smallest number that no namespace has had.
    pub(crate) next_namespace: u32,
    /// Namespaces by number, also those that are deleted and still swept. Derived.
    pub(crate) namespace_numbers: Directory<Namespace>,
    /// Namespaces by name. Derived.
    pub(crate) namespace_names: HashIndex<Namespace>,
    /// Number and slot of the namespace that was found last, as a first guess; not a deleted one. Volatile.
    pub(crate) last_namespace: Option<(NamespaceId, NamespaceSlot)>,
    pub(crate) tokens: Tokens,
    pub(crate) shared_blobs: SharedBlobs,
    /// The parts of outcomes that are filled only while someone watches. Volatile: set by the node.
    pub(crate) watched: Watched,
}

impl Core {
    /// Begins an epoch.
    ///
    /// # Errors
    /// [`Error::Internal`]: the number is not larger than every epoch, id and token before.
    pub(crate) fn begin_epoch(&mut self, number: u64) -> Result<(), Error> {
        if number < self.next_epoch() || number >> (u64::BITS - EPOCH_SHIFT) != 0 {
            let reason = format!("epoch {number} does not follow epoch {}", self.epoch);
            return Err(Error::Internal { reason });
        }
        self.epoch = number;
        self.tokens.begin(number);
        Ok(())
    }

    /// The smallest number that the next epoch may have: above every id and token that was given.
    pub(crate) fn next_epoch(&self) -> u64 {
        let ids = self.namespaces.iter().map(|(_, namespace)| namespace.last_sequence);
        let latest = ids.fold(self.tokens.latest(), u64::max);
        self.epoch.max(latest >> EPOCH_SHIFT) + 1
    }

    /// Puts limits into force.
    pub(crate) fn configure(&mut self, limits: Limits) -> Result<(), Error> {
        limits.check().map_err(internal)?;
        self.limits = limits;
        Ok(())
    }

    /// Refuses a command that programs which know only the behaviour version in force do not know.
    pub(crate) fn expect_behaviour(&self, since: u16) -> Result<(), Error> {
        let in_force = self.behaviour;
        if in_force >= since {
            Ok(())
        } else {
            Err(Error::NotInForce { in_force: in_force.into(), since: since.into() })
        }
    }

    /// Sets the key of receipts. A log keeps its key: with another one no receipt would count that was given
    /// before.
    ///
    /// # Errors
    /// [`Error::Internal`]: there is a key already, or this one is empty.
    pub(crate) fn begin_receipts(&mut self, key: ReceiptKey) -> Result<(), Error> {
        if self.has_receipt_key() || key == ReceiptKey::default() {
            return Err(Error::Internal { reason: "a log gets one key for its receipts".into() });
        }
        self.receipt_key = key;
        Ok(())
    }

    /// Checks what the core derives. `owned`: every reference of a module to a blob, one for each owner.
    /// Modules check the usage of namespaces.
    pub(crate) fn recount(&self, owned: impl Iterator<Item = BlobRef>) -> Result<(), String> {
        let Core {
            namespaces,
            namespace_numbers,
            namespace_names: _, // by `namespace_by_name_slot`
            shared_blobs,
            applied_index: _,  // nothing else tells it
            now_us: _,         // nothing else tells it
            epoch: _,          // nothing else tells it
            behaviour: _,      // nothing else tells it
            receipt_key: _,    // nothing else tells it
            limits: _,         // nothing else tells them
            next_namespace: _, // nothing else tells it
            tokens: _,         // nothing else tells them
            last_namespace: _, // a first guess
            watched: _,        // set by the node
        } = self;
        for (slot, namespace) in namespaces.iter() {
            let by_number = namespace_numbers.get(namespace.number.into());
            let by_name = self.namespace_by_name_slot(&namespace.name);
            if by_number != Some(slot) || (!namespace.deleted && by_name != Some(slot)) {
                return Err(format!("namespace {:?} is not found by number and name", namespace.name));
            }
        }
        shared_blobs.recount(owned)
    }

    /// True if receipts have tags that nobody can guess.
    pub(crate) fn has_receipt_key(&self) -> bool {
        self.receipt_key != ReceiptKey::default()
    }

    /// The receipt of a delivery.
    #[inline]
    pub(crate) fn receipt(&self, id: MessageId, token: u64) -> Receipt {
        self.receipt_key.receipt(id, token)
    }

    /// Gives a blob that has an owner one more. Each lets go of it by [`Core::release_blob`].
    pub(crate) fn share_blob(&mut self, blob: BlobRef) {
        if blob != BlobRef::EMPTY {
            self.shared_blobs.share(blob);
        }
    }

    /// One owner lets go of a blob; the last one releases it.
    #[inline]
    pub(crate) fn release_blob(&mut self, blob: BlobRef, out: &mut Outcome) {
        let last = self.shared_blobs.is_empty() || self.shared_blobs.let_go(blob);
        if last && blob != BlobRef::EMPTY {
            out.released.push(blob);
        }
    }
}

/// The error for a value that the check before the proposal should have refused.
pub(crate) fn internal(error: Error) -> Error {
    Error::Internal { reason: format!("a record that should not have been proposed: {error}") }
}

/// Compares a figure with what is kept of it; for recounts.
pub(crate) fn agree(what: &str, counted: u64, kept: u64) -> Result<(), String> {
    if counted == kept { Ok(()) } else { Err(format!("{what}: counted {counted}, kept {kept}")) }
}

/// The earlier of two times, as far as there are.
pub(crate) fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
