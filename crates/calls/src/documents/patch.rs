//! Patches of documents whose content is JSON: merge patch (RFC 7396), JSON patch (RFC 6902), increments.
//!
//! The node reads the content, patches it, and writes it over the version that it has read. JSON is written
//! anew: without blanks, members by name.

mod content;
mod decimal;
mod operations;

use bytes::Bytes;
use json_patch::{PatchOperation, jsonptr, merge};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Number, Value, json};
use sluice_engine::blob::MessageBlob;
use sluice_engine::documents::{DocumentVersion, DocumentView};
use tokio::sync::Semaphore;

use self::content::{json, memory, read};
use self::decimal::{is_kept, sum};
use self::operations::{memory_of, operate};
use super::writing::digest_of;
use super::{Version, When, Writing, Written, read_key, write};
use crate::call::{Body, Done, Unary};
use crate::digest::Fields;
use crate::error::CallError;
use crate::fault::{Fault, Read, clip};
use crate::payload::Text;
use crate::permit::Permit;
use crate::value::{Within, request_id};

/// Longest patch, in bytes: 1 MiB.
const PATCH_BYTES_MAX: usize = 1 << 20;
/// Most bytes that one of JSON takes in memory: a list of digits has one value for each two.
const VALUE_BYTES_MAX: usize = 32;
/// Most operations of a JSON patch, and most increments.
const OPERATIONS_MAX: usize = 1_000;
/// Times that a patch without a condition is made again, when another write comes before it.
pub(crate) const TRIES: usize = 100;
/// Content from which on a thread that may take long patches it, in bytes.
const LONG_BYTES: usize = 32 << 10;
/// Turns of long contents.
static LONG: Semaphore = Semaphore::const_new(LONG_AT_A_TIME);
/// Long contents that are patched at a time.
const LONG_AT_A_TIME: usize = 2;

/// A change of a content that is JSON.
#[derive(Clone, Debug)]
pub enum Change {
    /// Members to replace, and to remove where they are null.
    Merge(Value),
    /// Operations, in order: all or none.
    Patch(Vec<PatchOperation>),
    /// Numbers to add, each to the number behind a pointer; where there is none, to 0.
    Increment(Vec<(jsonptr::PointerBuf, Number)>),
}

impl Change {
    /// A merge patch. Sets memory aside for it, besides what is `held`.
    ///
    /// # Errors
    /// `invalid_argument`: the text is no JSON, or too long; `overloaded`.
    pub fn merge(permit: &Permit<'_>, text: &[u8], held: usize) -> Read<Change> {
        reserve(permit, text, held)?;
        Change::read_merge(text)
    }

    /// A JSON patch. Sets memory aside for it, besides what is `held`.
    ///
    /// # Errors
    /// `invalid_argument`: the text is no JSON patch, too long, or has too many operations; `overloaded`.
    pub fn patch(permit: &Permit<'_>, text: &[u8], held: usize) -> Read<Change> {
        reserve(permit, text, held)?;
        Change::read_patch(text)
    }

    fn read_merge(text: &[u8]) -> Read<Change> {
        Ok(Change::Merge(json(text)?))
    }

    fn read_patch(text: &[u8]) -> Read<Change> {
        let operations: Vec<PatchOperation> = read("JSON patch (RFC 6902)", text)?;
        expect_few(operations.len())?;
        Ok(Change::Patch(operations))
    }

    /// Memory that it takes, in bytes.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Change::Merge(change) => memory(change),
            Change::Patch(operations) => operations.iter().map(memory_of).sum(),
            Change::Increment(increments) => {
                let of_each = size_of::<(jsonptr::PointerBuf, Number)>();
                increments.iter().map(|(pointer, _)| pointer.as_str().len() + of_each).sum()
            }
        }
    }

    /// Adds the change to those fields that make a request what it is.
    pub(crate) fn put_fields(&self, fields: &mut Fields) {
        match self {
            Change::Merge(change) => fields.text("merge_patch", Some(&change.to_string())),
            Change::Patch(operations) => {
                for operation in operations {
                    let text = serde_json::to_string(operation).unwrap_or_default();
                    fields.text("json_patch", Some(&text));
                }
            }
            Change::Increment(increments) => {
                for (pointer, by) in increments {
                    fields.text("increment", Some(pointer.as_str()));
                    fields.text("by", Some(&by.to_string()));
                }
            }
        }
    }

    fn apply(&self, content: &mut Value) -> Read<()> {
        match self {
            Change::Merge(change) => merge(content, change),
            Change::Patch(operations) => operate(operations, content)?,
            Change::Increment(increments) => {
                for (at, (pointer, by)) in increments.iter().enumerate() {
                    increment(content, pointer, by).map_err(|fault| fault.at(at))?;
                }
            }
        }
        Ok(())
    }
}

