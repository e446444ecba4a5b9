//! A move of the log's time, as tests ask for it.

use sluice_engine::Error;
use tokio::sync::oneshot;

/// A move of the log's time.
#[derive(Debug)]
pub struct Advance {
    /// Time by which it moves forward, in microseconds.
    pub by_us: u64,
    /// Reply once all that was due by then is done.
    pub reply: oneshot::Sender<Result<(), Error>>,
}
