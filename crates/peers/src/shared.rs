//! The part of a node's connections that all of them share, and the greetings.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use sluice_replica::{NodeId, Protocols};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_rustls::TlsStream;

use crate::GREETING_MAX;
use crate::connection::{End, Greeted, Receiver};
use crate::frame::Frame;
use crate::hello::{Formats, Hello, Refusal, check_identity};
use crate::identity::{ClusterId, Identity};
use crate::link::{Link, Links};
use crate::log::RefusalLog;
use crate::table::NodeTable;
use crate::tls::{PeerFiles, identity_of};

/// This node, as it tells its peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Local {
    /// Cluster and node, which are those of its certificate.
    pub identity: Identity,
    /// Number of this process, chosen at random when it starts.
    pub start: u64,
    /// Versions of the protocol that it speaks.
    pub protocols: Protocols,
    /// Format versions, of which [`crate::Peers::put_in_force`] raises the one in force.
    pub formats: Formats,
    /// The cluster from which this one was recovered; `None`: none.
    pub recovered_from: Option<ClusterId>,
}

/// Shared by all connections of a node.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) local: Local,
    pub(crate) nodes: watch::Sender<Arc<NodeTable>>,
    /// Format version in force.
    pub(crate) in_force: watch::Sender<u32>,
    pub(crate) files: PeerFiles,
    pub(crate) receiver: Arc<dyn Receiver>,
    pub(crate) links: Links,
    pub(crate) refusals: RefusalLog,
    pub(crate) stopping: watch::Sender<bool>,
}

/// Cause of which there is no connection, or not any more.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The peer is not reached, or its TLS fails.
    Unreached(String),
    /// This node refuses the peer.
    Refused(Refusal),
    /// The connection has ended before the greetings were over.
    Ungreeted(End),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused(refusal)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unreached(error) => f.write_str(error),
            Failure::Refused(refusal) => refusal.fmt(f),
            Failure::Ungreeted(end) => end.fmt(f),
        }
    }
}

impl Shared {
    /// Serves a connection that a peer has made, until it ends.
    pub(crate) async fn accept(self: &Arc<Self>, stream: TlsStream<TcpStream>) -> Result<End, Failure> {
        let certificate = self.certified(&stream).await?;
        let mut greeted = Greeted::new(stream);
        if let Err(refusal) = self.check_certified(certificate) {
            return Err(self.refuse(greeted, refusal).await);
        }
        let hello = self.hear_hello(&mut greeted).await?;
        match self.enter(certificate, hello) {
            Ok(link) => {
                let greeting = greeted.say(&Frame::Hello(self.hello())).await;
                self.run(greeted, link, greeting).await
            }
            Err(refusal) => {
                self.links.note(certificate.node, refusal.to_string());
                Err(self.refuse(greeted, refusal).await)
            }
        }
    }

    /// Serves a connection that this node has made to another, until it ends.
    pub(crate) async fn greet(&self, stream: TlsStream<TcpStream>, node: NodeId) -> Result<End, Failure> {
        let certificate = identity_of(stream.get_ref().1)?;
        let mut greeted = Greeted::new(stream);
        // It would take this connection for one with itself, and what it says is not from the node that is
        // meant. A node of another cluster says so.
        if certificate.cluster == self.local.identity.cluster && certificate.node != node {
            return Err(self.refuse(greeted, Refusal::OtherNode(certificate.node)).await);
        }
        greeted.say(&Frame::Hello(self.hello())).await.map_err(Failure::Ungreeted)?;
        let hello = self.hear_hello(&mut greeted).await?;
        match self.enter(certificate, hello) {
            Ok(link) => self.run(greeted, link, Ok(())).await,
            Err(refusal) => Err(self.refuse(greeted, refusal).await),
        }
    }

