//! State of documents, and its layout in a snapshot: a *document* is a key with its current version, a
//! *former* is a version that it had.

pub(crate) mod body;
pub(crate) mod document;
pub(crate) mod former;

use crate::store::slot::Slot;

pub(crate) type DocumentSlot = Slot<document::Document>;
pub(crate) type FormerSlot = Slot<former::Former>;
