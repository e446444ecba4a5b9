//! Open transactions: operations are staged over several calls, in the memory of the node that leads, and
//! committed together by the last one. Documents are read as the transaction sees them, and its commit checks
//! that those which it has read are still as they were.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::command::{Command, DocumentCheck, DocumentDelete, DocumentPut, Transaction as Whole};
use sluice_engine::documents::{DocumentCondition, DocumentVersion, DocumentView};
use sluice_engine::id::NamespaceId;
use sluice_engine::limits::TRANSACTION_OPERATIONS_MAX;
use sluice_engine::transactions::OperationDone;
use sluice_node::Refused;
use tokio::sync::OwnedMutexGuard;

use super::{Committed, Given, Operation, clear, command, key_of};
use crate::access::Right;
use crate::call::{Body, Done, Unary};
use crate::codes::find;
use crate::digest::request_digest;
use crate::documents::patch::{KeyedPatch, patched};
use crate::documents::{KeyedCheck, KeyedDelete, KeyedPut, read_key, text_bytes};
use crate::error::CallError;
use crate::fault::Fault;
use crate::hot::AT_MS_EXAMPLE;
use crate::open_transactions::{Change, Held, Kept, Led, Open, Place, Seen, Staged, staged_at_most};
use crate::payload::{Content, Headers, Octets, Text};
use crate::permit::Permit;
use crate::time::now_ms;
use crate::value::{Nothing, Within};

/// Longest time for which a transaction is open, in milliseconds: 30 minutes.
const TTL_MS_MAX: u64 = 1_800_000;
/// Time for which a transaction is open that says nothing, in milliseconds.
const TTL_MS: u64 = 30_000;
const ID_EXAMPLE: &str = "9f86d081884c7d659a2feaa0c55ad015";

/// A transaction to begin.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "TransactionBeginRequest", example = json!({"ttl_ms": 60_000}))]
pub struct Begin {
    /// Time for which it is open, in milliseconds (default 30,000): then it is rolled back.
    ttl_ms: Option<Within<1, TTL_MS_MAX>>,
}

/// A transaction that is open.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "TransactionBegun")]
#[schemars(example = json!({"transaction": ID_EXAMPLE, "expires_at_ms": AT_MS_EXAMPLE}))]
pub struct Begun {
    /// Its id, which is not to be shown to others: who has it can use the transaction, within their own
    /// rights.
    transaction: String,
    /// When it is rolled back unless it has ended, in milliseconds since the Unix epoch.
    expires_at_ms: u64,
}

impl Unary for Begin {
    type Answer = Begun;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Begun>, CallError> {
        allow_some(permit)?;
        let ttl_ms = self.ttl_ms.map_or(TTL_MS, Within::get);
        let all = permit.calls().open_transactions();
        let open = all.begin(led(permit).await?, Duration::from_millis(ttl_ms))?;
        Ok(Begun { transaction: open.id.clone(), expires_at_ms: now_ms() + ttl_ms }.into())
    }
}

/// A transaction to roll back.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "TransactionRollbackRequest")]
pub struct Rollback {}

impl Unary for Rollback {
    type Answer = Nothing;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Nothing>, CallError> {
        allow_some(permit)?;
        // A commit that has begun is waited for.
        let (open, _held) = lock_named(permit).await?;
        open.expect_no_commit()?;
        permit.calls().open_transactions().end(&open.id);
        Ok(Nothing {}.into())
    }
}

/// Operations to stage. Fronts decode it by hand.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TransactionStageRequest", example = json!({"operations": [
    {"get": {"key": "orders/17"}},
    {"put": {"key": "orders/17", "content": "paid"}},
]}))]
pub struct Stage {
    /// 1 to 1,000 operations, which are staged all or not at all.
    pub operations: Vec<super::OperationRequest>,
}

