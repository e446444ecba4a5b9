//! The cluster of which a server is a node: its nodes, and the tokens with which others join. Both are lists
//! of namespace `$sys`, so that every node has them.
//!
//! Map: [`nodes`] who belongs to the cluster, [`join_token`] the texts of tokens, `joining` the first node,
//! tokens and those who join with them.

pub mod join_token;
mod joining;
pub mod nodes;

use sluice_engine::Error;
use tokio::sync::Mutex;

pub use join_token::{JoinToken, Parts};
pub use nodes::ClusterNode;

/// Changes to the lists of a cluster, one after the other.
#[derive(Debug, Default)]
pub struct Cluster {
    changes: Mutex<()>,
}

/// The error of a change to a cluster.
#[derive(Clone, PartialEq, Debug)]
pub enum ClusterError {
    /// A code of [`crate::codes`], and a sentence.
    Own(&'static str, String),
    /// An error of the engine or the node.
    Engine(Error),
}

impl From<Error> for ClusterError {
    fn from(error: Error) -> ClusterError {
        ClusterError::Engine(error)
    }
}
