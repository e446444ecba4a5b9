//! Figures for metrics, the readiness of the server, and its backup. Figures are those of this node's own
//! state, which may be behind where another node leads.

use std::io;

use bytes::Bytes;
use sluice_engine::NamespaceId;
use sluice_engine::query::{ConsumerView, NamespaceView, QueueView};
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

/// The figures of every shard.
pub async fn metrics(permit: &Permit<'_>) -> NodeMetrics {
    permit.node().metrics().await
}

/// Every namespace, by name.
///
/// # Errors
/// Those of the node.
pub async fn namespaces(permit: &Permit<'_>) -> Result<Vec<NamespaceView>, CallError> {
    Ok(permit.node().stale().namespaces().await?)
}

/// The first queues of a namespace by name, at most `most`.
///
/// # Errors
/// Those of the node.
pub async fn queues(
    permit: &Permit<'_>,
    namespace: NamespaceId,
    most: usize,
) -> Result<Vec<QueueView>, CallError> {
    Ok(permit.node().stale().queues(namespace, "", None, most).await?)
}

/// The first consumers of a namespace, at most `most`.
///
/// # Errors
/// Those of the node.
pub async fn consumers(
    permit: &Permit<'_>,
    namespace: NamespaceId,
    most: usize,
) -> Result<Vec<ConsumerView>, CallError> {
    Ok(permit.node().stale().consumers(namespace, None, most).await?)
}

/// A consistent copy of everything, piece by piece.
///
/// # Errors
/// `invalid_argument` when the data is in memory only; `internal` when the files could not be pinned.
pub async fn backup(permit: &Permit<'_>) -> Result<mpsc::Receiver<io::Result<Bytes>>, CallError> {
    Ok(permit.node().backup().await?)
}
