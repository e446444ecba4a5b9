//! The layout of a transaction: a head, then each operation with its length, as the record of its own that it
//! could be.
//!
//! Blobs: those of all messages, then those of the steps that they carry, as in a group; then those of the
//! other operations, in order.

use crate::attachments::{AttachmentCommit, AttachmentDelete};
use crate::command::{Command, RecordSink, Transaction, TransactionDecide, TransactionPrepare};
use crate::core::field::{ReadField, WriteField};
use crate::document::record as document;
use crate::document::record::PutRecord;
use crate::documents::{DocumentCheck, DocumentDelete};
use crate::id::{BlobRef, NamespaceId, TransactionId};
use crate::lock::record as lock;
use crate::lock::record::AcquireRecord;
use crate::locks::LockToken;
use crate::queue::record::Gathered;
use crate::queue::record::chain;
use crate::queue::record::delivery::{SettleItemRecord, decode_settle, encode_settle, settle_without_blobs};
use crate::queue::record::item::{SendItemRecord, send_blob};
use crate::queue::record::send::{decode_send, encode_send};
use crate::transaction::part::Part;
use crate::transaction::{kind, path};
use crate::transactions::OperationView;
use crate::wire::{Put, Reader};

/// The first byte of an operation.
mod tag {
    pub(super) const SEND: u8 = 0;
    pub(super) const SETTLE: u8 = 1;
    pub(super) const PUT: u8 = 2;
    pub(super) const DELETE: u8 = 3;
    pub(super) const ACQUIRE: u8 = 4;
    pub(super) const RELEASE: u8 = 5;
    pub(super) const CHECK: u8 = 6;
    pub(super) const ATTACH: u8 = 7;
    pub(super) const DETACH: u8 = 8;
}

