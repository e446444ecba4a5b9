//! The async handle.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sluice_engine::Error;
use sluice_engine::command::{Send, SettleItem};
use sluice_engine::id::{MessageId, NamespaceId, Receipt};
use sluice_engine::limits::Limits;
use sluice_engine::query::{NamespaceView, Page, QueueView, State};
use sluice_engine::settings::{QueuePatch, Quotas};

use crate::api::{Delivered, NodeMetrics, Options, ReceiveOptions, Sent, StartError, Stored};

/// A running node; clones share it.
#[derive(Clone)]
pub struct Node {
    inner: Arc<()>,
}

#[allow(unused_variables, clippy::unused_async, clippy::unimplemented, missing_docs)]
impl Node {
    /// Opens the data directory, recovers, and starts the shards. Blocks until ready to serve.
    pub fn start(options: Options) -> Result<Node, StartError> {
        unimplemented!()
    }
    pub fn limits(&self) -> &Limits {
        unimplemented!()
    }
    /// The number behind a namespace's name.
    pub fn namespace_id(&self, name: &str) -> Result<NamespaceId, Error> {
        unimplemented!()
    }
    pub async fn namespace_create(
        &self,
        name: &str,
        shard: Option<u32>,
        quotas: Quotas,
    ) -> Result<NamespaceView, Error> {
        unimplemented!()
    }
    pub async fn namespace_set(&self, name: &str, quotas: Quotas) -> Result<NamespaceView, Error> {
        unimplemented!()
    }
    pub async fn namespace_delete(&self, name: &str, force: bool) -> Result<(), Error> {
        unimplemented!()
    }
    pub async fn namespace(&self, name: &str) -> Result<NamespaceView, Error> {
        unimplemented!()
    }
    pub async fn namespaces(&self) -> Result<Vec<NamespaceView>, Error> {
        unimplemented!()
    }
    pub async fn send(&self, send: &Send<'_>) -> Result<Sent, Error> {
        unimplemented!()
    }
    pub async fn receive(&self, receive: &ReceiveOptions<'_>) -> Result<Vec<Delivered>, Error> {
        unimplemented!()
    }
    /// One result per item, in order. All receipts must belong to `namespace`, else that item gets an error.
    pub async fn settle(
        &self,
        namespace: NamespaceId,
        items: &[SettleItem<'_>],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        unimplemented!()
    }
    pub async fn extend(
        &self,
        namespace: NamespaceId,
        items: &[(Receipt, u64)],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        unimplemented!()
    }
    /// Changes settings; with `create` makes a missing queue. Tells whether it is new.
    pub async fn queue_set(
        &self,
        namespace: NamespaceId,
        queue: &str,
        patch: QueuePatch,
        create: bool,
    ) -> Result<(QueueView, bool), Error> {
        unimplemented!()
    }
    pub async fn queue(&self, namespace: NamespaceId, queue: &str) -> Result<QueueView, Error> {
        unimplemented!()
    }
    /// Queues by name, after `after`; at most `limit`.
    pub async fn queues(
        &self,
        namespace: NamespaceId,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<QueueView>, Error> {
        unimplemented!()
    }
    pub async fn queue_purge(&self, namespace: NamespaceId, queue: &str) -> Result<u64, Error> {
        unimplemented!()
    }
    pub async fn queue_delete(&self, namespace: NamespaceId, queue: &str) -> Result<u64, Error> {
        unimplemented!()
    }
    /// Empty `ids`: all.
    pub async fn dead_redrive(
        &self,
        namespace: NamespaceId,
        queue: &str,
        ids: &[MessageId],
    ) -> Result<u64, Error> {
        unimplemented!()
    }
    /// Empty `ids`: all.
    pub async fn dead_delete(
        &self,
        namespace: NamespaceId,
        queue: &str,
        ids: &[MessageId],
    ) -> Result<u64, Error> {
        unimplemented!()
    }
    /// One message with its history; with its payload when `payload`.
    pub async fn message(&self, id: MessageId, payload: bool) -> Result<Stored, Error> {
        unimplemented!()
    }
    /// Messages of a queue by id, in one state or all, with the payload when `payload`.
    pub async fn messages(
        &self,
        namespace: NamespaceId,
        queue: &str,
        state: Option<State>,
        cursor: Option<u64>,
        limit: usize,
        payload: bool,
    ) -> Result<Page<Stored>, Error> {
        unimplemented!()
    }
    /// The messages that stand first in line, with payloads.
    pub async fn peek(
        &self,
        namespace: NamespaceId,
        queue: &str,
        limit: usize,
    ) -> Result<Vec<Stored>, Error> {
        unimplemented!()
    }
    pub async fn metrics(&self) -> NodeMetrics {
        unimplemented!()
    }
    /// A consistent copy of all shards as one stream of bytes, taken while serving.
    pub async fn backup(&self) -> Result<tokio::sync::mpsc::Receiver<std::io::Result<Bytes>>, Error> {
        unimplemented!()
    }
    /// Whether requests are served (false while stopping or after a journal failure).
    pub fn ready(&self) -> bool {
        unimplemented!()
    }
    /// Resolves when a journal has failed, with the reason; the process has to stop then.
    pub async fn failed(&self) -> String {
        unimplemented!()
    }
    /// Stops: new requests get `shutting_down`, waiting receives end empty, what is in flight is finished and synced.
    pub async fn shutdown(&self, grace: Duration) -> Result<(), Error> {
        unimplemented!()
    }
}
