//! Writing of documents: put and delete.

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::core::tokens::none_left;
use crate::document::record::PutRecord;
use crate::document::state::DocumentSlot;
use crate::document::state::body::Body;
use crate::document::state::former::Former;
use crate::document::{DOCUMENTS_SINCE, DocumentModule};
use crate::documents::{DocumentCondition, DocumentDelete, DocumentVersion};
use crate::error::Error;
use crate::id::NamespaceId;
use crate::limits::{DOCUMENT_FORMERS_MAX, DOCUMENTS_MAX};
use crate::outcome::{Outcome, Reply};
use crate::plant::{self, Plant};
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

/// Room that writes take.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Room {
    pub(crate) documents: u32,
    /// Former versions.
    pub(crate) formers: u32,
    pub(crate) terms: u32,
    /// Bytes of the namespace.
    pub(crate) bytes: u64,
}

impl Room {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        [self.documents, self.formers, self.terms].iter().for_each(|count| out.u32(*count));
        out.u64(self.bytes);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Room> {
        let (documents, formers, terms) = (reader.u32()?, reader.u32()?, reader.u32()?);
        Some(Room { documents, formers, terms, bytes: reader.u64()? })
    }
}

impl std::ops::SubAssign for Room {
    fn sub_assign(&mut self, other: Room) {
        self.documents -= other.documents;
        self.formers -= other.formers;
        self.terms -= other.terms;
        self.bytes -= other.bytes;
    }
}

impl std::ops::AddAssign for Room {
    fn add_assign(&mut self, other: Room) {
        self.documents += other.documents;
        self.formers += other.formers;
        self.terms += other.terms;
        self.bytes += other.bytes;
    }
}

impl DocumentModule {
    /// Writes a document. When it is refused, its blob is the caller's to release.
    pub(crate) fn put(
        &mut self,
        put: &PutRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let (namespace, found) = self.look_up(put.namespace, put.key, core, out)?;
        if let Some(slot) = found.filter(|slot| self.is_repeat(*slot, put.request)) {
            core.release_blob(put.blob(core.applied_index), out);
            let version = self.documents.slots.get(slot).body.version;
            out.reply = Reply::DocumentWritten { version, created: version.version == 1 };
            return Ok(());
        }
        self.expect(&put.when, put.key, found)?;
        let room = self.room_of((namespace, found), put);
        self.admit(room)?;
        core.admit_growth(namespace, 0, room.bytes)?;
        let revision = core.tokens.give().ok_or_else(none_left)?;
        let version = self.write((namespace, found), put, revision, core, out);
        out.reply = Reply::DocumentWritten { version, created: found.is_none() };
        Ok(())
    }

    /// Writes a version that was admitted; `revision`: its fencing token.
    pub(crate) fn write(
        &mut self,
        (namespace, found): (NamespaceSlot, Option<DocumentSlot>),
        put: &PutRecord<'_>,
        revision: u64,
        core: &mut Core,
        out: &mut Outcome,
    ) -> DocumentVersion {
        let blob = put.blob(core.applied_index);
        let slot = found.unwrap_or_else(|| self.enter(namespace, put.key));
        let before = self.documents.slots.get(slot).body.version.version;
        let version = DocumentVersion { version: before + 1, revision, changed_at_us: core.now_us };
        self.replace(slot, Body { blob, version }, put, core, out);
        version
    }

    /// Deletes a document with its former versions.
    pub(crate) fn delete(
        &mut self,
        delete: &DocumentDelete<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let DocumentDelete { namespace, key, when } = *delete;
        let (_, found) = self.look_up(namespace, key, core, out)?;
        let slot = self.expect_to_delete(&when, key, found)?;
        out.reply = Reply::DocumentWritten { version: self.delete_found(slot, core, out), created: false };
        Ok(())
    }

    /// The document to delete, `found` if it is there.
    pub(crate) fn expect_to_delete(
        &self,
        when: &DocumentCondition,
        key: &str,
        found: Option<DocumentSlot>,
    ) -> Result<DocumentSlot, Error> {
        self.expect(when, key, found)?;
        found.ok_or_else(|| Error::DocumentNotFound { key: key.to_owned() })
    }

    /// Deletes a document; the version that it had.
    pub(crate) fn delete_found(
        &mut self,
        slot: DocumentSlot,
        core: &mut Core,
        out: &mut Outcome,
    ) -> DocumentVersion {
        let version = self.documents.slots.get(slot).body.version;
        self.end(slot, core, out);
        version
    }

