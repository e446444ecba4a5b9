//! Staging of operations in an open transaction, and reads as it sees them.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::Error;
use sluice_engine::command::{
    AttachmentCommit, AttachmentDelete, Command, DocumentCheck, DocumentPut, Send, SendItem,
    Transaction as Whole,
};
use sluice_engine::documents::{DocumentVersion, DocumentView};
use sluice_engine::id::NamespaceId;

use super::super::{Given, Operation, OperationRequest, clear, command, key_of};
use super::lock_open;
use crate::attachments::{KeyedAttach, KeyedDetach};
use crate::documents::patch::{KeyedPatch, patched};
use crate::documents::{KeyedCheck, KeyedDelete, KeyedPut, read_key, text_bytes};
use crate::error::CallError;
use crate::fault::Fault;
use crate::open_transactions::{Change, Kept, Name, Shown, Staged, staged_at_most};
use crate::payload::{Content, Headers, Octets, Text};
use crate::permit::Permit;

/// Operations to stage. Fronts decode it by hand.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TransactionStageRequest", example = json!({"operations": [
    {"get": {"key": "orders/17"}},
    {"put": {"key": "orders/17", "content": "paid"}},
]}))]
pub struct Stage {
    /// 1 to 1,000 operations, which are staged all or not at all.
    pub operations: Vec<OperationRequest>,
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
    let (open, mut held) = lock_open(permit, permit.name()).await?;
    open.expect_no_commit()?;
    let staged = held.staged.clone();
    let mut staging = Staging { permit, namespace, staged, is_request_kept: false, answer_bytes: 0 };
    let mut results = Vec::with_capacity(operations.len());
    for (at, operation) in operations.iter().enumerate() {
        let result = staging.add(at, operation).await;
        results.push(result.map_err(|error| error.at_operation(at, operation.name()))?);
    }
    let Staging { mut staged, is_request_kept, .. } = staging;
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
            Operation::Send(_)
            | Operation::Settle(_)
            | Operation::Attach(_)
            | Operation::Detach(_)
            | Operation::Acquire(_)
            | Operation::Release(_) => {
                // Whatever the place, it is told with that of the request.
                let names = self.check_alone(operation).map_err(|error| error.at_place(|_| at))?;
                let named = names.into_iter().try_for_each(|name| self.staged.name(name));
                named.map_err(|fault| with_field_of(operation, fault))?;
                self.staged.stage(at, shown(operation));
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

    /// Refuses what is wrong by itself, and a message that waits for others than those before it. Returns
    /// what the operation names.
    fn check_alone(&self, operation: &Operation<'_>) -> Result<Vec<Name>, CallError> {
        let given = Given::read(self.permit, std::slice::from_ref(operation))?;
        let command = command(self.namespace, operation, 0, &given, None)?;
        let names = names(&command);
        let (namespace, before) = (self.namespace, SendItem::default());
        let items = std::slice::from_ref(&before);
        let sent = Send { namespace, queue: "q", idempotency_key: b"", request_digest: 0, items };
        let sends = if waits_for_others(operation) { self.staged.sends() } else { 0 };
        let mut operations = vec![Command::Send(sent); sends];
        operations.push(command);
        let whole = Whole { namespace, idempotency_key: b"", request_digest: 0, operations: &operations };
        let checked = Command::Transaction(whole).check(&self.permit.calls().limits());
        checked.map_err(|error| CallError::from(error).of_operation(|_| Some(operation.name())))?;
        Ok(names)
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
        let put = writing.put(self.namespace, key, 0, &[])?;
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
        self.staged.expect_no_attachments(key)?;
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

fn waits_for_others(operation: &Operation<'_>) -> bool {
    let Operation::Send(message) = operation else { return false };
    message.item.options.is_some_and(|options| options.depends_on.is_some())
}

/// The things that an operation on messages, locks or attachments names, and no other one may.
fn names(command: &Command<'_>) -> Vec<Name> {
    match command {
        Command::Settle { items, .. } => items.iter().map(|item| Name::delivery(item.receipt)).collect(),
        Command::LockAcquire(claim) => claim.keys.iter().map(|key| Name::Lock((*key).to_owned())).collect(),
        Command::LockRelease { token, .. } => vec![Name::Grant(*token)],
        Command::AttachmentCommit(AttachmentCommit { key, name, upload, .. }) => {
            vec![Name::attachment(key, name), Name::Upload(*upload)]
        }
        Command::AttachmentDelete(AttachmentDelete { key, name, .. }) => vec![Name::attachment(key, name)],
        // Messages may be alike, and documents have places of their own.
        _ => Vec::new(),
    }
}

/// The fault of a name, with its field as the operation has it.
fn with_field_of(operation: &Operation<'_>, mut fault: Box<Fault>) -> Box<Fault> {
    if let Operation::Acquire(acquire) = operation {
        fault.field = acquire.field().to_owned();
    }
    fault
}

/// An operation on messages, locks or attachments, for those who look.
fn shown(operation: &Operation<'_>) -> Shown {
    let about = match operation {
        Operation::Send(message) => vec![message.queue.to_owned()],
        Operation::Settle(settle) => vec![settle.receipt.id.to_string()],
        Operation::Acquire(acquire) => {
            acquire.keys().unwrap_or_default().into_iter().map(str::to_owned).collect()
        }
        Operation::Attach(KeyedAttach { key, .. }) | Operation::Detach(KeyedDetach { key, .. }) => {
            key.iter().cloned().collect()
        }
        // The token of a grant is a secret; documents have places of their own.
        Operation::Release(_)
        | Operation::Put(_)
        | Operation::Patch(_)
        | Operation::Delete(_)
        | Operation::Check(_)
        | Operation::Get(_) => Vec::new(),
    };
    Shown { name: operation.name(), about }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::call::Unary as _;
    use crate::open_transactions::Protocol;
    use crate::operation::Operation as Name;
    use crate::testing::Open as Server;
    use crate::transactions::Begin;

    #[tokio::test]
    async fn a_lock_that_is_named_already_is_told_with_the_field_of_the_request() {
        let server = Server::new();
        let begun = Begin::default().run(&server.permit(Name::TransactionBegin, "")).await.unwrap();
        let permit = server.permit(Name::TransactionStage, begun.answer.transaction());
        let staged = async |keys: serde_json::Value| {
            let acquire = serde_json::from_value(keys).unwrap();
            let kept = Kept { protocol: Protocol::Json, bytes: b"" };
            stage(&permit, kept, &[Operation::Acquire(&acquire)]).await
        };
        staged(json!({"keys": ["a", "b"]})).await.unwrap();
        for (keys, field) in [
            (json!({"keys": ["c", "a"]}), "keys"),
            (json!({"keys": ["b"]}), "keys"),
            (json!({"key": "b"}), "key"),
        ] {
            let error = staged(keys).await.unwrap_err();
            let place = format!("operations[0].acquire.{field}: the transaction acquires the lock");
            assert!(error.message().starts_with(&place), "{}", error.message());
        }
    }
}
