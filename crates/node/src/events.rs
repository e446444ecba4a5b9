//! Reading events, from the caller's side.

use sluice_engine::Error;
use sluice_engine::id::NamespaceId;
use tokio::sync::oneshot;

use crate::handle::Node;
use crate::shard::feed::EventPosition;
use crate::shard::request::Request;
use crate::shard::request::{Reader, Topic, Watch};

impl Node {
    /// Reads the events of a namespace, or of one of its queues: from now on, or after `after`.
    ///
    /// # Errors
    /// `namespace_not_found`, `queue_not_found`; `overloaded` when there are too many readers.
    pub async fn watch(
        &self,
        namespace: NamespaceId,
        queue: Option<&str>,
        after: Option<EventPosition>,
    ) -> Result<Reader, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let (reply, reader) = oneshot::channel();
        let topic = Topic { namespace, queue: queue.map(Box::from) };
        self.push(shard, Request::Watch(Box::new(Watch { topic, after, reply })))?;
        reader.await.map_err(|_| Error::ShuttingDown {})?
    }
}
