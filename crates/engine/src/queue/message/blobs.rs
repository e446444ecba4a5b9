//! Who refers to which blob. The journal hears of it when the last one lets go.

use crate::engine::Engine;
use crate::id::BlobRef;
use crate::outcome::Outcome;

impl Engine {
    /// Gives a blob, which something refers to already, one more owner. Each lets go of it by [`Engine::release_blob`].
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

    /// Every reference to a blob: as many times as it has owners.
    pub(crate) fn owned_blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let of_messages = self.messages.iter().map(|(_, message)| message.blob());
        let of_schedules = self.schedules.slots.iter().map(|(_, schedule)| schedule.blob);
        let of_chains = self.flows.chains.iter().flat_map(|(_, chain)| chain.blobs());
        let pending = self.pending_sends.iter().flat_map(|(_, pending)| pending.blobs());
        let all = of_messages.chain(self.extras.blobs()).chain(of_schedules).chain(of_chains).chain(pending);
        all.filter(|blob| *blob != BlobRef::EMPTY)
    }

    /// Every blob that the engine has not let go of, each once, in no particular order; for the journal after a restart.
    pub fn live_blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let alone = |blob: &BlobRef| self.shared_blobs.owners(*blob) == 1;
        self.owned_blobs().filter(alone).chain(self.shared_blobs.blobs())
    }

    /// Compares the table of shared blobs with who refers to what.
    pub(crate) fn recount_blobs(&self) -> Result<(), String> {
        let mut owners = std::collections::BTreeMap::new();
        for blob in self.owned_blobs() {
            *owners.entry(blob).or_insert(0u32) += 1;
        }
        for blob in self.shared_blobs.blobs() {
            owners.entry(blob).or_insert(0);
        }
        for (blob, counted) in owners {
            let kept = self.shared_blobs.owners(blob);
            if counted != kept {
                return Err(format!("owners of {blob:?}: counted {counted}, kept {kept}"));
            }
        }
        Ok(())
    }
}
