//! Readers of events: what they ask for, and what they get.

use std::sync::Arc;

use sluice_engine::Error;
use sluice_engine::id::NamespaceId;
use tokio::sync::oneshot;

use super::Request;
use crate::mailbox::Mailbox;
use crate::shard::feed::{Cursor, EventPosition, Feed, Heard};

/// What a feed is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topic {
    /// Its namespace.
    pub namespace: NamespaceId,
    /// One queue of it, or all.
    pub queue: Option<Box<str>>,
}

/// Somebody wants to read a feed.
#[derive(Debug)]
pub struct Watch {
    /// Which.
    pub topic: Topic,
    /// From where on; `None`: from now on.
    pub after: Option<EventPosition>,
    /// Told when it can, or why not.
    pub reply: oneshot::Sender<Result<Reader, Error>>,
}

/// Reads a feed; leaves it when it is dropped.
#[derive(Debug)]
pub struct Reader {
    pub(in crate::shard) feed: Arc<Feed>,
    pub(in crate::shard) cursor: Cursor,
    pub(in crate::shard) topic: Topic,
    pub(in crate::shard) mailbox: Mailbox<Request>,
}

impl Reader {
    /// Where it stands: to come back with it is to go on here.
    pub fn position(&self) -> EventPosition {
        self.cursor.position()
    }

    /// Waits for what comes next, at most so many events. The future may be dropped: nothing is lost.
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

/// A reader has gone.
#[derive(Debug)]
pub struct Left {
    pub(in crate::shard) feed: Arc<Feed>,
    pub(in crate::shard) topic: Topic,
}
