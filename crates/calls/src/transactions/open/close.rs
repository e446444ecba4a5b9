//! The commit of an open transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::command::{Command, DocumentCheck, DocumentDelete, Transaction as Whole};
use sluice_engine::documents::DocumentCondition;
use sluice_engine::id::NamespaceId;
use sluice_engine::transactions::OperationDone;
use sluice_node::Refused;
use tokio::sync::OwnedMutexGuard;

use super::super::{Committed, Given, Operation, clear, command};
use super::{allow_some, lock_named};
use crate::access::Right;
use crate::codes::find;
use crate::digest::request_digest;
use crate::error::CallError;
use crate::open_transactions::{Change, Held, Kept, Open, Place, Seen, Staged};
use crate::permit::Permit;

/// A transaction that is being committed. No other call works on it.
#[allow(missing_debug_implementations)] // What callers have staged is not for logs.
pub struct Closing {
    open: Arc<Open>,
    held: OwnedMutexGuard<Held>,
}

/// The way to commit a transaction.
#[allow(missing_debug_implementations)] // As of `Closing`.
pub enum Close {
    /// Its operations are to be read again.
    Open(Closing),
    /// Committed before.
    Before(Box<Committed>),
}

/// Begins the commit of the transaction that a call names.
///
/// # Errors
/// `transaction_lost`.
pub async fn close(permit: &Permit<'_>) -> Result<Close, CallError> {
    allow_some(permit)?;
    match lock_named(permit).await {
        Ok((open, held)) => Ok(Close::Open(Closing { open, held })),
        Err(error) => {
            let (key, digest) = outcome_key(permit, permit.name());
            match permit.node().committed(permit.namespace_id()?, &key, digest).await {
                Ok(Some(done)) => Ok(Close::Before(Box::new(committed(&done.operations, true)))),
                // What another caller has committed is told to nobody else.
                Ok(None) | Err(Error::IdempotencyMismatch { .. }) => Err(error),
                // It may have been committed: only who can look may say that it is lost.
                Err(unknown) => Err(unknown.into()),
            }
        }
    }
}

/// The idempotency key under which the outcome of a caller's transaction is remembered, and the digest of its
/// request. No caller can give the key: theirs are printable.
fn outcome_key(permit: &Permit<'_>, id: &str) -> (Vec<u8>, u64) {
    let digest = request_digest(permit.caller(), std::iter::once(id.as_bytes()));
    (["\0", id].concat().into_bytes(), digest[0])
}

/// The answer to a commit: of each operation, but for checks.
fn committed(operations: &[OperationDone], duplicate: bool) -> Committed {
    let is_told = |done: &&OperationDone| !matches!(done, OperationDone::Checked);
    let results = operations.iter().filter(is_told).map(Into::into).collect();
    Committed { results, duplicate }
}

