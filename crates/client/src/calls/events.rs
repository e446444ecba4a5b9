//! Events.

use crate::client::Client;
use crate::events::{Watch, WatchOptions};

impl Client {
    /// A stream of events. It connects, and connects again when the connection breaks, when [`Watch::next`]
    /// is called.
    pub fn watch(&self, options: WatchOptions) -> Watch {
        Watch::new(self.clone(), options)
    }
}
