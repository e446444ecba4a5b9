//! Calls about the nodes of a cluster.

use crate::client::Client;
use crate::cluster::Cluster;
use crate::error::ClientError;

impl Client {
    /// The cluster, as the node that answers knows it.
    pub async fn cluster(&self) -> Result<Cluster, ClientError> {
        self.get("/v1/cluster".to_owned()).await
    }
}
