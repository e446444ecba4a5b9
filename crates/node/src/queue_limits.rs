//! Limits of namespaces, through the handle.

use std::time::{Duration, Instant};

use sluice_engine::command::Command;
use sluice_engine::error::Error;
use sluice_engine::id::NamespaceId;
use sluice_engine::limit::LimitRules;
use sluice_engine::outcome::Reply;
use sluice_engine::query::{LimitKeyView, LimitView, Page};

use crate::handle::{LOOK_ITEMS, Node};
use crate::shard::request::{of_done, unexpected};

/// A listing that finds few keys looks on for so long before it gives out a page that is not full.
const PAGE_TIME: Duration = Duration::from_millis(100);

impl Node {
    /// Creates a limit, or replaces what it allows. Tells whether it is new.
    ///
    /// # Errors
    /// `invalid_argument` for a number out of range; `limit_exceeded`.
    pub async fn limit_set(
        &self,
        namespace: NamespaceId,
        limit: &str,
        rules: LimitRules,
    ) -> Result<(LimitView, bool), Error> {
        let command = Command::LimitSet { namespace, limit, rules };
        match self.propose(namespace, &command).await?.result? {
            Reply::Limit { created } => Ok((of_done(self.limit(namespace, limit).await)?, created)),
            other => Err(unexpected(&other)),
        }
    }

    /// Deletes a limit that no queue follows.
    ///
    /// # Errors
    /// `limit_not_found`, `limit_in_use`.
    pub async fn limit_delete(&self, namespace: NamespaceId, limit: &str) -> Result<(), Error> {
        self.propose(namespace, &Command::LimitDelete { namespace, limit }).await?.result.map(|_| ())
    }

    /// One limit.
    ///
    /// # Errors
    /// `limit_not_found`.
    pub async fn limit(&self, namespace: NamespaceId, limit: &str) -> Result<LimitView, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let name = limit.to_owned();
        let found = self.look(shard, move |at| at.engine.limit(namespace, &name)).await?;
        found.ok_or_else(|| Error::LimitNotFound { limit: limit.to_owned() })
    }

    /// Limits by name, after `after`; at most `limit`.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn limits_of(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<LimitView>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let mut after = after.map(str::to_owned);
        let mut limits = Vec::new();
        while limits.len() < limit {
            let (from, most) = (after.clone(), LOOK_ITEMS.min(limit - limits.len()));
            let page =
                self.look(shard, move |at| at.engine.limits_of(namespace, from.as_deref(), most)).await?;
            let full = page.len() == most;
            after = page.last().map(|limit| limit.name.clone());
            limits.extend(page);
            if !full {
                break;
            }
        }
        Ok(limits)
    }

    /// Keys of a limit, with `waiting` only those that hold something back; at most `limit`. A page may be
    /// empty and yet not the last.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn limit_keys(
        &self,
        namespace: NamespaceId,
        name: &str,
        waiting: bool,
        cursor: Option<u64>,
        limit: usize,
    ) -> Result<Page<LimitKeyView>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let began = Instant::now();
        let mut page = Page { items: Vec::new(), next: cursor };
        loop {
            let (name, from) = (name.to_owned(), page.next);
            let most = LOOK_ITEMS.min(limit - page.items.len());
            let found = self
                .look(shard, move |at| at.engine.limit_keys(namespace, &name, waiting, from, most))
                .await?;
            page.items.extend(found.items);
            page.next = found.next;
            if page.items.len() >= limit || page.next.is_none() || began.elapsed() > PAGE_TIME {
                return Ok(page);
            }
        }
    }

    /// One key of a limit; `None`: nothing is known of it.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn limit_key(
        &self,
        namespace: NamespaceId,
        name: &str,
        key: &str,
    ) -> Result<Option<LimitKeyView>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let (name, key) = (name.to_owned(), key.to_owned());
        self.look(shard, move |at| at.engine.limit_key(namespace, &name, key.as_bytes())).await
    }
}
