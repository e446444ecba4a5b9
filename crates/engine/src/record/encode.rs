//! Commands to bytes. Hot commands are written field by field from the stack; the others gather their few
//! bytes first.

use crate::command::{Command, RecordSink, SettleItem};
use crate::document::attachment::record as attachment;
use crate::document::index::record as index;
use crate::document::record as document;
use crate::layout::list_head;
use crate::lock::record::encode_acquire;
use crate::queue::record::delivery::{encode_extend, encode_receive, encode_settle};
use crate::queue::record::send::encode_send;
use crate::queue::record::{chain, change, consumer as consumers, group, report, schedule, search};
use crate::record::table::{head, plain_body, plain_commands};
use crate::transaction::record as transaction;

impl Command<'_> {
    /// Number of blobs of the record: a send one per item and per step with a payload of its own, a settle
    /// and a report one per text, result and checkpoint, a schedule, a document and a chunk one.
    #[inline(always)]
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
            Command::SchedulePut(_) | Command::DocumentPut(_) | Command::UploadChunk(_) => 1,
            Command::Transaction(transaction) => transaction::blob_count(transaction),
            Command::TransactionPrepare(prepare) => transaction::blob_count(&prepare.part),
            Command::TransactionDecide(decide) => transaction::blob_count(&decide.part),
            Command::Tick
            | Command::Receive(_)
            | Command::Extend { .. }
            | Command::Attach(_)
            | Command::LockAcquire(_)
            | Command::IndexFill(_)
            | Command::SearchFill(_)
            | Command::Detach { .. }
            | Command::Resume { .. }
            | plain_commands!() => 0,
        }
    }

    /// Writes the record: its body, then its blobs. The command has passed [`Command::check`].
    #[inline(always)]
    pub fn encode(&self, sink: &mut impl RecordSink) {
        match self {
            Command::Tick => sink.body(&head::TICK),
            Command::Send(send) => encode_send(head::SEND, send, sink),
            Command::Receive(receive) => encode_receive(head::RECEIVE, receive, sink),
            Command::Group(group) => group::encode(head::GROUP, group, sink),
            Command::LockAcquire(acquire) => encode_acquire(head::LOCK_ACQUIRE, acquire, sink),
            Command::DocumentPut(put) => document::encode_put(head::DOCUMENT_PUT, put, sink),
            Command::UploadChunk(chunk) => attachment::encode_chunk(head::UPLOAD_CHUNK, chunk, sink),
            Command::IndexFill(fill) => index::encode_fill(head::INDEX_FILL, fill, sink),
            Command::SearchFill(fill) => search::encode_fill(head::SEARCH_FILL, fill, sink),
            Command::Transaction(whole) => transaction::encode(head::TRANSACTION, whole, sink),
            Command::TransactionPrepare(part) => transaction::encode_prepare(head::PREPARE, part, sink),
            Command::TransactionDecide(part) => transaction::encode_decide(head::DECIDE, part, sink),
            Command::Settle { namespace, items } => encode_settle(head::SETTLE, *namespace, items, sink),
            Command::Extend { namespace, items } => encode_extend(head::EXTEND, *namespace, items, sink),
            Command::Report { namespace, items } => {
                sink.body(&list_head(head::REPORT, *namespace, items.len()));
                report::encode_items(items, sink);
            }
            Command::Change(change) => change::encode(head::CHANGE, change, sink),
            Command::SchedulePut(put) => schedule::encode_put(head::SCHEDULE_PUT, put, sink),
            Command::Attach(attach) => consumers::encode_attach(head::ATTACH, attach, sink),
            Command::Detach { namespace, consumer, grace_ms, reached } => {
                consumers::encode_detach(head::DETACH, *namespace, *consumer, *grace_ms, *reached, sink);
            }
            Command::Resume { namespace, consumer, receipts } => {
                consumers::encode_resume(head::RESUME, *namespace, *consumer, receipts, sink);
            }
            plain_commands!() => sink.body(&plain_body(self)),
        }
    }
}
