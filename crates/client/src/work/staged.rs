//! The state of a unit of work: what it has read and what it writes, and the transaction that it becomes.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::documents::{Document, DocumentCheck, DocumentDelete, DocumentPatch, DocumentPut};
use crate::encode;
use crate::error::ClientError;
use crate::locks::LockRequest;
use crate::message::{Message, Settle, SettleItem};
use crate::transactions::Transaction;

/// Most operations of a unit; the server's limit for a transaction.
const OPERATIONS_MAX: usize = 1_000;
/// Most bytes of payloads, headers and contents that a unit stages; the server's default limit.
const STAGED_BYTES_MAX: usize = 16 << 20;
/// Most bytes of documents that a unit remembers.
const READ_BYTES_MAX: usize = 64 << 20;

/// A document as it was read; `None`: there was none.
pub(super) type Seen = Option<Arc<Document>>;

/// The state of a unit of work.
#[derive(Debug, Default)]
pub(super) struct Staged {
    /// The message that the unit settles, and how.
    own: Option<(String, Settle)>,
    /// Operations that concern no document.
    others: Transaction,
    /// By key.
    documents: BTreeMap<String, Touched>,
    staged_bytes: usize,
    read_bytes: usize,
    is_over: bool,
}

/// A document that the unit has read, or writes, or both.
#[derive(Debug, Default)]
struct Touched {
    /// `None`: it was not read.
    seen: Option<Seen>,
    write: Option<Write>,
}

/// A write that is staged.
#[derive(Debug)]
enum Write {
    /// The content; without fields the rest is that of the document that was read.
    Put(Vec<u8>, Option<PutFields>),
    /// The fields of a patch, without conditions.
    Patch(Map<String, Value>),
    Delete,
}

/// The fields of a document beside its content.
#[derive(Debug)]
pub(super) struct PutFields {
    content_type: Option<String>,
    attributes: Vec<(String, String)>,
    ttl: Option<Duration>,
    history: Option<u16>,
    token: Option<String>,
}

/// The content of a document as the unit sees it.
pub(super) enum View {
    /// As the unit has written it; `None`: it has deleted it.
    Written(Option<Vec<u8>>),
    /// As it is read.
    AsRead,
}

/// A unit that is ready for its commit.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) transaction: Transaction,
    /// Outcome of the message that the unit settles, the first operation; `None`: it settles none.
    pub(super) outcome: Option<Settle>,
    /// Places of the operations that write a document which was there when it was read.
    pub(super) of_read: BTreeSet<usize>,
}

impl Prepared {
    /// True if the unit does nothing but settle its message.
    pub(super) fn does_nothing_else(&self) -> bool {
        self.transaction.len() == usize::from(self.outcome.is_some())
    }
}

impl Staged {
    pub(super) fn new(receipt: Option<&str>) -> Staged {
        Staged { own: receipt.map(|receipt| (receipt.to_owned(), Settle::Ack)), ..Staged::default() }
    }

    fn expect_open(&self) -> Result<(), ClientError> {
        if self.is_over {
            let message = "the unit of work is over: use it before its work is done".to_owned();
            return Err(ClientError::refused(409, "wrong_state", message));
        }
        Ok(())
    }

    /// Checks that there is room for another operation, if there is one.
    fn expect_room(&self, is_another: bool) -> Result<(), ClientError> {
        self.expect_open()?;
        let count = usize::from(self.own.is_some()) + self.others.len() + self.documents.len();
        if is_another && count >= OPERATIONS_MAX {
            return Err(too_large(format!("it would have more than {OPERATIONS_MAX} operations")));
        }
        Ok(())
    }

    /// Counts the bytes of an operation, which takes the place of another with so many.
    fn count_bytes(&mut self, bytes: usize, former: usize) -> Result<(), ClientError> {
        let staged = self.staged_bytes - former + bytes;
        if staged > STAGED_BYTES_MAX {
            return Err(too_large(format!("it would stage {staged} bytes of at most {STAGED_BYTES_MAX}")));
        }
        self.staged_bytes = staged;
        Ok(())
    }