    /// Resolves when this node stops.
    pub(crate) async fn stopped(&self) {
        // Never an error: it knows the sender.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// The nodes of the cluster.
    pub(crate) fn nodes(&self) -> Arc<NodeTable> {
        self.nodes.borrow().clone()
    }

    /// Resolves when a node was removed from the cluster.
    async fn removed(&self, node: NodeId) {
        // Never an error: it knows the sender.
        let _ = self.nodes.subscribe().wait_for(|nodes| nodes.is_removed(node)).await;
    }

    /// Resolves when a format version is in force that the peer does not know.
    async fn outdated(&self, link: &Link) {
        let highest = link.hello.formats.highest;
        // Never an error: it knows the sender.
        let _ = self.in_force.subscribe().wait_for(|in_force| *in_force > highest).await;
    }

    /// The node that a client's certificates name, if the cluster's CA has signed them.
    async fn certified(self: &Arc<Self>, stream: &TlsStream<TcpStream>) -> Result<Identity, Refusal> {
        let connection = stream.get_ref().1;
        let identity = identity_of(connection)?;
        let shown: Vec<_> = connection.peer_certificates().unwrap_or_default().to_vec();
        let shared = Arc::clone(self);
        let checked = spawn_blocking(move || shared.files.check_client(&shown)).await;
        let checked = checked.unwrap_or_else(|error| Err(Refusal::Untrusted(error.to_string())));
        checked.map(|()| identity)
    }

    /// Checks the node of a certificate before it says anything.
    fn check_certified(&self, certificate: Identity) -> Result<(), Refusal> {
        let Local { identity, recovered_from, .. } = self.local;
        match check_identity(certificate, identity, &self.nodes()) {
            Err(Refusal::OtherCluster(cluster)) if recovered_from == Some(cluster) => {
                Err(Refusal::Recovered { former: certificate, present: identity.cluster })
            }
            checked => checked,
        }
    }

    async fn hear_hello(&self, greeted: &mut Greeted<TlsStream<TcpStream>>) -> Result<Hello, Failure> {
        let heard = timeout(GREETING_MAX, greeted.hear()).await.unwrap_or(Err(End::Silent));
        match heard.map_err(Failure::Ungreeted)? {
            Frame::Hello(hello) => Ok(hello),
            Frame::Refused(reason) => Err(Failure::Ungreeted(End::Refused(reason))),
            Frame::Removed => Err(Failure::Ungreeted(End::Removed)),
            Frame::Alive
            | Frame::Envelope { .. }
            | Frame::Request { .. }
            | Frame::Answer { .. }
            | Frame::State { .. } => Err(Failure::Ungreeted(End::Greeting)),
        }
    }

    /// Checks a greeting, and puts the connection into the table.
    fn enter(&self, certificate: Identity, hello: Hello) -> Result<Arc<Link>, Refusal> {
        let own = self.hello();
        let protocol = hello.check(certificate, &own, &self.nodes())?;
        let link = Arc::new(Link::new(hello, protocol, own.wall_us));
        self.links.enter(&link)?;
        self.receiver.doubt(link.node());
        Ok(link)
    }

    /// Carries frames until the connection ends, and takes it out of the table.
    async fn run(
        &self,
        greeted: Greeted<TlsStream<TcpStream>>,
        link: Arc<Link>,
        greeting: Result<(), End>,
    ) -> Result<End, Failure> {
        let _leave = Leave { shared: self, link: &link };
        greeting.map_err(Failure::Ungreeted)?;
        let (node, protocol) = (link.node().get(), link.protocol);
        tracing::info!("connected with node {node} by version {protocol} of the protocol");
        Ok(tokio::select! {
            end = greeted.run(&link, &self.receiver, self.local.identity.node) => end,
            () = self.stopped() => End::Stopping,
            () = self.removed(link.node()) => End::PeerRemoved,
            () = self.outdated(&link) => End::Outdated,
        })
    }

    /// Tells a peer why it is refused. One that does not read it learns only that the connection is over.
    async fn refuse(&self, mut greeted: Greeted<TlsStream<TcpStream>>, refusal: Refusal) -> Failure {
        let said = async {
            let frame = match &refusal {
                Refusal::Removed(_) => Frame::Removed,
                refusal => Frame::Refused(refusal.to_string()),
            };
            greeted.say(&frame).await?;
            greeted.stream.shutdown().await.map_err(End::Broken)
        };
        let _ = timeout(GREETING_MAX, said).await;
        Failure::Refused(refusal)
    }

    fn hello(&self) -> Hello {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall_us = u64::try_from(wall.as_micros()).unwrap_or(u64::MAX);
        let Local { identity, start, protocols, formats: Formats { highest, .. }, .. } = self.local;
        let formats = Formats { highest, in_force: *self.in_force.borrow() };
        Hello { identity, protocols, start, wall_us, formats }
    }
}

/// Takes a connection out of the table, however it ends, and tells the receiver.
struct Leave<'l> {
    shared: &'l Shared,
    link: &'l Arc<Link>,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if self.shared.links.leave(self.link) {
            self.shared.receiver.lost(self.link.node());
        }
    }
}

/// The address of a peer, for the log.
pub(crate) fn address_of(stream: &TlsStream<TcpStream>) -> Option<SocketAddr> {
    stream.get_ref().0.peer_addr().ok()
}
