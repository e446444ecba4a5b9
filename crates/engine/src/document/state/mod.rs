//! State of documents, and its layout in a snapshot: a *document* is a key with its current version, a
//! *former* is a version that it had; a key that is *gone* had a document not long ago; an *entry* is a term
//! of a document in an index; an *attachment* is made of an upload.

pub(crate) mod attachment;
pub(crate) mod body;
pub(crate) mod document;
pub(crate) mod entry;
pub(crate) mod former;
pub(crate) mod gone;

use crate::store::slot::Slot;

pub(crate) type DocumentSlot = Slot<document::Document>;
pub(crate) type EntrySlot = Slot<entry::Entry>;
pub(crate) type GoneSlot = Slot<gone::Gone>;
pub(crate) type FormerSlot = Slot<former::Former>;
