//! Transactions: operations on queues, documents and locks that are done together, all or none. `open` has
//! the calls of those that are staged over several.

mod in_doubt;
mod open;
mod operation;
mod parts;
mod repeat;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::command::{
    Command, DocumentCheck, DocumentDelete, Send, SettleItem, Settlement, Transaction as Whole,
};
use sluice_engine::documents::DocumentTerms;
use sluice_engine::error::Error;
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::transactions::OperationDone;
use sluice_node::{Committed as Done, Refused, RefusedPart};

use crate::access::Right;
use crate::attachments::{KeyedAttach, KeyedDetach};
use crate::digest::{Fields, group_digest, request_digest};
use crate::documents::indexes::Indexing;
use crate::documents::patch::{Change, KeyedPatch, Patched, TRIES};
use crate::documents::{KeyedCheck, KeyedDelete, KeyedPut, Writing, Written};
use crate::error::CallError;
use crate::fault::{Fault, Read};
use crate::hot::message::GroupMessage;
use crate::hot::settle::SettleRequestItem;
use crate::hot::{ID_EXAMPLE, RECEIPT_EXAMPLE};
use crate::locks::{AcquireAtOnce, Grant, Release, put_claim};
use crate::permit::Permit;

use parts::Part;
use repeat::{Repeat, key_of_others};

pub use crate::open_transactions::{Kept, Protocol};
pub use in_doubt::{InDoubtList, InDoubtShow, Resolve};
pub use open::{
    Begin, Begun, Break, Close, Closing, Enlisting, List, Received, Rollback, Show, Stage, StageResult,
    StageResults, StagedDocument, StagedOperation, close, receive, stage,
};
pub use operation::{KeyedGet, Operation};

/// Operations to do together. Fronts decode it by hand.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TransactionRequest", example = json!({"operations": [
    {"put": {"key": "orders/17", "content": "paid", "if_version": 3}},
    {"settle": {"receipt": RECEIPT_EXAMPLE, "outcome": "ack"}},
    {"send": {"queue": "mail", "payload": "thank you"}},
]}))]
pub struct Commit {
    /// 1 to 1,000 operations. Each is admitted by the state before the transaction, so none depends on
    /// another.
    pub operations: Vec<OperationRequest>,
}

/// An operation: one of these.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TransactionOperation")]
pub struct OperationRequest {
    /// A message to send.
    pub send: Option<GroupMessage>,
    /// A delivery to settle.
    pub settle: Option<SettleRequestItem>,
    /// A document to write.
    pub put: Option<KeyedPut>,
    /// A document to patch.
    pub patch: Option<KeyedPatch>,
    /// A document to delete.
    pub delete: Option<KeyedDelete>,
    /// A condition on a document that is not written.
    pub check: Option<KeyedCheck>,
    /// An upload to make an attachment of.
    pub attach: Option<KeyedAttach>,
    /// An attachment to delete.
    pub delete_attachment: Option<KeyedDetach>,
    /// Locks to acquire, if they are free.
    pub acquire: Option<AcquireAtOnce>,
    /// A grant to release.
    pub release: Option<Release>,
    /// A document to read, in an open transaction only.
    pub get: Option<KeyedGet>,
    /// Namespace that the operation is about, if it is another than that of the request: in a transaction of
    /// one call only.
    pub namespace: Option<String>,
}

/// Operations that are done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "TransactionCommitted", example = json!({
    "results": [
        {"written": {"version": 4, "etag": "7340032000001", "changed_at_ms": 1_767_225_600_000u64}},
        {},
        {"id": ID_EXAMPLE},
    ],
    "duplicate": false,
}))]
pub struct Committed {
    /// One for each operation, in the order of the request.
    results: Vec<OperationResult>,
    /// True when the request repeats one with the same idempotency key: then the results are those of the
    /// first one.
    duplicate: bool,
}

/// Result of an operation: nothing of one that settles, deletes, checks or releases.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, JsonSchema)]
#[schemars(rename = "TransactionResult")]
pub struct OperationResult {
    /// Id of the message that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Version of the document that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<Written>,
    /// Grant of the locks that were acquired.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<Grant>,
}

