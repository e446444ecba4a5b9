//! Calls about the nodes of a cluster.

use http::Method;
use serde_json::{Map, Value};

use crate::client::Client;
use crate::cluster::{Cluster, JoinToken, RemovedNode};
use crate::error::ClientError;
use crate::retry::Safety;
use crate::types::parse;

impl Client {
    /// The cluster, as the node that answers knows it.
    pub async fn cluster(&self) -> Result<Cluster, ClientError> {
        self.get("/v1/cluster".to_owned()).await
    }

    /// Makes a token with which one machine can join. Keep its text: nobody can show it again. `ttl_ms`: its
    /// validity in milliseconds; `None`: an hour.
    pub async fn cluster_token_create(&self, ttl_ms: Option<u64>) -> Result<JoinToken, ClientError> {
        let body: Map<String, Value> =
            ttl_ms.map(|ttl_ms| ("ttl_ms".to_owned(), ttl_ms.into())).into_iter().collect();
        let call = self.call(Method::POST, "/v1/cluster/tokens".to_owned(), Value::Object(body).to_string());
        parse(&self.run(call, Safety::Once).await?.body)
    }

    /// Removes a node for good; one that was removed already is no error.
    pub async fn cluster_remove(&self, number: u64) -> Result<RemovedNode, ClientError> {
        let call = self.call(Method::DELETE, format!("/v1/cluster/nodes/{number}"), "");
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }
}
