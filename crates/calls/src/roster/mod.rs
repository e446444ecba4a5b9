//! The nodes that belong to a cluster, and the tokens with which machines join it: lists in `$sys`, so that
//! every node follows them.
//!
//! A number is never given twice, so nodes that were removed stay in the list. Who is to be a node stands
//! here; the leader of each shard brings the members of its log into line with it.
//!
//! Map: `nodes` the list of nodes, [`join_token`] the text of tokens, `joining` how machines join,
//! [`renewal`] how nodes come back that have forgotten something, [`own`] the part of this server.

pub mod join_token;
mod joining;
mod nodes;
pub mod own;
pub mod renewal;

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::system::SystemList;

pub use joining::Machine;
pub use nodes::{ListedNode, NODES_MAX, check_address};
pub use own::{ClusterCa, OwnNode};

/// The list of join tokens.
const TOKENS: SystemList = SystemList("join-tokens");

/// The lists of one cluster.
#[derive(Clone, Debug)]
pub struct Roster {
    /// Id of the cluster. Entries of another one come from a backup of it, and count for nothing.
    cluster: Arc<str>,
    /// Held while a list is read and changed.
    changes: Arc<Mutex<()>>,
}

impl Roster {
    /// The lists of the cluster with this id.
    pub fn new(cluster: &str) -> Roster {
        Roster { cluster: cluster.into(), changes: Arc::default() }
    }
}
