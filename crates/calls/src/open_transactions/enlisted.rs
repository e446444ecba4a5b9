//! Deliveries that are enlisted in an open transaction: its commit acks them, and otherwise they go back.

use std::sync::atomic::{AtomicBool, Ordering};

use sluice_engine::id::{NamespaceId, Receipt};
use sluice_node::{Delivered, Node, Settling};

/// The deliveries of one receive, in the hands of one transaction. When nobody has them any more, they go
/// back to their queues; these attempts do not count.
#[derive(Debug)]
pub(crate) struct Enlisted {
    node: Node,
    namespace: NamespaceId,
    receipts: Vec<Receipt>,
    /// False once they are settled, or were given back.
    is_held: AtomicBool,
}

impl Enlisted {
    /// Takes the deliveries of a receive.
    pub(crate) fn new(node: &Node, namespace: NamespaceId, delivered: &[Delivered]) -> Enlisted {
        let receipts = delivered.iter().map(|message| message.delivery.receipt).collect();
        Enlisted { node: node.clone(), namespace, receipts, is_held: AtomicBool::new(true) }
    }

    /// Their receipts.
    pub(crate) fn receipts(&self) -> &[Receipt] {
        &self.receipts
    }

    /// Notes that all of them are settled.
    pub(crate) fn set_settled(&self) {
        self.is_held.store(false, Ordering::Relaxed);
    }

    /// Begins to give them back; `None`: that is not needed, or was done before.
    pub(crate) fn give_back(&self) -> Option<Settling> {
        let is_held = self.is_held.swap(false, Ordering::Relaxed);
        // Of a namespace that is gone there is nothing to give back.
        if is_held { self.node.give_deliveries_back(self.namespace, &self.receipts).ok() } else { None }
    }
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        // It goes on without anybody who waits for it.
        drop(self.give_back());
    }
}
