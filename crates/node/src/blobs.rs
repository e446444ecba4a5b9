//! Reading blobs from disk, off the shard's thread. Neighbours are read together, and what was read ahead
//! needs no thread that may block.
//!
//! In a cluster damage is no loss: the other nodes are asked for a whole copy, and the reader waits for it.
//!
//! Bytes that do not verify, and sectors that the disk cannot read, are damage. A passing shortage of memory
//! or file handles is not: such a read is tried again, and then reported as failed for now.

use std::time::Duration;

use bytes::Bytes;
use sluice_engine::Error;
use sluice_journal::{BlobCopy, BlobError, BlobLocation, BlobRead, read_together, take_ahead};
use tokio::time::Instant;

use crate::log_limiter::LogLimiter;

/// Number of further tries, for all blobs that are read together.
const RETRIES: u32 = 3;
/// Pause before the first further try; each next one is four times as long.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// Longest wait of a reader for copies of other nodes: a little longer than these are asked for.
const COPY_WAIT: Duration = Duration::from_secs(6);
/// Pause between two looks for a copy.
const COPY_PAUSE: Duration = Duration::from_millis(5);

/// Wait after which a caller may come back for what could not be read now, in milliseconds.
const RETRY_AFTER_MS: u64 = 1_000;

/// A caller may read a damaged message again and again.
static FAILURES: LogLimiter = LogLimiter::new();

/// Error of reading a blob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadFailure {
    /// The bytes are damaged or gone, on all nodes of a cluster: another try fails as well.
    Damaged,
    /// The bytes could not be read now, or it is not known yet whether another node has them.
    Later,
}

/// The error of a call for which something cannot be read now.
pub(crate) fn overloaded() -> Error {
    Error::Overloaded { what: "reads from the disk", retry_after_ms: RETRY_AFTER_MS }
}

/// Outcome of reading a blob on this node: its bytes, or why not, and where it is damaged.
type ReadHere = Result<Bytes, (ReadFailure, Option<BlobLocation>)>;

/// True when reading it does not block.
pub(crate) fn is_cached(blob: &BlobRead) -> bool {
    !matches!(blob, BlobRead::OnDisk(_))
}

/// Reads the bytes of each blob, in order. A blocking thread reads all that is on disk.
pub(crate) async fn load(mut blobs: Vec<BlobRead>) -> Vec<Result<Bytes, ReadFailure>> {
    if blobs.iter().all(is_cached) || take_ahead(&mut blobs) {
        return with_copies(read_all(blobs)).await;
    }
    let count = blobs.len();
    let all = tokio::task::spawn_blocking(move || {
        read_together(&mut blobs);
        read_all(blobs)
    });
    match all.await {
        Ok(all) => with_copies(all).await,
        Err(_) => vec![Err(ReadFailure::Later); count],
    }
}

/// Puts copies of other nodes in the places of blobs that are damaged here.
async fn with_copies(all: Vec<ReadHere>) -> Vec<Result<Bytes, ReadFailure>> {
    let located = |read: &ReadHere| read.as_ref().err().and_then(|(_, location)| location.clone());
    // All are sought before the first is waited for.
    let sought: Vec<bool> = all.iter().map(|read| located(read).is_some_and(|it| it.seek_copy())).collect();
    let deadline = Instant::now() + COPY_WAIT;
    let mut copied = Vec::with_capacity(all.len());
    for (read, is_sought) in all.into_iter().zip(sought) {
        copied.push(match read {
            Err((_, Some(location))) if is_sought => copy_of(&location, deadline).await,
            read => read.map_err(|(failure, _)| failure),
        });
    }
    copied
}

async fn copy_of(location: &BlobLocation, deadline: Instant) -> Result<Bytes, ReadFailure> {
    loop {
        match location.copy() {
            BlobCopy::Whole(bytes) => return Ok(bytes),
            BlobCopy::Lost => return Err(ReadFailure::Damaged),
            BlobCopy::Awaited if Instant::now() >= deadline => return Err(ReadFailure::Later),
            BlobCopy::Awaited => tokio::time::sleep(COPY_PAUSE).await,
        }
    }
}

