//! Transactions: operations on queues, documents and locks that are done together, all or none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::attachments::{AttachmentCondition, Uploading};
use crate::base64;
use crate::documents::{DocumentCheck, DocumentDelete, DocumentPatch, DocumentPut, DocumentWritten};
use crate::encode;
use crate::locks::{LockGrant, LockMode, LockRequest};
use crate::message::{Message, SettleItem};

/// Operations that are done together, all or none: at most 1,000. Each is admitted by the state before the
/// transaction, so none depends on another, and nothing is named by two of them.
///
/// They are about the namespace of the client, or about those that [`within`](Transaction::within) names.
///
/// ```
/// use sluice_client::{DocumentPut, Message, Transaction};
///
/// let (receipt, token) = ("a receipt", "the token of a lock");
/// let paid = DocumentPut { token: Some(token), ..DocumentPut::new(b"paid") };
/// let transaction = Transaction::new()
///     .put("orders/17", paid)
///     .ack(receipt)
///     .send("mail", Message::new(b"thank you"))
///     .release(token);
/// assert_eq!(transaction.len(), 4);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Transaction {
    /// As the request has them, with commas between.
    encoded: String,
    count: usize,
    /// Namespace of the operations that follow; empty: the client's.
    namespace: String,
}

impl Transaction {
    /// One without operations.
    pub fn new() -> Transaction {
        Transaction::default()
    }

    /// Adds an operation of this name; `fields` writes the object of its fields.
    fn with(mut self, name: &str, fields: impl FnOnce(&mut String)) -> Transaction {
        self.encoded.push_str(if self.count == 0 { "{" } else { ",{" });
        if !self.namespace.is_empty() {
            self.encoded.push_str("\"namespace\":");
            encode::string(&self.namespace, &mut self.encoded);
            self.encoded.push(',');
        }
        self.encoded.push('"');
        self.encoded.push_str(name);
        self.encoded.push_str("\":");
        fields(&mut self.encoded);
        self.encoded.push('}');
        self.count += 1;
        self
    }

    /// These operations, and those of another transaction.
    pub(crate) fn and(mut self, other: &Transaction) -> Transaction {
        if self.count > 0 && other.count > 0 {
            self.encoded.push(',');
        }
        self.encoded.push_str(&other.encoded);
        self.count += other.count;
        self
    }