/// Sets memory aside for a patch, before it is read, besides what is held.
fn reserve(permit: &Permit<'_>, text: &[u8], held: usize) -> Read<()> {
    if text.len() > PATCH_BYTES_MAX {
        let reason = format!("the patch has {} bytes: use at most {PATCH_BYTES_MAX}", text.len());
        return Err(Fault::invalid(reason));
    }
    Ok(permit.room().reserve(held + text.len() * VALUE_BYTES_MAX)?)
}

fn expect_few(count: usize) -> Read<()> {
    if count <= OPERATIONS_MAX {
        return Ok(());
    }
    Err(Fault::invalid(format!("{count} operations are too many: use at most {OPERATIONS_MAX}")))
}

fn increment(content: &mut Value, pointer: &jsonptr::Pointer, by: &Number) -> Read<()> {
    let failed = |why: &str| Fault::new("patch_failed", format!("{:?} {why}", clip(pointer.as_str())));
    let sum = match content.pointer(pointer.as_str()) {
        None => by.clone(),
        Some(Value::Number(number)) => sum(number, by)
            .ok_or_else(|| failed(&format!("would be {number} + {by}, a number that is not kept exactly")))?,
        Some(_) => return Err(failed("is no number")),
    };
    match content.pointer_mut(pointer.as_str()) {
        Some(place) => *place = Value::Number(sum),
        None => {
            let missing = || failed("has no object above it");
            let (parent, name) = pointer.split_back().ok_or_else(missing)?;
            let parent = content.pointer_mut(parent.as_str()).and_then(Value::as_object_mut);
            parent.ok_or_else(missing)?.insert(name.decoded().into_owned(), Value::Number(sum));
        }
    }
    Ok(())
}

/// Patches the document that a call names; its new version. Without a version or an ETag that it must have,
/// the patch is made of whatever is there.
///
/// # Errors
/// `document_not_found`; `patch_failed`; `invalid_argument`: the content is no JSON; those of a write.
pub async fn patch(
    permit: &Permit<'_>,
    change: &Change,
    when: When<'_>,
    request_id: Option<&str>,
) -> Result<DocumentVersion, CallError> {
    let is_any = when.version.is_none() && when.etag.is_none();
    let request = digest_of(permit, request_id, |fields| {
        change.put_fields(fields);
        when.put_fields(fields);
    });
    for tried in 1.. {
        match patch_once(permit, change, when, request).await {
            Err(error) if is_any && tried < TRIES && error.code() == "version_mismatch" => {}
            other => return other,
        }
    }
    Err(Fault::new("version_mismatch", "others write the document again and again").into())
}

async fn patch_once(
    permit: &Permit<'_>,
    change: &Change,
    when: When<'_>,
    request: u64,
) -> Result<DocumentVersion, CallError> {
    let patched = Patched::read(permit, permit.name(), change, change.memory()).await?;
    let attributes = patched.attributes();
    Ok(write(permit, &patched.writing(when, &attributes), request).await?.0)
}

/// A document as it is read, and its content as it will be.
pub(crate) struct Patched {
    etag: String,
    content_type: String,
    attributes: Vec<(String, String)>,
    content: Vec<u8>,
}

