//! Writing of documents: those who write may prove that they hold the lock of the key.

use crate::document::record::PutRecord;
use crate::documents::{DocumentCheck, DocumentCondition, DocumentDelete};
use crate::engine::Engine;
use crate::error::Error;
use crate::id::NamespaceId;
use crate::outcome::Outcome;
use crate::plant::{self, Plant};

impl Engine {
    pub(super) fn document_put(&mut self, put: &PutRecord<'_>, out: &mut Outcome) -> Result<(), Error> {
        let done = self
            .expect_lock(put.namespace, &put.when, put.key)
            .and_then(|()| self.documents.put(put, &mut self.core, out));
        if done.is_err() {
            out.released.push(put.blob(self.core.applied_index));
        }
        done
    }

    pub(super) fn document_delete(
        &mut self,
        delete: &DocumentDelete<'_>,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        self.expect_lock(delete.namespace, &delete.when, delete.key)?;
        self.documents.delete(delete, &mut self.core, out)
    }

    pub(super) fn document_check(
        &mut self,
        check: &DocumentCheck<'_>,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        self.expect_lock(check.namespace, &check.when, check.key)?;
        let (_, found) = self.documents.look_up(check.namespace, check.key, &mut self.core, out)?;
        if plant::is(Plant::PassChecks) {
            return Ok(());
        }
        self.documents.expect(&check.when, check.key, found)
    }

    /// Refuses unless the token of a condition, if there is one, proves a lock of the key.
    pub(super) fn expect_lock(
        &mut self,
        namespace: NamespaceId,
        when: &DocumentCondition,
        key: &str,
    ) -> Result<(), Error> {
        match when.token {
            Some(token) if !plant::is(Plant::WriteWithoutLock) => {
                self.locks.expect_held(namespace, token, key, &mut self.core)
            }
            _ => Ok(()),
        }
    }
}
