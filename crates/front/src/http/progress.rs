//! Whether a client takes its answer, seen from the pieces that HTTP/2 gets of it.
//!
//! Over HTTP/2 a connection whose bytes flow says nothing of one answer: its window may stay shut while others go on. So
//! each answer is watched for itself. Over HTTP/1.1 the connection is the answer, and its bytes are watched instead.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The progress of one answer.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Since when it is the client's turn to take something; `None`: there is nothing for it to take.
    since: Option<Instant>,
    /// Pieces that were handed out and not written yet.
    pieces: usize,
    /// Whether the source of the answer has nothing at the moment.
    dry: bool,
}

impl Progress {
    /// The answer is there, or its next piece is on its way out.
    pub(crate) fn offered(&self, pieces: usize) {
        let mut state = self.state();
        state.pieces += pieces;
        state.dry = false;
        state.since = Some(Instant::now());
    }

    /// A piece was written, or dropped with its connection.
    pub(crate) fn taken(&self) {
        let mut state = self.state();
        state.pieces -= 1;
        let nothing_left = state.dry && state.pieces == 0;
        state.since = (!nothing_left).then(Instant::now);
    }

    /// The source of the answer has nothing at the moment, which is not the client's fault.
    pub(crate) fn ran_dry(&self) {
        let mut state = self.state();
        state.dry = true;
        if state.pieces == 0 {
            state.since = None;
        }
    }

    /// Since when the client could take something and does not.
    pub(crate) fn stuck_since(&self) -> Option<Instant> {
        self.state().since
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_clients_turn_while_there_is_something_to_take() {
        let progress = Progress::default();
        assert_eq!(progress.stuck_since(), None);
        progress.offered(0);
        let offered = progress.stuck_since().unwrap();
        progress.offered(1);
        progress.ran_dry();
        assert!(progress.stuck_since().unwrap() >= offered, "a piece is on its way");
        progress.taken();
        assert_eq!(progress.stuck_since(), None, "its source has nothing");
        progress.offered(1);
        progress.taken();
        assert!(progress.stuck_since().is_some(), "there may be more");
    }
}
