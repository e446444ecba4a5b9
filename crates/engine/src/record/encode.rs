//! Commands to bytes. Hot commands are written field by field from the stack; the others gather their few bytes first.

use crate::blob::BlobHead;
use crate::command::{Command, Deliver, Receive, RecordSink, Send, SendItem, SettleItem, Settlement};
use crate::id::{NamespaceId, Receipt};
use crate::record::fields::backoff_bytes;
use crate::record::options::write_options;
use crate::record::table::{head, plain_body, plain_commands};
use crate::record::{
    EXTEND_ITEM_BYTES, LIST_HEAD_BYTES, RECEIPT_BYTES, SETTLE_ITEM_BYTES, chain, change, consumers, group,
    report, schedule, tag,
};

impl Command<'_> {
    /// How many blobs the record has: a send one per item and per step with a payload of its own, a settle and a report one per text, result and checkpoint,
    /// a schedule one.
    #[inline]
    pub fn blob_count(&self) -> u32 {
        match self {
            Command::Send(send) => {
                send.items.len() as u32 + send.items.iter().map(chain::blob_count).sum::<u32>()
            }
            Command::Settle { items, .. } => {
                let of_item = |item: &SettleItem<'_>| {
                    u32::from(!item.error.is_empty()) + u32::from(item.result.is_some())
                };
                items.iter().map(of_item).sum()
            }
            Command::Report { items, .. } => report::blob_count(items),
            Command::Group(group) => group::blob_count(group),
            Command::Change(change) => change::blob_count(change),
            Command::SchedulePut(_) => 1,
            Command::Tick
            | Command::Receive(_)
            | Command::Extend { .. }
            | Command::Attach(_)
            | Command::Detach { .. }
            | Command::Resume { .. }
            | plain_commands!() => 0,
        }
    }

    /// Writes the record: its body, then its blobs. The command has passed [`Command::check`].
    #[inline]
    pub fn encode(&self, sink: &mut impl RecordSink) {
        match self {
            Command::Tick => sink.body(&head::TICK),
            Command::Send(send) => encode_send(send, sink),
            Command::Receive(receive) => encode_receive(receive, sink),
            Command::Group(group) => group::encode(group, sink),
            Command::Settle { namespace, items } => encode_settle(*namespace, items, sink),
            Command::Extend { namespace, items } => encode_extend(*namespace, items, sink),
            Command::Report { namespace, items } => {
                sink.body(&list_head(head::REPORT, *namespace, items.len()));
                report::encode_items(items, sink);
            }
            Command::Change(change) => change::encode(change, sink),
            Command::SchedulePut(put) => schedule::encode_put(put, sink),
            Command::Attach(attach) => consumers::encode_attach(attach, sink),
            Command::Detach { namespace, consumer, grace_ms, reached } => {
                consumers::encode_detach(*namespace, *consumer, *grace_ms, *reached, sink);
            }
            Command::Resume { namespace, consumer, receipts } => {
                consumers::encode_resume(*namespace, *consumer, receipts, sink);
            }
            plain_commands!() => sink.body(&plain_body(self)),
        }
    }
}

#[inline(always)]
fn encode_send(send: &Send<'_>, sink: &mut impl RecordSink) {
    let mut head = [0u8; 21];
    [head[0], head[1]] = head::SEND;
    head[2..6].copy_from_slice(&send.namespace.0.to_le_bytes());
    head[6..14].copy_from_slice(&send.request_digest.to_le_bytes());
    head[14..18].copy_from_slice(&(send.items.len() as u32).to_le_bytes());
    head[18..20].copy_from_slice(&(send.idempotency_key.len() as u16).to_le_bytes());
    head[20] = send.queue.len() as u8;
    sink.body(&head);
    sink.body(send.queue.as_bytes());
    if !send.idempotency_key.is_empty() {
        sink.body(send.idempotency_key);
    }
    for item in send.items {
        encode_send_item(item, sink);
    }
    for item in send.items {
        send_blob(item, sink);
    }
    for item in send.items {
        chain::write_blobs(item, sink);
    }
}

/// The one blob of an item.
#[inline(always)]
pub(crate) fn send_blob(item: &SendItem<'_>, sink: &mut impl RecordSink) {
    BlobHead::with(item.content_type, item.headers, item.tags, |head| sink.blob(&[head, item.payload]));
}

#[inline(always)]
pub(crate) fn encode_send_item(item: &SendItem<'_>, sink: &mut impl RecordSink) {
    let len = BlobHead::len_tagged(item.content_type, item.headers, item.tags) + item.payload.len();
    let (deliver, time) = match item.deliver {
        Deliver::Now => (tag::DELIVER_NOW, 0),
        Deliver::AfterMs(ms) => (tag::DELIVER_AFTER, ms),
        Deliver::AtUs(us) => (tag::DELIVER_AT, us),
    };
    let mut fixed = [0u8; 16];
    fixed[..4].copy_from_slice(&(len as u32).to_le_bytes());
    fixed[4] = item.priority;
    fixed[5] = deliver
        | if item.backoff.is_some() { tag::HAS_BACKOFF } else { 0 }
        | if item.options.is_some() { tag::HAS_OPTIONS } else { 0 };
    fixed[6..8].copy_from_slice(&item.max_attempts.to_le_bytes());
    fixed[8..].copy_from_slice(&time.to_le_bytes());
    if deliver == tag::DELIVER_NOW {
        sink.body(&fixed[..8]);
    } else {
        sink.body(&fixed);
    }
    if item.backoff.is_some() || item.options.is_some() {
        encode_optional(item, sink);
    }
}

