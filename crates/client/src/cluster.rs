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
    /// Number: another one each time that a machine joins.
    pub number: u64,
    /// Name.
    pub name: String,
    /// Address, as `host:port`.
    pub address: String,
    /// Time at which it joined, in milliseconds since the Unix epoch.
    pub joined_at_ms: u64,
    /// Shards that it leads, as far as the node that has answered knows.
    pub leads: Vec<u32>,
}

/// A node that was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedNode {
    /// Its number.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// Its address, as `host:port`.
    pub address: String,
}

/// A new join token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinToken {
    /// Secret text of the token. The cluster keeps only a hash of it and cannot show it again.
    pub token: String,
    /// End of its validity, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
}

/// Without the secret.
impl std::fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinToken").field("expires_at_ms", &self.expires_at_ms).finish_non_exhaustive()
    }
}
