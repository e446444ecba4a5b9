//! Owners of blobs: every reference that the module holds.

use crate::id::BlobRef;
use crate::queue::QueueModule;

impl QueueModule {
    /// Every reference to a blob: as many times as it has owners.
    pub(crate) fn owned_blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let of_messages = self.messages.iter().map(|(_, message)| message.blob());
        let of_schedules = self.schedules.slots.iter().map(|(_, schedule)| schedule.blob);
        let of_chains = self.flows.chains.iter().flat_map(|(_, chain)| chain.blobs());
        let pending = self.pending_sends.iter().flat_map(|(_, pending)| pending.blobs());
        let all = of_messages.chain(self.extras.blobs()).chain(of_schedules).chain(of_chains).chain(pending);
        all.filter(|blob| *blob != BlobRef::EMPTY)
    }
}