/// An operation; blobs have the numbers that they have in the whole record.
#[derive(Clone, Copy)]
pub(crate) enum OperationRecord<'a> {
    Send(&'a str, SendItemRecord<'a>),
    Settle(SettleItemRecord),
    Put(PutRecord<'a>),
    Delete(DocumentDelete<'a>),
    Check(DocumentCheck<'a>),
    Attach(AttachmentCommit<'a>),
    Detach(AttachmentDelete<'a>),
    Acquire(AcquireRecord<'a>),
    Release(LockToken),
}

/// Operations that are done together.
#[derive(Clone, Copy)]
pub(crate) struct TransactionRecord<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) idempotency_key: &'a [u8],
    pub(crate) request_digest: u64,
    pub(crate) count: u32,
    /// Number of the first blob that is no message's.
    other_blobs: u32,
    operations: Reader<'a>,
}

/// Length of a participant in a record: its namespace and its shard.
const PARTICIPANT_BYTES: usize = 8;

/// The part of a transaction that is to be prepared.
#[derive(Clone, Copy)]
pub(crate) struct PrepareRecord<'a> {
    pub(crate) id: TransactionId,
    /// Shard of the coordinator.
    pub(crate) shard: u32,
    pub(crate) until_us: u64,
    /// Bytes of the part, which [`decode`] reads.
    pub(crate) bytes: &'a [u8],
    pub(crate) part: TransactionRecord<'a>,
}

/// The part of a transaction that decides the whole.
#[derive(Clone, Copy)]
pub(crate) struct DecideRecord<'a> {
    pub(crate) id: TransactionId,
    pub(crate) until_us: u64,
    participants: Reader<'a>,
    pub(crate) part: TransactionRecord<'a>,
}

pub(crate) fn encode(first: [u8; 2], transaction: &Transaction<'_>, sink: &mut impl RecordSink) {
    encode_behind(first.to_vec(), transaction, sink);
}

pub(crate) fn encode_prepare(first: [u8; 2], prepare: &TransactionPrepare<'_>, sink: &mut impl RecordSink) {
    let mut head = first.to_vec();
    prepare.id.write(&mut head);
    head.u32(prepare.shard);
    head.u64(prepare.until_us);
    encode_behind(head, &prepare.part, sink);
}

pub(crate) fn encode_decide(first: [u8; 2], decide: &TransactionDecide<'_>, sink: &mut impl RecordSink) {
    let mut head = first.to_vec();
    decide.id.write(&mut head);
    head.u64(decide.until_us);
    head.u32(decide.participants.len() as u32);
    for (namespace, shard) in decide.participants {
        head.u32(namespace.0);
        head.u32(*shard);
    }
    encode_behind(head, &decide.part, sink);
}

/// Writes a transaction behind the head of its record.
fn encode_behind(head: Vec<u8>, transaction: &Transaction<'_>, sink: &mut impl RecordSink) {
    let mut out = Gathered(head);
    out.0.u32(transaction.namespace.0);
    out.0.u64(transaction.request_digest);
    out.0.bytes16(transaction.idempotency_key);
    out.0.u32(transaction.operations.len() as u32);
    out.0.u32(transaction.operations.iter().map(blobs_of_messages).sum());
    for operation in transaction.operations {
        let start = out.0.len();
        out.0.u32(0);
        encode_operation(operation, &mut out);
        let len = (out.0.len() - start - 4) as u32;
        out.0[start..start + 4].copy_from_slice(&len.to_le_bytes());
    }
    sink.body(&out.0);
    let messages = || transaction.operations.iter().filter_map(Command::as_send);
    messages().flat_map(|send| send.items).for_each(|item| send_blob(item, sink));
    messages().flat_map(|send| send.items).for_each(|item| chain::write_blobs(item, sink));
    let is_other = |operation: &&Command<'_>| operation.as_send().is_none() && operation.blob_count() > 0;
    for operation in transaction.operations.iter().filter(is_other) {
        encode_operation(operation, &mut BlobsOf(sink));
    }
}

pub(crate) fn blob_count(transaction: &Transaction<'_>) -> u32 {
    transaction.operations.iter().map(Command::blob_count).sum()
}

fn blobs_of_messages(operation: &Command<'_>) -> u32 {
    operation.as_send().map_or(0, |_| operation.blob_count())
}

/// Writes an operation as a record; nothing of one that no transaction has.
fn encode_operation(operation: &Command<'_>, sink: &mut impl RecordSink) {
    let Some(part) = Part::of(operation) else { return };
    match part {
        Part::Send(send) => encode_send([tag::SEND, 0], send, sink),
        Part::Settle(namespace, item) => {
            encode_settle([tag::SETTLE, 0], namespace, std::slice::from_ref(item), sink);
        }
        Part::Put(put) => document::encode_put([tag::PUT, 0], put, sink),
        Part::Acquire(acquire) => lock::encode_acquire([tag::ACQUIRE, 0], acquire, sink),
        Part::Delete(delete) => encode_field(tag::DELETE, delete, sink),
        Part::Check(check) => encode_field(tag::CHECK, check, sink),
        Part::Attach(commit) => encode_field(tag::ATTACH, commit, sink),
        Part::Detach(delete) => encode_field(tag::DETACH, delete, sink),
        Part::Release(_, token) => encode_field(tag::RELEASE, &token, sink),
    }
}

fn encode_field(tag: u8, field: &impl WriteField, sink: &mut impl RecordSink) {
    let mut out = vec![tag, 0];
    field.write(&mut out);
    sink.body(&out);
}

/// Takes the blobs of a record, and leaves out its body.
struct BlobsOf<'s, S>(&'s mut S);

impl<S: RecordSink> RecordSink for BlobsOf<'_, S> {
    fn body(&mut self, _bytes: &[u8]) {}

    fn blob(&mut self, pieces: &[&[u8]]) {
        self.0.blob(pieces);
    }
}

/// Reads what [`encode`] wrote; `None` also for what a check before the proposal refuses.
pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Option<TransactionRecord<'a>> {
    read_part(reader).filter(|part| part.count > 0)
}

/// Reads what [`encode_prepare`] wrote.
pub(crate) fn decode_prepare<'a>(reader: &mut Reader<'a>) -> Option<PrepareRecord<'a>> {
    let (id, shard, until_us) = (TransactionId::read(reader)?, reader.u32()?, reader.u64()?);
    Some(PrepareRecord { id, shard, until_us, bytes: reader.rest(), part: decode(reader)? })
}

/// Reads what [`encode_decide`] wrote.
pub(crate) fn decode_decide<'a>(reader: &mut Reader<'a>) -> Option<DecideRecord<'a>> {
    let (id, until_us, count) = (TransactionId::read(reader)?, reader.u64()?, reader.u32()?);
    let participants = Reader::new(reader.raw(count as usize * PARTICIPANT_BYTES)?);
    Some(DecideRecord { id, until_us, participants, part: read_part(reader)? })
}

impl DecideRecord<'_> {
    /// Namespaces in which the transaction is prepared, with their shards.
    pub(crate) fn participants(&self) -> impl Iterator<Item = (NamespaceId, u32)> {
        let mut reader = self.participants;
        std::iter::from_fn(move || Some((NamespaceId(reader.u32()?), reader.u32()?)))
    }
}

