//! Calls about the nodes of a cluster.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::cluster::{
    Cluster, ClusterLimits, ClusterStatus, Finalized, Joined, Machine, MadeJoinToken, Neighbour, Transferred,
};
use crate::error::ClientError;
use crate::retry::Safety;
use crate::types::{not_understood, parse};

impl Client {
    /// The cluster, as the node that answers knows it.
    pub async fn cluster(&self) -> Result<Cluster, ClientError> {
        self.get("/v1/cluster".to_owned()).await
    }

    /// The health of the cluster, as the node that answers finds it.
    pub async fn cluster_status(&self) -> Result<ClusterStatus, ClientError> {
        self.get("/v1/cluster/status".to_owned()).await
    }

    /// Hands the leadership of shards to a node; of all when `shards` is empty.
    pub async fn cluster_transfer(&self, node: u64, shards: &[u32]) -> Result<Transferred, ClientError> {
        let body = json!({"node": node, "shards": shards}).to_string();
        let call = self.call(Method::POST, "/v1/cluster/transfer".to_owned(), body);
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// Puts the newest behaviour version into force, which all nodes have to know.
    pub async fn cluster_finalize(&self) -> Result<Finalized, ClientError> {
        let call = self.call(Method::POST, "/v1/cluster/finalize".to_owned(), "");
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// The limits in force in the cluster, and the nodes with others in their settings.
    pub async fn cluster_limits(&self) -> Result<ClusterLimits, ClientError> {
        self.get("/v1/cluster/limits".to_owned()).await
    }

    /// Puts limits into force in the cluster, by the names of their settings and in the units of
    /// [`ClusterLimits::limits`]. `from_node`: number of the node whose settings give all others; `None`:
    /// they stay.
    pub async fn cluster_limits_set(
        &self,
        limits: &BTreeMap<String, u64>,
        from_node: Option<u64>,
    ) -> Result<ClusterLimits, ClientError> {
        let mut body = json!({"limits": limits});
        if let Some(node) = from_node {
            body["from_node"] = node.into();
        }
        let call = self.call(Method::PATCH, "/v1/cluster/limits".to_owned(), body.to_string());
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// Makes a token with which one machine can join. Keep its text: nobody can show it again. `ttl_ms`: its
    /// validity in milliseconds; `None`: an hour. `replaces`: number of the node that the machine replaces.
    pub async fn cluster_token_create(
        &self,
        ttl_ms: Option<u64>,
        replaces: Option<u64>,
    ) -> Result<MadeJoinToken, ClientError> {
        let fields = [("ttl_ms", ttl_ms), ("replaces", replaces)].into_iter();
        let body: Map<String, Value> =
            fields.filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect();
        let call = self.call(Method::POST, "/v1/cluster/tokens".to_owned(), Value::Object(body).to_string());
        parse(&self.run(call, Safety::Once).await?.body)
    }

    /// Lets a machine join.
    pub async fn cluster_join(&self, machine: &Machine) -> Result<Joined, ClientError> {
        let body = serde_json::to_string(machine).map_err(|e| not_understood(e.to_string()))?;
        let call = self.call(Method::POST, "/v1/cluster/join".to_owned(), body);
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// Sets the address of a node, whose machine has moved.
    pub async fn cluster_address(&self, number: u64, address: &str) -> Result<Neighbour, ClientError> {
        let body = json!({"address": address}).to_string();
        let call = self.call(Method::PATCH, format!("/v1/cluster/nodes/{number}"), body);
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }

    /// Removes a node for good; one that was removed already is no error.
    pub async fn cluster_remove(&self, number: u64) -> Result<Neighbour, ClientError> {
        let call = self.call(Method::DELETE, format!("/v1/cluster/nodes/{number}"), "");
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }
}
