//! Figures for metrics, the readiness of the server, and its backup. Figures are those of this node's own
//! state, which may be behind where another node leads.

use std::io;

use bytes::Bytes;
use sluice_engine::NamespaceId;
use sluice_engine::query::{ConsumerView, NamespaceView, QueueView};
use sluice_node::Node;
pub use sluice_node::NodeMetrics;
pub use sluice_node::api::{Follower, ReplicaMetrics, ShardMetrics};
use tokio::sync::mpsc;

use crate::error::CallError;
use crate::permit::Permit;
use crate::server::Calls;

impl Calls {
    /// True while requests are served: not once the server stops, nor after a journal has failed.
    pub fn ready(&self) -> bool {
        !self.is_stopping() && self.node().ready()
    }
}

/// The reader of a server's figures: for a caller who may see them, or for the server's own telemetry.
#[derive(Clone, Copy, Debug)]
pub struct Figures<'c>(&'c Node);

impl<'c> Figures<'c> {
    /// The figures for a caller.
    pub fn of(permit: &Permit<'c>) -> Figures<'c> {
        Figures(permit.node())
    }

    /// The figures for the collector that whoever runs the server has named.
    pub fn own(calls: &'c Calls) -> Figures<'c> {
        Figures(calls.node())
    }

    /// The figures of every shard.
    pub async fn all(&self) -> NodeMetrics {
        self.0.metrics().await
    }

    /// Every namespace, by name.
    ///
    /// # Errors
    /// Those of the node.
    pub async fn namespaces(&self) -> Result<Vec<NamespaceView>, CallError> {
        Ok(self.0.stale().namespaces().await?)
    }

    /// The first queues of a namespace by name, at most `most`.
    ///
    /// # Errors
    /// Those of the node.
    pub async fn queues(&self, namespace: NamespaceId, most: usize) -> Result<Vec<QueueView>, CallError> {
        Ok(self.0.stale().queues(namespace, "", None, most).await?)
    }

    /// The first consumers of a namespace, at most `most`.
    ///
    /// # Errors
    /// Those of the node.
    pub async fn consumers(
        &self,
        namespace: NamespaceId,
        most: usize,
    ) -> Result<Vec<ConsumerView>, CallError> {
        Ok(self.0.stale().consumers(namespace, None, most).await?)
    }
}

/// A consistent copy of everything, piece by piece.
///
/// # Errors
/// `invalid_argument` when the data is in memory only; `internal` when the files could not be pinned.
pub async fn backup(permit: &Permit<'_>) -> Result<mpsc::Receiver<io::Result<Bytes>>, CallError> {
    Ok(permit.node().backup().await?)
}
