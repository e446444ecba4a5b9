//! Records that clients and readers of consumers put into the log.

use bytes::Bytes;
use sluice_engine::command::{Command, SettleItem, Settlement};
use sluice_engine::id::Receipt;
use sluice_journal::Batch;
use sluice_node::mailbox::Mailbox;
use sluice_node::shard::request::Request;

/// Releases deliveries of one namespace, as the node does for a caller that has gone.
pub(super) fn give_back(mailbox: &Mailbox<Request>, receipts: impl Iterator<Item = Receipt>) {
    let settlement = Settlement::GiveBack { delay_ms: 0 };
    let release = |receipt| SettleItem { receipt, settlement, error: "", result: None, add_cost: 0 };
    let items: Vec<_> = receipts.map(release).collect();
    if let Some(first) = items.first() {
        let namespace = first.receipt.id.namespace;
        mailbox.push_surely(Request::surely(&Command::Settle { namespace, items: &items }));
    }
}

/// The encoded bytes of a batch; the batch does not change.
pub(super) fn bytes_of(record: &Batch) -> Bytes {
    let mut copy = Batch::new();
    copy.append(record);
    copy.take().0
}