/// Reads a transaction that may have no operations.
fn read_part<'a>(reader: &mut Reader<'a>) -> Option<TransactionRecord<'a>> {
    let namespace = NamespaceId(reader.u32()?);
    let (request_digest, idempotency_key) = (reader.u64()?, reader.bytes16()?);
    let (count, other_blobs) = (reader.u32()?, reader.u32()?);
    let operations = *reader;
    for _ in 0..count {
        let operation = read_operation(reader, &mut 0)?;
        let is_of_namespace = match operation {
            OperationRecord::Put(put) => put.namespace == namespace,
            OperationRecord::Delete(delete) => delete.namespace == namespace,
            OperationRecord::Check(check) => check.namespace == namespace,
            OperationRecord::Attach(commit) => commit.namespace == namespace,
            OperationRecord::Detach(delete) => delete.namespace == namespace,
            OperationRecord::Acquire(acquire) => acquire.namespace == namespace,
            OperationRecord::Send(..) | OperationRecord::Settle(_) | OperationRecord::Release(_) => true,
        };
        is_of_namespace.then_some(())?;
    }
    Some(TransactionRecord { namespace, idempotency_key, request_digest, count, other_blobs, operations })
}

/// Reads the bytes of an operation.
fn read_body<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let len = reader.u32()? as usize;
    reader.raw(len)
}

/// Reads an operation; `next_blob`: the number of its first blob, unless it sends a message, and then of the
/// one behind its last.
fn read_operation<'a>(reader: &mut Reader<'a>, next_blob: &mut u32) -> Option<OperationRecord<'a>> {
    let mut body = Reader::new(read_body(reader)?);
    let [tag, _] = *body.array::<2>()?;
    let operation = match tag {
        tag::SEND => {
            let send = decode_send(&mut body)?;
            let queue = std::str::from_utf8(send.queue).ok()?;
            OperationRecord::Send(queue, send.items().next().filter(|_| send.count == 1)?)
        }
        tag::SETTLE => {
            let settle = decode_settle(&mut body)?;
            let mut items = settle.items();
            let item = items.next().filter(|_| items.next().is_none())?;
            OperationRecord::Settle(item.with_blobs_from(next_blob))
        }
        tag::PUT => {
            let put = document::decode_put(&mut body)?.with_blob(*next_blob);
            *next_blob += 1;
            OperationRecord::Put(put)
        }
        tag::DELETE => OperationRecord::Delete(DocumentDelete::read(&mut body)?),
        tag::ATTACH => OperationRecord::Attach(AttachmentCommit::read(&mut body)?),
        tag::DETACH => OperationRecord::Detach(AttachmentDelete::read(&mut body)?),
        tag::CHECK => OperationRecord::Check(DocumentCheck::read(&mut body)?),
        tag::ACQUIRE => OperationRecord::Acquire(lock::decode_acquire(&mut body)?),
        tag::RELEASE => OperationRecord::Release(LockToken::read(&mut body)?),
        _ => return None,
    };
    body.is_empty().then_some(operation)
}

impl OperationRecord<'_> {
    /// The name of the operation, as requests have it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            OperationRecord::Send(..) => kind::SEND,
            OperationRecord::Settle(_) => kind::SETTLE,
            OperationRecord::Put(_) => kind::PUT,
            OperationRecord::Delete(_) => kind::DELETE,
            OperationRecord::Check(_) => kind::CHECK,
            OperationRecord::Attach(_) => kind::ATTACH,
            OperationRecord::Detach(_) => kind::DETACH,
            OperationRecord::Acquire(_) => kind::ACQUIRE,
            OperationRecord::Release(_) => kind::RELEASE,
        }
    }

    /// The path of the operation, with which the names of its fields begin.
    pub(crate) fn path(&self, at: usize) -> String {
        path(at, self.kind())
    }

    /// The operation as those see it who look: without its content.
    pub(crate) fn view(&self) -> OperationView {
        let content_bytes = match self {
            OperationRecord::Put(put) => Some(put.content_bytes()),
            OperationRecord::Send(..)
            | OperationRecord::Settle(_)
            | OperationRecord::Delete(_)
            | OperationRecord::Check(_)
            | OperationRecord::Attach(_)
            | OperationRecord::Detach(_)
            | OperationRecord::Acquire(_)
            | OperationRecord::Release(_) => None,
        };
        OperationView { kind: self.kind(), about: self.about(), content_bytes }
    }

    fn about(&self) -> Vec<String> {
        match self {
            OperationRecord::Send(queue, _) => vec![(*queue).to_owned()],
            OperationRecord::Settle(item) => vec![item.receipt.id.to_string()],
            OperationRecord::Acquire(acquire) => acquire.keys().map(str::to_owned).collect(),
            OperationRecord::Put(_)
            | OperationRecord::Delete(_)
            | OperationRecord::Check(_)
            | OperationRecord::Attach(_)
            | OperationRecord::Detach(_)
            | OperationRecord::Release(_) => self.document().map(str::to_owned).into_iter().collect(),
        }
    }
}

