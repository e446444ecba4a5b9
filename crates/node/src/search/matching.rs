//! Reading the bytes of a portion, and matching: off the shard's thread, and off those of callers where it
//! may take long.

use std::sync::Arc;

use sluice_engine::Error;
use sluice_journal::BlobRead;
use tokio::sync::Semaphore;

use super::filter::MessageFilter;
use super::page::{Hit, Portion};
use crate::blobs::{self, ReadFailure};

/// Portions that are matched together on the node: what JSON is read into takes many times its length.
const PORTIONS_AT_A_TIME: usize = 2;
/// Bytes of a portion that takes no longer than a change of the thread.
const SHORT_BYTES: u64 = 4 << 10;
/// Turns of portions.
static TURNS: Semaphore = Semaphore::const_new(PORTIONS_AT_A_TIME);

/// Runs work on so many bytes: on a thread that may take long, unless it is short.
///
/// # Errors
/// `internal`: the work was given up.
pub(crate) async fn in_turn<T: Send + 'static>(
    bytes: u64,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    if bytes <= SHORT_BYTES {
        return Ok(work());
    }
    let turn = TURNS.acquire().await;
    let until_done = move || {
        // Until the end, also of one whose caller has gone.
        let _turn = turn;
        work()
    };
    let done = tokio::task::spawn_blocking(until_done).await;
    done.map_err(|_| Error::Internal { reason: "the search was given up".to_owned() })
}

/// The messages of a portion that match.
///
/// # Errors
/// `overloaded` when the system is too short of something to read from the disk.
pub(super) async fn matched(
    filter: &Arc<MessageFilter>,
    now_ms: u64,
    portion: Portion,
    reads: Vec<BlobRead>,
) -> Result<Vec<Hit>, Error> {
    let read = blobs::load(reads).await;
    if read.contains(&Err(ReadFailure::Later)) {
        return Err(blobs::overloaded());
    }
    let filter = Arc::clone(filter);
    in_turn(portion.bytes(), move || portion.matching(&filter, now_ms, read)).await
}
