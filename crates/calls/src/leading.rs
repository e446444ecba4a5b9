//! The node that answers a call.

use std::time::Duration;

use sluice_node::shard::leader::Leader;

use crate::operation::{Scope, Trait};
use crate::permit::{CallName, DEFAULT_NAMESPACE};
use crate::server::Calls;

/// Longest time for which a call waits for a leader of its shard.
pub const LEADER_WAIT_MAX: Duration = sluice_node::LEADER_WAIT_MAX;

impl CallName<'_> {
    /// Number of the node that leads the shard which answers the call. `None`: this node answers it, or no
    /// leader is known.
    #[inline]
    pub fn leader_elsewhere(&self, calls: &Calls) -> Option<u64> {
        self.leader(calls)?.elsewhere()
    }

    /// True while no leader is known of the shard which answers the call, or while this node hands its
    /// leadership over.
    #[inline]
    pub fn is_unled(&self, calls: &Calls) -> bool {
        self.leader(calls).is_some_and(Leader::is_unsettled)
    }

    /// The leader of the shard which answers the call; `None`: this node answers it in any case. Calls in a
    /// namespace, and those that show one, go to its shard; those that change namespaces, and those about
    /// tokens, the policy and the audit log, to shard 0; those about this node, and those whose answer may be
    /// behind, to none.
    fn leader<'n>(&self, calls: &'n Calls) -> Option<&'n Leader> {
        let node = calls.node();
        if self.is_stale || self.operation.is(Trait::Local) {
            return None;
        }
        Some(match self.operation.scope() {
            Scope::Namespaced => node.leader_of(self.namespace.unwrap_or(DEFAULT_NAMESPACE)),
            Scope::Namespace if self.operation.only_looks() => node.leader_of(self.name),
            Scope::Namespace | Scope::Server => &node.leaders()[0],
        })
    }
}

#[cfg(test)]
mod tests {
    use sluice_node::shard::store::Standing;
    use sluice_node::{Node, Options};

    use super::*;
    use crate::access::Access;
    use crate::operation::Operation;
    use crate::server::About;
    use crate::testing::options;

    #[tokio::test]
    async fn each_call_goes_to_the_leader_of_its_shard_or_stays() {
        let node = Node::start(Options { shards: 2, ..options() }).unwrap();
        node.namespace_create("shop", Some(1), Default::default()).await.unwrap();
        let calls = Calls::new(node, Access::default(), About::default());
        let call = |operation, namespace, name| CallName { operation, namespace, name, is_stale: false };
        let leader = |operation, namespace, name| call(operation, namespace, name).leader_elsewhere(&calls);
        assert_eq!(leader(Operation::Send, None, "q"), None);
        for (shard, node) in [(0, 2), (1, 3)] {
            calls.node().leaders()[shard].set(Standing::Follower { leader: Some(node) });
        }
        for (operation, namespace, name, expected) in [
            (Operation::Send, None, "q", Some(2)),
            (Operation::Send, Some("shop"), "q", Some(3)),
            (Operation::ResultShow, Some("shop"), "id", Some(3)),
            (Operation::Send, Some("unknown"), "q", Some(2)),
            (Operation::NamespaceShow, None, "shop", Some(3)),
            (Operation::NamespacePut, None, "shop", Some(2)),
            (Operation::NamespaceList, None, "", Some(2)),
            (Operation::TokenCreate, None, "", Some(2)),
            (Operation::PolicyPut, None, "", Some(2)),
            (Operation::WhoAmI, None, "", Some(2)),
            (Operation::Status, None, "", None),
            (Operation::ClusterShow, None, "", None),
            (Operation::ClusterTransfer, None, "", None),
            (Operation::Health, None, "", None),
            (Operation::Backup, None, "", None),
        ] {
            assert_eq!(leader(operation, namespace, name), expected, "{operation:?} {namespace:?} {name}");
        }
        let shown = call(Operation::QueueShow, Some("shop"), "q");
        assert_eq!(CallName { is_stale: true, ..shown }.leader_elsewhere(&calls), None);
        calls.node().leaders()[1].set(Standing::Follower { leader: None });
        assert!(shown.is_unled(&calls) && shown.leader_elsewhere(&calls).is_none());
        calls.node().leaders()[1].set(Standing::Leader { term: 7 });
        assert!(!shown.is_unled(&calls));
        assert_eq!(leader(Operation::Send, Some("shop"), "q"), None);
    }

    #[tokio::test]
    async fn a_call_is_unled_while_its_shard_has_no_leader_or_gets_another() {
        let calls = Calls::new(Node::start(options()).unwrap(), Access::default(), About::default());
        let is_unled =
            |operation| CallName { operation, namespace: None, name: "q", is_stale: false }.is_unled(&calls);
        let leader = &calls.node().leaders()[0];
        assert!(!is_unled(Operation::Send));
        leader.hands_over(true);
        assert!(is_unled(Operation::Send) && leader.is_here() && leader.number(7) == Some(7));
        assert!(!is_unled(Operation::Status));
        leader.set(Standing::Follower { leader: None });
        assert!(is_unled(Operation::Send));
        leader.hands_over(true);
        assert!(!leader.is_here());
        leader.set(Standing::Follower { leader: Some(2) });
        assert!(!is_unled(Operation::Send));
    }
}