fn read_all(blobs: Vec<BlobRead>) -> Vec<ReadHere> {
    let mut patience = Patience { retries: RETRIES, pause: FIRST_PAUSE };
    let read = |blob| match blob {
        BlobRead::Cached(bytes) => Ok(bytes),
        BlobRead::Missing => Err((ReadFailure::Damaged, None)),
        BlobRead::OnDisk(location) => patience.read(|| location.read()).map_err(|failure| {
            let is_damaged = failure == ReadFailure::Damaged;
            (failure, is_damaged.then_some(location))
        }),
    };
    blobs.into_iter().map(read).collect()
}

/// Remaining tries.
struct Patience {
    retries: u32,
    pause: Duration,
}

impl Patience {
    fn read(&mut self, mut read: impl FnMut() -> Result<Bytes, BlobError>) -> Result<Bytes, ReadFailure> {
        let mut again = false;
        loop {
            let error = match read() {
                Ok(bytes) => return Ok(bytes),
                Err(error) => error,
            };
            let damaged = match error {
                BlobError::Damaged(_) => true,
                // A disk that failed once may only have stumbled.
                BlobError::Io(_) => self.retries == 0 && again && error.is_lasting(),
            };
            if damaged || self.retries == 0 {
                log_failure(&error, damaged);
                return Err(if damaged { ReadFailure::Damaged } else { ReadFailure::Later });
            }
            self.retries -= 1;
            std::thread::sleep(self.pause);
            self.pause *= 4;
            again = true;
        }
    }
}

#[cold]
fn log_failure(error: &BlobError, damaged: bool) {
    if let Some(left_out) = FAILURES.due() {
        tracing::error!(?error, damaged, left_out, "a blob could not be read back");
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    const EIO: i32 = 5;
    const ENOMEM: i32 = 12;
    const EMFILE: i32 = 24;

    /// Reads that fail with these errors, and then succeed.
    fn after(errors: &[i32]) -> (Result<Bytes, ReadFailure>, u32) {
        let mut patience = Patience { retries: RETRIES, pause: Duration::ZERO };
        let mut errors = errors.iter();
        let read = patience.read(|| match errors.next() {
            Some(errno) => Err(BlobError::Io(io::Error::from_raw_os_error(*errno))),
            None => Ok(Bytes::from_static(b"x")),
        });
        (read, patience.retries)
    }

    #[test]
    fn what_passes_is_not_damage() {
        assert_eq!(after(&[]), (Ok(Bytes::from_static(b"x")), RETRIES));
        assert_eq!(after(&[EMFILE, ENOMEM, EIO]).0, Ok(Bytes::from_static(b"x")));
        assert_eq!(after(&[EMFILE; 9]), (Err(ReadFailure::Later), 0));
    }

    #[test]
    fn a_sector_that_cannot_be_read_again_and_again_is_damage() {
        assert_eq!(after(&[EIO; 9]).0, Err(ReadFailure::Damaged));
    }

    #[test]
    fn what_does_not_verify_is_damage_at_once() {
        let mut patience = Patience { retries: RETRIES, pause: Duration::ZERO };
        let read = patience.read(|| Err(BlobError::Damaged("the checksum".to_owned())));
        assert_eq!((read, patience.retries), (Err(ReadFailure::Damaged), RETRIES));
    }

    #[test]
    fn many_failing_reads_do_not_wait_one_after_the_other() {
        let mut patience = Patience { retries: 0, pause: Duration::from_secs(60) };
        let read = patience.read(|| Err(BlobError::Io(io::Error::from_raw_os_error(EIO))));
        assert_eq!(read, Err(ReadFailure::Later));
    }
}
