//! The server as a node of a cluster.

use std::future::{Future, pending};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use sluice_calls::neighbour::Neighbour;
use sluice_calls::roster::{OwnNode, Roster};
use sluice_engine::{BEHAVIOUR_OLDEST, BEHAVIOUR_VERSION};
use sluice_front::AlpnHandler;
use sluice_front::nodes::Nodes;
use sluice_node::{Asking, ClusterOptions, Link, Node, Transport};
use sluice_peers::hello::Formats;
use sluice_peers::{ALPN, Answering, Local, Peers, PeersOptions, Receiver};
use sluice_replica::{Envelope, NodeId, Protocols, StateMessage};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::server::TlsStream;

use super::auto::AutoCertificates;
use super::boot;
use super::following::Following;
use super::limits::warn_of_others;
use super::node_file::NodeFile;
use super::other_nodes::OtherNodes;
use super::own_node::Own;
use super::place::{Place, Source};
use super::renewing::Renewing;
use super::stopping::Failure;
use crate::config::Config;
use crate::terminal::Result;

/// Connections of this server to the other nodes.
pub(super) struct ClusterNode {
    peers: Peers,
    incoming: Arc<Incoming>,
    options: ClusterOptions,
    own: Arc<Own>,
    others: Arc<OtherNodes>,
    source: Source,
    data_dir: PathBuf,
    /// Told when the node has another number.
    renewed: Arc<Notify>,
}

/// Pause between two looks at the behaviour version in force.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Tells the other nodes the highest behaviour version in force, until the node stops: that of shard 0, which
/// is raised before the others. Idle shards are left alone.
async fn keep_formats(node: Node, peers: Peers) {
    while let Ok(behaviour) = node.behaviour(0).await {
        peers.put_in_force(behaviour.into());
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The name in ALPN by which other nodes ask for a connection; `None`: the server is alone.
pub(super) fn alpn(place: Option<&Place>) -> Option<&'static [u8]> {
    place.map(|_| ALPN)
}

impl ClusterNode {
    /// Begins to connect to the other nodes; `None`: the server is alone. Needs a runtime of tokio.
    pub(super) fn start(
        place: Option<Place>,
        made: Option<&AutoCertificates>,
        config: &Config,
    ) -> Option<ClusterNode> {
        let place = place?;
        let files = place.files(made)?;
        let Place { identity, recovered_from, nodes, members, is_new, source } = place;
        // The log has not told yet which version is in force.
        let formats = Formats { highest: BEHAVIOUR_VERSION.into(), in_force: BEHAVIOUR_OLDEST.into() };
        let start = RandomState::new().build_hasher().finish();
        let local = Local { identity, start, protocols: Protocols::OWN, formats, recovered_from };
        let incoming = Arc::new(Incoming::default());
        let receiver: Arc<dyn Receiver> = incoming.clone();
        let peers = Peers::start(PeersOptions { local, nodes, files: files.clone() }, receiver);
        let others = Arc::new(OtherNodes { own: identity, peers: peers.clone(), files });
        let ca = made.map(|made| made.folder().clone());
        let own = Own { identity, cluster: identity.cluster.to_string(), peers: peers.clone(), ca };
        let transport = Arc::new(Outgoing(peers.clone()));
        let (kept_bytes, boot) = (config.cluster_log.0, boot::present());
        let options = ClusterOptions { id: identity.node, members, is_new, kept_bytes, boot, transport };
        Some(ClusterNode {
            peers,
            incoming,
            options,
            own: Arc::new(own),
            others,
            source,
            data_dir: config.data_dir.clone(),
            renewed: Arc::default(),
        })
    }

    /// The settings for the node.
    pub(super) fn options(&self) -> ClusterOptions {
        self.options.clone()
    }

    /// The server as a node, for its calls.
    pub(super) fn own_node(&self) -> Arc<dyn OwnNode> {
        self.own.clone()
    }

    /// The other nodes, for requests that one of them answers.
    pub(super) fn others(&self) -> Arc<dyn Nodes> {
        self.others.clone()
    }

    /// Resolves when the node cannot go on: another one has said that it was removed from the cluster, or it
    /// has another number.
    pub(super) fn ended(&self) -> impl Future<Output = Failure> + Send + 'static {
        let (incoming, renewed) = (Arc::clone(&self.incoming), Arc::clone(&self.renewed));
        async move {
            tokio::select! {
                () = incoming.removed.notified() => Failure::Removed,
                () = renewed.notified() => Failure::Renewed,
            }
        }
    }

    /// Gives messages of other nodes to this one from now on, and lets it keep its shards in line. Returns
    /// the handler of their connections.
    pub(super) fn deliver_to(&self, neighbour: Neighbour) -> Arc<dyn AlpnHandler> {
        // Set once, since a server has one node.
        let _ = self.incoming.here.set(neighbour.clone());
        let node = neighbour.node().clone();
        if let Some(roster) = neighbour.roster() {
            self.follow(node.clone(), roster.clone());
        }
        self.watch_memory(node.clone());
        tokio::spawn(keep_formats(node.clone(), self.peers.clone()));
        tokio::spawn(warn_of_others(node.clone()));
        tokio::spawn(async move { tokio::join!(node.keep_placement(), node.keep_leaders_spread()) });
        Arc::new(Accepting(self.peers.clone()))
    }

    /// Notes that the node has started under its number.
    pub(super) fn note_start(&self) -> Result<()> {
        if !self.options.is_new {
            return Ok(());
        }
        NodeFile::change(&self.data_dir, self.options.id.get(), |place| place.is_new = false)
    }

    /// The advice for a node that does not start since its data are damaged; `None`: that for a server alone
    /// is enough.
    pub(super) fn advice_on_damage(&self) -> Option<&'static str> {
        matches!(self.source, Source::Settings(_)).then_some(
            "Its number stands in cluster_members, so that it cannot take another, under which the others would give \
             it their data. They go on without it: back one of them up, stop all, and begin the cluster anew with \
             copies of what you restore from that.",
        )
    }

    /// Follows the list of nodes, unless they stand in the settings. `roster` is that of the calls: its
    /// changes exclude each other.
    fn follow(&self, node: Node, roster: Roster) {
        let Source::File(address) = &self.source else { return };
        let following = Following {
            node,
            roster,
            peers: self.peers.clone(),
            own: self.own.identity.node,
            is_first: !self.options.members.voters().is_empty(),
            address: address.clone(),
            data_dir: self.data_dir.clone(),
            removed: Arc::clone(&self.incoming.removed),
        };
        tokio::spawn(following.run());
    }

    /// Watches for what the node has forgotten, to give it another number.
    fn watch_memory(&self, node: Node) {
        let renewing = Renewing {
            node,
            peers: self.peers.clone(),
            own: self.own.identity.node,
            data_dir: matches!(self.source, Source::File(_)).then(|| self.data_dir.clone()),
            renewed: Arc::clone(&self.renewed),
        };
        tokio::spawn(renewing.run());
    }
}

