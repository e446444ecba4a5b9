//! Reading blobs from disk, off the shard's thread. Neighbours are read together, and what was read ahead
//! needs no thread that may block.
//!
//! Bytes that do not verify, and sectors that the disk cannot read, are damage. A passing shortage of memory
//! or file handles is not: such a read is tried again, and then reported as failed for now.

use std::time::Duration;

use bytes::Bytes;
use sluice_journal::{BlobError, BlobRead, read_together, take_ahead};

use crate::log_limiter::LogLimiter;

/// Number of further tries, for all blobs that are read together.
const RETRIES: u32 = 3;
/// Pause before the first further try; each next one is four times as long.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// A caller may read a damaged message again and again.
static FAILURES: LogLimiter = LogLimiter::new();

/// Error of reading a blob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadFailure {
    /// The bytes are damaged or gone: another try fails as well.
    Damaged,
    /// The bytes could not be read now.
    Later,
}

/// True when reading it does not block.
pub(crate) fn is_cached(blob: &BlobRead) -> bool {
    !matches!(blob, BlobRead::OnDisk(_))
}

/// Reads the bytes of each blob, in order. A blocking thread reads all that is on disk.
pub(crate) async fn load(mut blobs: Vec<BlobRead>) -> Vec<Result<Bytes, ReadFailure>> {
    if blobs.iter().all(is_cached) || take_ahead(&mut blobs) {
        return read_all(blobs);
    }
    let count = blobs.len();
    let all = tokio::task::spawn_blocking(move || {
        read_together(&mut blobs);
        read_all(blobs)
    });
    let all = all.await;
    all.unwrap_or_else(|_| vec![Err(ReadFailure::Later); count])
}

fn read_all(blobs: Vec<BlobRead>) -> Vec<Result<Bytes, ReadFailure>> {
    let mut patience = Patience { retries: RETRIES, pause: FIRST_PAUSE };
    let read = |blob| match blob {
        BlobRead::Cached(bytes) => Ok(bytes),
        BlobRead::Missing => Err(ReadFailure::Damaged),
        BlobRead::OnDisk(location) => patience.read(|| location.read()),
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
