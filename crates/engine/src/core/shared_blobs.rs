//! Shared blobs: the number of owners of each blob that has more than one. A blob that is not here has one.

use crate::store::slot::Slot;
use std::collections::BTreeMap;

use crate::hash::mix;
use crate::id::BlobRef;
use crate::store::hash_index::HashIndex;
use crate::store::slab::{PlainItem, Slab};
use crate::wire::{HeadPart, Put, Reader};

/// One blob with several owners, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct SharedBlob {
    blob: BlobRef,
    /// Two or more.
    owners: u32,
    next_vacant: Option<Slot<SharedBlob>>,
}

impl PlainItem for SharedBlob {
    const BLOCK: usize = 64;

    fn vacant(next: Slot<SharedBlob>) -> Self {
        SharedBlob { blob: BlobRef { index: 0, item: 0, len: 0 }, owners: 0, next_vacant: Some(next) }
    }

    fn next_vacant(&self) -> Option<Slot<SharedBlob>> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.blob(self.blob);
        out.u32(self.owners);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(SharedBlob { blob: reader.blob()?, owners: reader.u32()?, next_vacant: None })
    }
}

/// All blobs with several owners.
#[derive(Debug, Default)]
pub(crate) struct SharedBlobs {
    pub(crate) slots: Slab<SharedBlob, 1024>,
    /// Index by record and item. Derived.
    places: HashIndex<SharedBlob>,
}

fn place_hash(blob: BlobRef) -> u64 {
    mix(blob.index ^ mix(u64::from(blob.item)))
}

impl HeadPart for SharedBlobs {
    fn write_head(&self, out: &mut Vec<u8>) {
        let SharedBlobs { slots, places: _ } = self;
        slots.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let slots = Slab::read_head(reader)?;
        Some(SharedBlobs { slots, ..SharedBlobs::default() })
    }
}

impl SharedBlobs {
    fn find(&self, blob: BlobRef) -> Option<Slot<SharedBlob>> {
        self.places.find(place_hash(blob), |slot| {
            let known = self.slots.get(slot).blob;
            (known.index, known.item) == (blob.index, blob.item)
        })
    }

    /// True if each blob has one owner.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.used() == 0
    }

    /// Owners of a blob that has any.
    pub(crate) fn owners(&self, blob: BlobRef) -> u32 {
        if self.is_empty() { 1 } else { self.find(blob).map_or(1, |slot| self.slots.get(slot).owners) }
    }

    /// Gives a blob one more owner.
    pub(crate) fn share(&mut self, blob: BlobRef) {
        if let Some(slot) = self.find(blob) {
            self.slots.get_mut(slot).owners += 1;
            return;
        }
        let slot = self.slots.insert(SharedBlob { blob, owners: 2, next_vacant: None });
        self.places.insert(place_hash(blob), slot);
    }

    /// One owner lets go of a blob; true if it was the last one.
    pub(crate) fn let_go(&mut self, blob: BlobRef) -> bool {
        let Some(slot) = self.find(blob) else { return true };
        let shared = self.slots.get_mut(slot);
        shared.owners -= 1;
        if shared.owners == 1 {
            self.places.remove(place_hash(blob), slot);
            self.slots.remove(slot);
        }
        false
    }

    /// All of them.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        self.slots.iter().map(|(_, shared)| shared.blob)
    }

    /// Compares the owners that are kept with `owned`: every reference to a blob, one for each owner.
    pub(crate) fn recount(&self, owned: impl Iterator<Item = BlobRef>) -> Result<(), String> {
        let mut owners = BTreeMap::new();
        for blob in owned {
            *owners.entry(blob).or_insert(0u32) += 1;
        }
        for blob in self.blobs() {
            owners.entry(blob).or_insert(0);
        }
        for (blob, counted) in owners {
            let kept = self.owners(blob);
            if counted != kept {
                return Err(format!("owners of {blob:?}: counted {counted}, kept {kept}"));
            }
        }
        Ok(())
    }

    /// Derives the index after all slots were read.
    pub(crate) fn rebuild(&mut self) {
        for (slot, shared) in self.slots.iter() {
            self.places.insert(place_hash(shared.blob), slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_owner_of_a_blob_lets_go_of_it() {
        let blob = |index, item| BlobRef { index, item, len: 9 };
        let mut shared = SharedBlobs::default();
        assert!(shared.let_go(blob(1, 0)), "nobody else has it");
        shared.share(blob(1, 0));
        shared.share(blob(1, 0));
        shared.share(blob(1, 1));
        assert_eq!([blob(1, 0), blob(1, 1), blob(2, 0)].map(|blob| shared.owners(blob)), [3, 2, 1]);
        assert!(!shared.let_go(blob(1, 0)) && !shared.let_go(blob(1, 0)));
        assert!(shared.let_go(blob(1, 0)));
        assert_eq!(shared.blobs().collect::<Vec<_>>(), [blob(1, 1)]);
        assert!(!shared.let_go(blob(1, 1)) && shared.is_empty());
        assert!(shared.let_go(blob(1, 1)));
    }
}
