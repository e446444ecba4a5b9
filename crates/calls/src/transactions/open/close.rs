//! The commit of an open transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::command::{
    Command, DocumentCheck, DocumentDelete, DocumentPut, SettleItem, Settlement, Transaction as Whole,
};
use sluice_engine::documents::DocumentCondition;
use sluice_engine::documents::DocumentTerms;
use sluice_engine::id::{NamespaceId, Receipt};
use sluice_engine::transactions::OperationDone;
use sluice_node::Refused;
use tokio::sync::OwnedMutexGuard;

use super::super::{Committed, Given, Operation, clear, command};
use super::abandoned::{InHand, conclude};
use super::lock_open;
use crate::access::Right;
use crate::digest::request_digest;
use crate::documents::indexes::Indexing;
use crate::error::CallError;
use crate::open_transactions::{Change, Held, InFlight, Kept, Open, Place, Seen, Staged};
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
    permit.allow_some_work()?;
    match lock_open(permit, permit.name()).await {
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

/// The answer to a commit: of each operation, but for checks. Acks of messages that it has received are the
/// last.
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

    /// Commits; `read`: the operations of each request. A commit in flight whose caller is gone is not begun
    /// again: this one gets its outcome.
    ///
    /// # Errors
    /// Those of a transaction of one call. It has ended then, unless the caller may not commit it, or a
    /// repeat may go better and its time is not over.
    pub async fn commit(
        &self,
        permit: &Permit<'_>,
        read: &[Vec<Operation<'_>>],
    ) -> Result<Committed, CallError> {
        let requested = requested(&self.held.staged, read)?;
        let staged = &self.held.staged;
        let place = |at| staged.request_places().nth(at).unwrap_or(at);
        clear(permit, &requested).await.map_err(|error| error.at_place(place))?;
        permit.allow_messages(Right::Receive, staged.acks().map(|receipt| receipt.id)).await?;
        allow_documents(permit, staged)?;
        let _ending = self.open.waits.end_for_now().await;
        let done = self.outcome(permit, &requested).await;
        conclude(permit.calls().open_transactions(), &self.open, staged, done.as_ref().err()).await;
        done
    }

    async fn outcome(
        &self,
        permit: &Permit<'_>,
        requested: &[Operation<'_>],
    ) -> Result<Committed, CallError> {
        if self.held.staged.is_empty() {
            return Ok(committed(&[], false));
        }
        let in_flight = self.open.in_flight.lock().await;
        let mut in_hand = InHand::new(in_flight, &self.open, permit.calls().open_transactions());
        let in_flight = match &mut *in_hand.in_flight {
            Some(in_flight) => in_flight,
            none => none.insert(self.propose(permit, requested).await?),
        };
        // From here on a caller that goes away leaves it open whether it is done.
        self.open.set_closing(true);
        let done = in_flight.done().await.map_err(|refused| told(refused, &in_flight.names));
        *in_hand.in_flight = None;
        let done = done?;
        Ok(committed(&done.operations, done.duplicate))
    }

    async fn propose(&self, permit: &Permit<'_>, requested: &[Operation<'_>]) -> Result<InFlight, CallError> {
        let staged = &self.held.staged;
        let given = Given::read(permit, requested)?;
        let namespace = permit.namespace_id()?;
        let mut indexing = Indexing::of(permit.node(), namespace).await;
        let contents: Vec<_> =
            staged.documents.values().map(|seen| Attributed::of(seen, &mut indexing)).collect();
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
                // One that it has created and deleted again is checked with those that were read.
                Place::Document(key) if staged.is_changed(key) => match documents.remove(key.as_str()) {
                    Some(command) => command,
                    None => continue,
                },
                Place::Document(_) => continue,
            };
            names.push(one.operation_name().unwrap_or_default());
            commands.push(one);
        }
        commands.extend(documents.into_values());
        let acks: Vec<SettleItem<'_>> = staged.acks().map(ack).collect();
        commands.extend(acks.chunks(1).map(|items| Command::Settle { namespace, items }));
        let (key, request_digest) = outcome_key(permit, &self.open.id);
        let whole = Whole { namespace, idempotency_key: &key, request_digest, operations: &commands };
        let committing = permit.node().begin_commit(whole).map_err(|error| told(error.into(), &names))?;
        Ok(InFlight::new(committing, names))
    }
}

