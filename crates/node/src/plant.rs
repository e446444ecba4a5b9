//! Bugs planted on purpose, to see that the simulator finds them. Without the feature `plant`, which the
//! simulator alone switches on, the answer is no at compile time, and nothing of them is in the program.

#![cfg_attr(not(feature = "plant"), allow(unreachable_pub))] // The simulator plants from outside of the crate.

/// A bug that can be planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "plant"), allow(dead_code))] // Nobody constructs those of the simulator.
pub enum Plant {
    /// The end of a leadership leaves out who waits without a record.
    ForgetWaiters,
    /// Callers are answered with what stands at the index of their record, whatever its term.
    DecideByIndex,
    /// A new leader takes its own wall clock for the time of the log.
    OwnWallClock,
    /// A new leader goes on from the last logged time.
    LastLoggedTime,
    /// The decision on a transaction is forgotten before its parts are finished.
    ForgetDecisionEarly,
    /// A part that nobody drives is let go of although the transaction is committed.
    AbortCommitted,
}

#[cfg(feature = "plant")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Plant>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug into all shards of this thread, or none.
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
