//! Answers of a server to other nodes of its cluster.

use std::sync::Arc;

use bytes::Bytes;
use sluice_node::Node;

use crate::access::Access;
use crate::passed::Passed;
use crate::view::View;

/// A server as the other nodes of its cluster ask it. Clones share it.
#[derive(Clone, Debug)]
pub struct Neighbour {
    pub(crate) node: Node,
    pub(crate) access: Access,
    pub(crate) version: String,
    pub(crate) passed: Arc<Passed>,
}

impl Neighbour {
    /// The node behind it.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Its own view of its shards.
    pub(crate) async fn view(&self) -> View {
        View::of(&self.node, &self.version, &self.passed).await
    }

    /// The answer to a request of another node; empty: this version does not know it.
    pub async fn answer(&self, content: &[u8]) -> Bytes {
        if let Some(answer) = self.node.answer(content).await {
            return answer;
        }
        if View::is_asked(content) {
            return self.view().await.encode();
        }
        self.access.answer(&self.node, content).await.unwrap_or_default()
    }
}