impl From<&OperationDone> for OperationResult {
    fn from(done: &OperationDone) -> OperationResult {
        let nothing = OperationResult::default();
        match *done {
            OperationDone::Sent { id } => OperationResult { id: Some(id.to_string()), ..nothing },
            OperationDone::Written { version, .. } => {
                OperationResult { written: Some(version.into()), ..nothing }
            }
            OperationDone::Granted { grant } => OperationResult { grant: Some(grant.into()), ..nothing },
            OperationDone::Settled | OperationDone::Deleted { .. } => nothing,
            OperationDone::Checked | OperationDone::Released => nothing,
        }
    }
}

impl From<Done> for Committed {
    fn from(done: Done) -> Committed {
        let results = done.operations.iter().map(OperationResult::from).collect();
        Committed { results, duplicate: done.duplicate }
    }
}

/// Does operations together, all or none. An empty key is none; else a repeat with it gets the outcome of the
/// first. `namespaces`: those that operations name, each at the place of its operation.
///
/// # Errors
/// What one of the operations would be refused with alone, with the place of that one.
pub async fn commit(
    permit: &Permit<'_>,
    idempotency_key: &[u8],
    operations: &[Operation<'_>],
    namespaces: &[Option<String>],
) -> Result<Committed, CallError> {
    let parts = Part::all(permit, operations, namespaces)?;
    let mut given = Vec::with_capacity(parts.len());
    for part in &parts {
        clear(part.permit(), &part.operations).await.map_err(|error| part.placed(error))?;
    }
    let namespaces = parts.iter().map(Part::namespace).collect::<Result<Vec<_>, _>>()?;
    for part in &parts {
        given.push(Given::read(part.permit(), &part.operations).map_err(|error| part.placed(error))?);
    }
    let request_digest = if idempotency_key.is_empty() { 0 } else { digest(&parts, &given)? };
    let key_of_others = key_of_others(permit.caller(), &namespaces, idempotency_key);
    let repeat =
        Repeat { idempotency_key, key_of_others: &key_of_others, request_digest, namespaces: &namespaces };
    if let Some(done) = done_before(&parts, repeat, &given).await? {
        return Ok(done);
    }
    for tried in 1.. {
        match commit_once(&parts, repeat, &given).await {
            Err((0, refused)) if tried < TRIES && given[0].may_try_again(&parts[0].operations, &refused) => {}
            // The first request may have been committed while this one has read what to patch.
            Err((part, Refusal::Before(at, error))) => {
                let before = done_before(&parts, repeat, &given).await?;
                return before.ok_or_else(|| told(&parts[part], Refusal::Before(at, error)));
            }
            Err((part, refused)) => return Err(told(&parts[part], refused)),
            Ok(done) => return Ok(in_order(&parts, &done)),
        }
    }
    Err(Fault::new("version_mismatch", "others write the documents again and again").into())
}

/// The digest by which a repeat is told from a misuse of the key.
fn digest(parts: &[Part<'_>], given: &[Given<'_>]) -> Result<u64, CallError> {
    let mut all = Vec::new();
    for (part, given) in parts.iter().zip(given) {
        let fields = given.fields(&part.operations).map_err(|error| part.placed(error))?;
        all.push((part.permit().namespace_name().as_bytes(), fields));
    }
    let pieces = all.iter().flat_map(|(namespace, fields)| [*namespace, fields.bytes()]);
    Ok(request_digest(parts[0].permit().caller(), pieces)[0])
}

/// Results of parts, in the order of the request.
fn in_order(parts: &[Part<'_>], done: &[Done]) -> Committed {
    let results = parts.iter().zip(done).flat_map(|(part, done)| {
        let placed = move |(at, done)| (part.place(at), OperationResult::from(done));
        done.operations.iter().enumerate().map(placed)
    });
    let mut results: Vec<(usize, OperationResult)> = results.collect();
    results.sort_by_key(|(place, _)| *place);
    let results = results.into_iter().map(|(_, result)| result).collect();
    Committed { results, duplicate: done.iter().any(|done| done.duplicate) }
}

/// Outcome of the first request with this key. The engine answers repeats itself, but for those with patches,
/// which it would not get: a patch of what has changed since is not to be made again.
async fn done_before(
    parts: &[Part<'_>],
    repeat: Repeat<'_>,
    given: &[Given<'_>],
) -> Result<Option<Committed>, CallError> {
    if repeat.idempotency_key.is_empty() || !given[0].has_patches() {
        return Ok(None);
    }
    let Repeat { idempotency_key, request_digest, namespaces, .. } = repeat;
    let node = parts[0].permit().node();
    Ok(node.committed(namespaces[0], idempotency_key, request_digest).await?.map(Committed::from))
}

/// Checks that the caller may do each of the operations by itself.
async fn clear(permit: &Permit<'_>, operations: &[Operation<'_>]) -> Result<(), CallError> {
    permit.require_known()?;
    permit.allow_work()?;
    // A request without operations of its own namespace decides there, and its key is kept there.
    if operations.is_empty() {
        permit.allow_some_work()?;
    }
    for (at, operation) in operations.iter().enumerate() {
        allow(permit, operation).map_err(|error| error.at_operation(at, operation.name()))?;
    }
    let messages = operations.iter().filter_map(|operation| {
        if let Operation::Send(message) = operation { Some(&message.item) } else { None }
    });
    permit.onward(messages)?.cleared().await?;
    permit.allow_messages(Right::Receive, settled(operations)).await
}

fn allow(permit: &Permit<'_>, operation: &Operation<'_>) -> Result<(), CallError> {
    match operation {
        Operation::Send(message) => permit.allow_send(message.queue, &message.item),
        Operation::Put(KeyedPut { key: Some(key), .. })
        | Operation::Patch(KeyedPatch { key: Some(key), .. })
        | Operation::Delete(KeyedDelete { key: Some(key), .. })
        | Operation::Attach(KeyedAttach { key: Some(key), .. })
        | Operation::Detach(KeyedDetach { key: Some(key), .. })
        | Operation::Check(KeyedCheck { key: Some(key), .. }) => permit.allow_key(Right::Coordinate, key),
        Operation::Get(KeyedGet { key: Some(key) }) => permit.allow_key(Right::Read, key),
        Operation::Acquire(acquire) => {
            let keys = acquire.keys().unwrap_or_default();
            keys.iter().try_for_each(|key| permit.allow_key(Right::Coordinate, key))
        }
        Operation::Release(_) => permit.allow_some_key(Right::Coordinate),
        // Of which queue is looked up for all together.
        Operation::Settle(_) => permit.allow_some_queue(Right::Receive),
        // What has no key is refused when it is read.
        Operation::Put(_) | Operation::Patch(_) | Operation::Delete(_) => Ok(()),
        Operation::Attach(_) | Operation::Detach(_) | Operation::Check(_) | Operation::Get(_) => Ok(()),
    }
}

fn settled<'o>(operations: &'o [Operation<'_>]) -> impl Iterator<Item = MessageId> + 'o {
    operations.iter().filter_map(|operation| {
        if let Operation::Settle(item) = operation { Some(item.receipt.id) } else { None }
    })
}

/// The parts of operations that are read once.
struct Given<'a> {
    /// Keys of documents, empty of the others.
    keys: Vec<&'a str>,
    attributes: Vec<Vec<(&'a str, &'a str)>>,
    /// Keys of locks.
    locks: Vec<Vec<&'a str>>,
    changes: Vec<Option<Change>>,
    /// Memory of the changes, in bytes.
    memory: usize,
}

impl<'a> Given<'a> {
    fn read(permit: &Permit<'_>, operations: &'a [Operation<'_>]) -> Result<Given<'a>, CallError> {
        let mut given = Given {
            keys: Vec::new(),
            attributes: Vec::new(),
            locks: Vec::new(),
            changes: Vec::new(),
            memory: 0,
        };
        for (at, operation) in operations.iter().enumerate() {
            given.add(permit, operation).map_err(|fault| refused(at, operation, fault))?;
        }
        Ok(given)
    }

    fn add(&mut self, permit: &Permit<'_>, operation: &'a Operation<'_>) -> Read<()> {
        let (mut key, mut attributes, mut locks, mut change) = ("", Vec::new(), Vec::new(), None);
        match operation {
            Operation::Put(put) => {
                key = key_of(put.key.as_ref())?;
                attributes = put.attributes();
            }
            Operation::Patch(patch) => {
                key = key_of(patch.key.as_ref())?;
                change = Some(patch.given().change(permit, self.memory)?);
                self.memory += change.as_ref().map_or(0, Change::memory);
            }
            Operation::Delete(delete) => key = key_of(delete.key.as_ref())?,
            Operation::Check(check) => key = key_of(check.key.as_ref())?,
            Operation::Attach(attach) => key = key_of(attach.key.as_ref())?,
            Operation::Detach(detach) => key = key_of(detach.key.as_ref())?,
            Operation::Acquire(acquire) => locks = acquire.keys()?,
            Operation::Get(_) => {
                let reason = "a transaction of one call reads nothing: begin one, and stage its operations";
                return Err(Fault::invalid(reason));
            }
            Operation::Send(_) | Operation::Settle(_) | Operation::Release(_) => {}
        }
        self.keys.push(key);
        self.attributes.push(attributes);
        self.locks.push(locks);
        self.changes.push(change);
        Ok(())
    }

    fn has_patches(&self) -> bool {
        self.changes.iter().any(Option::is_some)
    }

    /// The fields by which a repeat is told from a misuse of the key.
    fn fields(&self, operations: &[Operation<'_>]) -> Result<Fields, CallError> {
        let mut fields = Fields::default();
        for (at, operation) in operations.iter().enumerate() {
            fields.text("operation", Some(operation.name()));
            self.put_fields(at, operation, &mut fields).map_err(|fault| refused(at, operation, fault))?;
        }
        Ok(fields)
    }

    fn put_fields(&self, at: usize, operation: &Operation<'_>, fields: &mut Fields) -> Read<()> {
        fields.text("key", Some(self.keys[at]));
        match operation {
            Operation::Send(message) => {
                fields.number("message", Some(group_digest(std::iter::once(message))));
            }
            Operation::Settle(item) => put_settlement(item, fields),
            Operation::Put(put) => put.writing(&self.attributes[at])?.put_fields(fields),
            Operation::Patch(patch) => {
                self.changes[at].iter().for_each(|change| change.put_fields(fields));
                patch.when().put_fields(fields);
            }
            Operation::Delete(delete) => delete.when().put_fields(fields),
            Operation::Check(check) => check.when().put_fields(fields),
            Operation::Attach(attach) => attach.put_fields(fields),
            Operation::Detach(detach) => detach.put_fields(fields),
            Operation::Acquire(acquire) => {
                let claim = acquire.claim(NamespaceId::DEFAULT, &self.locks[at])?;
                put_claim(&claim, fields);
                fields.number("ttl_ms", Some(claim.ttl_ms.into()));
            }
            Operation::Release(release) => fields.text("token", release.token_text()),
            // It is refused when it is read.
            Operation::Get(_) => {}
        }
        Ok(())
    }

    /// True if a refusal is of a patch that can be made again, of the version that is there by now.
    fn may_try_again(&self, operations: &[Operation<'_>], refused: &Refusal) -> bool {
        let Refusal::Engine(Refused { error: Error::DocumentChanged { .. }, operation: Some(at) }) = refused
        else {
            return false;
        };
        let Some(Operation::Patch(patch)) = operations.get(*at as usize) else { return false };
        let when = patch.when();
        when.version.is_none() && when.etag.is_none()
    }
}

fn put_settlement(item: &SettleItem<'_>, fields: &mut Fields) {
    let SettleItem { receipt, settlement, error, result, add_cost } = item;
    fields.text("receipt", Some(&receipt.to_string()));
    let (outcome, delay_ms) = match *settlement {
        Settlement::Ack => ("ack", None),
        Settlement::Nack { delay_ms } => ("nack", delay_ms),
        Settlement::Release { delay_ms } | Settlement::GiveBack { delay_ms } => ("release", Some(delay_ms)),
        Settlement::Reject => ("reject", None),
    };
    fields.text("outcome", Some(outcome));
    fields.number("delay_ms", delay_ms);
    fields.text("error", Some(error));
    if let Some(result) = result {
        fields.text("content_type", Some(result.content_type));
        fields.octets("result", result.bytes);
    }
    fields.number("add_cost", (*add_cost > 0).then_some(u64::from(*add_cost)));
}

fn key_of(key: Option<&String>) -> Read<&str> {
    key.map(String::as_str).ok_or_else(|| Fault::missing("key", "a document has a key"))
}

/// The refusal of a transaction.
enum Refusal {
    /// By the engine.
    Engine(Refused),
    /// Before it was proposed, with the place of the operation.
    Before(usize, CallError),
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Refusal {
        Refusal::Engine(refused)
    }
}

/// The error for the caller, with the place of the operation that is to blame.
fn told(part: &Part<'_>, refusal: Refusal) -> CallError {
    let operations = &part.operations;
    let error = match refusal {
        Refusal::Engine(Refused { error: error @ Error::QuotaExceeded { .. }, operation: None }) => {
            part.named(error.into())
        }
        Refusal::Engine(Refused { error, operation: None }) => {
            CallError::from(error).of_operation(|at| operations.get(at).map(Operation::name))
        }
        Refusal::Engine(Refused { error, operation: Some(at) }) => {
            let name = operations.get(at as usize).map_or("", Operation::name);
            CallError::from(error).at_operation(at as usize, name)
        }
        Refusal::Before(at, error) => error.at_operation(at, operations[at].name()),
    };
    part.placed(error)
}

fn refused(at: usize, operation: &Operation<'_>, fault: Box<Fault>) -> CallError {
    CallError::from(fault).at_operation(at, operation.name())
}

/// Makes the patches of the documents as they are, and proposes the whole. Returns what came of each part, or
/// the part that is to blame.
async fn commit_once(
    parts: &[Part<'_>],
    repeat: Repeat<'_>,
    given: &[Given<'_>],
) -> Result<Vec<Done>, (usize, Refusal)> {
    // Of the others nothing is patched.
    let patched = patch_all(parts[0].permit(), &given[0]).await.map_err(|refused| (0, refused))?;
    let of_patched: Vec<Vec<(&str, &str)>> =
        patched.iter().map(|it| it.as_ref().map_or_else(Vec::new, Patched::attributes)).collect();
    let mut writings = Vec::with_capacity(parts.len());
    for (number, (part, given)) in parts.iter().zip(given).enumerate() {
        let of = |at: usize| {
            let patched = patched.get(at).filter(|_| number == 0)?.as_ref()?;
            Some((patched, &*of_patched[at]))
        };
        writings.push(write_all(part, given, of).map_err(|refused| (number, refused))?);
    }
    let mut terms = Vec::with_capacity(parts.len());
    for (part, writings) in parts.iter().zip(&writings) {
        let mut indexing = Indexing::of(part.permit().node(), repeat.namespaces[terms.len()]).await;
        let of = |writing: &Option<Writing<'_>>| {
            writing.as_ref().map_or_else(Vec::new, |it| indexing.terms(it.content))
        };
        terms.push(writings.iter().map(of).collect::<Vec<Vec<DocumentTerms>>>());
    }
    let mut commands = Vec::with_capacity(parts.len());
    for (number, part) in parts.iter().enumerate() {
        let of = |at: usize| writings[number][at].as_ref().map(|writing| (writing, &*terms[number][at]));
        let made = part.operations.iter().enumerate().map(|(at, operation)| {
            let command = command(repeat.namespaces[number], operation, at, &given[number], of(at));
            command.map_err(|error| (number, Refusal::Before(at, error)))
        });
        commands.push(made.collect::<Result<Vec<_>, _>>()?);
    }
    propose(parts, repeat, &commands).await
}

/// Proposes the operations of parts.
async fn propose(
    parts: &[Part<'_>],
    repeat: Repeat<'_>,
    commands: &[Vec<Command<'_>>],
) -> Result<Vec<Done>, (usize, Refusal)> {
    let node = parts[0].permit().node();
    let wholes: Vec<Whole<'_>> =
        commands.iter().enumerate().map(|(part, commands)| repeat.whole(part, commands)).collect();
    match wholes.as_slice() {
        [own] => match node.commit(*own).await {
            Ok(done) => Ok(vec![done]),
            Err(refused) => Err((0, refused.into())),
        },
        [own, others @ ..] => {
            let done = node.commit_across(*own, others).await;
            done.map_err(|RefusedPart { part, refused }| (part, repeat.as_given(refused).into()))
        }
        [] => Ok(Vec::new()),
    }
}

/// The writings of the documents of a part. `patched`: what came of the patch at a place, with its
/// attributes.
fn write_all<'w>(
    part: &'w Part<'_>,
    given: &'w Given<'_>,
    patched: impl Fn(usize) -> Option<(&'w Patched, &'w [(&'w str, &'w str)])>,
) -> Result<Vec<Option<Writing<'w>>>, Refusal> {
    let mut writings = Vec::with_capacity(part.operations.len());
    for (at, operation) in part.operations.iter().enumerate() {
        let writing = match (operation, patched(at)) {
            (Operation::Put(put), _) => put.writing(&given.attributes[at]).map(Some),
            (Operation::Patch(patch), Some((patched, attributes))) => {
                Ok(Some(patched.writing(patch.when(), attributes)))
            }
            (Operation::Send(_) | Operation::Settle(_) | Operation::Patch(_), _) => Ok(None),
            (Operation::Delete(_) | Operation::Check(_), _) => Ok(None),
            (Operation::Attach(_) | Operation::Detach(_), _) => Ok(None),
            (Operation::Acquire(_) | Operation::Release(_) | Operation::Get(_), _) => Ok(None),
        };
        writings.push(writing.map_err(|fault| Refusal::Before(at, fault.into()))?);
    }
    Ok(writings)
}

/// Makes the patches of the documents as they are, as long as their contents fit into one transaction.
async fn patch_all(permit: &Permit<'_>, given: &Given<'_>) -> Result<Vec<Option<Patched>>, Refusal> {
    let limit = u64::from(permit.node().limits().batch_bytes);
    let (mut all, mut bytes) = (Vec::with_capacity(given.changes.len()), 0);
    for (at, change) in given.changes.iter().enumerate() {
        let Some(change) = change else {
            all.push(None);
            continue;
        };
        let patched = Patched::read(permit, given.keys[at], change, given.memory + bytes).await;
        let patched = patched.map_err(|error| Refusal::Before(at, error))?;
        bytes += patched.content_bytes();
        if bytes as u64 > limit {
            let what = "bytes of contents";
            let error = Error::BatchTooLarge { what, size: bytes as u64, limit };
            return Err(Refusal::Engine(Refused { error, operation: None }));
        }
        all.push(Some(patched));
    }
    Ok(all)
}

/// An operation as the engine takes it.
fn command<'a>(
    namespace: NamespaceId,
    operation: &'a Operation<'a>,
    at: usize,
    given: &'a Given<'a>,
    document: Option<(&'a Writing<'a>, &'a [DocumentTerms])>,
) -> Result<Command<'a>, CallError> {
    Ok(match (operation, document) {
        (Operation::Send(message), _) => Command::Send(Send {
            namespace,
            queue: message.queue,
            idempotency_key: b"",
            request_digest: 0,
            items: std::slice::from_ref(&message.item),
        }),
        (Operation::Settle(item), _) => Command::Settle { namespace, items: std::slice::from_ref(item) },
        (Operation::Put(_) | Operation::Patch(_), Some((writing, terms))) => {
            Command::DocumentPut(writing.put(namespace, given.keys[at], 0, terms)?)
        }
        (Operation::Put(_) | Operation::Patch(_), None) | (Operation::Get(_), _) => {
            return Err(Error::Internal { reason: "an operation without its document".into() }.into());
        }
        (Operation::Delete(delete), _) => {
            let (key, when) = (given.keys[at], delete.when().read()?);
            Command::DocumentDelete(DocumentDelete { namespace, key, when })
        }
        (Operation::Check(check), _) => {
            let (key, when) = (given.keys[at], check.condition()?);
            Command::DocumentCheck(DocumentCheck { namespace, key, when })
        }
        (Operation::Attach(attach), _) => {
            Command::AttachmentCommit(attach.commit(namespace, given.keys[at])?)
        }
        (Operation::Detach(detach), _) => {
            Command::AttachmentDelete(detach.deletion(namespace, given.keys[at])?)
        }
        (Operation::Acquire(acquire), _) => Command::LockAcquire(acquire.claim(namespace, &given.locks[at])?),
        (Operation::Release(release), _) => Command::LockRelease { namespace, token: release.token()? },
    })
}
