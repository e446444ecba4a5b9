//! All connections of a node.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sluice_replica::{Envelope, NodeId, StateMessage};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsStream;
use tokio_rustls::server;

use crate::CONTENT_BYTES_MAX;
pub use crate::connection::{Answering, Receiver};
use crate::dial::keep_connected;
use crate::frame::Frame;
use crate::hello::Refusal;
use crate::link::Links;
use crate::log::RefusalLog;
pub use crate::shared::Local;
use crate::shared::{Failure, Shared, address_of};
use crate::table::NodeTable;
use crate::tls::PeerFiles;

/// Settings of a node's connections.
#[derive(Clone, Debug)]
pub struct PeersOptions {
    /// This node.
    pub local: Local,
    /// Nodes of the cluster, this one among them.
    pub nodes: NodeTable,
    /// Certificates.
    pub files: PeerFiles,
}

/// Connections of a node to all of its peers.
#[derive(Clone, Debug)]
pub struct Peers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    /// Messages to nodes that were not connected.
    unsent: AtomicU64,
}

/// State of the connection with a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerState {
    /// The peer.
    pub node: NodeId,
    /// Time by which the peer's wall clock was ahead of this node's when they connected, in microseconds; the
    /// time that the greeting took is part of it.
    pub clock_ahead_us: i64,
    /// Number of messages that were dropped since, because the peer was slower than they came.
    pub dropped: u64,
}

/// Reason for which a request has no answer. The peer may have done what it asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestError {
    /// The content is longer than [`CONTENT_BYTES_MAX`].
    Long,
    /// The peer is not connected.
    NotConnected,
    /// [`crate::REQUESTS_MAX`] or [`crate::REQUESTS_BYTES_MAX`] wait already.
    TooMany,
    /// The connection has ended.
    Ended,
    /// The time is over.
    Late,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RequestError::Long => "the request is too long",
            RequestError::NotConnected => "the node is not connected",
            RequestError::TooMany => "too many requests wait for the node",
            RequestError::Ended => "the connection to the node has ended",
            RequestError::Late => "the node has not answered in time",
        })
    }
}

impl std::error::Error for RequestError {}

impl Peers {
    /// Connects to the nodes with lower numbers, again and again, until [`Peers::stop`], and to others that
    /// have not connected for some seconds; connections that others make are to be given to
    /// [`Peers::accept`]. Needs a runtime of tokio.
    pub fn start(options: PeersOptions, receiver: Arc<dyn Receiver>) -> Peers {
        let PeersOptions { local, nodes, files } = options;
        let shared = Arc::new(Shared {
            local,
            nodes: watch::Sender::default(),
            in_force: watch::Sender::new(local.formats.in_force),
            files,
            receiver,
            links: Links::default(),
            refusals: RefusalLog::default(),
            stopping: watch::Sender::new(false),
        });
        let peers = Peers(Arc::new(Inner { shared, unsent: AtomicU64::new(0) }));
        peers.set_nodes(nodes);
        peers
    }

    /// Takes up the present nodes of the cluster and their addresses. Connections with nodes that are not
    /// among them any more end. Needs a runtime of tokio.
    pub fn set_nodes(&self, nodes: NodeTable) {
        let (shared, nodes) = (&self.0.shared, Arc::new(nodes));
        let former = shared.nodes.send_replace(Arc::clone(&nodes));
        let own = shared.local.identity.node;
        for node in nodes.addresses.keys().filter(|node| **node != own && !former.contains(**node)) {
            tokio::spawn(keep_connected(Arc::clone(shared), *node));
        }
    }

    /// Notes the format version in force; it never becomes lower. Connections with nodes that do not know it
    /// end, and no such node is connected any more.
    pub fn put_in_force(&self, version: u32) {
        self.0.shared.in_force.send_if_modified(|in_force| {
            let raised = version > *in_force;
            *in_force = version.max(*in_force);
            raised
        });
    }

    /// The nodes of the cluster.
    pub fn nodes(&self) -> Arc<NodeTable> {
        self.0.shared.nodes()
    }

