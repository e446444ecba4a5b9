//! Calls to the disk that fail on demand.

use std::io::{self, ErrorKind};

/// Calls that can be made to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Opening, creating and listing.
    Open,
    /// Making directories, renaming and removing.
    Name,
    /// Reading.
    Read,
    /// Writing and reserving.
    Write,
    /// Syncing a file.
    Sync,
    /// Syncing a directory.
    SyncDirectory,
}

/// Kind of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallFailure {
    /// The device reports an error.
    Io,
    /// There is no space, whatever free space was reported.
    NoRoom,
}

impl CallFailure {
    pub(super) fn error(self, call: Call) -> io::Error {
        match self {
            CallFailure::Io => io::Error::other(format!("simulated: {call:?} failed")),
            CallFailure::NoRoom => {
                io::Error::new(ErrorKind::StorageFull, "simulated: no space left on device")
            }
        }
    }
}

/// Planned failures.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// The call that will fail, the number of its kind that succeed first, and the kind of failure.
    planned: Option<(Call, u64, CallFailure)>,
    /// Number of calls until the process dies in the middle of one.
    halt_after: Option<u64>,
    /// True when a call of this process has failed by plan.
    has_failed: bool,
}

impl Faults {
    pub(super) fn plan(&mut self, call: Call, nth: u64, how: CallFailure) {
        self.planned = Some((call, nth, how));
    }

    pub(super) fn forget_plan(&mut self) {
        self.planned = None;
    }

    pub(super) fn halt_after(&mut self, calls: u64) {
        self.halt_after = Some(calls);
    }

    pub(super) fn forget_halt(&mut self) {
        self.halt_after = None;
    }

    pub(super) fn is_halted(&self) -> bool {
        self.halt_after == Some(0)
    }

    /// Drops the plans at the end of a process.
    pub(super) fn process_ended(&mut self) {
        *self = Faults::default();
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    pub(super) fn is_planned(&self) -> bool {
        self.planned.is_some()
    }

    /// Counts a call; fails it if that is planned.
    pub(super) fn meet(&mut self, call: Call) -> io::Result<()> {
        if let Some(calls) = self.halt_after.as_mut().filter(|calls| **calls > 0) {
            *calls -= 1;
        }
        match &mut self.planned {
            Some((which, 0, how)) if *which == call => {
                let error = how.error(call);
                self.planned = None;
                self.has_failed = true;
                Err(error)
            }
            Some((which, nth, _)) if *which == call => {
                *nth -= 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
