//! Documents: how they are written, and what is read.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::base64;

/// A document to write. Content, content type and attributes replace those that were there; all conditions
/// that are given have to hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DocumentPut<'a> {
    /// Content; opaque bytes, at most 4 MiB.
    pub content: &'a [u8],
    /// Media type of the content.
    pub content_type: Option<&'a str>,
    /// Names and values that are kept with the content: at most 64, with 16 KiB together.
    pub attributes: Vec<(&'a str, &'a str)>,
    /// Time after which the document is gone; `None`: it stays.
    pub ttl: Option<Duration>,
    /// Number of former versions that are kept, at most 100; `None`: as before, and none of a new document.
    pub history: Option<u16>,
    /// Version that the document must have.
    pub if_version: Option<u64>,
    /// ETag that the document must have.
    pub if_etag: Option<&'a str>,
    /// True if there must be a document.
    pub if_exists: bool,
    /// True if there must be none; not together with the other conditions, except a token.
    pub if_absent: bool,
    /// Token of a lock of the key, which must be held.
    pub token: Option<&'a str>,
    /// Text by which a repeat of the request is known, and that nobody else can guess; `None`: the client
    /// makes one, for its own repeats.
    pub request_id: Option<&'a str>,
}

impl<'a> DocumentPut<'a> {
    /// A document with this content, without conditions.
    pub fn new(content: &'a [u8]) -> DocumentPut<'a> {
        DocumentPut { content, ..DocumentPut::default() }
    }

    /// The content in the place of the document that was read, or of none: nothing else is overwritten. The
    /// content type, the attributes and the history stay; the time after which it is gone begins anew.
    pub fn in_place_of(read: Option<&'a Document>, content: &'a [u8]) -> DocumentPut<'a> {
        let Some(read) = read else { return DocumentPut { if_absent: true, ..DocumentPut::new(content) } };
        DocumentPut {
            content_type: read.content_type.as_deref(),
            attributes: read.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            ttl: read.about.ttl(),
            if_etag: Some(&read.about.etag),
            ..DocumentPut::new(content)
        }
    }
}

/// A change of a document whose content is JSON; the rest of the document stays. All conditions that are
/// given have to hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DocumentPatch<'a> {
    /// Change of the content.
    pub change: DocumentChange<'a>,
    /// Version that the document must have.
    pub if_version: Option<u64>,
    /// ETag that the document must have.
    pub if_etag: Option<&'a str>,
    /// Token of a lock of the key, which must be held.
    pub token: Option<&'a str>,
}

impl<'a> DocumentPatch<'a> {
    /// A change without conditions.
    pub fn new(change: DocumentChange<'a>) -> DocumentPatch<'a> {
        DocumentPatch { change, if_version: None, if_etag: None, token: None }
    }
}

/// A change of a content that is JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DocumentChange<'a> {
    /// A merge patch (RFC 7396), as JSON text.
    Merge(&'a str),
    /// A JSON patch (RFC 6902), as JSON text: all of its operations, or none.
    Patch(&'a str),
    /// Numbers to add, in decimal digits, each with the JSON pointer (RFC 6901) of the number that it is
    /// added to; one that is missing in its object counts as 0.
    Increment(Vec<(&'a str, &'a str)>),
}

/// Conditions under which a document is deleted: all that are given have to hold.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct DocumentDelete<'a> {
    /// Version that the document must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_version: Option<u64>,
    /// ETag that the document must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_etag: Option<&'a str>,
    /// Token of a lock of the key, which must be held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<&'a str>,
}

/// Conditions on a document that a transaction does not write: one at least, and all that are given have to
/// hold.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct DocumentCheck<'a> {
    /// Version that the document must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_version: Option<u64>,
    /// ETag that the document must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_etag: Option<&'a str>,
    /// True if there must be a document.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub if_exists: bool,
    /// True if there must be none; not together with the other conditions, except a token.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub if_absent: bool,
    /// Token of a lock of the key, which must be held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<&'a str>,
}