    /// The document of a key, if there is one; one that is over is gone before.
    pub(crate) fn look_up(
        &mut self,
        namespace: NamespaceId,
        key: &str,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(NamespaceSlot, Option<DocumentSlot>), Error> {
        core.expect_behaviour(DOCUMENTS_SINCE)?;
        let namespace = core.find_namespace(namespace)?;
        self.pins.expect_free(namespace, key)?;
        self.end_some(core, out);
        let found = self.documents.find(namespace, key);
        if let Some(slot) = found.filter(|slot| self.is_over(*slot, core)) {
            self.end(slot, core, out);
            return Ok((namespace, None));
        }
        Ok((namespace, found))
    }

    fn is_repeat(&self, slot: DocumentSlot, request: u64) -> bool {
        request != 0
            && !plant::is(Plant::ForgetWriteRequest)
            && self.documents.slots.get(slot).request == request
    }

    fn enter(&mut self, namespace: NamespaceSlot, key: &str) -> DocumentSlot {
        let (slot, _) = self.documents.enter(namespace, key);
        self.order.insert(slot, &self.documents.slots);
        slot
    }

    /// The room that a version of a document takes, `found` if it is there already.
    pub(crate) fn room_of(
        &self,
        (namespace, found): (NamespaceSlot, Option<DocumentSlot>),
        put: &PutRecord<'_>,
    ) -> Room {
        let document = found.map(|slot| self.documents.slots.get(slot));
        let history = put.history.or(document.map(|document| document.history)).unwrap_or(0).into();
        let kept = found.into_iter().flat_map(|slot| self.formers_of(slot)).take(history).count();
        let versions = found.into_iter().flat_map(|slot| self.bytes_of_versions(slot));
        let let_go: u64 = versions.skip(history).sum();
        Room {
            documents: u32::from(found.is_none()),
            formers: u32::from(found.is_some() && kept < history),
            terms: self.more_terms((namespace, found), put.terms),
            bytes: u64::from(put.blob(0).len).saturating_sub(let_go),
        }
    }

    /// Checks that the shard has room for documents and former versions.
    pub(crate) fn admit(&self, room: Room) -> Result<(), Error> {
        let reserved = self.pins.reserved;
        let documents = self.documents.slots.used() + reserved.documents;
        let formers = self.formers.used() + reserved.formers;
        if room.documents > 0 && documents + room.documents > DOCUMENTS_MAX {
            return Err(Error::LimitExceeded { what: "documents", limit: DOCUMENTS_MAX.into() });
        }
        if room.formers > 0 && formers + room.formers > DOCUMENT_FORMERS_MAX {
            let (what, limit) = ("former versions of documents", DOCUMENT_FORMERS_MAX.into());
            return Err(Error::LimitExceeded { what, limit });
        }
        self.admit_terms(room.terms)
    }

    /// Bytes of each version of a document, the newest first.
    fn bytes_of_versions(&self, slot: DocumentSlot) -> impl Iterator<Item = u64> + '_ {
        let current = self.documents.slots.get(slot).body.bytes();
        std::iter::once(current)
            .chain(self.formers_of(slot).map(|former| self.formers.get(former).body.bytes()))
    }

    /// Puts a version in the place of the current one, which becomes a former one, or is let go of.
    fn replace(
        &mut self,
        slot: DocumentSlot,
        body: Body,
        put: &PutRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        if self.documents.slots.get(slot).body.version.version > 0 {
            self.order_of_changes.remove(slot, &self.documents);
        }
        let document = self.documents.slots.get_mut(slot);
        if document.body.version.version > 0 {
            let (body, before, head_bytes) = (document.body, document.before, document.head_bytes);
            let former = Former { body, before, head_bytes };
            document.before = self.formers.insert(former);
        }
        document.body = body;
        document.head_bytes = put.head_bytes;
        document.request = put.request;
        document.history = put.history.unwrap_or(document.history);
        core.namespaces.get_mut(document.namespace).bytes += body.bytes();
        self.latest = body.version.revision;
        self.order_of_changes.insert(slot, &self.documents);
        self.index_version(slot, put.terms);
        self.trim(slot, core, out);
        match put.ttl_ms {
            None => {}
            Some(0) => self.documents.set_due(slot, 0, core.now_us),
            Some(ttl_ms) => self.documents.set_due(slot, core.now_us + ttl_ms * 1_000, core.now_us),
        }
    }

    /// Lets go of the former versions that are too many.
    fn trim(&mut self, slot: DocumentSlot, core: &mut Core, out: &mut Outcome) {
        let document = self.documents.slots.get(slot);
        let (namespace, history) = (document.namespace, usize::from(document.history));
        let last = self.formers_of(slot).take(history).last();
        let rest = match last {
            Some(last) => &mut self.formers.get_mut(last).before,
            None => &mut self.documents.slots.get_mut(slot).before,
        };
        let first = std::mem::replace(rest, Slot::NIL);
        self.let_go_of(first, namespace, core, out);
    }
}
