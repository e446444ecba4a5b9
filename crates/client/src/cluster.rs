//! The nodes of a cluster.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A cluster, as one of its nodes shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// Id of the cluster.
    pub cluster: String,
    /// Number of the node that has answered.
    pub node: u64,
    /// Its nodes.
    pub nodes: Vec<ClusterNode>,
}

/// Health of a cluster, as one of its nodes has found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// Id of the cluster.
    pub cluster: String,
    /// Number of the node that has answered.
    pub node: u64,
    /// True when there is no problem.
    pub healthy: bool,
    /// Number of nodes that may fail now, whichever they are, while the others go on.
    pub tolerates: u64,
    /// The problems, worst first: sentences that say what is wrong and what to do.
    pub problems: Vec<String>,
    /// The behaviour version in force on all shards; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behaviour: Option<u16>,
    /// Its nodes.
    pub nodes: Vec<NodeStatus>,
    /// Its shards.
    pub shards: Vec<ReplicatedShard>,
}

/// Status of a node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Number.
    pub number: u64,
    /// Address, as `host:port`.
    pub address: String,
    /// True when it has answered within a second.
    pub reached: bool,
    /// Time since which the node that has answered has no connection to it, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_ms: Option<u64>,
    /// Reason for which it has none, a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_because: Option<String>,
    /// Version of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Newest behaviour version that its program knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_behaviour: Option<u16>,
    /// Time by which its wall clock was ahead when it connected, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_ahead_ms: Option<i64>,
}

/// Status of a shard of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicatedShard {
    /// Number.
    pub shard: u32,
    /// Number of the node that leads; `None`: none says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<u64>,
    /// Term of its leadership; without a leader the highest known.
    pub term: u64,
    /// The other members, as the leader sees them.
    pub followers: Vec<ShardFollower>,
}

/// Status of a follower, as its leader sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardFollower {
    /// Number of the node.
    pub node: u64,
    /// True when it votes.
    pub votes: bool,
    /// True when it was heard of within the last second.
    pub heard: bool,
    /// Records that it has not acknowledged.
    pub records_behind: u64,
    /// Bytes of these records.
    pub bytes_behind: u64,
    /// Age of the oldest of them, in milliseconds.
    pub ms_behind: u64,
}

/// Leaderships after a transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transferred {
    /// Number of the node that leads.
    pub node: u64,
    /// The shards that it leads now, of those that were asked for.
    pub shards: Vec<u32>,
}

/// Behaviour versions after a new one was put into force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finalized {
    /// The version in force.
    pub behaviour: u16,
    /// The version that was in force before: the same when there was nothing to do.
    pub former: u16,
}

/// Limits in force in a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterLimits {
    /// The limits by the names of their settings: sizes in bytes, times in milliseconds, and
    /// `limits.auto_create` as 1 or 0.
    pub limits: BTreeMap<String, u64>,
    /// Nodes that are reached and have other limits in their settings, which do not count.
    pub differing: Vec<NodeLimits>,
}

/// Limits of a node's settings that are not those in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLimits {
    /// Number of the node.
    pub node: u64,
    /// Its limits that differ, by the names of the settings.
    pub limits: BTreeMap<String, u64>,
}

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterNode {
    /// Number.
    pub number: u64,
    /// Address, as `host:port`.
    pub address: String,
    /// Shards that it leads, as far as the node that has answered knows.
    pub leads: Vec<u32>,
}

/// A node and its address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its number.
    pub node: u64,
    /// Its address, as `host:port`.
    pub address: String,
}

/// A new join token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeJoinToken {
    /// Secret text of the token. The cluster keeps only a hash of it and cannot show it again.
    pub token: String,
    /// End of its validity, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
}

/// Without the secret.
impl fmt::Debug for MadeJoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeJoinToken").field("expires_at_ms", &self.expires_at_ms).finish_non_exhaustive()
    }
}

/// A machine that wants to join.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Join token.
    pub token: String,
    /// Address at which clients and other nodes will reach it, as `host:port`.
    pub address: String,
    /// Secret text of this machine alone, by which it is known when it asks again.
    pub machine: String,
    /// Its wall clock, in milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// Newest behaviour version that its program knows.
    pub behaviour: u16,
    /// Oldest one that it knows.
    pub oldest_behaviour: u16,
    /// Newest version of the protocol between nodes that its program speaks.
    pub protocol: u8,
    /// Oldest one that it speaks.
    pub oldest_protocol: u8,
    /// Number of its shards.
    pub shards: u32,
}

/// Without the secrets.
impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Parts that make a machine a node.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Joined {
    /// Id of the cluster.
    pub cluster: String,
    /// Number of the new node.
    pub node: u64,
    /// Certificate of the cluster's CA, as PEM.
    pub ca: String,
    /// Private key of the cluster's CA, as PEM.
    pub ca_key: String,
    /// All nodes, the new one among them.
    pub nodes: Vec<Neighbour>,
}

/// Without the key.
impl fmt::Debug for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joined").field("node", &self.node).field("nodes", &self.nodes).finish_non_exhaustive()
    }
}