/// A document to read.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "TransactionGet", example = json!({"key": "orders/17"}))]
pub struct KeyedGet {
    /// Its key.
    #[schemars(required)]
    pub(crate) key: Option<String>,
}

/// Operations that are staged.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "TransactionStaged", example = json!({"results": [
    {"found": true, "document": {"version": 3, "etag": "7340032000001", "content": "new"}}, {},
]}))]
pub struct StageResults {
    /// One for each operation, in the order of the request.
    results: Vec<StageResult>,
}

/// Result of an operation that is staged: nothing but of a read.
#[derive(Clone, Default, Debug, Serialize, JsonSchema)]
#[schemars(rename = "TransactionStageResult")]
pub struct StageResult {
    /// True if there is a document, as the transaction sees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<bool>,
    /// The document.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<StagedDocument>,
}

/// A document as a transaction sees it.
#[derive(Clone, Default, Debug, Serialize, JsonSchema)]
#[schemars(rename = "TransactionDocument")]
pub struct StagedDocument {
    /// Number of its version; absent if the transaction has written it.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    /// ETag, in decimal digits; absent if the transaction has written it.
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    /// The content, if it is UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Text>,
    /// The content as standard base64, if it is not UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_base64: Option<Octets>,
    /// Media type of the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<Text>,
    /// Names and values.
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<Headers>,
}

