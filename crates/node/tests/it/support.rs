//! A node to test, and short words for what tests do with it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::command::{Send, SendItem, SettleItem, Settlement};
use sluice_engine::id::NamespaceId;
use sluice_engine::limits::Limits;
use sluice_journal::{Batch, Class, DiskJournal, FsDisk, Journal, Opened};
use sluice_node::api::ReceiveOptions;
use sluice_node::{Delivered, Durability, Node, Options, Sent};

pub fn options(data_dir: Option<&Path>) -> Options {
    Options {
        data_dir: data_dir.map(Path::to_owned),
        shards: 1,
        durability: Durability::Os,
        cache_bytes: 1 << 20,
        limits: Limits::default(),
        mailbox_requests: 1024,
        mailbox_bytes: 256 << 20,
        waiting_receives: 100,
        events: Default::default(),
        reserve_bytes: 1 << 20,
        low_water_bytes: 0,
        accept_clock_jump: false,
        movable_time: false,
        encryption: Default::default(),
        key_source: None,
    }
}

/// The journal of the first shard of a node that does not run.
pub fn open(dir: &Path) -> Opened {
    let options = sluice_journal::Options::new(dir.join("shard-000"));
    DiskJournal::open(Arc::new(FsDisk), options).unwrap()
}

/// Appends records of this time to it, in microseconds since the Unix epoch.
pub fn append(dir: &Path, records: &mut Batch, time_us: u64) {
    let mut opened = open(dir);
    opened.journal.propose(records, time_us, Class::Growing).unwrap();
    opened.writer.step();
    opened.writer.finish().unwrap();
}

pub fn memory() -> Node {
    Node::start(options(None)).unwrap()
}

pub async fn send(node: &Node, queue: &str, payloads: &[&[u8]]) -> Sent {
    let items: Vec<_> = payloads.iter().map(|payload| SendItem { payload, ..SendItem::default() }).collect();
    node.send(&sending(NamespaceId::DEFAULT, queue, &items)).await.unwrap()
}

pub fn sending<'a>(namespace: NamespaceId, queue: &'a str, items: &'a [SendItem<'a>]) -> Send<'a> {
    Send { namespace, queue, idempotency_key: b"", request_digest: 0, items }
}

pub async fn receive(node: &Node, queue: &str, max: u32, wait_ms: u64) -> Result<Vec<Delivered>, Error> {
    receive_in(node, NamespaceId::DEFAULT, queue, max, wait_ms).await
}

pub async fn receive_in(
    node: &Node,
    namespace: NamespaceId,
    queue: &str,
    max_messages: u32,
    wait_ms: u64,
) -> Result<Vec<Delivered>, Error> {
    let queues = [(queue, 0)];
    let wait = Duration::from_millis(wait_ms);
    node.receive(&ReceiveOptions {
        namespace,
        queues: &queues,
        max_messages,
        lease_ms: 0,
        wait,
        consumer: "",
        room: None,
    })
    .await
}

pub async fn settle(node: &Node, delivered: &[Delivered], settlement: Settlement) -> Vec<Result<(), Error>> {
    let item = |d: &Delivered| SettleItem {
        receipt: d.delivery.receipt,
        settlement,
        error: "",
        result: None,
        add_cost: 0,
    };
    let items: Vec<_> = delivered.iter().map(item).collect();
    node.settle(NamespaceId::DEFAULT, &items).await.unwrap()
}

pub fn payloads(delivered: &[Delivered]) -> Vec<Vec<u8>> {
    delivered.iter().map(|d| MessageBlob::parse(&d.blob).unwrap().payload.to_vec()).collect()
}
