//! The commit of an open transaction between its proposal and its outcome.

use sluice_node::{Committed, Committing, Refused};

/// A commit in flight. Its outcome is given once.
pub(crate) struct InFlight {
    committing: Committing,
    /// The outcome, once it is there and nobody has taken it.
    landed: Option<Result<Committed, Refused>>,
    /// True once a task waits for the outcome, since a caller has gone.
    is_attended: bool,
    /// Names of its operations but for those that check what was only read, in order.
    pub(crate) names: Vec<&'static str>,
}

impl InFlight {
    /// A commit that was proposed.
    pub(crate) fn new(committing: Committing, names: Vec<&'static str>) -> InFlight {
        InFlight { committing, landed: None, is_attended: false, names }
    }

    /// Waits for the outcome, and leaves it for whoever takes it.
    pub(crate) async fn land(&mut self) {
        if self.landed.is_none() {
            self.landed = Some(self.committing.done().await);
        }
    }

    /// True if the outcome is there.
    pub(crate) fn has_landed(&self) -> bool {
        self.landed.is_some()
    }

    /// Waits for the outcome, and takes it. A wait that is given up can be begun again.
    pub(crate) async fn done(&mut self) -> Result<Committed, Refused> {
        match self.landed.take() {
            Some(landed) => landed,
            None => self.committing.done().await,
        }
    }

    /// Notes that a task waits for the outcome; false: one does already.
    pub(crate) fn attend(&mut self) -> bool {
        !std::mem::replace(&mut self.is_attended, true)
    }
}
