//! Answers of a server to other nodes of its cluster.

use std::sync::Arc;

use bytes::Bytes;
use sluice_node::Node;

use crate::access::Access;
use crate::passed::Passed;
use crate::roster::Roster;
use crate::view::View;

/// A server as the other nodes of its cluster ask it. Clones share it.
#[derive(Clone, Debug)]
pub struct Neighbour {
    pub(crate) node: Node,
    pub(crate) access: Access,
    pub(crate) version: String,
    pub(crate) passed: Arc<Passed>,
    pub(crate) roster: Option<Roster>,
}

impl Neighbour {
    /// The node behind it.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The lists of the cluster; `None`: the server belongs to none.
    pub fn roster(&self) -> Option<&Roster> {
        self.roster.as_ref()
    }

    /// Its own view of its shards.
    pub(crate) async fn view(&self) -> View {
        View::of(&self.node, &self.access, &self.version, &self.passed).await
    }

    /// The answer to a request of the node with the number `from`; empty: this version does not know it.
    pub async fn answer(&self, from: u64, content: &[u8]) -> Bytes {
        if let Some(answer) = self.node.answer(content).await {
            return answer;
        }
        if View::is_asked(content) {
            return self.view().await.encode();
        }
        if let Some(roster) = self.roster.as_ref().filter(|_| Roster::is_asked_to_renew(content)) {
            return roster.answer_renewal(&self.node, from).await;
        }
        if Access::is_asked_to_follow(content) {
            return self.access.answer_following(&self.node).await;
        }
        self.access.answer(&self.node, content).await.unwrap_or_default()
    }
}
