//! A node's own view of its shards. Nodes ask each other for it with one byte, 17; the answer is JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sluice_engine::{BEHAVIOUR_VERSION, Limits};
use sluice_node::api::{Follower, ReplicaMetrics, ShardDamage, ShardMetrics};
use sluice_node::{Link, Node};

use crate::access::Access;
use crate::passed::Passed;

/// The question.
const ASK: &[u8] = &[17];
/// Time for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// View of a node. Fields that a node does not send are empty.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct View {
    /// Version of the program.
    pub(crate) version: String,
    /// Newest behaviour version that the program knows; 0: it knows none but its own, and does not tell it.
    pub(crate) newest_behaviour: u16,
    /// True while it is silent, since it may have forgotten what it acknowledged.
    pub(crate) has_forgotten: bool,
    /// Its shards, by their numbers.
    pub(crate) shards: Vec<ShardView>,
    /// Leaders to which it could not pass requests on within the last minute.
    pub(crate) unreached: Vec<u64>,
    /// Its connections with the other nodes.
    pub(crate) links: Vec<LinkView>,
    /// The limits of its settings, by their names.
    pub(crate) limits: BTreeMap<String, u64>,
    /// Fingerprint of the policy of its file, empty without one; `None`: it uses the cluster's.
    pub(crate) policy: Option<String>,
}

/// View of the connection with another node.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LinkView {
    /// Number of that node.
    pub(crate) node: u64,
    /// Time since which there is none, in milliseconds; `None`: there is one.
    pub(crate) silent_ms: Option<u64>,
    /// Reason for which there is none, a sentence.
    pub(crate) silent_because: Option<String>,
    /// Address of another process that uses the identity of that node, and was refused lately.
    pub(crate) twin_at: Option<String>,
}

/// View of a shard.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ShardView {
    /// Number of the node that leads, as far as this one knows.
    pub(crate) leader: Option<u64>,
    /// The behaviour version in force; 0 before anything was applied.
    pub(crate) behaviour: u16,
    /// Term of the replica.
    pub(crate) term: u64,
    /// Time since which it knows no leader, in milliseconds.
    pub(crate) leaderless_ms: u64,
    /// True while its disk does not finish a write.
    pub(crate) is_stalled: bool,
    /// True while its disk has no room for what grows.
    pub(crate) is_full: bool,
    /// True while its disk has less room than the low-water mark.
    pub(crate) is_low: bool,
    /// Damage that was found, as a sentence, and left as it is until the node has a new number.
    pub(crate) damaged: Option<String>,
    /// Directory of what was damaged, until the shard has everything from the others.
    pub(crate) set_aside: Option<String>,
    /// The other members, when it leads.
    pub(crate) followers: Vec<FollowerView>,
}

/// View of a follower by its leader.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FollowerView {
    /// Number of the node.
    pub(crate) node: u64,
    /// True if it votes.
    pub(crate) votes: bool,
    /// True if it was heard of lately.
    pub(crate) is_heard: bool,
    /// True if the log that it has missed is gone, so that it gets the state, or one is on its way to it.
    pub(crate) needs_state: bool,
    /// Records that it has not acknowledged, their bytes, and the age of the oldest in milliseconds.
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) ms: u64,
}

impl View {
    /// True if another node asks for the view.
    pub(crate) fn is_asked(content: &[u8]) -> bool {
        content == ASK
    }

    /// The view of this node, whose program has this version.
    pub(crate) async fn of(node: &Node, access: &Access, version: &str, passed: &Passed) -> View {
        let metrics = node.metrics().await;
        View {
            version: version.to_owned(),
            newest_behaviour: BEHAVIOUR_VERSION,
            has_forgotten: node.has_forgotten(),
            shards: metrics.shards.iter().map(ShardView::new).collect(),
            unreached: passed.unreached(),
            links: node.links().into_iter().map(LinkView::new).collect(),
            limits: by_setting(node.own_limits()),
            policy: access.file_policy(),
        }
    }

    /// The limits of its settings that are not those in force.
    pub(crate) fn differing(&self, in_force: &Limits) -> BTreeMap<String, u64> {
        let in_force = by_setting(in_force);
        let own = self.limits.iter().filter(|(name, own)| in_force.get(*name).is_some_and(|it| it != *own));
        own.map(|(name, own)| (name.clone(), *own)).collect()
    }

    /// Asks another node for its view; `None`: it is not reached.
    pub(crate) async fn ask(node: &Node, other: u64) -> Option<View> {
        let answer = node.ask(other, Bytes::from_static(ASK), ANSWER_TIME).await?;
        serde_json::from_slice(&answer).ok()
    }

    /// The view as the answer to another node.
    pub(crate) fn encode(&self) -> Bytes {
        // Strings, numbers and lists are written without fail.
        serde_json::to_vec(self).unwrap_or_default().into()
    }
}

/// Limits by the names of their settings.
pub(crate) fn by_setting(limits: &Limits) -> BTreeMap<String, u64> {
    Limits::SETTINGS.map(str::to_owned).into_iter().zip(limits.numbers()).collect()
}

impl LinkView {
    fn new((node, link): (u64, Link)) -> LinkView {
        let Link { silent_ms, silent_because, twin_at, clock_ahead_us: _ } = link;
        LinkView { node, silent_ms, silent_because, twin_at }
    }
}

impl ShardView {
    fn new(metrics: &ShardMetrics) -> ShardView {
        let journal = &metrics.journal;
        let ReplicaMetrics { leader, term, leaderless_ms, is_stalled, followers, .. } =
            metrics.replicas.clone().unwrap_or_default();
        let follower = |follower: &Follower| FollowerView {
            node: follower.node.get(),
            votes: follower.is_voter,
            is_heard: follower.is_heard,
            needs_state: follower.needs_state,
            records: follower.records,
            bytes: follower.bytes,
            ms: follower.missing_since_us.map_or(0, |since| metrics.time_us.saturating_sub(since) / 1_000),
        };
        let (damaged, set_aside) = match &metrics.damage {
            None => (None, None),
            Some(ShardDamage::Found(what)) => (Some(what.clone()), None),
            Some(ShardDamage::SetAside(at)) => (None, Some(at.display().to_string())),
        };
        ShardView {
            leader,
            behaviour: metrics.behaviour,
            term,
            leaderless_ms,
            is_stalled,
            is_full: journal.full,
            is_low: journal.low,
            damaged,
            set_aside,
            followers: followers.iter().map(follower).collect(),
        }
    }
}
