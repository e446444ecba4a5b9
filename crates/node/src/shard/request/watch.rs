//! Requests of readers of events.

use std::sync::Arc;

use sluice_engine::Error;
use sluice_engine::id::NamespaceId;
use tokio::sync::oneshot;

use super::Request;
use crate::mailbox::Mailbox;
use crate::shard::feed::{Cursor, EventPosition, Feed, Heard};

/// Subject of a feed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topic {
    /// Namespace.
    pub namespace: NamespaceId,
    /// One queue of the namespace; `None`: all.
    pub queue: Option<Box<str>>,
}

/// Request to read a feed.
#[derive(Debug)]
pub struct Watch {
    /// Subject of the feed.
    pub topic: Topic,
    /// Position after which to begin; `None`: now.
    pub after: Option<EventPosition>,
    /// Gets the reader, or the error.
    pub reply: oneshot::Sender<Result<Reader, Error>>,
}

/// Reader of a feed; dropping it ends reading.
#[derive(Debug)]
pub struct Reader {
    pub(in crate::shard) feed: Arc<Feed>,
    pub(in crate::shard) cursor: Cursor,
    pub(in crate::shard) topic: Topic,
    pub(in crate::shard) mailbox: Mailbox<Request>,
}

impl Reader {
    /// Position of the reader; a later watch can continue after it.
    pub fn position(&self) -> EventPosition {
        self.cursor.position()
    }

    /// Waits for the next events, at most `most`. Dropping the future loses nothing.
    pub async fn next(&mut self, most: usize) -> Heard {
        self.feed.next(&mut self.cursor, most).await
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let left = Left { feed: Arc::clone(&self.feed), topic: self.topic.clone() };
        self.mailbox.push_surely(Request::Unwatch(Box::new(left)));
    }
}

/// Notice that a reader has gone.
#[derive(Debug)]
pub struct Left {
    pub(in crate::shard) feed: Arc<Feed>,
    pub(in crate::shard) topic: Topic,
}
