//! The server that is asked: the one owner of the node's handle in front of which every protocol stands.

use std::fmt;
use std::sync::Arc;

use sluice_engine::Limits;
use sluice_node::Node;
use sluice_push::Pushes;
use sluice_telemetry::spans::Traces;
use tokio::sync::{Semaphore, watch};

use crate::access::{Access, Act, Caller, Peer};
use crate::figure_feeds::Statistics;
use crate::neighbour::Neighbour;
use crate::open_transactions::OpenTransactions;
use crate::passed::Passed;
use crate::roster::{OwnNode, Roster};
use crate::time::now_ms;

/// Most chunks of uploads in JSON or protobuf that wait for their turn, in a whole request each.
const CHUNKS_WAITING_MAX: usize = 64;

/// The server behind all calls: the node, access control, and its stop. The node is reached with a
/// [`crate::Permit`] only.
pub struct Calls {
    node: Node,
    /// The same node, whose reads may be behind.
    stale_node: Node,
    access: Access,
    about: About,
    /// `None`: the server belongs to no cluster.
    clustered: Option<Clustered>,
    passed: Arc<Passed>,
    open_transactions: OpenTransactions,
    statistics: Statistics,
    /// One for each chunk in JSON or protobuf that may wait for its turn.
    chunk_turns: Semaphore,
    pushes: Pushes,
    /// `None`: no traces are told.
    traces: Option<Arc<Traces>>,
    started_at_ms: u64,
    /// Turns true when the server stops.
    stop: watch::Sender<bool>,
}

/// A server's part in a cluster, and the lists that the cluster keeps of its nodes.
#[derive(Debug)]
pub struct Clustered {
    /// The server as a node.
    pub own: Arc<dyn OwnNode>,
    /// The lists.
    pub roster: Roster,
}

/// The description of a server.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The version of the program.
    pub version: String,
    /// The durability that it runs with.
    pub durability: String,
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").field("about", &self.about).finish_non_exhaustive()
    }
}

impl Calls {
    /// The calls of a node, for callers whom `access` tells apart.
    pub fn new(node: Node, access: Access, about: About) -> Calls {
        Calls {
            stale_node: node.stale(),
            open_transactions: OpenTransactions::of(node.clone()),
            statistics: Statistics::default(),
            node,
            access,
            about,
            clustered: None,
            passed: Arc::default(),
            chunk_turns: Semaphore::new(CHUNKS_WAITING_MAX),
            pushes: Pushes::default(),
            traces: None,
            started_at_ms: now_ms(),
            stop: watch::Sender::new(false),
        }
    }

    /// The same calls of a server that is a node of a cluster.
    #[must_use]
    pub fn in_cluster(self, own: Arc<dyn OwnNode>) -> Calls {
        let roster = Roster::new(own.cluster());
        Calls { clustered: Some(Clustered { own, roster }), ..self }
    }

    /// The same calls, whose messages are traced, if there are traces.
    #[must_use]
    pub fn traced(self, traces: Option<Arc<Traces>>) -> Calls {
        Calls { traces, ..self }
    }

    /// The same calls of a server that pushes messages.
    #[must_use]
    pub fn pushing(self, pushes: Pushes) -> Calls {
        Calls { pushes, ..self }
    }

    /// Pushes of messages to endpoints.
    pub fn pushes(&self) -> &Pushes {
        &self.pushes
    }

    /// The traces of messages; `None`: none are told.
    pub fn traces(&self) -> Option<&Arc<Traces>> {
        self.traces.as_ref()
    }

    /// The server's part in a cluster; `None`: it belongs to none.
    pub fn clustered(&self) -> Option<&Clustered> {
        self.clustered.as_ref()
    }

    /// The server as other nodes of its cluster ask it.
    pub fn neighbour(&self) -> Neighbour {
        let (node, access, version) = (self.node.clone(), self.access.clone(), self.about.version.clone());
        let roster = self.clustered.as_ref().map(|clustered| clustered.roster.clone());
        Neighbour { node, access, version, passed: Arc::clone(&self.passed), roster }
    }

    /// Counters of requests that were passed on to other nodes.
    pub fn passed(&self) -> &Passed {
        &self.passed
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) fn stale_node(&self) -> &Node {
        &self.stale_node
    }

    pub(crate) fn chunk_turns(&self) -> &Semaphore {
        &self.chunk_turns
    }

    pub(crate) fn open_transactions(&self) -> &OpenTransactions {
        &self.open_transactions
    }

    pub(crate) fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The access control.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The description of the server.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Time of the server's start, in milliseconds since the Unix epoch.
    pub fn started_at_ms(&self) -> u64 {
        self.started_at_ms
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        self.node.limits()
    }

    /// Records an administrative act in the audit log, when callers are told apart.
    pub async fn record(&self, peer: &Peer, caller: &Caller, act: Act<'_>) {
        self.access.record(&self.node, peer, caller, act).await;
    }

    /// Ends all waits: the server stops.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Ends all open transactions: no call comes any more. The messages that they have received go back.
    pub fn end_open_transactions(&self) {
        self.open_transactions.end_all();
    }

    /// True once the server stops.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Resolves when the server stops.
    pub async fn stopping(&self) {
        // Never an error: the sender is here.
        let _ = self.stop.subscribe().wait_for(|stopping| *stopping).await;
    }
}