/// Messages of other nodes, which are lost until the node has started.
#[derive(Debug, Default)]
struct Incoming {
    here: OnceLock<Neighbour>,
    removed: Arc<Notify>,
}

impl Receiver for Incoming {
    fn envelope(&self, shard: u16, envelope: Envelope) {
        if let Some(here) = self.here.get() {
            here.node().deliver(shard, envelope);
        }
    }

    fn state(&self, shard: u16, message: StateMessage) {
        if let Some(here) = self.here.get() {
            here.node().deliver_state(shard, message);
        }
    }

    /// A request that nobody knows has an empty answer.
    fn request(&self, from: NodeId, content: Bytes) -> Answering {
        let here = self.here.get().cloned();
        Box::pin(async move {
            match here {
                Some(here) => here.answer(from.get(), &content).await,
                None => pending().await,
            }
        })
    }

    fn removed(&self, by: NodeId) {
        tracing::error!("node {} says that this node was removed from the cluster", by.get());
        self.removed.notify_one();
    }

    fn doubt(&self, _node: NodeId) {
        if let Some(here) = self.here.get() {
            here.node().doubt();
        }
    }

    fn lost(&self, node: NodeId) {
        if let Some(here) = self.here.get() {
            here.node().lost(node);
        }
    }
}

/// Messages to other nodes.
#[derive(Debug)]
struct Outgoing(Peers);

impl Transport for Outgoing {
    fn send(&self, shard: u32, envelope: Envelope) {
        // A node has 64 shards at most.
        self.0.send(shard as u16, envelope);
    }

    fn send_state(&self, shard: u32, message: StateMessage) {
        self.0.send_state(shard as u16, message);
    }

    fn ask(&self, node: NodeId, question: Bytes, within: Duration) -> Asking<'_> {
        Box::pin(async move { self.0.request(node, question, within).await.ok() })
    }

    fn nodes(&self) -> Vec<NodeId> {
        self.0.nodes().addresses.keys().copied().collect()
    }

    fn link(&self, node: NodeId) -> Link {
        let peer = self.0.connected().into_iter().find(|peer| peer.node == node);
        Link {
            silent_because: self.0.silent_because(node),
            twin_at: self.0.twin_of(node),
            silent_ms: self.0.silent_for(node).map(|silent| silent.as_millis() as u64),
            clock_ahead_us: peer.map(|peer| peer.clock_ahead_us),
        }
    }
}

/// Connections that other nodes make.
#[derive(Debug)]
struct Accepting(Peers);

impl AlpnHandler for Accepting {
    fn name(&self) -> &'static [u8] {
        ALPN
    }

    fn serve(&self, stream: TlsStream<TcpStream>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.0.accept(stream))
    }
}
