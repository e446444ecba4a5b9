//! The nodes of a cluster.

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