/// Fields that few items have.
#[inline(never)]
fn encode_optional(item: &SendItem<'_>, sink: &mut impl RecordSink) {
    if let Some(backoff) = &item.backoff {
        sink.body(&backoff_bytes(backoff));
    }
    if let Some(options) = item.options {
        write_options(sink, options);
    }
}

fn encode_receive(receive: &Receive<'_>, sink: &mut impl RecordSink) {
    let mut fixed = [0u8; 24];
    [fixed[0], fixed[1]] = head::RECEIVE;
    fixed[2..6].copy_from_slice(&receive.namespace.0.to_le_bytes());
    fixed[6..10].copy_from_slice(&receive.max_messages.to_le_bytes());
    fixed[10..14].copy_from_slice(&receive.max_bytes.to_le_bytes());
    fixed[14..22].copy_from_slice(&receive.lease_ms.to_le_bytes());
    fixed[22] = receive.queues.len() as u8;
    fixed[23] = receive.consumer.len() as u8;
    sink.body(&fixed);
    sink.body(receive.consumer.as_bytes());
    for (name, weight) in receive.queues {
        let weight = weight.to_le_bytes();
        sink.body(&[weight[0], weight[1], name.len() as u8]);
        sink.body(name.as_bytes());
    }
}

fn list_head(first: [u8; 2], namespace: NamespaceId, count: usize) -> [u8; LIST_HEAD_BYTES] {
    let mut head = [0u8; LIST_HEAD_BYTES];
    [head[0], head[1]] = first;
    head[2..6].copy_from_slice(&namespace.0.to_le_bytes());
    head[6..].copy_from_slice(&(count as u32).to_le_bytes());
    head
}

pub(crate) fn receipt_into(bytes: &mut [u8], receipt: &Receipt) {
    bytes[..4].copy_from_slice(&receipt.id.namespace.0.to_le_bytes());
    bytes[4..12].copy_from_slice(&receipt.id.sequence.to_le_bytes());
    bytes[12..20].copy_from_slice(&receipt.token.to_le_bytes());
    bytes[20..RECEIPT_BYTES].copy_from_slice(&receipt.tag.to_le_bytes());
}

fn encode_settle(namespace: NamespaceId, items: &[SettleItem<'_>], sink: &mut impl RecordSink) {
    sink.body(&list_head(head::SETTLE, namespace, items.len()));
    for item in items {
        let (how, delay_ms) = match item.settlement {
            Settlement::Ack => (tag::ACK, 0),
            Settlement::Nack { delay_ms: None } => (tag::NACK, 0),
            Settlement::Nack { delay_ms: Some(ms) } => (tag::NACK_DELAY, ms),
            Settlement::Release { delay_ms } => (tag::RELEASE, delay_ms),
            Settlement::Reject => (tag::REJECT, 0),
        };
        let mut fixed = [0u8; SETTLE_ITEM_BYTES];
        receipt_into(&mut fixed, &item.receipt);
        fixed[28] = how;
        fixed[30..32].copy_from_slice(&(item.error.len() as u16).to_le_bytes());
        fixed[32..].copy_from_slice(&delay_ms.to_le_bytes());
        if let Some(result) = &item.result {
            let len = BlobHead::len(result.content_type, &[]) + result.bytes.len();
            fixed[29] = tag::HAS_RESULT;
            fixed[32..].copy_from_slice(&(len as u64).to_le_bytes());
        }
        sink.body(&fixed);
    }
    for item in items {
        if !item.error.is_empty() {
            sink.blob(&[item.error.as_bytes()]);
        }
        if let Some(result) = &item.result {
            BlobHead::with(result.content_type, &[], &[], |head| sink.blob(&[head, result.bytes]));
        }
    }
}

/// The body of a settle record with the same settlements, and neither texts nor results.
pub(crate) fn settle_without_blobs(body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    let (_, items) = body.split_at_mut(LIST_HEAD_BYTES);
    for item in items.chunks_exact_mut(SETTLE_ITEM_BYTES) {
        item[30..32].fill(0);
        if std::mem::take(&mut item[29]) == tag::HAS_RESULT {
            item[32..].fill(0);
        }
    }
    body
}

fn encode_extend(namespace: NamespaceId, items: &[(Receipt, u64)], sink: &mut impl RecordSink) {
    sink.body(&list_head(head::EXTEND, namespace, items.len()));
    for (receipt, lease_ms) in items {
        let mut fixed = [0u8; EXTEND_ITEM_BYTES];
        receipt_into(&mut fixed, receipt);
        fixed[RECEIPT_BYTES..].copy_from_slice(&lease_ms.to_le_bytes());
        sink.body(&fixed);
    }
}