impl<'a> DocumentCheck<'a> {
    /// The document is as it was read, or absent still.
    pub fn unchanged(read: Option<&'a Document>) -> DocumentCheck<'a> {
        let if_etag = read.map(|document| &*document.about.etag);
        DocumentCheck { if_absent: if_etag.is_none(), if_etag, ..DocumentCheck::default() }
    }
}

/// A version that was written.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "WireWritten")]
pub struct DocumentWritten {
    /// Number of the version: 1, and one more with each change, until the document is deleted.
    pub version: u64,
    /// ETag, in decimal digits: no other version of any document ever has it.
    pub etag: String,
    /// When it was written, in milliseconds since the Unix epoch.
    pub changed_at_ms: u64,
    /// True when there was none before: it is the first version.
    pub created: bool,
    /// Fields of a newer server that this client does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A version that was written, as the API tells of it.
#[derive(Deserialize)]
struct WireWritten {
    version: u64,
    etag: String,
    changed_at_ms: u64,
    /// Only in what [`DocumentWritten`] itself has written.
    created: Option<bool>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl From<WireWritten> for DocumentWritten {
    fn from(wire: WireWritten) -> DocumentWritten {
        let WireWritten { version, etag, changed_at_ms, created, extra } = wire;
        DocumentWritten { version, etag, changed_at_ms, created: created.unwrap_or(version == 1), extra }
    }
}

/// A version of a document, without its content.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DocumentVersion {
    /// Key of the document.
    pub key: String,
    /// Number of the version: 1, and one more with each change, until the document is deleted.
    pub version: u64,
    /// ETag, in decimal digits: no other version of any document ever has it.
    pub etag: String,
    /// When it was written, in milliseconds since the Unix epoch.
    pub changed_at_ms: u64,
    /// Length of the content in bytes.
    pub content_bytes: u64,
    /// When the document is gone, in milliseconds since the Unix epoch; `None`: it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
    /// Number of former versions that are kept.
    pub history: u64,
    /// Fields of a newer server that this client does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl DocumentVersion {
    /// The time that the document was given when this version was written; `None`: it stays.
    fn ttl(&self) -> Option<Duration> {
        // Both times are the server's: the clock of this machine does not matter.
        let ttl_ms = self.expires_at_ms?.saturating_sub(self.changed_at_ms);
        Some(Duration::from_millis(ttl_ms.max(1)))
    }
}

/// A document, or a former version of one, with its content. In JSON it has the fields of the API: `content`
/// when the content is UTF-8, else `content_base64`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct Document {
    /// Key, version and times.
    pub about: DocumentVersion,
    /// Content; opaque bytes.
    pub content: Vec<u8>,
    /// Media type of the content.
    pub content_type: Option<String>,
    /// Names and values.
    pub attributes: BTreeMap<String, String>,
}

/// A document as the API writes it.
#[derive(Serialize, Deserialize)]
struct Wire {
    #[serde(flatten)]
    about: DocumentVersion,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<String, String>,
}

impl TryFrom<Wire> for Document {
    type Error = String;

    fn try_from(wire: Wire) -> Result<Document, String> {
        let Wire { about, content, content_base64, content_type, attributes } = wire;
        let content = match (content, content_base64) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(text)) => base64::decode(&text).map_err(|why| format!("content_base64: {why}"))?,
            (None, None) => return Err("missing field `content`".to_owned()),
        };
        Ok(Document { about, content, content_type, attributes })
    }
}

impl From<Document> for Wire {
    fn from(document: Document) -> Wire {
        let Document { about, content, content_type, attributes } = document;
        let (content, content_base64) = match String::from_utf8(content) {
            Ok(text) => (Some(text), None),
            Err(binary) => {
                let mut text = String::new();
                base64::append(binary.as_bytes(), &mut text);
                (None, Some(text))
            }
        };
        Wire { about, content, content_base64, content_type, attributes }
    }
}

/// A search for documents by what their JSON contains. The default finds all documents that are JSON.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DocumentQuery<'a> {
    /// Filter that the content matches, such as `{"/state": "paid", "/total": {"ge": 100}}`.
    pub filter: Option<Value>,
    /// Beginning of the keys to look at; empty: all.
    pub prefix: &'a str,
    /// JSON pointers (RFC 6901) of the values to sort by, each with whether it descends; empty: by key.
    pub sort: Vec<(&'a str, bool)>,
    /// Most documents of a page, up to 1,000; `None`: the server's default.
    pub limit: Option<u32>,
    /// `next` of the page before.
    pub after: Option<&'a str>,
}

impl DocumentQuery<'_> {
    /// The body of the request.
    pub(crate) fn body(&self, has_contents: bool) -> String {
        let each =
            |(pointer, descending): &(&str, bool)| json!({"pointer": pointer, "descending": descending});
        let sort: Vec<Value> = self.sort.iter().map(each).collect();
        let mut fields = json!({"prefix": self.prefix, "sort": sort, "content": has_contents});
        let optional = [
            ("where", self.filter.clone()),
            ("limit", self.limit.map(Value::from)),
            ("after", self.after.map(Value::from)),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                fields[name] = value;
            }
        }
        fields.to_string()
    }
}

