//! Documents: put, show, delete, list, history; `writing` what writes have in common; `patch` changes JSON in
//! its place; `query` finds JSON, `indexes` make that fast; `changes` tells what has changed.

pub mod changes;
pub mod indexes;
pub mod patch;
pub mod query;
pub mod watch;
mod writing;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_engine::Error;
use sluice_engine::documents::{DocumentCondition, DocumentVersion, DocumentView};
use sluice_engine::limits::{DOCUMENT_HISTORY_MAX, DOCUMENT_TTL_MS_MAX};
use sluice_node::FoundDocument;

use crate::access::Right;
use crate::call::{Body, Done, How, Unary};
use crate::error::CallError;
use crate::fault::{Fault, Read};
use crate::hot::AT_MS_EXAMPLE;
use crate::payload::{Attributes, Content, Headers, Octets, Text};
use crate::permit::Permit;
use crate::value::{Nothing, PageSize, Within, cut_page, given, page_size, request_id};
pub use writing::{Names, When, Writing, request_of, write};

/// Largest version that JSON tells from its neighbours (RFC 8259 §6).
pub const VERSION_MAX: u64 = (1 << 53) - 1;
/// Most bytes that one of a text takes in JSON: a control character.
const TEXT_BYTES_MAX: usize = 6;
/// Bytes of an answer with a document, besides the content.
const FIELDS_BYTES: usize = 20 << 10;
const ETAG_EXAMPLE: &str = "7340032000001";

/// A number of a version.
type Version = Within<1, VERSION_MAX>;

/// Declares a document to write: these fields, and those that every write has.
macro_rules! put_request {
    ($(#[$attribute:meta])* $name:ident { $($own:tt)* }) => {
        #[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        $(#[$attribute])*
        pub struct $name {
            $($own)*
            /// The content, if it is text; this or `content_base64` is required. At most 4 MiB.
            content: Option<Text>,
            /// The content as standard base64 with padding.
            content_base64: Option<Octets>,
            /// Media type of the content.
            content_type: Option<String>,
            /// Names and values that are kept with the content: at most 64, with 16 KiB together.
            attributes: Option<Attributes>,
            /// Time after which the document is gone, in milliseconds; default: it stays.
            ttl_ms: Option<Within<1, DOCUMENT_TTL_MS_MAX>>,
            /// Number of former versions that are kept; default: as before, and none of a new document.
            history: Option<Within<0, { DOCUMENT_HISTORY_MAX as u64 }>>,
            /// Write only if the document has this version.
            if_version: Option<Version>,
            /// Write only if the document has this ETag.
            if_etag: Option<String>,
            /// Write only if there is a document.
            if_exists: Option<bool>,
            /// Write only if there is no document.
            if_absent: Option<bool>,
            /// Token of a lock of the key: write only while it is held.
            token: Option<String>,
        }

        impl $name {
            /// Names and values of the attributes.
            pub(crate) fn attributes(&self) -> Vec<(&str, &str)> {
                let all = self.attributes.iter().flat_map(|all| &all.0);
                all.map(|(name, value)| (&**name, &**value)).collect()
            }

            /// The document, with its attributes.
            pub(crate) fn writing<'a>(&'a self, attributes: &'a [(&'a str, &'a str)]) -> Read<Writing<'a>> {
                let content = match (&self.content, &self.content_base64) {
                    (Some(_), Some(_)) => return Err(Fault::conflict("content", "content_base64")),
                    (Some(text), None) => text.as_bytes(),
                    (None, Some(octets)) => octets.as_bytes(),
                    (None, None) => {
                        let reason = "a document has a content, which may be empty";
                        return Err(Fault::missing("content", reason));
                    }
                };
                Ok(Writing {
                    when: When {
                        version: self.if_version.map(Within::get),
                        etag: self.if_etag.as_deref(),
                        exists: self.if_exists.unwrap_or_default(),
                        absent: self.if_absent.unwrap_or_default(),
                        token: self.token.as_deref(),
                        ..When::default()
                    },
                    ttl_ms: Some(self.ttl_ms.map_or(0, Within::get)),
                    history: self.history.map(|history| history.get() as u16),
                    content_type: self.content_type.as_deref().unwrap_or_default(),
                    attributes,
                    content,
                })
            }
        }
    };
}

put_request! {
    /// A document to write, under the conditions that are given.
    #[schemars(rename = "DocumentPutRequest")]
    #[schemars(example = json!({
        "content": "{\"state\":\"paid\"}", "content_type": "application/json", "if_version": 3,
    }))]
    Put {
        /// Text that nobody else can guess, by which a repeat of this request is known: it writes nothing
        /// while the version that it has written is the current one.
        request_id: Option<String>,
    }
}

