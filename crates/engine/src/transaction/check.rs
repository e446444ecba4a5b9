//! Refusals of transactions whatever the state is.

use std::collections::{BTreeMap, BTreeSet};

use crate::command::{
    AttachmentCommit, AttachmentDelete, Command, DocumentCheck, DocumentDelete, DocumentPut, SendItem,
    Transaction, TransactionDecide, TransactionPrepare,
};
use crate::document::attachment::check::{check_commit, check_names};
use crate::document::check::{check_condition, check_put};
use crate::error::Error;
use crate::id::Receipt;
use crate::limits::{
    IDEMPOTENCY_KEY_BYTES_MAX, Limits, TRANSACTION_NAMESPACES_MAX, TRANSACTION_OPERATIONS_MAX,
    TRANSACTION_PART_BYTES_MAX,
};
use crate::lock::check::check_acquire;
use crate::locks::LockToken;
use crate::queue::delivery::check::check_settle;
use crate::queue::send::check::check_several;
use crate::rules::{at_most_of, between_of, check_bytes, invalid};
use crate::transaction::part::Part;
use crate::transaction::{kind, path};

pub(crate) fn check(transaction: &Transaction<'_>, limits: &Limits) -> Result<(), Error> {
    check_part_of(transaction, 1, limits).map(|_| ())
}

/// Checks a part of a transaction over several namespaces, which another one decides.
pub(crate) fn check_prepare(prepare: &TransactionPrepare<'_>, limits: &Limits) -> Result<(), Error> {
    if prepare.part.namespace == prepare.id.coordinator {
        let reason = "a prepared part in the namespace of its coordinator";
        return Err(Error::Internal { reason: reason.into() });
    }
    for (at, operation) in prepare.part.operations.iter().enumerate() {
        let Some(part) = Part::of(operation) else { continue };
        let prefix = path(at, part.kind());
        let refused = match part {
            Part::Attach(_) | Part::Detach(_) => Some(("name", "attachments are")),
            Part::Send(send) if send.items.iter().any(waits_for_others) => {
                Some(("depends_on", "messages that wait for others are"))
            }
            Part::Send(_)
            | Part::Settle(..)
            | Part::Put(_)
            | Part::Delete(_)
            | Part::Check(_)
            | Part::Acquire(_)
            | Part::Release(..) => None,
        };
        if let Some((field, what)) = refused {
            let reason = format!("{what} of the namespace in which the transaction is made, and of no other");
            return Err(invalid(format!("{prefix}{field}"), reason));
        }
    }
    let size = check_part_of(&prepare.part, 1, limits)?;
    if size > TRANSACTION_PART_BYTES_MAX {
        let (what, limit) = ("bytes of contents of another namespace", TRANSACTION_PART_BYTES_MAX);
        return Err(Error::BatchTooLarge { what, size, limit });
    }
    Ok(())
}

fn waits_for_others(item: &SendItem<'_>) -> bool {
    item.options.is_some_and(|options| options.depends_on.is_some())
}

/// Checks the part of a transaction over several namespaces that decides the whole.
pub(crate) fn check_decide(decide: &TransactionDecide<'_>, limits: &Limits) -> Result<(), Error> {
    let namespaces = decide.participants.len() as u64 + 1;
    between_of("namespaces", "operations", namespaces, 2, TRANSACTION_NAMESPACES_MAX as u64)?;
    let others = decide.participants.iter().map(|(namespace, _)| namespace);
    let named: BTreeSet<_> = others.chain([&decide.id.coordinator]).collect();
    if named.len() as u64 != namespaces || decide.part.namespace != decide.id.coordinator {
        let reason = "a transaction of which two parts are in one namespace";
        return Err(Error::Internal { reason: reason.into() });
    }
    check_part_of(&decide.part, 0, limits).map(|_| ())
}

/// Checks operations of one namespace, of which there are at least `least`; returns the bytes of their
/// contents.
fn check_part_of(transaction: &Transaction<'_>, least: u64, limits: &Limits) -> Result<u64, Error> {
    let key_bytes = transaction.idempotency_key.len() as u64;
    at_most_of("bytes", "idempotency_key", key_bytes, IDEMPOTENCY_KEY_BYTES_MAX as u64)?;
    let count = transaction.operations.len() as u64;
    between_of("operations", "operations", count, least, TRANSACTION_OPERATIONS_MAX as u64)?;
    let mut named = Named::default();
    let mut bytes = 0;
    for (at, operation) in transaction.operations.iter().enumerate() {
        let part = Part::of(operation).ok_or_else(no_operation)?;
        if part.namespace() != transaction.namespace {
            let reason = "an operation of another namespace than its transaction";
            return Err(Error::Internal { reason: reason.into() });
        }
        bytes += check_part(part, limits).map_err(|error| error.within(&path(at, part.kind())))?;
        named.add(at, part)?;
    }
    named.expect_documents()?;
    let messages = (0..).zip(transaction.operations).filter_map(|(at, operation)| {
        let send = operation.as_send()?;
        Some((at, send.queue, send.items.first()?))
    });
    let path_of = |at| path(at, kind::SEND);
    bytes += check_several(transaction.namespace, messages, path_of, limits)? as usize;
    check_bytes("bytes of contents", bytes, limits).map(|()| bytes as u64)
}

