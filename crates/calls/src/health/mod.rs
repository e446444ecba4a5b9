//! The health of a cluster: each node is asked for its own view, and what is wrong is said in sentences.
//!
//! Map: `diagnosis` what is wrong in all views, `links` what is wrong between the nodes, `voting` whose votes
//! count.

mod diagnosis;
mod links;
mod voting;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::BEHAVIOUR_VERSION;

use crate::call::{Body, Done, Unary};
use crate::cluster::own_node;
use crate::error::CallError;
use crate::permit::Permit;
use crate::roster::OwnNode;
use crate::view::{FollowerView, ShardView, View};

/// Health of a cluster.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "cluster": "5b0c9a1f22d347e8", "node": 1, "healthy": true, "tolerates": 1, "problems": [],
    "behaviour": BEHAVIOUR_VERSION,
    "nodes": [{
        "number": 1, "address": "192.0.2.7:7070", "reached": true, "version": "0.1.0",
        "newest_behaviour": BEHAVIOUR_VERSION,
    }],
    "shards": [{"shard": 0, "leader": 1, "term": 1_790_000_000_000_007u64, "followers": []}],
}))]
pub struct ClusterStatus {
    /// Id of the cluster.
    cluster: String,
    /// Number of the node that answers, and has asked the others.
    node: u64,
    /// True when there is no problem.
    healthy: bool,
    /// Number of nodes that may fail now, whichever they are, while the others go on.
    tolerates: u64,
    /// The problems, worst first: sentences that say what is wrong and what to do.
    problems: Vec<String>,
    /// The behaviour version in force on all shards; while it is raised, the lowest. Absent: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    behaviour: Option<u16>,
    /// Its nodes.
    nodes: Vec<NodeStatus>,
    /// Its shards.
    shards: Vec<ReplicatedShard>,
}

/// Status of a node of a cluster.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct NodeStatus {
    /// Its number.
    pub(crate) number: u64,
    /// Its address, as `host:port`.
    address: String,
    /// True when it has answered within a second.
    reached: bool,
    /// Time since which the node that answers has no connection to it, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    silent_ms: Option<u64>,
    /// Reason for which it has none, a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    silent_because: Option<String>,
    /// Version of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Newest behaviour version that its program knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest_behaviour: Option<u16>,
    /// Time by which its wall clock was ahead when it connected, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_ahead_ms: Option<i64>,
}

#[cfg(test)]
impl NodeStatus {
    /// Status of a node of which only the number is known.
    pub(crate) fn of(number: u64) -> NodeStatus {
        NodeStatus { number, ..NodeStatus::default() }
    }
}

/// Status of a shard of a cluster.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReplicatedShard {
    /// Its number.
    shard: u32,
    /// Number of the node that says that it leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<u64>,
    /// Term of its leadership; without a leader the highest known.
    term: u64,
    /// The other members, as the leader sees them.
    followers: Vec<ShardFollower>,
}

/// Status of a follower, as its leader sees it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ShardFollower {
    /// Number of the node.
    node: u64,
    /// True when it votes; false: it only follows.
    votes: bool,
    /// True when it was heard of within the last second.
    heard: bool,
    /// Records that it has not acknowledged.
    records_behind: u64,
    /// Bytes of these records.
    bytes_behind: u64,
    /// Age of the oldest of them, in milliseconds.
    ms_behind: u64,
}

/// The status to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterStatusRequest")]
pub struct Show {}

/// A node and its view; `None`: it was not reached.
pub(crate) struct Seen {
    pub(crate) status: NodeStatus,
    pub(crate) view: Option<View>,
}

impl Unary for Show {
    type Answer = ClusterStatus;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<ClusterStatus>, CallError> {
        let own = own_node(permit)?;
        let seen = look_around(permit, own).await;
        let problems = diagnosis::problems(own.number(), &permit.node().limits(), &seen);
        Ok(ClusterStatus {
            cluster: own.cluster().to_owned(),
            node: own.number(),
            healthy: problems.is_empty(),
            tolerates: voting::tolerated(&seen) as u64,
            problems,
            behaviour: diagnosis::behaviour(&seen),
            shards: shards(&seen),
            nodes: seen.into_iter().map(|seen| seen.status).collect(),
        }
        .into())
    }
}

/// Asks each node for its view, this one included; each has a second.
pub(crate) async fn look_around(permit: &Permit<'_>, own: &dyn OwnNode) -> Vec<Seen> {
    let mut asked = Vec::new();
    for (number, address) in own.addresses() {
        let here = permit.calls().neighbour();
        asked.push(tokio::spawn(async move {
            let link = here.node().link(number);
            let view = match &link {
                None => Some(here.view().await),
                Some(_) => View::ask(here.node(), number).await,
            };
            let status = NodeStatus {
                number,
                address,
                reached: view.is_some(),
                silent_ms: link.as_ref().and_then(|link| link.silent_ms),
                clock_ahead_ms: link.as_ref().and_then(|link| Some(link.clock_ahead_us? / 1_000)),
                silent_because: link.and_then(|link| link.silent_because),
                version: view.as_ref().map(|view| view.version.clone()),
                newest_behaviour: view
                    .as_ref()
                    .map(|view| view.newest_behaviour)
                    .filter(|newest| *newest > 0),
            };
            Seen { status, view }
        }));
    }
    let mut seen = Vec::new();
    for asked in asked {
        // A task that panicked has not answered.
        seen.extend(asked.await);
    }
    seen
}

/// The shards, each by the node that leads it.
fn shards(seen: &[Seen]) -> Vec<ReplicatedShard> {
    let highest = |number: usize| {
        let views = seen.iter().filter_map(|seen| seen.view.as_ref());
        views.filter_map(|view| Some(view.shards.get(number)?.term)).max().unwrap_or(0)
    };
    let shard = |(number, led): (usize, Option<(u64, &ShardView)>)| ReplicatedShard {
        shard: number as u32,
        leader: led.map(|(node, _)| node),
        term: led.map_or_else(|| highest(number), |(_, shard)| shard.term),
        followers: led.map_or(Vec::new(), |(_, shard)| shard.followers.iter().map(follower).collect()),
    };
    voting::led(seen).into_iter().enumerate().map(shard).collect()
}

fn follower(view: &FollowerView) -> ShardFollower {
    ShardFollower {
        node: view.node,
        votes: view.votes,
        heard: view.is_heard,
        records_behind: view.records,
        bytes_behind: view.bytes,
        ms_behind: view.ms,
    }
}
