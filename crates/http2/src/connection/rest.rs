//! Memory that a connection keeps from one stream to the next, and frees when it is idle.

use super::Connection;
use crate::hpack::HeaderArena;

/// Streams whose places are kept for as long as the connection lasts.
const KEPT_PLACES: usize = 8;

/// The same for storage of output, in bytes.
const KEPT_OUTPUT_BYTES: usize = 16 << 10;

impl Connection {
    /// True when it keeps more than what is kept for as long as it lasts. Most connections have few streams
    /// at once, and none of the work that follows.
    pub(super) fn keeps_much(&self) -> bool {
        self.streams.places() > KEPT_PLACES || self.output.kept_bytes() > KEPT_OUTPUT_BYTES
    }

    /// Lets go of all that is kept and not in use: there is no stream.
    pub(super) fn rest(&mut self) {
        self.streams.rest();
        self.output.rest();
        self.roomy = Vec::new();
        // A block may be on its way all the same.
        if !self.block.is_open() {
            self.block.rest();
            self.repeated = Vec::new();
            self.fields = HeaderArena::new();
        }
    }
}
