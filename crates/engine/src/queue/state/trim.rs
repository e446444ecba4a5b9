//! State of the search for the oldest waiting messages of a queue that is too long.
//!
//! All messages of a queue are listed by id; among them lie those that are leased, dead or done, and these
//! may be many. So they are passed once: whatever waits stands after what was passed, but for those that have
//! come back to waiting since, which are kept by themselves.

use std::collections::BTreeSet;

use crate::queue::state::MessageSlot;
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Trim {
    /// The last message on the list of all that was passed; `NIL`: none.
    pub(crate) passed: MessageSlot,
    /// The lowest id of those that have arrived which was not passed; 0: none was.
    pub(crate) arrived_from: u64,
    /// Sequences of those that have come back to waiting after they were passed. Some have left it again.
    /// Derived.
    pub(crate) returned: BTreeSet<u64>,
    /// True if making the queue as short as it may be goes on as sliced work.
    pub(crate) running: bool,
    /// Messages sent since making room for them was listed among the consequences; 0: it is not
    /// listed.
    pub(crate) owed: u32,
}

impl Default for Trim {
    fn default() -> Self {
        Trim { passed: Slot::NIL, arrived_from: 0, returned: BTreeSet::new(), running: false, owed: 0 }
    }
}

impl Trim {
    /// True if any message was passed.
    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        self.passed != Slot::NIL || self.arrived_from != 0
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.passed.write(out);
        out.u64(self.arrived_from);
        out.bool(self.running);
        out.u32(self.owed);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Trim> {
        Some(Trim {
            passed: Slot::read(reader)?,
            arrived_from: reader.u64()?,
            running: reader.bool()?,
            owed: reader.u32()?,
            ..Trim::default()
        })
    }
}
