//! Settings of queues that are not made yet, through the handle.

use sluice_engine::command::Command;
use sluice_engine::error::Error;
use sluice_engine::id::NamespaceId;
use sluice_engine::outcome::Reply;
use sluice_engine::query::DefaultsView;
use sluice_engine::settings::QueuePatch;

use crate::handle::Node;
use crate::shard::request::{of_done, unexpected};

impl Node {
    /// Sets all that queues begin with which are made from here on with a name that matches. Tells whether
    /// the pattern is new.
    ///
    /// # Errors
    /// `invalid_argument` for a pattern or setting that cannot be; `limit_not_found`; `limit_exceeded`.
    pub async fn defaults_set(
        &self,
        namespace: NamespaceId,
        pattern: &str,
        patch: QueuePatch,
    ) -> Result<(DefaultsView, bool), Error> {
        let command = Command::DefaultsSet { namespace, pattern, patch };
        match self.propose(namespace, &command).await?.result? {
            Reply::Defaults { created } => Ok((of_done(self.defaults(namespace, pattern).await)?, created)),
            other => Err(unexpected(&other)),
        }
    }

    /// Forgets a pattern.
    ///
    /// # Errors
    /// `defaults_not_found`.
    pub async fn defaults_delete(&self, namespace: NamespaceId, pattern: &str) -> Result<(), Error> {
        self.propose(namespace, &Command::DefaultsDelete { namespace, pattern }).await?.result.map(|_| ())
    }

    /// The settings of one pattern.
    ///
    /// # Errors
    /// `defaults_not_found`.
    pub async fn defaults(&self, namespace: NamespaceId, pattern: &str) -> Result<DefaultsView, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let pattern = pattern.to_owned();
        self.look(shard, move |at| at.engine.defaults(namespace, &pattern)).await?
    }

    /// Patterns by name, after `after`; at most `limit`.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn defaults_after(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<DefaultsView>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let after = after.map(str::to_owned);
        self.look(shard, move |at| at.engine.defaults_after(namespace, after.as_deref(), limit)).await
    }
}