    fn with_object(self, name: &str, fields: &impl Serialize) -> Transaction {
        self.with(name, |out| out.push_str(&json!(fields).to_string()))
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Names the namespace of the operations that follow, in a transaction of one call: at most 16 in all.
    /// Empty: the client's. Patches, and operations of an open transaction, are of the client's alone.
    #[must_use]
    pub fn within(mut self, namespace: impl Into<String>) -> Transaction {
        self.namespace = namespace.into();
        self
    }

    /// Sends a message to a queue; one without a unique key.
    #[must_use]
    pub fn send(self, queue: impl AsRef<str>, message: Message<'_>) -> Transaction {
        self.with("send", |out| encode::queue_message(queue.as_ref(), &message, true, out))
    }

    /// Acks a message.
    #[must_use]
    pub fn ack(self, receipt: impl AsRef<str>) -> Transaction {
        self.settle(SettleItem::ack(receipt.as_ref()))
    }

    /// Settles a message.
    #[must_use]
    pub fn settle(self, item: SettleItem<'_>) -> Transaction {
        self.with("settle", |out| encode::settle_item(&item, out))
    }

    /// Writes a document. Its `request_id` does not count: the transaction is repeated as a whole.
    #[must_use]
    pub fn put(self, key: impl AsRef<str>, put: DocumentPut<'_>) -> Transaction {
        self.with("put", |out| {
            out.push_str("{\"key\":");
            encode::string(key.as_ref(), out);
            encode::document_fields(&put, out);
        })
    }

    /// Changes a document whose content is JSON.
    #[must_use]
    pub fn patch(self, key: impl AsRef<str>, patch: DocumentPatch<'_>) -> Transaction {
        self.patch_with(key.as_ref(), &encode::patch_fields(&patch))
    }

    /// The same, with the fields of the patch.
    pub(crate) fn patch_with(self, key: &str, fields: &Map<String, Value>) -> Transaction {
        self.with_object("patch", &Keyed { key, fields })
    }

    /// Deletes a document.
    #[must_use]
    pub fn delete(self, key: impl AsRef<str>, delete: DocumentDelete<'_>) -> Transaction {
        self.with_object("delete", &Keyed { key: key.as_ref(), fields: &delete })
    }

    /// Refuses the transaction unless a condition on a document holds, which is not written.
    #[must_use]
    pub fn check(self, key: impl AsRef<str>, check: DocumentCheck<'_>) -> Transaction {
        self.with_object("check", &Keyed { key: key.as_ref(), fields: &check })
    }

    /// Makes an attachment of an upload to which all bytes were added, as its commit does. There is an hour
    /// for that.
    #[must_use]
    pub fn attach(self, uploading: &Uploading, when: &AttachmentCondition<'_>) -> Transaction {
        self.with_object("attach", &Keyed { key: uploading.key(), fields: &uploading.operation(when) })
    }

    /// Deletes an attachment of a document.
    #[must_use]
    pub fn delete_attachment(
        self,
        key: impl AsRef<str>,
        name: impl AsRef<str>,
        when: &AttachmentCondition<'_>,
    ) -> Transaction {
        let fields = when.fields(name.as_ref());
        self.with_object("delete_attachment", &Keyed { key: key.as_ref(), fields: &fields })
    }

    /// Acquires locks, if they are free: `wait`, `request_id` and `with_document` do not count.
    #[must_use]
    pub fn acquire(self, request: LockRequest<'_>) -> Transaction {
        self.with_object("acquire", &request.fields())
    }

    /// Releases a grant, which has to be held.
    #[must_use]
    pub fn release(self, token: impl AsRef<str>) -> Transaction {
        self.with_object("release", &json!({ "token": token.as_ref() }))
    }

    /// Reads a document, in an open transaction only.
    #[must_use]
    pub fn get(self, key: impl AsRef<str>) -> Transaction {
        self.with_object("get", &json!({ "key": key.as_ref() }))
    }

    /// The body of the request.
    pub(crate) fn body(&self) -> String {
        format!("{{\"operations\":[{}]}}", self.encoded)
    }
}

/// The key of a document, and conditions on it.
#[derive(Serialize)]
struct Keyed<'k, T> {
    key: &'k str,
    #[serde(flatten)]
    fields: &'k T,
}

impl LockRequest<'_> {
    /// The fields of every request for locks.
    pub(crate) fn fields(&self) -> Value {
        let mut fields = json!({"keys": self.keys, "ttl_ms": encode::millis(self.ttl)});
        if !self.owner.is_empty() {
            fields["owner"] = json!(self.owner);
        }
        match self.mode {
            LockMode::Exclusive => {}
            LockMode::Shared => fields["mode"] = json!("shared"),
            LockMode::Counting(holders) => {
                fields["mode"] = json!("counting");
                fields["holders"] = json!(holders);
            }
        }
        if self.if_absent {
            fields["if_absent"] = json!(true);
        }
        fields
    }
}

/// A transaction that is open: see [`Client::transaction_begin`](crate::Client::transaction_begin).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Begun {
    /// Its id, which is not to be shown to others.
    pub transaction: String,
    /// When it is rolled back unless it has ended, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
}

/// An open transaction as those see it who look at all of a namespace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OpenTransaction {
    /// Its name for operators; not the id, by which its caller uses it.
    pub name: String,
    /// Name of who has begun it.
    pub caller: String,
    /// When it was begun, in milliseconds since the Unix epoch.
    pub begun_at_ms: u64,
    /// When it is rolled back unless it has ended, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
    /// Number of operations that are staged.
    pub operation_count: u64,
    /// Memory that it takes, in bytes.
    pub bytes: u64,
    /// True while its commit may take effect: then it cannot be rolled back.
    pub committing: bool,
    /// The operations in their order, without contents; empty in a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<StagedOperation>,
    /// Fields of a newer server that this client does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A transaction over several namespaces that is in doubt in one of them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InDoubtTransaction {
    /// Its id, the same in all its namespaces.
    pub transaction: String,
    /// `prepared`: its part in the namespace waits for the decision. `decided`: it is committed, the
    /// namespace has decided that, and it is not known to be finished in the others.
    pub state: String,
    /// The namespace that decides.
    pub coordinator: String,
    /// The other namespaces of a decided one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// When it was prepared or decided, in milliseconds since the Unix epoch.
    pub since_at_ms: u64,
    /// When a prepared one that is not decided cannot be committed any more, in milliseconds since the Unix
    /// epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided_until_ms: Option<u64>,
    /// Number of operations that are prepared.
    pub operation_count: u64,
    /// The prepared operations in their order, without contents; empty in a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<StagedOperation>,
    /// Fields of a newer server that this client does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The end of a transaction that was in doubt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Resolved {
    /// `committed` or `aborted`.
    pub outcome: String,
    /// True if the decision is not known, and the part was finished as forced.
    pub forced: bool,
}