put_request! {
    /// A document to write with a transaction, under the conditions that are given.
    #[schemars(rename = "TransactionPut")]
    #[schemars(example = json!({"key": "orders/17", "content": "paid", "if_version": 3}))]
    KeyedPut {
        /// Its key.
        #[schemars(required)]
        pub(crate) key: Option<String>,
    }
}

/// A version that was written or deleted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentWritten")]
#[schemars(example = json!({"version": 4, "etag": ETAG_EXAMPLE, "changed_at_ms": AT_MS_EXAMPLE}))]
pub struct Written {
    /// Its number: 1, and one more with each change, until the document is deleted.
    version: u64,
    /// ETag, in decimal digits: no other version of the document ever has it.
    etag: String,
    /// When it was written, in milliseconds since the Unix epoch.
    changed_at_ms: u64,
}

impl From<DocumentVersion> for Written {
    fn from(version: DocumentVersion) -> Written {
        Written {
            version: version.version,
            etag: version.revision.to_string(),
            changed_at_ms: version.changed_at_us / 1_000,
        }
    }
}

impl Unary for Put {
    type Answer = Written;
    const BODY: Body = Body::Document;
    const HOW: &'static [How] = &[How::Done, How::Created];

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Written>, CallError> {
        let attributes = self.attributes();
        let writing = self.writing(&attributes)?;
        let request = request_of(permit, &writing, request_id(self.request_id.as_deref())?);
        let (version, created) = write(permit, &writing, request).await?;
        Ok(Done::made(version.into(), created))
    }
}

/// Declares a document to delete: these fields, and the conditions.
macro_rules! delete_request {
    ($(#[$attribute:meta])* $name:ident { $($own:tt)* }) => {
        #[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        $(#[$attribute])*
        pub struct $name {
            $($own)*
            /// Delete only if the document has this version.
            if_version: Option<Version>,
            /// Delete only if the document has this ETag.
            if_etag: Option<String>,
            /// Token of a lock of the key: delete only while it is held.
            token: Option<String>,
        }

        impl $name {
            /// The conditions.
            pub(crate) fn when(&self) -> When<'_> {
                When {
                    version: self.if_version.map(Within::get),
                    etag: self.if_etag.as_deref(),
                    token: self.token.as_deref(),
                    ..When::default()
                }
            }
        }
    };
}

delete_request! {
    /// A document to delete, under the conditions that are given.
    #[schemars(rename = "DocumentDeleteRequest")]
    Delete {}
}

delete_request! {
    /// A document to delete with a transaction, under the conditions that are given.
    #[schemars(rename = "TransactionDelete", example = json!({"key": "orders/17"}))]
    KeyedDelete {
        /// Its key.
        #[schemars(required)]
        pub(crate) key: Option<String>,
    }
}

