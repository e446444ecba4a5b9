//! Pages of memory. The allocator asks the system for huge ones, and the system clears all of one when it is
//! first touched: two megabytes for the first few bytes, while a shard or a connection stands still. Of what
//! a server uses most comes and goes in buffers, for which that is time and memory spent for nothing.

use rustix::thread::disable_transparent_huge_pages;

/// From here on this process gets memory in pages of the usual size, and so do those that it starts.
pub(super) fn keep_small() {
    if let Err(error) = disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "huge pages could not be turned off");
    }
}