/// Documents that match, in the order of the query: [`Document`]s, or [`DocumentVersion`]s where no contents
/// were asked for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DocumentsFound<T> {
    /// The documents. There may be few of them, even none, and a next page.
    pub documents: Vec<T>,
    /// Number of documents that were looked at.
    pub scanned: u64,
    /// Name of the index that has found them; `None`: all documents were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// Place at which the next page begins; `None`: this is the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// An index of documents.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DocumentIndex {
    /// Its name.
    pub name: String,
    /// JSON pointer (RFC 6901) of the values by which documents are found.
    pub pointer: String,
    /// `building`: it does not know all documents yet, and no query uses it; `ready`.
    pub state: String,
    /// Number of values that it holds: of a list each item is one.
    pub terms: u64,
}

/// A change of a document: its last version, or its end.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ChangedDocument {
    /// Its key.
    pub key: String,
    /// ETag of the version, or of the end: later changes have larger ones.
    pub etag: String,
    /// When it was, in milliseconds since the Unix epoch.
    pub changed_at_ms: u64,
    /// The document; `None`: it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<DocumentVersion>,
    /// True when it was deleted, or its time is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// Changes of documents in their order: of each key the last one, and its ends.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DocumentChanges {
    /// The changes; none where nothing has changed in time, or the caller may not read what has.
    pub changes: Vec<ChangedDocument>,
    /// Place behind them, at which the next call goes on.
    pub next: String,
    /// True when there are more at once.
    #[serde(default)]
    pub more: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about() -> Value {
        json!({"key": "k", "version": 2, "etag": "7", "changed_at_ms": 1_000, "content_bytes": 2, "history": 0})
    }

    fn with(mut fields: Value, more: Value) -> Value {
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    }

    #[test]
    fn a_document_is_read_and_written_as_the_api_does() {
        for (content, bytes) in [
            (json!({"content": "gr\u{fc}n"}), "gr\u{fc}n".as_bytes()),
            (json!({"content_base64": "/wA="}), &[0xff, 0]),
            (json!({"content": "", "content_type": "text/plain", "attributes": {"a": "b"}, "new": 1}), b""),
        ] {
            let wire = with(about(), content);
            let document: Document = serde_json::from_value(wire.clone()).unwrap();
            assert_eq!(document.content, bytes);
            assert_eq!(serde_json::to_value(document).unwrap(), wire);
        }
        for (wrong, told) in [
            (json!({}), "missing field `content`"),
            (json!({"content_base64": "/w"}), "content_base64: this is not base64"),
        ] {
            let error = serde_json::from_value::<Document>(with(about(), wrong)).unwrap_err();
            assert!(error.to_string().contains(told), "{error}");
        }
    }

    #[test]
    fn the_first_version_is_the_one_that_creates_a_document() {
        for (version, created) in [(1, true), (2, false)] {
            let told = json!({"version": version, "etag": "7", "changed_at_ms": 1, "new": true});
            let written: DocumentWritten = serde_json::from_value(told.clone()).unwrap();
            assert_eq!((written.version, written.created), (version, created));
            let wire = serde_json::to_value(&written).unwrap();
            assert_eq!(wire, with(told, json!({ "created": created })));
            assert_eq!(serde_json::from_value::<DocumentWritten>(wire).unwrap(), written);
        }
    }

    #[test]
    fn a_query_leaves_out_what_is_not_given() {
        let all = DocumentQuery::default().body(true);
        assert_eq!(all, r#"{"content":true,"prefix":"","sort":[]}"#);
        let filter = Some(json!({"/n": {"lt": u64::MAX}}));
        let some =
            DocumentQuery { filter, sort: vec![("/n", true)], limit: Some(7), ..DocumentQuery::default() };
        let expected = json!({
            "content": false, "prefix": "", "sort": [{"pointer": "/n", "descending": true}], "limit": 7,
            "where": {"/n": {"lt": u64::MAX}},
        });
        assert_eq!(serde_json::from_str::<Value>(&some.body(false)).unwrap(), expected);
    }

    #[test]
    fn what_replaces_a_document_keeps_the_rest_of_it() {
        let more = json!({"content": "x", "content_type": "text/plain", "attributes": {"a": "b"},
            "expires_at_ms": 61_000});
        let document: Document = serde_json::from_value(with(about(), more)).unwrap();
        let expected = DocumentPut {
            content: b"y",
            content_type: Some("text/plain"),
            attributes: vec![("a", "b")],
            ttl: Some(Duration::from_secs(60)),
            if_etag: Some("7"),
            ..DocumentPut::default()
        };
        assert_eq!(DocumentPut::in_place_of(Some(&document), b"y"), expected);
        let new = DocumentPut { content: b"y", if_absent: true, ..DocumentPut::default() };
        assert_eq!(DocumentPut::in_place_of(None, b"y"), new);
    }
}
