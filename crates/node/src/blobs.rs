//! Reading blobs back, off the shard thread.

use bytes::Bytes;
use sluice_journal::BlobRead;

/// Whether loading it will not block.
pub(crate) fn is_cached(blob: &BlobRead) -> bool {
    !matches!(blob, BlobRead::OnDisk(_))
}

/// The bytes of each, in order; `None` where they are damaged or gone. One hand-over to a blocking thread reads all
/// that is on disk.
pub(crate) async fn load(blobs: Vec<BlobRead>) -> Vec<Option<Bytes>> {
    if blobs.iter().all(is_cached) {
        return blobs.into_iter().map(read).collect();
    }
    let count = blobs.len();
    let all = tokio::task::spawn_blocking(move || blobs.into_iter().map(read).collect()).await;
    all.unwrap_or_else(|_| vec![None; count])
}

fn read(blob: BlobRead) -> Option<Bytes> {
    match blob {
        BlobRead::Cached(bytes) => Some(bytes),
        BlobRead::Missing => None,
        BlobRead::OnDisk(location) => {
            let read = location.read();
            read.map_err(|error| tracing::error!(?error, "a blob could not be read back")).ok()
        }
    }
}
