//! Queues and their dead letters, through the handle.

use sluice_engine::Error;
use sluice_engine::command::Command;
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::outcome::Reply;
use sluice_engine::query::QueueView;
use sluice_engine::settings::QueuePatch;

use crate::handle::Node;
use crate::shard::request::{of_done, unexpected};

impl Node {
    /// Changes settings; with `create` makes a missing queue. Tells whether it is new.
    ///
    /// # Errors
    /// `queue_not_found` without `create`; `invalid_argument` for a setting out of range.
    pub async fn queue_set(
        &self,
        namespace: NamespaceId,
        queue: &str,
        patch: QueuePatch,
        create: bool,
    ) -> Result<(QueueView, bool), Error> {
        let command = Command::QueueSet { namespace, queue, patch, create };
        match self.propose(namespace, &command).await?.result? {
            Reply::Queue { created, .. } => Ok((of_done(self.queue(namespace, queue).await)?, created)),
            other => Err(unexpected(&other)),
        }
    }

    /// Drops what waits in a queue; tells how many messages.
    ///
    /// # Errors
    /// `queue_not_found`.
    pub async fn queue_purge(&self, namespace: NamespaceId, queue: &str) -> Result<u64, Error> {
        self.count(namespace, &Command::QueuePurge { namespace, queue }).await
    }

    /// Deletes a queue and all in it; tells how many messages.
    ///
    /// # Errors
    /// `queue_not_found`.
    pub async fn queue_delete(&self, namespace: NamespaceId, queue: &str) -> Result<u64, Error> {
        self.count(namespace, &Command::QueueDelete { namespace, queue }).await
    }

    /// Makes dead letters ready again; empty `ids`: all. Tells how many.
    ///
    /// # Errors
    /// `queue_not_found`, `message_not_found`, `wrong_state`.
    pub async fn dead_redrive(
        &self,
        namespace: NamespaceId,
        queue: &str,
        ids: &[MessageId],
    ) -> Result<u64, Error> {
        self.count(namespace, &Command::DeadRedrive { namespace, queue, ids }).await
    }

    /// Redrives those that are dead at this moment, so many per second; 0 ends what runs. Tells how many are
    /// left to be.
    ///
    /// # Errors
    /// `queue_not_found`; `invalid_argument` for a rate out of range.
    pub async fn dead_redrive_rate(
        &self,
        namespace: NamespaceId,
        queue: &str,
        per_second: u32,
    ) -> Result<u64, Error> {
        self.count(namespace, &Command::DeadRedriveRate { namespace, queue, per_second }).await
    }

    /// Deletes dead letters; empty `ids`: all. Tells how many.
    ///
    /// # Errors
    /// `queue_not_found`, `message_not_found`, `wrong_state`.
    pub async fn dead_delete(
        &self,
        namespace: NamespaceId,
        queue: &str,
        ids: &[MessageId],
    ) -> Result<u64, Error> {
        self.count(namespace, &Command::DeadDelete { namespace, queue, ids }).await
    }

    async fn count(&self, namespace: NamespaceId, command: &Command<'_>) -> Result<u64, Error> {
        match self.propose(namespace, command).await?.result? {
            Reply::Count { messages } => Ok(messages),
            other => Err(unexpected(&other)),
        }
    }
}
