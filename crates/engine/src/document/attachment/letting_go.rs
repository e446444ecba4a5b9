//! The end of attachments and their chunks, a slice at a time.

use crate::core::Core;
use crate::document::attachment::Attachments;
use crate::document::state::attachment::{Attachment, AttachmentSlot, Chain, SetSlot};
use crate::outcome::Outcome;
use crate::plant::{self, Plant};

impl Attachments {
    /// Lets go of all attachments of a document that ends; returns their bytes.
    pub(crate) fn orphan(&mut self, set: SetSlot) -> u64 {
        let Some(set) = set.some() else { return 0 };
        self.orphans.push_back(set);
        self.sets.get(set).bytes
    }

    /// Forgets an attachment; its chunks go in slices.
    pub(super) fn remove(&mut self, slot: AttachmentSlot) -> Attachment {
        self.take_out_of_order(slot);
        let attachment = self.slots.remove(slot);
        self.sets.get_mut(attachment.set).count -= 1;
        self.free(attachment.chain);
        attachment
    }

    pub(super) fn free(&mut self, chain: Chain) {
        self.freed.extend(chain.first.some());
    }

    /// True if there is anything left to let go of.
    pub(crate) fn has_leftovers(&self) -> bool {
        !(self.orphans.is_empty() && self.freed.is_empty())
    }

    /// Lets go of attachments and chunks, until `budget` of them are gone.
    pub(crate) fn let_go(&mut self, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        while *budget > 0
            && let Some(&set) = self.orphans.front()
        {
            let first = self.of_set(set, &[]).next();
            match first {
                Some(slot) => {
                    self.remove(slot);
                    *budget -= 1;
                }
                None => {
                    self.orphans.pop_front();
                    self.sets.free(set);
                }
            }
        }
        while *budget > 0
            && let Some(slot) = self.freed.pop_front()
        {
            let extent = self.extents.remove(slot);
            if let Some(next) = extent.next.some() {
                self.freed.push_front(next);
            }
            self.chunks -= extent.chunks.len() as u32;
            *budget = budget.saturating_sub(extent.chunks.len());
            let leaked = usize::from(plant::is(Plant::LeakAttachmentChunk));
            extent.chunks.into_iter().skip(leaked).for_each(|blob| core.release_blob(blob, out));
        }
    }
}