    /// Serves a connection of which ALPN has chosen [`crate::ALPN`], until it ends. A peer that is refused is
    /// told why, and the log is too.
    pub async fn accept(&self, stream: server::TlsStream<TcpStream>) {
        let shared = &self.0.shared;
        let stream = TlsStream::Server(stream);
        let address =
            address_of(&stream).map_or_else(|| "an unknown address".to_owned(), |it| it.ip().to_string());
        let end = tokio::select! {
            () = shared.stopped() => return,
            end = shared.accept(stream) => end,
        };
        match end {
            Ok(end) => tracing::info!("the connection of a node at {address} is over: {end}"),
            Err(failure @ Failure::Refused(_)) => {
                if let Failure::Refused(Refusal::Twin(node)) = failure
                    && let Some(link) = shared.links.get(node)
                {
                    link.note_twin(&address, Instant::now());
                }
                shared.refusals.note(format!("refused a node at {address}: {failure}"));
            }
            Err(failure) => tracing::debug!("no connection of a node at {address}: {failure}"),
        }
    }

    /// Sends a message between the replicas of a shard. Never blocks; the message is lost when the node is
    /// not connected, or takes messages more slowly than they come.
    pub fn send(&self, shard: u16, envelope: Envelope) {
        match self.0.shared.links.get(envelope.message.to) {
            Some(link) => link.outbound.put_envelope(shard, envelope),
            None => drop(self.0.unsent.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Sends a message about a state of a shard, as [`Peers::send`] does.
    pub fn send_state(&self, shard: u16, message: StateMessage) {
        match self.0.shared.links.get(message.to) {
            Some(link) => link.outbound.put_state(shard, message),
            None => drop(self.0.unsent.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Asks a node, and waits for its answer.
    ///
    /// # Errors
    ///
    /// The reason for which there is no answer.
    pub async fn request(&self, to: NodeId, content: Bytes, within: Duration) -> Result<Bytes, RequestError> {
        if content.len() > CONTENT_BYTES_MAX {
            return Err(RequestError::Long);
        }
        let link = self.0.shared.links.get(to).ok_or(RequestError::NotConnected)?;
        let mut call = link.calls.begin(content.len()).ok_or(RequestError::TooMany)?;
        let within_ms = u32::try_from(within.as_millis()).unwrap_or(u32::MAX);
        link.outbound.put_call(Frame::Request { number: call.number, within_ms, content });
        match timeout(within, &mut call.answer).await {
            Ok(answer) => answer.map_err(|_| RequestError::Ended),
            Err(_) => Err(RequestError::Late),
        }
    }

    /// Time since which a node is not connected; `None`: it is.
    pub fn silent_for(&self, node: NodeId) -> Option<Duration> {
        self.0.shared.links.silent_since(node).map(|since| since.elapsed())
    }

    /// Reason for which a node is not connected, a sentence; `None`: it is, or nothing was tried yet.
    pub fn silent_because(&self, node: NodeId) -> Option<String> {
        self.0.shared.links.reason(node)
    }

    /// Address of another process with the identity of a connected node, which was refused within the last
    /// minute.
    pub fn twin_of(&self, node: NodeId) -> Option<String> {
        self.0.shared.links.get(node)?.twin(Instant::now())
    }

    /// The peers that are connected.
    pub fn connected(&self) -> Vec<PeerState> {
        let links = self.0.shared.links.all();
        let state = |link: &crate::link::Link| PeerState {
            node: link.node(),
            clock_ahead_us: link.clock_ahead_us,
            dropped: link.outbound.dropped(),
        };
        links.iter().map(|link| state(link)).collect()
    }

    /// Number of messages to nodes that were not connected.
    pub fn unsent(&self) -> u64 {
        self.0.unsent.load(Ordering::Relaxed)
    }

    /// Ends all connections, and makes and takes no more.
    pub fn stop(&self) {
        self.0.shared.stopping.send_replace(true);
    }
}
