//! Memory pages. The allocator asks the system for huge pages, and the system clears a whole huge page when
//! it is first touched: two megabytes for the first few bytes, while a shard or a connection waits. A server
//! uses mostly short-lived buffers, for which this wastes time and memory.

use rustix::thread::disable_transparent_huge_pages;

/// Turns off huge pages for this process and its children.
pub(super) fn keep_small() {
    if let Err(error) = disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "huge pages could not be turned off");
    }
}
