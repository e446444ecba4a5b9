//! The cluster of which a server is a node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::Error;

use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::permit::Permit;
use crate::roster::OwnNode;

/// A cluster.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Cluster", example = json!({
    "cluster": "5b0c9a1f22d347e8", "node": 1,
    "nodes": [{"number": 1, "address": "192.0.2.7:7070", "leads": [0]}],
}))]
pub struct Shown {
    /// Id of the cluster.
    cluster: String,
    /// Number of the node that answers.
    node: u64,
    /// Its nodes.
    nodes: Vec<ShownNode>,
}

/// A node of a cluster.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ClusterNode")]
pub struct ShownNode {
    /// Its number.
    number: u64,
    /// Its address, as `host:port`.
    address: String,
    /// The shards that it leads, as far as the node that answers knows.
    leads: Vec<u32>,
}

/// The server as a node of its cluster.
///
/// # Errors
/// `no_cluster`.
pub(crate) fn own_node<'c>(permit: &Permit<'c>) -> Result<&'c dyn OwnNode, CallError> {
    let alone = "this server belongs to no cluster: `sluice cluster init` makes it the first node of one";
    let clustered = permit.calls().clustered().ok_or_else(|| CallError::new("no_cluster", alone))?;
    Ok(&*clustered.own)
}

/// The cluster to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterShowRequest")]
pub struct Show {}

impl Unary for Show {
    type Answer = Shown;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Shown>, CallError> {
        let own = own_node(permit)?;
        let leaders: Vec<_> =
            permit.node().leaders().iter().map(|leader| leader.number(own.number())).collect();
        let shown = |(number, address)| {
            let leads = (0..).zip(&leaders).filter(|(_, leader)| **leader == Some(number));
            ShownNode { number, address, leads: leads.map(|(shard, _)| shard).collect() }
        };
        let nodes = own.addresses().into_iter().map(shown).collect();
        Ok(Shown { cluster: own.cluster().to_owned(), node: own.number(), nodes }.into())
    }
}

/// Leaderships to hand to a node.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterTransferRequest", example = json!({"node": 2, "shards": [0]}))]
pub struct Transfer {
    /// Number of the node that is to lead.
    node: u64,
    /// The shards; all when it is empty.
    shards: Vec<u32>,
}

/// Leaderships after a transfer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ClusterTransferred", example = json!({"node": 2, "shards": [0]}))]
pub struct Transferred {
    /// Number of the node that leads.
    node: u64,
    /// The shards that it leads now, of those that were asked for.
    shards: Vec<u32>,
}

impl Unary for Transfer {
    type Answer = Transferred;
    const BODY: Body = Body::Small;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Transferred>, CallError> {
        let own = own_node(permit)?;
        let invalid =
            |field: &str, reason: String| Error::InvalidArgument { field: field.to_owned(), reason };
        if !own.addresses().contains_key(&self.node) {
            let reason =
                format!("the cluster has no node {}: `sluice cluster members` shows them", self.node);
            return Err(invalid("node", reason).into());
        }
        let count = permit.node().leaders().len() as u32;
        if let Some(shard) = self.shards.iter().find(|shard| **shard >= count) {
            let reason = format!("{shard} is not a shard of this cluster: it has 0 to {}", count - 1);
            return Err(invalid("shards", reason).into());
        }
        let shards = if self.shards.is_empty() { (0..count).collect() } else { self.shards };
        for shard in &shards {
            permit.node().transfer(*shard, self.node).await.map_err(|_| {
                let message = format!(
                    "node {} does not lead shard {shard}: it is not reached, or far behind (`sluice cluster status` tells)",
                    self.node
                );
                CallError::new("not_transferred", message)
            })?;
        }
        Ok(Transferred { node: self.node, shards }.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;

    use super::*;
    use crate::operation::Operation;
    use crate::testing::{FirstNode, Open};

    async fn show(open: &Open) -> Result<Value, &'static str> {
        let done = Show {}.run(&open.permit(Operation::ClusterShow, "")).await;
        done.map(|done| serde_json::to_value(done.answer).unwrap()).map_err(|error| error.code())
    }

    #[tokio::test]
    async fn the_nodes_are_shown_with_what_each_leads() {
        let open = Open::in_cluster(Arc::new(FirstNode));
        let expected = json!({"cluster": "5b0c", "node": 1, "nodes": [
            {"number": 1, "address": "10.0.0.1:7070", "leads": [0]},
            {"number": 2, "address": "10.0.0.2:7070", "leads": []},
        ]});
        assert_eq!(show(&open).await, Ok(expected));
    }

    #[tokio::test]
    async fn a_server_alone_says_that_it_belongs_to_no_cluster() {
        assert_eq!(show(&Open::new()).await, Err("no_cluster"));
    }
}
