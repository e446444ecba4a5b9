//! Memory of a node: whether its journal has everything that the node has acknowledged.
//!
//! A node that acknowledges what is written and not synced forgets some of it when its machine loses power.
//! So the hard state says in which boot of the machine that was.

/// Identity of a boot of a machine: another one after each. What is written and not synced ends with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BootId(pub [u8; 16]);

impl BootId {
    /// Bytes that stand for no boot.
    pub(super) const NONE: BootId = BootId([0; 16]);
}

/// Part of what a node has acknowledged that its journal keeps, whatever becomes of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Kept {
    /// All of it: nothing was acknowledged before it was synced.
    #[default]
    All,
    /// All of it as long as this boot lasts: it was acknowledged when it was written.
    Written(BootId),
    /// Perhaps not all of it.
    Less,
}

/// Present boot of a machine, and the way in which its journal was left and is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// The boot.
    pub boot: BootId,
    /// True: nothing is acknowledged before it is synced.
    pub syncs_first: bool,
    /// True: the journal was closed in order and ends where it ended then, so that nothing of it is missing.
    pub is_whole: bool,
    /// True: a journal of the node has failed since it was opened last. The failure of a sync can take with
    /// it what was written before, in the same boot.
    pub has_failed: bool,
}

impl Memory {
    /// True: some of what was acknowledged may be lost, of which the journal kept this part.
    pub(super) fn has_lost(&self, kept: Kept) -> bool {
        match kept {
            Kept::All => false,
            Kept::Written(boot) => self.has_failed || boot != self.boot && !self.is_whole,
            Kept::Less => true,
        }
    }

    /// Part of what is acknowledged from now on that is kept.
    pub(super) fn kept(&self) -> Kept {
        if self.syncs_first { Kept::All } else { Kept::Written(self.boot) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_ends_with_the_boot_unless_the_journal_was_closed_and_with_its_failure() {
        let memory = |boot, is_whole| Memory {
            boot: BootId([boot; 16]),
            syncs_first: false,
            is_whole,
            has_failed: false,
        };
        let failed = Memory { has_failed: true, ..memory(1, true) };
        let written = Kept::Written(BootId([1; 16]));
        for (kept, memory, has_lost) in [
            (Kept::All, memory(2, false), false),
            (written, memory(1, false), false),
            (written, memory(2, false), true),
            (written, memory(2, true), false),
            (Kept::Less, memory(1, true), true),
            (written, failed, true),
            (Kept::All, failed, false),
        ] {
            assert_eq!(memory.has_lost(kept), has_lost, "{kept:?} {memory:?}");
        }
        assert_eq!(memory(1, true).kept(), written);
        assert_eq!(Memory { syncs_first: true, ..memory(1, true) }.kept(), Kept::All);
    }
}
