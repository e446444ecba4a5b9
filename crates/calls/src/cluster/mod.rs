//! The cluster of which a server is a node: its nodes, and the tokens with which others join. Both are lists
//! of namespace `$sys`, so that every node has them.
//!
//! Map: [`nodes`] who belongs to the cluster, [`join_token`] the texts of tokens, `joining` the first node,
//! tokens and those who join with them, [`own`] the part of the server itself.

pub mod join_token;
mod joining;
pub mod nodes;
pub mod own;

use tokio::sync::Mutex;

pub use join_token::{JoinToken, Parts};
pub use nodes::{ClusterNode, NewNode};
pub use own::{ClusterCa, OwnNode};

/// Changes to the lists of a cluster, one after the other.
#[derive(Debug, Default)]
pub struct Cluster {
    changes: Mutex<()>,
}
