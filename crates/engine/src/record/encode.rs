//! Commands to bytes. Hot commands are written field by field from the stack; the others gather their few bytes first.

use crate::blob::BlobHead;
use crate::command::{Command, Deliver, Receive, RecordSink, Send, SendItem, SettleItem, Settlement};
use crate::id::{MessageId, NamespaceId, Receipt};
use crate::record::fields::{self, backoff_bytes};
use crate::record::options::write_options;
use crate::record::{
    EXTEND_ITEM_BYTES, LIST_HEAD_BYTES, RECEIPT_BYTES, SETTLE_ITEM_BYTES, chain, change, consumers,
    first_bytes, group, kind, report, schedule, tag,
};
use crate::wire::Put;

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
            _ => 0,
        }
    }

    /// Writes the record: its body, then its blobs. The command has passed [`Command::check`].
    #[inline]
    pub fn encode(&self, sink: &mut impl RecordSink) {
        match self {
            Command::Tick => sink.body(&first_bytes(kind::TICK)),
            Command::Send(send) => encode_send(send, sink),
            Command::Receive(receive) => encode_receive(receive, sink),
            Command::Group(group) => group::encode(group, sink),
            Command::Settle { namespace, items } => encode_settle(*namespace, items, sink),
            Command::Extend { namespace, items } => encode_extend(*namespace, items, sink),
            Command::Report { namespace, items } => {
                sink.body(&list_head(kind::REPORT, *namespace, items.len()));
                report::encode_items(items, sink);
            }
            Command::Change(change) => change::encode(change, sink),
            Command::SchedulePut(put) => schedule::encode_put(put, sink),
            _ => sink.body(&rare_body(self)),
        }
    }
}

