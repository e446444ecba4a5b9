//! The part of a server in its cluster.

use std::collections::BTreeMap;
use std::fmt;

/// A server as a node of a cluster.
pub trait OwnNode: fmt::Debug + Send + Sync {
    /// Id of the cluster.
    fn cluster(&self) -> &str;
    /// Number of the node.
    fn number(&self) -> u64;
    /// Addresses of all nodes by their numbers, as `host:port`.
    fn addresses(&self) -> BTreeMap<u64, String>;
    /// Numbers of the other nodes that are connected with this one.
    fn connected(&self) -> Vec<u64>;
    /// The cluster's CA.
    ///
    /// # Errors
    /// A sentence: its files cannot be read, or are not kept by the server.
    fn authority(&self) -> Result<ClusterCa, String>;
}

/// The CA that signs the certificates of a cluster's nodes.
#[derive(Clone)]
pub struct ClusterCa {
    /// Its certificate, as PEM.
    pub certificate: String,
    /// SHA-256 of its certificate, in DER.
    pub fingerprint: [u8; 32],
    /// Its private key, as PEM.
    pub key: String,
}

/// Without the key.
impl fmt::Debug for ClusterCa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterCa").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}
