//! Calls that fail because the scheduler wants it.

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

/// How a call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallFailure {
    /// The device did not do it.
    Io,
    /// There is no room, whatever the free space was said to be.
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

/// What is going to fail.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// The call that will fail, how many of its kind come before, and how.
    planned: Option<(Call, u64, CallFailure)>,
    /// Calls until the process dies in the middle of what it does.
    halt_after: Option<u64>,
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

    /// The process has ended: what was planned for it is off.
    pub(super) fn process_ended(&mut self) {
        self.planned = None;
        self.halt_after = None;
    }

    /// Counts a call, and fails it if it is to fail.
    pub(super) fn meet(&mut self, call: Call) -> io::Result<()> {
        if let Some(calls) = self.halt_after.as_mut().filter(|calls| **calls > 0) {
            *calls -= 1;
        }
        match &mut self.planned {
            Some((which, 0, how)) if *which == call => {
                let error = how.error(call);
                self.planned = None;
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