#[inline(always)]
fn encode_send(send: &Send<'_>, sink: &mut impl RecordSink) {
    let mut head = [0u8; 21];
    [head[0], head[1]] = first_bytes(kind::SEND);
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
    [fixed[0], fixed[1]] = first_bytes(kind::RECEIVE);
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

fn list_head(kind: u8, namespace: NamespaceId, count: usize) -> [u8; LIST_HEAD_BYTES] {
    let mut head = [0u8; LIST_HEAD_BYTES];
    [head[0], head[1]] = first_bytes(kind);
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
    sink.body(&list_head(kind::SETTLE, namespace, items.len()));
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
    sink.body(&list_head(kind::EXTEND, namespace, items.len()));
    for (receipt, lease_ms) in items {
        let mut fixed = [0u8; EXTEND_ITEM_BYTES];
        receipt_into(&mut fixed, receipt);
        fixed[RECEIPT_BYTES..].copy_from_slice(&lease_ms.to_le_bytes());
        sink.body(&fixed);
    }
}

#[cold]
fn rare_body(command: &Command<'_>) -> Vec<u8> {
    let mut body = Vec::with_capacity(192);
    encode_rare(command, &mut body);
    body
}

fn encode_rare(command: &Command<'_>, out: &mut Vec<u8>) {
    let mut begin = |kind: u8| out.raw(&first_bytes(kind));
    match command {
        Command::Epoch { number, behaviour } => {
            begin(kind::EPOCH);
            out.u64(*number);
            out.u16(*behaviour);
        }
        Command::ReceiptKey(key) => {
            begin(kind::RECEIPT_KEY);
            out.raw(&key.0);
        }
        Command::Configure(limits) => {
            begin(kind::CONFIGURE);
            fields::write_limits(out, limits);
        }
        Command::NamespaceCreate { number, name, shard, quotas } => {
            begin(kind::NAMESPACE_CREATE);
            out.bool(number.is_some());
            out.u32(number.map_or(0, |number| number.0));
            out.name(name);
            out.u32(*shard);
            fields::write_quotas(out, quotas);
        }
        Command::NamespaceSet { namespace, quotas } => {
            begin(kind::NAMESPACE_SET);
            out.u32(namespace.0);
            fields::write_quotas(out, quotas);
        }
        Command::NamespaceDelete { namespace, force } => {
            begin(kind::NAMESPACE_DELETE);
            out.u32(namespace.0);
            out.bool(*force);
        }
        Command::QueueSet { namespace, queue, patch, create } => {
            begin(kind::QUEUE_SET);
            queue_into(out, *namespace, queue);
            out.bool(*create);
            patch.write(out);
        }
        Command::QueuePurge { namespace, queue } => {
            begin(kind::QUEUE_PURGE);
            queue_into(out, *namespace, queue);
        }
        Command::QueueDelete { namespace, queue } => {
            begin(kind::QUEUE_DELETE);
            queue_into(out, *namespace, queue);
        }
        Command::DeadRedrive { namespace, queue, ids } => {
            begin(kind::DEAD_REDRIVE);
            queue_into(out, *namespace, queue);
            ids_into(out, ids);
        }
        Command::DeadDelete { namespace, queue, ids } => {
            begin(kind::DEAD_DELETE);
            queue_into(out, *namespace, queue);
            ids_into(out, ids);
        }
        Command::DeadRedriveRate { namespace, queue, per_second } => {
            begin(kind::DEAD_REDRIVE_RATE);
            queue_into(out, *namespace, queue);
            out.u32(*per_second);
        }
        Command::DefaultsSet { namespace, pattern, patch } => {
            begin(kind::DEFAULTS_SET);
            queue_into(out, *namespace, pattern);
            patch.write(out);
        }
        Command::DefaultsDelete { namespace, pattern } => {
            begin(kind::DEFAULTS_DELETE);
            queue_into(out, *namespace, pattern);
        }
        Command::LimitSet { namespace, limit, rules } => {
            begin(kind::LIMIT_SET);
            queue_into(out, *namespace, limit);
            rules.write(out);
        }
        Command::LimitDelete { namespace, limit } => {
            begin(kind::LIMIT_DELETE);
            queue_into(out, *namespace, limit);
        }
        Command::ScheduleDelete { namespace, schedule } => {
            begin(kind::SCHEDULE_DELETE);
            queue_into(out, *namespace, schedule);
        }
        Command::SchedulePause { namespace, schedule, paused, next_at_us } => {
            begin(kind::SCHEDULE_PAUSE);
            queue_into(out, *namespace, schedule);
            out.bool(*paused);
            out.u64(*next_at_us);
        }
        Command::ScheduleFire(fire) => schedule::encode_fire(fire, out),
        Command::ScheduleTrigger { namespace, schedule } => {
            begin(kind::SCHEDULE_TRIGGER);
            queue_into(out, *namespace, schedule);
        }
        Command::Attach(attach) => {
            begin(kind::ATTACH);
            consumers::encode_attach(attach, out);
        }
        Command::Credit { namespace, consumer, credit } => {
            begin(kind::CREDIT);
            out.u32(namespace.0);
            out.u64(consumer.0);
            out.u32(*credit);
        }
        Command::Detach { namespace, consumer, grace_ms, reached } => {
            begin(kind::DETACH);
            out.u32(namespace.0);
            out.u64(consumer.0);
            out.u64(*grace_ms);
            out.u64(*reached);
        }
        Command::Resume { namespace, consumer, receipts } => {
            begin(kind::RESUME);
            consumers::encode_resume(*namespace, *consumer, receipts, out);
        }
        Command::HoldDamaged { id, blob } => {
            begin(kind::HOLD_DAMAGED);
            id_into(out, id);
            out.blob(*blob);
        }
        Command::Tick
        | Command::Send(_)
        | Command::Group(_)
        | Command::Receive(_)
        | Command::Settle { .. }
        | Command::Extend { .. }
        | Command::Report { .. }
        | Command::Change(_)
        | Command::SchedulePut(_) => {
            unreachable!("hot commands, and those with blobs, are written by their own functions")
        }
    }
}

fn queue_into(out: &mut Vec<u8>, namespace: NamespaceId, queue: &str) {
    out.u32(namespace.0);
    out.name(queue);
}

fn id_into(out: &mut Vec<u8>, id: &MessageId) {
    out.u32(id.namespace.0);
    out.u64(id.sequence);
}

fn ids_into(out: &mut Vec<u8>, ids: &[MessageId]) {
    out.u32(ids.len() as u32);
    for id in ids {
        id_into(out, id);
    }
}