/// Checks an operation by itself, but for a message; returns the bytes of its contents.
fn check_part(part: Part<'_, '_>, limits: &Limits) -> Result<usize, Error> {
    match part {
        Part::Send(send) if !send.idempotency_key.is_empty() => Err(no_operation()),
        Part::Send(_) | Part::Release(..) => Ok(0),
        Part::Settle(_, item) => {
            check_settle(std::slice::from_ref(item), limits)?;
            Ok(item.error.len() + item.result.map_or(0, |result| result.bytes.len()))
        }
        Part::Put(put) => check_put(put).map(|()| put.content.len()),
        Part::Delete(delete) => Command::DocumentDelete(*delete).check(limits).map(|()| 0),
        Part::Check(check) => check_condition(check).map(|()| 0),
        Part::Attach(commit) => check_commit(commit).map(|()| 0),
        Part::Detach(delete) => check_names(delete.key, delete.name).map(|()| 0),
        Part::Acquire(acquire) => {
            check_acquire(acquire)?;
            if acquire.wait_ms > 0 {
                return Err(invalid("wait_ms", "a transaction waits for nothing: leave it out".into()));
            }
            Ok(0)
        }
    }
}

#[cold]
fn no_operation() -> Error {
    Error::Internal { reason: "an operation that no transaction can have".into() }
}

/// All that operations name, with the places of those that do: each once.
#[derive(Default)]
struct Named<'a> {
    deliveries: BTreeMap<(u64, u64), usize>,
    documents: BTreeMap<&'a str, usize>,
    /// Keys of the documents that are deleted.
    deleted: BTreeSet<&'a str>,
    attachments: BTreeMap<(&'a str, &'a str), usize>,
    locks: BTreeMap<&'a str, usize>,
    tokens: BTreeMap<(u64, u32), usize>,
}

impl<'a> Named<'a> {
    fn add(&mut self, at: usize, part: Part<'_, 'a>) -> Result<(), Error> {
        let field = |name: &str| format!("{}{name}", path(at, part.kind()));
        match part {
            Part::Send(_) => Ok(()),
            Part::Settle(_, item) => {
                let Receipt { id, token, .. } = item.receipt;
                once(&mut self.deliveries, (id.sequence, token), at, || field("receipt"))
            }
            Part::Attach(AttachmentCommit { key, name, .. })
            | Part::Detach(AttachmentDelete { key, name, .. }) => {
                once(&mut self.attachments, (*key, *name), at, || field("name"))
            }
            Part::Put(DocumentPut { key, .. })
            | Part::Delete(DocumentDelete { key, .. })
            | Part::Check(DocumentCheck { key, .. }) => {
                self.deleted.extend(matches!(part, Part::Delete(_)).then_some(*key));
                once(&mut self.documents, *key, at, || field("key"))
            }
            Part::Acquire(acquire) => {
                let name = if acquire.keys.len() == 1 { "key" } else { "keys" };
                acquire.keys.iter().try_for_each(|key| once(&mut self.locks, *key, at, || field(name)))
            }
            Part::Release(_, LockToken { number, slot, .. }) => {
                once(&mut self.tokens, (number, slot), at, || field("token"))
            }
        }
    }
}

impl Named<'_> {
    /// Refuses attachments of a document that is deleted: they would go with it.
    fn expect_documents(&self) -> Result<(), Error> {
        let mut of_deleted = self.attachments.iter().filter(|((key, _), _)| self.deleted.contains(key));
        of_deleted.next().map_or(Ok(()), |((key, _), at)| {
            let deleted = self.documents.get(key).copied().unwrap_or_default();
            let reason = format!("operations[{deleted}] deletes the document: leave one of them out");
            Err(invalid(format!("operations[{at}]"), reason))
        })
    }
}

/// Adds a name; `field` tells where it stands.
fn once<T: Ord>(
    named: &mut BTreeMap<T, usize>,
    name: T,
    at: usize,
    field: impl FnOnce() -> String,
) -> Result<(), Error> {
    match named.insert(name, at) {
        None => Ok(()),
        Some(before) => {
            let reason = format!("operations[{before}] is about it already: name it in one of them");
            Err(invalid(field(), reason))
        }
    }
}