    /// Adds an operation that concerns no document.
    fn add(&mut self, bytes: usize, add: impl FnOnce(Transaction) -> Transaction) -> Result<(), ClientError> {
        self.expect_room(true)?;
        self.count_bytes(bytes, 0)?;
        self.others = add(take(&mut self.others));
        Ok(())
    }

    pub(super) fn send(&mut self, queue: &str, message: Message<'_>) -> Result<(), ClientError> {
        let headers = message.headers.iter().map(|(name, value)| name.len() + value.len());
        self.add(message.payload.len() + headers.sum::<usize>(), |others| others.send(queue, message))
    }

    pub(super) fn settle(&mut self, receipt: &str, settle: Settle) -> Result<(), ClientError> {
        self.expect_open()?;
        match &mut self.own {
            Some((own, outcome)) if own == receipt => {
                *outcome = settle;
                Ok(())
            }
            _ => self.add(0, |others| others.settle(SettleItem::of(receipt, settle))),
        }
    }

    pub(super) fn acquire(&mut self, request: &LockRequest<'_>) -> Result<(), ClientError> {
        self.add(0, |others| others.acquire(request.clone()))
    }

    pub(super) fn release(&mut self, token: &str) -> Result<(), ClientError> {
        self.add(0, |others| others.release(token))
    }

    /// The content as the unit has written it.
    pub(super) fn view(&self, key: &str) -> Result<View, ClientError> {
        self.expect_open()?;
        match self.documents.get(key).and_then(|touched| touched.write.as_ref()) {
            Some(Write::Put(content, _)) => Ok(View::Written(Some(content.clone()))),
            Some(Write::Delete) => Ok(View::Written(None)),
            Some(Write::Patch(_)) => Err(patched(key)),
            None => Ok(View::AsRead),
        }
    }

    /// The document as it was read; `None`: it was not read.
    pub(super) fn seen(&self, key: &str) -> Result<Option<Seen>, ClientError> {
        self.expect_open()?;
        Ok(self.documents.get(key).and_then(|touched| touched.seen.clone()))
    }

    /// Remembers a document that was read; the document as it was at the first read.
    pub(super) fn see(&mut self, key: &str, found: Option<Document>) -> Result<Seen, ClientError> {
        if let Some(seen) = self.seen(key)? {
            return Ok(seen);
        }
        self.expect_room(!self.documents.contains_key(key))?;
        let read = self.read_bytes + found.as_ref().map_or(0, |document| document.content.len());
        if read > READ_BYTES_MAX {
            return Err(too_large(format!("it would have read {read} bytes of at most {READ_BYTES_MAX}")));
        }
        self.read_bytes = read;
        let seen = found.map(Arc::new);
        self.documents.entry(key.to_owned()).or_default().seen = Some(seen.clone());
        Ok(seen)
    }

    pub(super) fn put_with(&mut self, key: &str, put: &DocumentPut<'_>) -> Result<(), ClientError> {
        expect_unconditional(key, put.if_version, put.if_etag, put.if_exists || put.if_absent)?;
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let fields = PutFields {
            content_type: put.content_type.map(str::to_owned),
            attributes: put.attributes.iter().map(owned).collect(),
            ttl: put.ttl,
            history: put.history,
            token: put.token.map(str::to_owned),
        };
        self.put(key, put.content.to_owned(), Some(fields))
    }

    pub(super) fn put(
        &mut self,
        key: &str,
        content: Vec<u8>,
        fields: Option<PutFields>,
    ) -> Result<(), ClientError> {
        self.write(key, Write::Put(content, fields))
    }

    pub(super) fn patch(&mut self, key: &str, patch: &DocumentPatch<'_>) -> Result<(), ClientError> {
        expect_unconditional(key, patch.if_version, patch.if_etag, false)?;
        if self.documents.get(key).is_some_and(|touched| touched.write.is_some()) {
            return Err(patched(key));
        }
        self.write(key, Write::Patch(encode::patch_fields(patch)))
    }

    pub(super) fn delete(&mut self, key: &str) -> Result<(), ClientError> {
        self.write(key, Write::Delete)
    }