/// A condition on a document that a transaction does not write.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "TransactionCheck", example = json!({"key": "config", "if_version": 3}))]
pub struct KeyedCheck {
    /// Its key.
    #[schemars(required)]
    pub(crate) key: Option<String>,
    /// The document has this version.
    if_version: Option<Version>,
    /// The document has this ETag.
    if_etag: Option<String>,
    /// There is a document.
    if_exists: Option<bool>,
    /// There is no document.
    if_absent: Option<bool>,
    /// Token of a lock of the key, which is held.
    token: Option<String>,
}

impl KeyedCheck {
    /// The conditions, of which there is one at least.
    pub(crate) fn condition(&self) -> Result<DocumentCondition, CallError> {
        let condition = self.when().read()?;
        if condition == DocumentCondition::default() {
            let reason = "a check has a condition: give if_version, if_etag, if_exists, if_absent or token";
            return Err(Fault::invalid(reason).into());
        }
        Ok(condition)
    }

    /// The conditions as they are given.
    pub(crate) fn when(&self) -> When<'_> {
        When {
            version: self.if_version.map(Within::get),
            etag: self.if_etag.as_deref(),
            exists: self.if_exists.unwrap_or_default(),
            absent: self.if_absent.unwrap_or_default(),
            token: self.token.as_deref(),
            ..When::default()
        }
    }
}

impl Unary for Delete {
    type Answer = Nothing;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Nothing>, CallError> {
        permit.node().document_delete(permit.namespace_id()?, permit.name(), self.when().read()?).await?;
        Ok(Nothing {}.into())
    }
}

/// A document, or a former version of one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = example())]
pub struct Document {
    /// Its key.
    key: String,
    /// Number of the version: 1, and one more with each change, until the document is deleted.
    version: u64,
    /// ETag, in decimal digits: no other version of the document ever has it.
    etag: String,
    /// When the version was written, in milliseconds since the Unix epoch.
    changed_at_ms: u64,
    /// Length of the content in bytes.
    content_bytes: u64,
    /// When the document is gone, in milliseconds since the Unix epoch; absent when it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at_ms: Option<u64>,
    /// Number of former versions that are kept.
    history: u64,
    /// The content, if it was asked for and is UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Text>,
    /// The content as standard base64, if it was asked for and is not UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_base64: Option<Octets>,
    /// Media type of the content, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<Text>,
    /// Attributes, if the content was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<Headers>,
}

fn example() -> Value {
    json!({
        "key": "orders/17", "version": 4, "etag": ETAG_EXAMPLE, "changed_at_ms": AT_MS_EXAMPLE,
        "content_bytes": 16, "history": 0,
    })
}

impl Document {
    /// The document of a view, with its content, which lies in its bytes.
    fn with_content(view: &DocumentView, bytes: Option<&Bytes>) -> Document {
        let content = Content::of(bytes);
        Document {
            content: content.text,
            content_base64: content.octets,
            content_type: content.content_type,
            attributes: bytes.and_then(Headers::of),
            ..Document::from(view)
        }
    }

    /// The document that was read with a grant. Sets memory aside for it.
    pub(crate) async fn granted(permit: &Permit<'_>, found: FoundDocument) -> Result<Document, CallError> {
        let (view, bytes) = found.load(|view| set_aside(permit, view, TEXT_BYTES_MAX).map(|()| true)).await?;
        Ok(Document::with_content(&view, bytes.as_ref()))
    }
}

impl From<&DocumentView> for Document {
    fn from(view: &DocumentView) -> Document {
        Document {
            key: view.key.clone(),
            version: view.version.version,
            etag: view.version.revision.to_string(),
            changed_at_ms: view.version.changed_at_us / 1_000,
            content_bytes: view.content_bytes,
            expires_at_ms: view.expires_at_us.map(|at_us| at_us / 1_000),
            history: view.history.into(),
            content: None,
            content_base64: None,
            content_type: None,
            attributes: None,
        }
    }
}

