//! Events.

use crate::client::Client;
use crate::events::{Watch, WatchOptions};

impl Client {
    /// A stream of what happens to messages. It begins, and is begun again when it breaks off, when its next
    /// event is asked for.
    pub fn watch(&self, options: WatchOptions) -> Watch {
        Watch::new(self.clone(), options)
    }
}
