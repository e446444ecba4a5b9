//! Keys whose documents have gone, for those who watch.

use crate::document::state::GoneSlot;
use crate::store::key::Key;
use crate::store::list::{Link, Linked, PLACE};
use crate::store::slab::{PlainItem, Slab};
use crate::wire::{Put, Reader};

/// The end of a document, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Gone {
    /// Empty: the slot is vacant.
    pub(crate) key: Key,
    /// Number of the change, as documents have it.
    pub(crate) revision: u64,
    /// When it was, in microseconds since the Unix epoch.
    pub(crate) at_us: u64,
    /// Its place among the others, in the order of their changes; of a vacant slot, the next one.
    link: Link<Gone>,
    /// Number of its namespace: a slot may be another namespace's by now.
    pub(crate) namespace: u32,
}

/// All ends that are remembered.
pub(crate) type GoneSlots = Slab<Gone, 1024>;

impl Gone {
    pub(crate) fn new(namespace: u32, key: &[u8], revision: u64, at_us: u64) -> Gone {
        Gone { key: Key::new(key), revision, at_us, link: Link::UNLINKED, namespace }
    }
}

impl PlainItem for Gone {
    const BLOCK: usize = 64;

    fn vacant(next: GoneSlot) -> Self {
        let mut vacant = Gone::new(0, &[], 0, 0);
        vacant.link.next = next;
        vacant
    }

    fn next_vacant(&self) -> Option<GoneSlot> {
        self.key.is_empty().then_some(self.link.next)
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.key.write(out);
        out.u64(self.revision);
        out.u64(self.at_us);
        self.link.write(out);
        out.u32(self.namespace);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Gone {
            key: Key::read(reader).filter(|key| !key.is_empty())?,
            revision: reader.u64()?,
            at_us: reader.u64()?,
            link: Link::read(reader)?,
            namespace: reader.u32()?,
        })
    }
}

impl Linked<PLACE> for Gone {
    fn link(&self) -> Link<Gone> {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link<Gone> {
        &mut self.link
    }
}