/// An operation that is staged in an open transaction, without what it carries.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StagedOperation {
    /// `send`, `settle`, `put`, `delete`, `check`, `acquire` or `release`; a patch is a put by then.
    pub operation: String,
    /// The queue of a send, the id of the message that is settled, or keys; empty of a release.
    pub about: Vec<String>,
    /// Length of the content that a put writes, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_bytes: Option<u64>,
}

/// Result of an operation that is staged in an open transaction: nothing but of a read.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StageResult {
    /// True if there is a document, as the transaction sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<bool>,
    /// The document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<StagedDocument>,
}

/// A document as an open transaction sees it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StagedDocument {
    /// Number of its version; `None`: the transaction has written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// ETag; `None`: the transaction has written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The content, if it is UTF-8 text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The content as standard base64, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_base64: Option<String>,
    /// Media type of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Names and values that are kept with the content.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

impl StagedDocument {
    /// The content; `None` if it is no base64.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match (&self.content, &self.content_base64) {
            (Some(text), _) => Some(text.clone().into_bytes()),
            (None, Some(text)) => base64::decode(text).ok(),
            (None, None) => Some(Vec::new()),
        }
    }
}

/// A transaction that is done.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Committed {
    /// Results of the operations, in order.
    pub results: Vec<OperationResult>,
    /// True when the request repeats one with the same idempotency key: then the results are those of the
    /// first one.
    pub duplicate: bool,
}

/// Result of an operation: nothing of one that settles, deletes, checks or releases.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct OperationResult {
    /// Id of the message that was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Version of the document that was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<DocumentWritten>,
    /// Grant of the locks that were acquired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<LockGrant>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::DocumentChange;

    #[test]
    fn operations_are_written_as_the_api_takes_them() {
        let transaction = Transaction::new()
            .send("mail", Message::new(b"hello"))
            .ack("r")
            .put("k", DocumentPut { if_absent: true, ..DocumentPut::new(&[255]) })
            .patch("k", DocumentPatch::new(DocumentChange::Merge("{}")))
            .delete("k", DocumentDelete { if_version: Some(2), ..DocumentDelete::default() })
            .check("c", DocumentCheck { if_absent: true, ..DocumentCheck::default() })
            .acquire(LockRequest { mode: LockMode::Counting(3), owner: "o", ..LockRequest::new("l") })
            .release("t")
            .get("g")
            .within("bank")
            .check("b", DocumentCheck { if_version: Some(1), ..DocumentCheck::default() })
            .within("")
            .ack("r2");
        let body: Value = serde_json::from_str(&transaction.body()).unwrap();
        let expected = json!({"operations": [
            {"send": {"queue": "mail", "payload": "hello"}},
            {"settle": {"receipt": "r", "outcome": "ack"}},
            {"put": {"key": "k", "content_base64": "/w==", "if_absent": true}},
            {"patch": {"key": "k", "merge_patch": "{}"}},
            {"delete": {"key": "k", "if_version": 2}},
            {"check": {"key": "c", "if_absent": true}},
            {"acquire": {"keys": ["l"], "ttl_ms": 30_000, "owner": "o", "mode": "counting", "holders": 3}},
            {"release": {"token": "t"}},
            {"get": {"key": "g"}},
            {"namespace": "bank", "check": {"key": "b", "if_version": 1}},
            {"settle": {"receipt": "r2", "outcome": "ack"}},
        ]});
        assert_eq!(body, expected);
    }
}