/// Reads the document that a call names, or a former version of it, with its bytes: see
/// [`sluice_engine::blob`]; without them where `is_read` says no. Sets memory aside for an answer in which
/// each byte of the content takes up to `each`.
///
/// # Errors
/// Those of the operation.
pub async fn read(
    permit: &Permit<'_>,
    version: Option<u64>,
    each: usize,
    is_read: impl FnOnce(&DocumentView) -> bool,
) -> Result<(DocumentView, Option<Bytes>), CallError> {
    let room = |view: &DocumentView| match is_read(view) {
        true => set_aside(permit, view, each).map(|()| true),
        false => Ok(false),
    };
    read_key(permit, permit.name(), version, room).await
}

/// As [`read`], the document of a key that the call does not name; `room` says whether its bytes are read.
pub(crate) async fn read_key(
    permit: &Permit<'_>,
    key: &str,
    version: Option<u64>,
    room: impl FnOnce(&DocumentView) -> Result<bool, Error>,
) -> Result<(DocumentView, Option<Bytes>), CallError> {
    Ok(permit.node().document(permit.namespace_id()?, key, version, room).await?)
}

/// Sets memory aside for an answer in which each byte of the content takes up to `each`.
fn set_aside(permit: &Permit<'_>, view: &DocumentView, each: usize) -> Result<(), Error> {
    permit.room().reserve(answer_bytes(view.content_bytes as usize, each))
}

/// Most bytes of an answer with a content, each of whose bytes takes up to `each`.
fn answer_bytes(content_bytes: usize, each: usize) -> usize {
    content_bytes * each + FIELDS_BYTES
}

/// Most bytes of an answer with a content as text.
pub(crate) fn text_bytes(content_bytes: usize) -> usize {
    answer_bytes(content_bytes, TEXT_BYTES_MAX)
}

/// A document to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DocumentShowRequest")]
pub struct Show {
    /// A former version instead of the current one.
    version: Option<Version>,
}

impl Unary for Show {
    type Answer = Document;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Document>, CallError> {
        let version = self.version.map(Within::get);
        let (view, bytes) = read(permit, version, TEXT_BYTES_MAX, |_| true).await?;
        Ok(Document::with_content(&view, bytes.as_ref()).into())
    }
}

/// The documents of a namespace, by key.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DocumentListRequest")]
pub struct List {
    /// Only keys that begin with this.
    prefix: Option<String>,
    /// `next` of the page before.
    after: Option<String>,
    /// Most documents of the page.
    limit: Option<PageSize>,
}

/// A page of documents.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentList")]
#[schemars(example = json!({"documents": [example()]}))]
pub struct Documents {
    /// By key, without their contents.
    documents: Vec<Document>,
    /// Key after which the next page begins; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Unary for List {
    type Answer = Documents;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Documents>, CallError> {
        let (size, namespace) = (page_size(self.limit), permit.namespace_id()?);
        let (prefix, after) = (self.prefix.as_deref().unwrap_or_default(), given(self.after.as_deref()));
        let mut documents = permit.node().documents(namespace, prefix, after, size + 1).await?;
        let next = cut_page(&mut documents, size, |document| &document.key);
        documents.retain(|document| permit.may_key(Right::Read, &document.key));
        Ok(Documents { documents: documents.iter().map(Document::from).collect(), next }.into())
    }
}

/// A document whose versions are listed.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DocumentHistoryRequest")]
pub struct History {}

/// The versions of a document that are kept.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentVersions")]
#[schemars(example = json!({"versions": [example()]}))]
pub struct Versions {
    /// The current one first, without contents.
    versions: Vec<Document>,
}

