//! Refusals of transactions whatever the state is.

use std::collections::BTreeMap;

use crate::command::Command;
use crate::document::check::check_put;
use crate::error::Error;
use crate::id::{NamespaceId, Receipt};
use crate::limits::{IDEMPOTENCY_KEY_BYTES_MAX, Limits, TRANSACTION_OPERATIONS_MAX};
use crate::lock::check::check_acquire;
use crate::locks::LockToken;
use crate::queue::delivery::check::check_settle;
use crate::queue::send::check::check_several;
use crate::rules::{at_most_of, between_of, check_bytes, invalid};
use crate::transaction::{kind, path};
use crate::transactions::Transaction;

pub(crate) fn check(transaction: &Transaction<'_>, limits: &Limits) -> Result<(), Error> {
    let key_bytes = transaction.idempotency_key.len() as u64;
    at_most_of("bytes", "idempotency_key", key_bytes, IDEMPOTENCY_KEY_BYTES_MAX as u64)?;
    let count = transaction.operations.len() as u64;
    between_of("operations", "operations", count, 1, TRANSACTION_OPERATIONS_MAX as u64)?;
    let mut named = Named::default();
    let mut bytes = 0;
    for (at, operation) in transaction.operations.iter().enumerate() {
        let prefix = path(at, kind_of(operation));
        let checked = check_operation(operation, transaction.namespace, limits);
        bytes += checked.map_err(|error| error.within(&prefix))?;
        named.add(at, operation, &prefix)?;
    }
    let messages = (0..).zip(transaction.operations).filter_map(|(at, operation)| {
        let send = operation.as_send()?;
        Some((path(at, kind::SEND), send.queue, send.items.first()?))
    });
    bytes += check_several(transaction.namespace, messages, limits)? as usize;
    check_bytes("bytes of contents", bytes, limits)
}

/// The name of an operation in a request.
fn kind_of(operation: &Command<'_>) -> &'static str {
    match operation {
        Command::Send(_) => kind::SEND,
        Command::Settle { .. } => kind::SETTLE,
        Command::DocumentPut(_) => kind::PUT,
        Command::DocumentDelete(_) => kind::DELETE,
        Command::LockAcquire(_) => kind::ACQUIRE,
        Command::LockRelease { .. } => kind::RELEASE,
        _ => "other",
    }
}

/// Checks an operation by itself, but for a message; returns the bytes of its contents.
fn check_operation(operation: &Command<'_>, namespace: NamespaceId, limits: &Limits) -> Result<usize, Error> {
    let (of, bytes) = match operation {
        Command::Send(send) if send.items.len() == 1 && send.idempotency_key.is_empty() => {
            (send.namespace, 0)
        }
        Command::Settle { namespace, items: items @ [item] } => {
            check_settle(items, limits)?;
            (*namespace, item.error.len() + item.result.map_or(0, |result| result.bytes.len()))
        }
        Command::DocumentPut(put) => {
            check_put(put)?;
            (put.namespace, put.content.len())
        }
        Command::DocumentDelete(delete) => {
            operation.check(limits)?;
            (delete.namespace, 0)
        }
        Command::LockAcquire(acquire) => {
            check_acquire(acquire)?;
            if acquire.wait_ms > 0 {
                return Err(invalid("wait_ms", "a transaction waits for nothing: leave it out".into()));
            }
            (acquire.namespace, 0)
        }
        Command::LockRelease { namespace, .. } => (*namespace, 0),
        _ => {
            return Err(Error::Internal { reason: "an operation that no transaction can have".into() });
        }
    };
    if of == namespace {
        return Ok(bytes);
    }
    Err(Error::Internal { reason: "an operation of another namespace than its transaction".into() })
}

/// All that operations name, with the places of those that do: each once.
#[derive(Default)]
struct Named<'a> {
    deliveries: BTreeMap<(u64, u64), usize>,
    documents: BTreeMap<&'a str, usize>,
    locks: BTreeMap<&'a str, usize>,
    tokens: BTreeMap<(u64, u32), usize>,
}

impl<'a> Named<'a> {
    fn add(&mut self, at: usize, operation: &Command<'a>, prefix: &str) -> Result<(), Error> {
        match operation {
            Command::Settle { items, .. } => items.iter().try_for_each(|item| {
                let Receipt { id, token, .. } = item.receipt;
                once(&mut self.deliveries, (id.sequence, token), at, &format!("{prefix}receipt"))
            }),
            Command::DocumentPut(put) => once(&mut self.documents, put.key, at, &format!("{prefix}key")),
            Command::DocumentDelete(delete) => {
                once(&mut self.documents, delete.key, at, &format!("{prefix}key"))
            }
            Command::LockAcquire(acquire) => {
                let field = format!("{prefix}{}", if acquire.keys.len() == 1 { "key" } else { "keys" });
                acquire.keys.iter().try_for_each(|key| once(&mut self.locks, *key, at, &field))
            }
            Command::LockRelease { token: LockToken { number, slot, .. }, .. } => {
                once(&mut self.tokens, (*number, *slot), at, &format!("{prefix}token"))
            }
            _ => Ok(()),
        }
    }
}

fn once<T: Ord>(named: &mut BTreeMap<T, usize>, name: T, at: usize, field: &str) -> Result<(), Error> {
    match named.insert(name, at) {
        None => Ok(()),
        Some(before) => {
            Err(invalid(field, format!("operations[{before}] is about it already: name it in one of them")))
        }
    }
}