fn ack(receipt: Receipt) -> SettleItem<'static> {
    SettleItem { receipt, settlement: Settlement::Ack, error: "", result: None, add_cost: 0 }
}

/// The operations of requests, in the order in which they were staged.
fn requested<'r>(staged: &Staged, read: &[Vec<Operation<'r>>]) -> Result<Vec<Operation<'r>>, CallError> {
    let places = staged.operations.iter().filter_map(|place| match place {
        Place::Request { request, at, .. } => Some((*request, *at)),
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

/// A staged content, with its attributes as a list, and its terms in indexes.
struct Attributed<'s> {
    content: Option<MessageBlob<'s>>,
    attributes: Vec<(&'s str, &'s str)>,
    terms: Vec<DocumentTerms>,
}

impl<'s> Attributed<'s> {
    fn of(seen: &'s Seen, indexing: &mut Indexing) -> Attributed<'s> {
        let content = seen.change.as_ref().and_then(Change::content);
        let attributes = content.iter().flat_map(|content| content.headers()).collect();
        let terms = content.as_ref().map_or_else(Vec::new, |content| indexing.terms(content.payload));
        Attributed { content, attributes, terms }
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
        (Some(put), _) => Command::DocumentPut(DocumentPut { terms: &attributed.terms, ..put }),
        (None, Some(_)) => Command::DocumentDelete(DocumentDelete { namespace, key, when }),
        (None, None) => Command::DocumentCheck(DocumentCheck { namespace, key, when }),
    }
}

/// The error for the caller. The place is that of the operation among those that have results; what was only
/// read has none.
fn told(refused: Refused, names: &[&'static str]) -> CallError {
    let Refused { error, operation } = refused;
    let error = CallError::from(error).of_operation(|at| names.get(at).copied());
    match operation.and_then(|at| Some((at as usize, names.get(at as usize)?))) {
        Some((at, name)) => error.at_operation(at, name),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future as _, poll_fn};
    use std::pin::pin;
    use std::task::Poll;

    use serde_json::{Value, json};
    use sluice_engine::limits::Limits;
    use sluice_node::{Node, Options};

    use super::*;
    use crate::call::Unary as _;
    use crate::hot::receive::Receive;
    use crate::operation::Operation as Name;
    use crate::testing::{self, Open as Server};
    use crate::transactions::{Begin, Enlisting, Protocol, receive, stage};

    async fn begin(server: &Server) -> String {
        let begun = Begin::default().run(&server.permit(Name::TransactionBegin, "")).await.unwrap();
        let begun = serde_json::to_value(begun.answer).unwrap();
        begun["transaction"].as_str().unwrap().to_owned()
    }

    async fn staged(server: &Server, id: &str, operations: &[Operation<'_>]) -> Value {
        let kept = Kept { protocol: Protocol::Json, bytes: b"" };
        let results = stage(&server.permit(Name::TransactionStage, id), kept, operations).await.unwrap();
        serde_json::to_value(results).unwrap()
    }

    /// Begins a commit, and drops it. True: it is in flight.
    async fn abandon(permit: &Permit<'_>) -> bool {
        // A commit looks at the indexes first, unless they are known: it is to be given up later.
        permit.node().known_indexes(NamespaceId::DEFAULT).await.unwrap();
        let Close::Open(closing) = close(permit).await.unwrap() else { panic!("committed before") };
        let is_given_up = {
            let mut commit = pin!(closing.commit(permit, &[]));
            poll_fn(|context| Poll::Ready(commit.as_mut().poll(context).is_pending())).await
        };
        is_given_up && closing.open.in_flight.lock().await.is_some()
    }

    #[tokio::test]
    async fn a_commit_whose_caller_is_gone_is_done_once_also_if_no_outcome_is_remembered() {
        let limits = Limits { idempotency_keys: 0, ..Limits::default() };
        let server = Server::of(Node::start(Options { limits, ..testing::options() }).unwrap());
        let put = serde_json::from_value(json!({"key": "a", "content": "x"})).unwrap();
        let get = serde_json::from_value(json!({"key": "a"})).unwrap();
        for version in 1..=100 {
            let id = begin(&server).await;
            staged(&server, &id, &[Operation::Put(&put)]).await;
            let permit = server.permit(Name::TransactionClose, &id);
            if !abandon(&permit).await {
                continue;
            }
            let Close::Open(closing) = close(&permit).await.unwrap() else { panic!("committed before") };
            let done = serde_json::to_value(closing.commit(&permit, &[]).await.unwrap()).unwrap();
            drop(closing);
            assert_eq!(done["results"][0]["written"]["version"], version);
            let read = staged(&server, &begin(&server).await, &[Operation::Get(&get)]).await;
            assert_eq!(read["results"][0]["document"]["version"], version);
            assert_eq!(close(&permit).await.err().unwrap().code(), "transaction_lost");
            return;
        }
        panic!("no commit was abandoned");
    }

    /// Receives a message in a transaction, which reads a document. Others write that. The commit, which is
    /// refused therefore, is abandoned; the id, if it was in flight.
    async fn abandoned(server: &Server) -> Option<String> {
        let write = async |content: &str| {
            let put = serde_json::from_value(json!({"key": "a", "content": content})).unwrap();
            let id = begin(server).await;
            staged(server, &id, &[Operation::Put(&put)]).await;
            let permit = server.permit(Name::TransactionClose, &id);
            let Close::Open(closing) = close(&permit).await.unwrap() else { panic!("committed before") };
            closing.commit(&permit, &[]).await.unwrap();
        };
        write("1").await;
        let id = begin(server).await;
        let (cleared, queues) = (server.permit(Name::Receive, "q").cleared_by_name().unwrap(), [("q", 0)]);
        let wait = std::time::Duration::from_secs(5);
        let one = Receive { queues: &queues, max_messages: 1, lease_ms: 0, wait, consumer: "", room: None };
        let received = receive(cleared, Enlisting::In(&id), one, None).await.unwrap();
        assert_eq!((received.messages.len(), received.messages[0].delivery.attempt), (1, 1));
        let get = serde_json::from_value(json!({"key": "a"})).unwrap();
        staged(server, &id, &[Operation::Get(&get)]).await;
        write("2").await;
        abandon(&server.permit(Name::TransactionClose, &id)).await.then_some(id)
    }

    #[tokio::test]
    async fn a_refused_commit_whose_caller_is_gone_ends_the_transaction() {
        let server = Server::new();
        server.send("q", b"x").await;
        for repeats in [false, true] {
            let id = loop {
                if let Some(id) = abandoned(&server).await {
                    break id;
                }
            };
            let permit = server.permit(Name::TransactionClose, &id);
            let all = server.calls().open_transactions();
            if repeats {
                let Close::Open(closing) = close(&permit).await.unwrap() else { panic!("committed before") };
                assert_eq!(closing.commit(&permit, &[]).await.unwrap_err().code(), "version_mismatch");
            } else {
                let open = all.find(NamespaceId::DEFAULT, &id).unwrap();
                assert_eq!(open.expect_no_commit().unwrap_err().code(), "wrong_state");
                tokio::time::timeout(std::time::Duration::from_secs(5), open.has_ended()).await.unwrap();
            }
            assert_eq!(all.find(NamespaceId::DEFAULT, &id).err().unwrap().code(), "transaction_lost");
            assert_eq!(close(&permit).await.err().unwrap().code(), "transaction_lost");
            // The message is back, which counts as no attempt: `abandoned` looks.
        }
        while abandoned(&server).await.is_none() {}
    }

    #[tokio::test]
    async fn a_commit_that_is_done_after_its_caller_has_gone_stays_open_no_longer() {
        let server = Server::new();
        let put = serde_json::from_value(json!({"key": "a", "content": "x"})).unwrap();
        loop {
            let id = begin(&server).await;
            staged(&server, &id, &[Operation::Put(&put)]).await;
            let permit = server.permit(Name::TransactionClose, &id);
            let open = server.calls().open_transactions().find(NamespaceId::DEFAULT, &id).unwrap();
            if !abandon(&permit).await {
                continue;
            }
            tokio::time::timeout(std::time::Duration::from_secs(5), open.has_ended()).await.unwrap();
            let Close::Before(done) = close(&permit).await.unwrap() else { panic!("it is open") };
            let done = serde_json::to_value(done).unwrap();
            assert!(done["duplicate"].as_bool().unwrap() && done["results"][0]["written"].is_object());
            return;
        }
    }
}
