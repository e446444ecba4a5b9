//! The nodes of a cluster, those that were removed among them: a number is never given twice.

use serde_json::{Value, json};
use sluice_engine::Error;
use sluice_node::Node;

use super::Cluster;
use crate::access::check_name;
use crate::error::CallError;
use crate::system::{Entry, OnceKey, SystemList};
use crate::time::now_ms;

const NODES: SystemList = SystemList("nodes");
/// Tag of a node that was removed.
const REMOVED: &str = "removed";
/// Most nodes of a cluster.
pub const NODES_MAX: usize = 5;
/// Longest address, in bytes.
const ADDRESS_BYTES_MAX: usize = 256;

/// A node of a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterNode {
    /// Number, from 1: another one each time that a machine joins, also under a name that was there before.
    pub number: u64,
    /// Name, of which there is only one at a time.
    pub name: String,
    /// Address at which clients and other nodes reach it, as `host:port`.
    pub address: String,
    /// Time at which it joined, in milliseconds since the Unix epoch.
    pub joined_at_ms: u64,
    /// Id of the token with which it joined; empty for the first node.
    pub token: String,
    /// True once it was removed: it never comes back under this number.
    pub is_removed: bool,
}

/// A machine that is to become a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewNode {
    /// Its name.
    pub name: String,
    /// Its address, as `host:port`.
    pub address: String,
}

impl Cluster {
    /// All nodes by number, removed ones among them. None: the server belongs to no cluster.
    ///
    /// # Errors
    /// `overloaded`, `shutting_down`, `not_leader`, `no_leader`; `internal` for a list that is damaged.
    pub async fn nodes(&self, node: &Node) -> Result<Vec<ClusterNode>, Error> {
        let entries = NODES.all(node).await?;
        entries.iter().map(|entry| read(entry).ok_or_else(|| damaged(entry))).collect()
    }

    /// Removes a node.
    ///
    /// # Errors
    /// `node_not_found`; `invalid_argument` for the last one; those of [`Cluster::nodes`].
    pub async fn remove(&self, node: &Node, number: u64) -> Result<ClusterNode, CallError> {
        let _turn = self.changes.lock().await;
        let entries = NODES.all(node).await?;
        let mut found = None;
        let mut others = 0;
        for entry in &entries {
            let read = read(entry).ok_or_else(|| damaged(entry))?;
            match read.number == number {
                true => found = Some((entry, read)),
                false => others += usize::from(!read.is_removed),
            }
        }
        let missing = || {
            let message = format!("no node has the number {number}: `sluice cluster members` shows them");
            CallError::new("node_not_found", message)
        };
        let (entry, read) = found.ok_or_else(missing)?;
        if others == 0 {
            return Err(invalid("node", "the last node of a cluster cannot be removed".to_owned()).into());
        }
        if !read.is_removed {
            entry.set_tags(node, &[REMOVED]).await?;
        }
        Ok(ClusterNode { is_removed: true, ..read })
    }

    /// Adds a node with the next number. The caller holds the lock of changes.
    pub(super) async fn add(
        &self,
        node: &Node,
        new: &NewNode,
        token: &str,
    ) -> Result<ClusterNode, CallError> {
        check(new)?;
        let nodes = self.nodes(node).await?;
        check_free(new, &nodes)?;
        let number = nodes.iter().map(|node| node.number).max().unwrap_or(0) + 1;
        let NewNode { name, address } = new.clone();
        let token = token.to_owned();
        let added = ClusterNode { number, name, address, joined_at_ms: now_ms(), token, is_removed: false };
        // Two leaders, of which one does not know yet that it is none, cannot give one number twice.
        let key = format!("node {number}");
        let once = OnceKey { key: key.as_bytes(), digest: added.joined_at_ms };
        NODES.add(node, &written(&added), once).await?;
        Ok(added)
    }
}

/// Checks a name and an address by themselves.
fn check(new: &NewNode) -> Result<(), Error> {
    check_name(&new.name).map_err(|reason| invalid("name", reason))?;
    let expected = || {
        let given: String = new.address.chars().take(ADDRESS_BYTES_MAX).collect();
        invalid("address", format!("{given:?} is not an address: expected HOST:PORT"))
    };
    let (host, port) = new.address.rsplit_once(':').ok_or_else(expected)?;
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    let is_good = !host.is_empty() && host.chars().all(is_host) && new.address.len() <= ADDRESS_BYTES_MAX;
    if !is_good || port.parse::<u16>().map_or(true, |port| port == 0) {
        return Err(expected());
    }
    Ok(())
}

/// Checks that there is room for a node of this name and address.
fn check_free(new: &NewNode, nodes: &[ClusterNode]) -> Result<(), CallError> {
    let present = || nodes.iter().filter(|node| !node.is_removed);
    if let Some(other) = present().find(|node| node.name == new.name || node.address == new.address) {
        let ClusterNode { number, name, address, .. } = other;
        let message = format!("node {number} is {name} at {address} already: remove it first, or replace it");
        return Err(CallError::new("node_exists", message));
    }
    if present().count() >= NODES_MAX {
        let message = format!("the cluster has {NODES_MAX} nodes, the maximum");
        return Err(CallError::new("limit_exceeded", message));
    }
    Ok(())
}

fn invalid(field: &str, reason: String) -> Error {
    Error::InvalidArgument { field: field.to_owned(), reason }
}

fn damaged(entry: &Entry) -> Error {
    Error::Internal { reason: format!("the node in message {} of $sys cannot be read", entry.id) }
}

fn written(node: &ClusterNode) -> Value {
    json!({
        "number": node.number,
        "name": node.name,
        "address": node.address,
        "joined_at_ms": node.joined_at_ms,
        "token": node.token,
    })
}

fn read(entry: &Entry) -> Option<ClusterNode> {
    let value = entry.value.as_ref()?;
    let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
    Some(ClusterNode {
        number: value.get("number")?.as_u64()?,
        name: text("name")?,
        address: text("address")?,
        joined_at_ms: value.get("joined_at_ms")?.as_u64()?,
        token: text("token")?,
        is_removed: entry.tags.iter().any(|tag| tag == REMOVED),
    })
}