impl Patched {
    /// Reads the document of a key, and patches its content. Sets memory aside for it, besides what is
    /// `held`.
    ///
    /// # Errors
    /// `document_not_found`; `patch_failed`; `invalid_argument`: the content is no JSON; `overloaded`.
    pub(crate) async fn read(
        permit: &Permit<'_>,
        key: &str,
        change: &Change,
        held: usize,
    ) -> Result<Patched, CallError> {
        let room = |view: &DocumentView| permit.room().reserve(held + view.content_bytes as usize);
        let (view, bytes) = read_key(permit, key, None, |view| room(view).map(|()| true)).await?;
        let bytes = bytes.ok_or_else(unreadable)?;
        let blob = MessageBlob::parse(&bytes).ok_or_else(unreadable)?;
        let content = patched(change.clone(), bytes.slice_ref(blob.payload)).await?;
        Ok(Patched {
            etag: view.version.revision.to_string(),
            content_type: blob.content_type.to_owned(),
            attributes: blob.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            content,
        })
    }

    /// Length of the new content, in bytes.
    pub(crate) fn content_bytes(&self) -> usize {
        self.content.len()
    }

    /// Names and values of its attributes.
    pub(crate) fn attributes(&self) -> Vec<(&str, &str)> {
        self.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// The write of the patched content over the version that was read.
    pub(crate) fn writing<'a>(&'a self, when: When<'a>, attributes: &'a [(&'a str, &'a str)]) -> Writing<'a> {
        Writing {
            when: When { etag: Some(when.etag.unwrap_or(&self.etag)), ..when },
            ttl_ms: None,
            history: None,
            content_type: &self.content_type,
            attributes,
            content: &self.content,
        }
    }
}

#[cold]
fn unreadable() -> Box<Fault> {
    Fault::invalid("the content cannot be read")
}

/// The content after a change.
pub(crate) async fn patched(change: Change, content: Bytes) -> Read<Vec<u8>> {
    let is_long = content.len() > LONG_BYTES;
    let work = move || {
        let mut value = json(&content).map_err(|fault| fault.inside("content"))?;
        change.apply(&mut value)?;
        Ok(value.to_string().into_bytes())
    };
    if !is_long {
        return work();
    }
    // What JSON is read into takes many times its length: few at a time.
    let turn = LONG.acquire().await;
    let work = move || {
        // Until the end, also of one whose caller has gone.
        let _turn = turn;
        work()
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Fault::new("internal", "the patch was given up")))
}

/// Declares a patch of a document: these fields, and those that every patch has.
macro_rules! patch_request {
    ($(#[$attribute:meta])* $name:ident { $($own:tt)* }) => {
        #[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        $(#[$attribute])*
        pub struct $name {
            $($own)*
            /// A merge patch (RFC 7396), as text.
            merge_patch: Option<Text>,
            /// A JSON patch (RFC 6902), as text: up to 1,000 operations, all or none.
            json_patch: Option<Text>,
            /// Numbers to add: up to 1,000.
            increment: Option<Vec<Increment>>,
            /// Patch only if the document has this version.
            if_version: Option<Version>,
            /// Patch only if the document has this ETag.
            if_etag: Option<String>,
            /// Token of a lock of the key: patch only while it is held.
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

            /// The change that is asked for.
            pub(crate) fn given(&self) -> Given<'_> {
                let merge_patch = self.merge_patch.as_ref();
                let json_patch = self.json_patch.as_ref();
                Given { merge_patch, json_patch, increment: self.increment.as_deref() }
            }
        }
    };
}

patch_request! {
    /// A patch of a document whose content is JSON: `merge_patch`, `json_patch` or `increment`.
    #[schemars(rename = "DocumentPatchRequest")]
    #[schemars(example = json!({"increment": [{"pointer": "/count", "by": "1"}]}))]
    Patch {
        /// Text that nobody else can guess, by which a repeat of this request is known: it changes nothing
        /// while the version that it has written is the current one.
        request_id: Option<String>,
    }
}

patch_request! {
    /// A patch of a document with a transaction: `merge_patch`, `json_patch` or `increment`.
    #[schemars(rename = "TransactionPatch")]
    #[schemars(example = json!({"key": "orders/17", "increment": [{"pointer": "/count"}]}))]
    KeyedPatch {
        /// Its key.
        #[schemars(required)]
        pub(crate) key: Option<String>,
    }
}