    fn write(&mut self, key: &str, write: Write) -> Result<(), ClientError> {
        let touched = self.documents.get(key);
        let former = touched.and_then(|touched| touched.write.as_ref());
        if matches!(former, Some(Write::Patch(_))) {
            return Err(patched(key));
        }
        let former = former.map_or(0, Write::bytes);
        self.expect_room(touched.is_none())?;
        self.count_bytes(write.bytes(), former)?;
        self.documents.entry(key.to_owned()).or_default().write = Some(write);
        Ok(())
    }

    /// Ends the unit. The message that it settles comes first, then what concerns no document in the order in
    /// which it was staged, then documents by key, those that were only read among them.
    pub(super) fn end(&mut self) -> Prepared {
        let Staged { own, others, documents, .. } =
            std::mem::replace(self, Staged { is_over: true, ..Staged::default() });
        let mut transaction = Transaction::new();
        let mut outcome = None;
        if let Some((receipt, settle)) = own {
            outcome = Some(settle.clone());
            transaction = transaction.settle(SettleItem::of(receipt, settle));
        }
        transaction = transaction.and(&others);
        let mut of_read = BTreeSet::new();
        for (key, touched) in &documents {
            if touched.write.is_some() && matches!(touched.seen, Some(Some(_))) {
                of_read.insert(transaction.len());
            }
            transaction = touched.add_to(transaction, key);
        }
        Prepared { transaction, outcome, of_read }
    }
}

impl Touched {
    /// Adds the write, under the condition that the document is as it was read, or the condition alone.
    fn add_to(&self, transaction: Transaction, key: &str) -> Transaction {
        let document = self.seen.as_ref().and_then(|seen| seen.as_deref());
        let is_absent = self.seen.as_ref().is_some_and(Option::is_none);
        let if_etag = document.map(|document| &*document.about.etag);
        match &self.write {
            Some(Write::Put(content, None)) if self.seen.is_some() => {
                transaction.put(key, DocumentPut::in_place_of(document, content))
            }
            Some(Write::Put(content, None)) => transaction.put(key, DocumentPut::new(content)),
            Some(Write::Put(content, Some(fields))) => {
                let put = DocumentPut { if_etag, if_absent: is_absent, ..fields.with(content) };
                transaction.put(key, put)
            }
            Some(Write::Patch(fields)) => {
                let mut fields = fields.clone();
                fields.extend(if_etag.map(|etag| ("if_etag".to_owned(), etag.into())));
                transaction.patch_with(key, &fields)
            }
            Some(Write::Delete) if !is_absent => {
                transaction.delete(key, DocumentDelete { if_etag, ..DocumentDelete::default() })
            }
            Some(Write::Delete) | None => transaction.check(key, DocumentCheck::unchanged(document)),
        }
    }
}

impl Write {
    /// Bytes that count towards the limit.
    fn bytes(&self) -> usize {
        match self {
            Write::Put(content, fields) => content.len() + fields.as_ref().map_or(0, PutFields::bytes),
            Write::Patch(fields) => json!(fields).to_string().len(),
            Write::Delete => 0,
        }
    }
}

impl PutFields {
    fn bytes(&self) -> usize {
        self.attributes.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    fn with<'a>(&'a self, content: &'a [u8]) -> DocumentPut<'a> {
        DocumentPut {
            content_type: self.content_type.as_deref(),
            attributes: self.attributes.iter().map(|(name, value)| (&**name, &**value)).collect(),
            ttl: self.ttl,
            history: self.history,
            token: self.token.as_deref(),
            ..DocumentPut::new(content)
        }
    }
}

fn expect_unconditional(
    key: &str,
    if_version: Option<u64>,
    if_etag: Option<&str>,
    has_others: bool,
) -> Result<(), ClientError> {
    if if_version.is_none() && if_etag.is_none() && !has_others {
        return Ok(());
    }
    let message =
        format!("document {key:?}: in a unit of work a write has no conditions but a token: read it first");
    Err(ClientError::refused(400, "invalid_argument", message))
}

fn patched(key: &str) -> ClientError {
    let message = format!(
        "document {key:?}: a unit of work that patches it can neither write it otherwise nor get its content"
    );
    ClientError::refused(400, "invalid_argument", message)
}

fn too_large(reason: String) -> ClientError {
    let message = format!("the unit of work is too large, since {reason}: do it in several");
    ClientError::refused(413, "batch_too_large", message)
}
