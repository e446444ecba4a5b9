//! Wakes a thread that waits for work.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::lock::lock;

/// Wakes a thread that waits for work.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SignalState {
    raised: bool,
    stopped: bool,
}

impl Signal {
    pub(crate) fn notify(&self) {
        let was_raised = std::mem::replace(&mut lock(&self.state).raised, true);
        // Not under the lock, on which the thread that wakes would have to wait.
        if !was_raised {
            self.changed.notify_one();
        }
    }

    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }

    /// Waits until notified, at most this long; `false` when stopped.
    pub(crate) fn wait(&self, most: Option<Duration>) -> bool {
        let mut state = lock(&self.state);
        if let Some(most) = most {
            let waited = self.changed.wait_timeout_while(state, most, |s| !s.raised && !s.stopped);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        } else {
            let waited = self.changed.wait_while(state, |s| !s.raised && !s.stopped);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.raised = false;
        !state.stopped
    }
}
