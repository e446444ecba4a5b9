//! Deliveries that are held until they are settled.

use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::command::{SettleItem, Settlement};
use sluice_engine::id::{NamespaceId, Receipt};
use sluice_node::Node;
use tokio::time::{Instant, sleep};

/// Time for which another leader is awaited that takes a settlement.
const LEADER_TIME: Duration = Duration::from_secs(5);
/// Time for which a settlement is tried again that the shard has too much to do for.
const OVERLOAD_TIME: Duration = Duration::from_secs(5);
/// Pause before it is.
const OVERLOAD_PAUSE: Duration = Duration::from_millis(50);

/// A delivery that is to be settled, or goes back when this is dropped.
pub(crate) struct Held {
    node: Node,
    namespace: NamespaceId,
    receipt: Option<Receipt>,
}

impl Held {
    pub(crate) fn new(node: Node, namespace: NamespaceId, receipt: Receipt) -> Held {
        Held { node, namespace, receipt: Some(receipt) }
    }

    /// Settles it, wherever its shard is led by now; tells why it was not done.
    pub(crate) async fn settle(mut self, settlement: Settlement, error: &str) -> Option<Error> {
        // From here on nothing gives it back: the outcome may be unknown.
        let receipt = self.receipt.take()?;
        let items = [SettleItem { receipt, settlement, error, result: None, add_cost: 0 }];
        let give_up = Instant::now() + OVERLOAD_TIME;
        loop {
            match self.node.settle(self.namespace, &items).await {
                Ok(results) => return results.into_iter().find_map(Result::err),
                // Nothing was done; without it the message would be pushed once more.
                Err(Error::Overloaded { .. }) if Instant::now() < give_up => sleep(OVERLOAD_PAUSE).await,
                Err(Error::NotLeader { .. } | Error::NoLeader {}) => {
                    let settled = self.node.settle_at_leader(self.namespace, &items, LEADER_TIME).await;
                    return settled.into_iter().find_map(Result::err);
                }
                Err(error) => return Some(error),
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(receipt) = self.receipt {
            // Where that is not possible its lease ends by itself.
            let _ = self.node.give_deliveries_back(self.namespace, &[receipt]);
        }
    }
}

/// Gives deliveries of one namespace back, wherever its shard is led by now; their attempts do not count.
/// Where that is not possible their leases end by themselves.
pub(crate) async fn give_back(held: Vec<Held>) {
    let Some(first) = held.first() else { return };
    let (node, namespace) = (first.node.clone(), first.namespace);
    let receipts: Vec<Receipt> = held.into_iter().filter_map(|mut held| held.receipt.take()).collect();
    let Ok(giving) = node.give_deliveries_back(namespace, &receipts) else { return };
    if let Err(Error::NotLeader { .. } | Error::NoLeader {}) = giving.done().await {
        let item = |receipt: &Receipt| SettleItem {
            receipt: *receipt,
            settlement: Settlement::GiveBack { delay_ms: 0 },
            error: "",
            result: None,
            add_cost: 0,
        };
        let items: Vec<_> = receipts.iter().map(item).collect();
        let _ = node.settle_at_leader(namespace, &items, LEADER_TIME).await;
    }
}