impl Unary for History {
    type Answer = Versions;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Versions>, CallError> {
        let found = permit.node().document_versions(permit.namespace_id()?, permit.name()).await?;
        Ok(Versions { versions: found.iter().map(Document::from).collect() }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;

    fn put(content: &str) -> Put {
        Put { content: Some(Text::from(content)), ..Put::default() }
    }

    #[tokio::test]
    async fn a_document_is_written_read_and_deleted() {
        let server = Open::new();
        let permit = server.permit(Operation::DocumentPut, "orders/17");
        let first = Put { history: Some(Within::clamped(1)), ..put("one") }.run(&permit).await.unwrap();
        assert!(first.created() && first.answer.version == 1);
        let stale = Put { if_version: Some(Within::clamped(7)), ..put("two") };
        assert_eq!(stale.run(&permit).await.unwrap_err().code(), "version_mismatch");
        let etag = Some(first.answer.etag.clone());
        let attributes = Some(Attributes(vec![("by".to_owned(), "ann".to_owned())]));
        let request_id = Some("r".to_owned());
        let second = Put { if_etag: etag.clone(), attributes, request_id, ..put("two") };
        let written = second.clone().run(&permit).await.unwrap();
        assert!(!written.created() && written.answer.version == 2);
        assert_eq!(second.run(&permit).await.unwrap().answer, written.answer, "a repeat");
        let show = server.permit(Operation::DocumentShow, "orders/17");
        let shown = serde_json::to_value(Show::default().run(&show).await.unwrap().answer).unwrap();
        assert_eq!((&shown["content"], &shown["attributes"]), (&json!("two"), &json!({"by": "ann"})));
        let former = Show { version: Some(Within::clamped(1)) }.run(&show).await.unwrap().answer;
        assert_eq!((former.content, former.etag), (Some(Text::from("one")), first.answer.etag));
        let gone = Show { version: Some(Within::clamped(3)) }.run(&show).await.unwrap_err();
        assert_eq!(gone.code(), "document_not_found");
        assert_eq!(History::default().run(&show).await.unwrap().answer.versions.len(), 2);
        let delete = server.permit(Operation::DocumentDelete, "orders/17");
        let stale = Delete { if_etag: etag, ..Delete::default() };
        assert_eq!(stale.run(&delete).await.unwrap_err().code(), "version_mismatch");
        Delete::default().run(&delete).await.unwrap();
        assert_eq!(Show::default().run(&show).await.unwrap_err().code(), "document_not_found");
    }

    #[tokio::test]
    async fn what_is_missing_or_contradicts_itself_is_told() {
        let server = Open::new();
        let permit = server.permit(Operation::DocumentPut, "k");
        let both = Put { content_base64: Some(Octets::from(&b"x"[..])), ..put("x") };
        let absent = Put { if_absent: Some(true), if_exists: Some(true), ..put("x") };
        let etag = Put { if_etag: Some("W/1".to_owned()), ..put("x") };
        let token = Put { token: Some("x".to_owned()), ..put("x") };
        for (wrong, code) in [
            (Put::default(), "missing_field"),
            (both, "conflicting_fields"),
            (absent, "conflicting_fields"),
            (etag, "invalid_argument"),
            (token, "invalid_argument"),
        ] {
            assert_eq!(wrong.run(&permit).await.unwrap_err().code(), code);
        }
        let nowhere = server.permit(Operation::DocumentPut, "");
        assert_eq!(put("x").run(&nowhere).await.unwrap_err().code(), "invalid_argument");
    }

    #[tokio::test]
    async fn documents_are_listed_by_key() {
        let server = Open::new();
        for key in ["a/1", "a/2", "b"] {
            put("x").run(&server.permit(Operation::DocumentPut, key)).await.unwrap();
        }
        let permit = server.permit(Operation::DocumentList, "");
        let list = List { prefix: Some("a/".to_owned()), limit: Some(Within::clamped(1)), after: None };
        let page = list.clone().run(&permit).await.unwrap().answer;
        assert_eq!((page.documents[0].key.as_str(), page.next.as_deref()), ("a/1", Some("a/1")));
        let page = List { after: page.next, ..list }.run(&permit).await.unwrap().answer;
        assert_eq!((page.documents[0].key.as_str(), page.next), ("a/2", None));
    }
}