/// A change as its caller gives it: one of these.
#[derive(Clone, Copy, Default)]
pub(crate) struct Given<'a> {
    merge_patch: Option<&'a Text>,
    json_patch: Option<&'a Text>,
    increment: Option<&'a [Increment]>,
}

/// A number to add.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DocumentIncrement")]
pub struct Increment {
    /// JSON pointer (RFC 6901) of the number; one that is missing in its object counts as 0.
    #[schemars(required)]
    pointer: Option<String>,
    /// Number to add, in decimal digits; default 1.
    by: Option<String>,
}

impl Increment {
    fn read(&self) -> Read<(jsonptr::PointerBuf, Number)> {
        let missing = || Fault::missing("pointer", "a number is found by its pointer, such as /count");
        let pointer = self.pointer.as_deref().ok_or_else(missing)?;
        let pointer = jsonptr::PointerBuf::parse(pointer)
            .map_err(|_| Fault::invalid("expected a JSON pointer, such as /count").inside("pointer"))?;
        let by = self.by.as_deref().unwrap_or("1");
        let Ok(number) = serde_json::from_str(by) else {
            return Err(Fault::invalid("expected a number, such as -1").inside("by"));
        };
        if !is_kept(by) {
            let reason =
                format!("{} is not kept exactly: use an integer of 64 bits, or fewer digits", clip(by));
            return Err(Fault::invalid(reason).inside("by"));
        }
        Ok((pointer, number))
    }
}

impl Given<'_> {
    /// Reads it. Sets memory aside for it, besides what is `held`.
    pub(crate) fn change(&self, permit: &Permit<'_>, held: usize) -> Read<Change> {
        let given = [self.merge_patch.is_some(), self.json_patch.is_some(), self.increment.is_some()];
        match given.iter().filter(|given| **given).count() {
            0 => return Err(Fault::missing("merge_patch", "give merge_patch, json_patch or increment")),
            1 => {}
            _ if !given[0] => return Err(Fault::conflict("json_patch", "increment")),
            _ => {
                let other = if given[1] { "json_patch" } else { "increment" };
                return Err(Fault::conflict("merge_patch", other));
            }
        }
        if let Some(text) = self.merge_patch {
            return Change::merge(permit, text.as_bytes(), held).map_err(|fault| fault.inside("merge_patch"));
        }
        if let Some(text) = self.json_patch {
            return Change::patch(permit, text.as_bytes(), held).map_err(|fault| fault.inside("json_patch"));
        }
        increments(self.increment.unwrap_or_default())
    }
}

fn increments(increments: &[Increment]) -> Read<Change> {
    let inside = |fault: Box<Fault>| fault.inside("increment");
    expect_few(increments.len()).map_err(inside)?;
    let read = |(at, one): (usize, &Increment)| one.read().map_err(|fault| inside(fault.at(at)));
    Ok(Change::Increment(increments.iter().enumerate().map(read).collect::<Read<_>>()?))
}

