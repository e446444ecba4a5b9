//! A signal that is given once and seen by all clones.

use std::sync::Arc;

use tokio::sync::watch;

/// A signal to stop; clones share it.
#[derive(Clone, Debug)]
pub struct Stop {
    sender: Arc<watch::Sender<bool>>,
}

impl Default for Stop {
    fn default() -> Self {
        Stop { sender: Arc::new(watch::Sender::new(false)) }
    }
}

impl Stop {
    /// A signal that was not given yet.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Gives the signal.
    pub fn stop(&self) {
        self.sender.send_replace(true);
    }

    /// True when the signal was given.
    pub fn is_stopped(&self) -> bool {
        *self.sender.borrow()
    }

    /// Completes when the signal is given.
    pub async fn stopped(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.sender.subscribe().wait_for(|stopped| *stopped).await;
    }
}
