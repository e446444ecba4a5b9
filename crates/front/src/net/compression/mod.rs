//! Compressing answers within bounds: the setting of the operator, the [`coding`]s, and how many answers at
//! once.

pub(crate) mod coding;

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use self::coding::Coding;

/// Largest answer that is compressed where it is made; what is larger takes milliseconds, and would hold up
/// other connections.
const HERE_BYTES_MAX: usize = 16 << 10;

/// The kinds of answers that may be compressed for clients that accept it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Compression {
    /// None.
    Off,
    /// Answers without contents of messages.
    #[default]
    On,
    /// Also answers with contents of messages: pages of messages, results, schedules and the audit log.
    All,
}

/// Compresses within bounds: as many answers at once as there are processors.
#[derive(Clone, Debug)]
pub(crate) struct Compressor {
    setting: Compression,
    places: Arc<Semaphore>,
}

impl Compressor {
    pub(crate) fn new(setting: Compression) -> Compressor {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Compressor { setting, places: Arc::new(Semaphore::new(processors)) }
    }

    /// True if the setting is at least this one.
    pub(crate) fn is_set(&self, from: Compression) -> bool {
        from <= self.setting
    }

    /// The bytes in a coding; `None`: not now, since all processors compress.
    pub(crate) async fn compress(&self, coding: Coding, bytes: Bytes) -> Option<Vec<u8>> {
        // When all processors compress, sending more bytes is the faster way.
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        if bytes.len() <= HERE_BYTES_MAX {
            return coding.encode(&bytes);
        }
        // The place is given back when the work is done, also if the client goes away meanwhile.
        let work = move || (coding.encode(&bytes), drop(place)).0;
        spawn_blocking(work).await.ok()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn with_all_places_taken_nothing_waits() {
        let compressor = Compressor::new(Compression::On);
        let bytes = Bytes::from(vec![b'a'; 100_000]);
        assert!(compressor.compress(Coding::Gzip, bytes.clone()).await.is_some());
        let places = compressor.places.available_permits() as u32;
        let taken = compressor.places.clone().try_acquire_many_owned(places);
        assert!(compressor.compress(Coding::Gzip, bytes.clone()).await.is_none());
        drop(taken);
        assert!(compressor.compress(Coding::Gzip, bytes).await.is_some());
        assert_eq!(compressor.places.available_permits() as u32, places, "each place came back");
    }
}
