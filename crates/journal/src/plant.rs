//! Bugs planted on purpose, to see that the simulator finds them. Without the feature `plant`, which the
//! simulator alone switches on, the answer is no at compile time, and nothing of them is in the program.

#![cfg_attr(not(feature = "plant"), allow(unreachable_pub))] // The simulator plants from outside of the crate.

/// A bug that can be planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plant {
    /// A cut is done without a new manifest.
    CutWithoutManifest,
    /// A commit is noted although a cut of what the disk has there is on its way.
    NoteCommitAcrossCut,
    /// A hard state counts as durable before it is on the disk.
    HardStateUnsynced,
    /// An opening numbers batches from 1 again.
    RestartNumbers,
    /// A state is installed without the part of the growing segment that was given.
    ForgetGrowingSegment,
    /// A state is installed without a sync of the log that stays.
    SealUnsynced,
    /// Files without live blobs are removed while the state by which these are dead is not in place.
    FreeBeforeInstalled,
    /// The record up to which blobs of a state may be missing is not kept.
    ForgetWholeFrom,
    /// Orders count as durable before they are synced.
    DurableBeforeSync,
    /// Compaction copies damaged blobs as they are, and drops the whole copies.
    CopiesLeftOut,
    /// Segments that were made ahead are removed while the manifest still names them.
    DropReadyNamed,
}

#[cfg(feature = "plant")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Plant>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug into all journals of this thread, or none.
#[cfg(feature = "plant")]
pub fn plant(bug: Option<Plant>) {
    PLANTED.set(bug);
}

/// True: this bug is planted.
#[cfg(feature = "plant")]
pub(crate) fn is(bug: Plant) -> bool {
    PLANTED.get() == Some(bug)
}

/// False: no bug is planted.
#[cfg(not(feature = "plant"))]
#[inline(always)]
pub(crate) const fn is(_: Plant) -> bool {
    false
}