impl Unary for Patch {
    type Answer = Written;
    const BODY: Body = Body::Document;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Written>, CallError> {
        let request_id = request_id(self.request_id.as_deref())?;
        let change = self.given().change(permit, 0)?;
        let version = patch(permit, &change, self.when(), request_id).await?;
        Ok(Written::from(version).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(change: Read<Change>, content: &str) -> Result<String, (&'static str, String)> {
        let told = |fault: Box<Fault>| (fault.code, fault.field.clone());
        let mut value = json(content.as_bytes()).map_err(told)?;
        change.map_err(told)?.apply(&mut value).map_err(told)?;
        Ok(value.to_string())
    }

    #[test]
    fn a_merge_patch_replaces_and_removes_members() {
        let merged = changed(Change::read_merge(br#"{"a":null,"b":{"c":2}}"#), r#"{"a":1,"b":{"d":3}}"#);
        assert_eq!(merged.unwrap(), r#"{"b":{"c":2,"d":3}}"#);
        assert_eq!(changed(Change::read_merge(b"7"), "[1]").unwrap(), "7");
    }

    #[test]
    fn a_json_patch_is_done_as_a_whole() {
        let patch = |text: &str, content| changed(Change::read_patch(text.as_bytes()), content);
        let both = r#"[{"op":"test","path":"/n","value":1},{"op":"replace","path":"/n","value":2}]"#;
        assert_eq!(patch(both, r#"{"n":1}"#).unwrap(), r#"{"n":2}"#);
        assert_eq!(patch(both, r#"{"n":3}"#).unwrap_err(), ("patch_failed", "[0]".to_owned()));
        let lost = r#"[{"op":"add","path":"/n","value":0.10000000000000001}]"#;
        assert_eq!(patch(lost, "{}").unwrap_err().0, "invalid_argument");
        let wrong = r#"[{"op":"grow","path":"/n"}]"#;
        assert_eq!(patch(wrong, "{}").unwrap_err().0, "invalid_argument");
        let many = format!("[{}]", vec![r#"{"op":"remove","path":"/n"}"#; OPERATIONS_MAX + 1].join(","));
        assert_eq!(patch(&many, "{}").unwrap_err().0, "invalid_argument");
    }

    #[test]
    fn a_patch_that_copies_without_end_is_refused() {
        let copy = r#"{"op":"copy","from":"","path":"/a/-"}"#;
        let text = format!("[{}]", vec![copy; 64].join(","));
        let content = format!(r#"{{"a":["{}"]}}"#, "x".repeat(1_000));
        assert_eq!(changed(Change::read_patch(text.as_bytes()), &content).unwrap_err().0, "invalid_argument");
    }

    #[test]
    fn a_patch_that_nests_without_end_is_refused() {
        // Each copy doubles the depth.
        let copies: Vec<String> = (0..20)
            .map(|at| format!(r#"{{"op":"copy","from":"/a","path":"/a{}/c"}}"#, "/c".repeat((1 << at) - 1)))
            .collect();
        let text = |count: usize| format!("[{}]", copies[..count].join(","));
        let deep = changed(Change::read_patch(text(6).as_bytes()), r#"{"a":{}}"#).unwrap();
        assert_eq!(deep.matches("\"c\"").count(), 63);
        let refused = changed(Change::read_patch(text(7).as_bytes()), r#"{"a":{}}"#).unwrap_err();
        assert_eq!(refused, ("invalid_argument", "[6]".to_owned()));
        let parts = format!("/a{}", "/b".repeat(200));
        let far = format!(r#"[{{"op":"add","path":"{parts}","value":1}}]"#);
        assert!(changed(Change::read_patch(far.as_bytes()), "{}").is_err());
    }

    #[test]
    fn numbers_are_incremented() {
        let add = |pointer: &str, by: &str, content| {
            let increment = Increment { pointer: Some(pointer.to_owned()), by: Some(by.to_owned()) };
            changed(increments(&[increment]), content)
        };
        assert_eq!(add("/n", "2", r#"{"n":40}"#).unwrap(), r#"{"n":42}"#);
        assert_eq!(add("/n", "-1", "{}").unwrap(), r#"{"n":-1}"#);
        assert_eq!(add("/n", "0.5", r#"{"n":1}"#).unwrap(), r#"{"n":1.5}"#);
        assert_eq!(add("/n", "1", r#"{"n":18446744073709551615}"#).unwrap_err().0, "patch_failed");
        assert_eq!(add("/n", "0.5", r#"{"n":9007199254740993}"#).unwrap_err().0, "patch_failed");
        assert_eq!(add("/n", "123456789012345678901", "{}").unwrap_err().1, "increment[0].by");
        assert_eq!(add("/n/m", "1", r#"{"n":7}"#).unwrap_err(), ("patch_failed", "[0]".to_owned()));
        assert_eq!(add("/n", "1", r#"{"n":"7"}"#).unwrap_err().0, "patch_failed");
        assert_eq!(add("n", "1", "{}").unwrap_err().1, "increment[0].pointer");
        assert_eq!(add("/n", "one", "{}").unwrap_err().1, "increment[0].by");
    }
}