impl Closing {
    /// The requests of which operations are read again.
    pub fn requests(&self) -> impl Iterator<Item = Kept<'_>> {
        self.held.staged.requests()
    }

    /// Commits; `read`: the operations of each request.
    ///
    /// # Errors
    /// Those of a transaction of one call. It has ended then, unless the caller may not commit it, or a
    /// repeat may go better.
    pub async fn commit(
        &self,
        permit: &Permit<'_>,
        read: &[Vec<Operation<'_>>],
    ) -> Result<Committed, CallError> {
        let staged = &self.held.staged;
        let requested = requested(staged, read)?;
        clear(permit, &requested).await?;
        allow_documents(permit, staged)?;
        let began_before = self.open.is_closing();
        // From here on a caller that goes away leaves it open whether it is done.
        self.open.set_closing(true);
        let done = self.commit_cleared(permit, &requested).await;
        match &done {
            Err(error) if may_go_better(error) => {
                let is_unknown = began_before || error.code() == "outcome_unknown";
                self.open.set_closing(is_unknown);
            }
            Ok(_) | Err(_) => permit.calls().open_transactions().end(&self.open.id),
        }
        done
    }

    async fn commit_cleared(
        &self,
        permit: &Permit<'_>,
        requested: &[Operation<'_>],
    ) -> Result<Committed, CallError> {
        let staged = &self.held.staged;
        if staged.is_empty() {
            return Ok(committed(&[], false));
        }
        let given = Given::read(permit, requested)?;
        let contents: Vec<_> = staged.documents.values().map(Attributed::of).collect();
        let namespace = permit.namespace_id()?;
        let documents = staged.documents.iter().zip(&contents).map(|((key, seen), content)| {
            let it = (namespace, key.as_str(), seen.when);
            (key.as_str(), of_document(it, seen, content))
        });
        let mut documents: BTreeMap<&str, Command<'_>> = documents.collect();
        let (mut commands, mut names) = (Vec::with_capacity(staged.count()), Vec::new());
        let mut next = 0;
        for place in &staged.operations {
            let one = match place {
                Place::Request { .. } => {
                    next += 1;
                    command(namespace, &requested[next - 1], next - 1, &given, None)?
                }
                Place::Document(key) => match documents.remove(key.as_str()) {
                    Some(command) => command,
                    None => continue,
                },
            };
            names.push(one.operation_name().unwrap_or_default());
            commands.push(one);
        }
        commands.extend(documents.into_values());
        let (key, request_digest) = outcome_key(permit, &self.open.id);
        let whole = Whole { namespace, idempotency_key: &key, request_digest, operations: &commands };
        let done = permit.node().commit(whole).await.map_err(|refused| told(refused, &names))?;
        Ok(committed(&done.operations, done.duplicate))
    }
}

/// True for a refusal after which the same commit may be done: nothing in it is to blame.
fn may_go_better(error: &CallError) -> bool {
    find(error.code()).is_some_and(|code| matches!(code.http, 429 | 500..))
}

/// The operations of requests, in the order in which they were staged.
fn requested<'r>(staged: &Staged, read: &[Vec<Operation<'r>>]) -> Result<Vec<Operation<'r>>, CallError> {
    let places = staged.operations.iter().filter_map(|place| match place {
        Place::Request { request, at } => Some((*request, *at)),
        Place::Document(_) => None,
    });
    let gone = || Error::Internal { reason: "a staged operation is not read as it was".into() };
    let found = places.map(|(request, at)| read.get(request).and_then(|read| read.get(at)).cloned());
    found.map(|operation| operation.ok_or_else(|| gone().into())).collect()
}

fn allow_documents(permit: &Permit<'_>, staged: &Staged) -> Result<(), CallError> {
    staged.documents.iter().try_for_each(|(key, seen)| {
        let right = if seen.change.is_some() { Right::Coordinate } else { Right::Read };
        permit.allow_key(right, key)
    })
}

/// A staged content, with its attributes as a list.
struct Attributed<'s> {
    content: Option<MessageBlob<'s>>,
    attributes: Vec<(&'s str, &'s str)>,
}

impl<'s> Attributed<'s> {
    fn of(seen: &'s Seen) -> Attributed<'s> {
        let content = seen.change.as_ref().and_then(Change::content);
        let attributes = content.iter().flat_map(|content| content.headers()).collect();
        Attributed { content, attributes }
    }
}

/// The operation on a document that a transaction has seen.
fn of_document<'a>(
    (namespace, key, when): (NamespaceId, &'a str, DocumentCondition),
    seen: &'a Seen,
    attributed: &'a Attributed<'a>,
) -> Command<'a> {
    let content = attributed.content.as_ref();
    let put = content
        .zip(seen.change.as_ref())
        .and_then(|(content, change)| change.put((namespace, key, when), content, &attributed.attributes));
    match (put, &seen.change) {
        (Some(put), _) => Command::DocumentPut(put),
        (None, Some(_)) => Command::DocumentDelete(DocumentDelete { namespace, key, when }),
        (None, None) => Command::DocumentCheck(DocumentCheck { namespace, key, when }),
    }
}

/// The error for the caller. The place is that of the operation among those that were staged; what was only
/// read has none.
fn told(refused: Refused, names: &[&'static str]) -> CallError {
    let Refused { error, operation } = refused;
    let error = CallError::from(error);
    match operation.and_then(|at| Some((at as usize, names.get(at as usize)?))) {
        Some((at, name)) => error.at_operation(at, name),
        None => error,
    }
}