impl<'a> OperationRecord<'a> {
    /// Key of the document that it writes, deletes or looks at.
    pub(crate) fn document(&self) -> Option<&'a str> {
        match self {
            OperationRecord::Put(put) => Some(put.key),
            OperationRecord::Delete(delete) => Some(delete.key),
            OperationRecord::Check(check) => Some(check.key),
            OperationRecord::Attach(commit) => Some(commit.key),
            OperationRecord::Detach(delete) => Some(delete.key),
            OperationRecord::Send(..)
            | OperationRecord::Settle(_)
            | OperationRecord::Acquire(_)
            | OperationRecord::Release(_) => None,
        }
    }

    /// Token of the grant that it releases, or is proven by.
    pub(crate) fn token(&self) -> Option<LockToken> {
        match self {
            OperationRecord::Put(put) => put.when.token,
            OperationRecord::Delete(delete) => delete.when.token,
            OperationRecord::Check(check) => check.when.token,
            OperationRecord::Attach(commit) => commit.when.token,
            OperationRecord::Detach(delete) => delete.when.token,
            OperationRecord::Release(token) => Some(*token),
            OperationRecord::Send(..) | OperationRecord::Settle(_) | OperationRecord::Acquire(_) => None,
        }
    }
}

impl<'a> TransactionRecord<'a> {
    /// The operations, in order.
    pub(crate) fn operations(&self) -> impl Iterator<Item = OperationRecord<'a>> + use<'a> {
        let (mut reader, mut next_blob) = (self.operations, self.other_blobs);
        (0..self.count).map_while(move |_| read_operation(&mut reader, &mut next_blob))
    }

    /// The messages that it sends, with their queues.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (&'a str, SendItemRecord<'a>)> + use<'a> {
        self.operations().filter_map(|operation| match operation {
            OperationRecord::Send(queue, item) => Some((queue, item)),
            OperationRecord::Settle(_)
            | OperationRecord::Put(_)
            | OperationRecord::Delete(_)
            | OperationRecord::Check(_)
            | OperationRecord::Attach(_)
            | OperationRecord::Detach(_)
            | OperationRecord::Acquire(_)
            | OperationRecord::Release(_) => None,
        })
    }

    /// The body of this record, which settles, deletes, checks and releases, without error texts and results.
    pub(crate) fn without_blobs(&self, body: &[u8]) -> Vec<u8> {
        let mut reader = self.operations;
        let first = body.len() - reader.rest().len();
        let mut out = body[..first].to_vec();
        for _ in 0..self.count {
            let Some(operation) = read_body(&mut reader) else { break };
            let is_settlement = operation.first() == Some(&tag::SETTLE);
            let bare = if is_settlement { settle_without_blobs(operation) } else { operation.to_vec() };
            out.u32(bare.len() as u32);
            out.raw(&bare);
        }
        out
    }

    /// The record's blobs.
    pub(crate) fn blobs(&self, index: u64) -> Vec<BlobRef> {
        let messages = self.messages().count() as u32;
        let own =
            (0..).zip(self.messages()).map(|(item, (_, send))| BlobRef { index, item, len: send.blob_len });
        let steps = chain::step_blobs(index, messages, self.messages().map(|(_, item)| item));
        let others = self.operations().flat_map(|operation| match operation {
            OperationRecord::Settle(item) => item.blobs(index).collect(),
            OperationRecord::Put(put) => vec![put.blob(index)],
            OperationRecord::Send(..)
            | OperationRecord::Delete(_)
            | OperationRecord::Check(_)
            | OperationRecord::Attach(_)
            | OperationRecord::Detach(_)
            | OperationRecord::Acquire(_)
            | OperationRecord::Release(_) => Vec::new(),
        });
        own.chain(steps).chain(others).collect()
    }
}