/// Stages the operations of a request, all or none.
///
/// # Errors
/// `transaction_lost`; those of reads; what can be said of an operation before its commit, with its place.
pub async fn stage(
    permit: &Permit<'_>,
    request: Kept<'_>,
    operations: &[Operation<'_>],
) -> Result<StageResults, CallError> {
    clear(permit, operations).await?;
    let namespace = permit.namespace_id()?;
    let (open, mut held) = lock_named(permit).await?;
    open.expect_no_commit()?;
    let staged = held.staged.clone();
    let mut staging = Staging { permit, namespace, staged, is_request_kept: false, answer_bytes: 0 };
    let mut results = Vec::with_capacity(operations.len());
    for (at, operation) in operations.iter().enumerate() {
        let result = staging.add(at, operation).await;
        results.push(result.map_err(|error| error.at_operation(at, operation.name()))?);
    }
    let Staging { mut staged, is_request_kept, .. } = staging;
    if staged.count() > TRANSACTION_OPERATIONS_MAX {
        let (what, limit) = ("operations", TRANSACTION_OPERATIONS_MAX as u64);
        return Err(Error::BatchTooLarge { what, size: staged.count() as u64, limit }.into());
    }
    if is_request_kept {
        staged.keep(request)?;
    }
    held.replace(staged)?;
    Ok(StageResults { results })
}

/// Operations that are being staged.
struct Staging<'p, 'c> {
    permit: &'p Permit<'c>,
    namespace: NamespaceId,
    staged: Staged,
    /// True: operations of the request itself are needed for the commit.
    is_request_kept: bool,
    /// Memory that is set aside for the documents of the answer.
    answer_bytes: usize,
}

impl Staging<'_, '_> {
    async fn add(&mut self, at: usize, operation: &Operation<'_>) -> Result<StageResult, CallError> {
        match operation {
            Operation::Send(_) | Operation::Settle(_) | Operation::Acquire(_) | Operation::Release(_) => {
                self.check_alone(operation)?;
                self.staged.stage(at);
                self.is_request_kept = true;
            }
            Operation::Get(get) => return self.get(key_of(get.key.as_ref())?).await,
            Operation::Put(put) => self.put(put)?,
            Operation::Patch(patch) => self.patch(patch).await?,
            Operation::Delete(delete) => self.delete(delete).await?,
            Operation::Check(check) => self.check(check).await?,
        }
        Ok(StageResult::default())
    }

    /// Refuses what is wrong by itself. A message that waits for others of its transaction is judged with
    /// them.
    fn check_alone(&self, operation: &Operation<'_>) -> Result<(), CallError> {
        if let Operation::Send(message) = operation
            && message.item.options.is_some_and(|options| options.depends_on.is_some())
        {
            return Ok(());
        }
        let one = std::slice::from_ref(operation);
        let given = Given::read(self.permit, one)?;
        let command = command(self.namespace, operation, 0, &given, None)?;
        Ok(command.check(&self.permit.calls().limits())?)
    }

    async fn get(&mut self, key: &str) -> Result<StageResult, CallError> {
        let permit = self.permit;
        let (version, blob) = match self.look(key, true).await? {
            Looked::Absent => return Ok(StageResult { found: Some(false), document: None }),
            Looked::Staged(blob) => {
                self.answer_bytes += text_bytes(blob.len());
                permit.room().reserve(self.answer_bytes)?;
                (None, blob)
            }
            Looked::Stored(version, blob) => {
                let blob = blob.ok_or_else(unreadable)?;
                self.answer_bytes += text_bytes(blob.len());
                (Some(version), blob)
            }
        };
        let content = Content::of(Some(&blob));
        let document = StagedDocument {
            version: version.map(|version| version.version),
            etag: version.map(|version| version.revision.to_string()),
            content: content.text,
            content_base64: content.octets,
            content_type: content.content_type,
            attributes: Headers::of(&blob),
        };
        Ok(StageResult { found: Some(true), document: Some(document) })
    }

    /// Looks at the document of a key as the transaction sees it; with its content, if it is `read`. A read
    /// of what is stored is noted.
    async fn look(&mut self, key: &str, read: bool) -> Result<Looked, CallError> {
        match self.staged.documents.get(key).and_then(|seen| seen.change.as_ref()) {
            Some(Change::Put { blob, .. }) => return Ok(Looked::Staged(blob.clone())),
            Some(Change::Delete) => return Ok(Looked::Absent),
            None => {}
        }
        self.load(key, read).await
    }

    /// Looks at what is stored, and notes it.
    async fn load(&mut self, key: &str, read: bool) -> Result<Looked, CallError> {
        let (permit, before) = (self.permit, self.answer_bytes);
        let room = |view: &DocumentView| match read {
            true => permit.room().reserve(before + text_bytes(view.content_bytes as usize)).map(|()| true),
            false => Ok(false),
        };
        let looked = match read_key(permit, key, None, room).await {
            Ok((view, bytes)) => Looked::Stored(view.version, bytes),
            Err(error) if error.code() == "document_not_found" => Looked::Absent,
            Err(error) => return Err(error),
        };
        let version = if let Looked::Stored(version, _) = &looked { Some(*version) } else { None };
        self.staged.see(key).note(key, version)?;
        Ok(looked)
    }

    fn put(&mut self, put: &KeyedPut) -> Result<(), CallError> {
        let key = key_of(put.key.as_ref())?;
        let attributes = put.attributes();
        let writing = put.writing(&attributes)?;
        let put = writing.put(self.namespace, key, 0)?;
        Command::DocumentPut(put).check(&self.permit.calls().limits())?;
        let seen = self.staged.see(key);
        seen.expect(key, put.when)?;
        let before = match &seen.change {
            Some(Change::Put { history, .. }) => *history,
            Some(Change::Delete) => {
                let reason =
                    "the transaction deletes the document: write the new one with the next transaction";
                return Err(Fault::invalid(reason).into());
            }
            None => None,
        };
        let put = DocumentPut { history: put.history.or(before), ..put };
        self.staged.change(key, Some(Change::of(&put)));
        Ok(())
    }

    async fn patch(&mut self, patch: &KeyedPatch) -> Result<(), CallError> {
        let key = key_of(patch.key.as_ref())?;
        let (change, when) = (patch.given().change(self.permit, self.answer_bytes)?, patch.when().read()?);
        let blob = match self.look(key, true).await? {
            Looked::Absent => return Err(Error::DocumentNotFound { key: key.to_owned() }.into()),
            Looked::Staged(blob) => blob,
            Looked::Stored(_, blob) => blob.ok_or_else(unreadable)?,
        };
        let seen = self.staged.see(key);
        seen.expect(key, when)?;
        let (ttl_ms, history) = match &seen.change {
            Some(Change::Put { ttl_ms, history, .. }) => (*ttl_ms, *history),
            Some(Change::Delete) | None => (None, None),
        };
        let parsed = Change::Put { ttl_ms, history, blob: blob.clone() };
        let content = parsed.content().ok_or_else(unreadable)?;
        let attributes: Vec<(&str, &str)> = content.headers().collect();
        let new = patched(change, blob.slice_ref(content.payload)).await?;
        let put = parsed.put((self.namespace, key, when), &content, &attributes).ok_or_else(unreadable)?;
        let put = DocumentPut { content: &new, ..put };
        Command::DocumentPut(put).check(&self.permit.calls().limits())?;
        self.staged.change(key, Some(Change::of(&put)));
        // A request of a few bytes makes many large documents: each is counted as it is made.
        Ok(staged_at_most(self.staged.bytes())?)
    }

    /// Stages a deletion. What is deleted is looked at, so that a document that the transaction has created
    /// leaves nothing.
    async fn delete(&mut self, delete: &KeyedDelete) -> Result<(), CallError> {
        let (key, when) = (key_of(delete.key.as_ref())?, delete.when().read()?);
        if self.staged.see(key).read.is_none() {
            self.load(key, false).await?;
        }
        let seen = self.staged.see(key);
        if !seen.exists() {
            return Err(Error::DocumentNotFound { key: key.to_owned() }.into());
        }
        seen.expect(key, when)?;
        let was_there = seen.read.flatten().is_some();
        self.staged.change(key, was_there.then_some(Change::Delete));
        Ok(())
    }

    async fn check(&mut self, check: &KeyedCheck) -> Result<(), CallError> {
        let (key, when) = (key_of(check.key.as_ref())?, check.when().read()?);
        let namespace = self.namespace;
        Command::DocumentCheck(DocumentCheck { namespace, key, when })
            .check(&self.permit.calls().limits())?;
        self.look(key, false).await?;
        self.staged.see(key).expect(key, when)
    }
}

/// A document as a transaction sees it.
enum Looked {
    /// There is none.
    Absent,
    /// The transaction has written it: see [`sluice_engine::blob`].
    Staged(Bytes),
    /// Stored in this version; with its bytes, if they were read.
    Stored(DocumentVersion, Option<Bytes>),
}

#[cold]
fn unreadable() -> CallError {
    Fault::invalid("the content cannot be read").into()
}

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

/// Checks that the caller may do anything that a transaction does, before anything is looked up.
fn allow_some(permit: &Permit<'_>) -> Result<(), CallError> {
    permit.require_known()?;
    permit.allow_work()?;
    let sends = permit.allow_some_queue(Right::Send).or_else(|_| permit.allow_some_queue(Right::Receive));
    sends
        .or_else(|_| permit.allow_some_key(Right::Read))
        .or_else(|_| permit.allow_some_key(Right::Coordinate))
}

/// The open transaction that a call names, under the leader that there is now. No other call works on it.
async fn lock_named(permit: &Permit<'_>) -> Result<(Arc<Open>, OwnedMutexGuard<Held>), CallError> {
    let all = permit.calls().open_transactions();
    let open = all.find(permit.namespace_id()?, permit.name())?;
    let held = open.lock(all).await?;
    open.expect_led(led(permit).await?)?;
    Ok((open, held))
}

/// The namespace of a call, under the leader that there is now.
async fn led(permit: &Permit<'_>) -> Result<Led, CallError> {
    let namespace = permit.namespace_id()?;
    Ok(Led { namespace, epoch: permit.node().epoch(namespace).await? })
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
