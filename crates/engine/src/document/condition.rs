//! Conditions of writes.

use crate::document::DocumentModule;
use crate::document::state::DocumentSlot;
use crate::documents::{DocumentCondition, DocumentVersion};
use crate::error::Error;
use crate::plant::{self, Plant};

impl DocumentModule {
    /// Refuses to write the document of a key, `slot` if there is one, unless a condition holds; but for its
    /// token, of which the module of locks knows.
    pub(crate) fn expect(
        &self,
        when: &DocumentCondition,
        key: &str,
        slot: Option<DocumentSlot>,
    ) -> Result<(), Error> {
        let found = slot.map(|slot| self.documents.slots.get(slot).body.version);
        if holds(when, found) || (found.is_some() && plant::is(Plant::WriteOverOthers)) {
            return Ok(());
        }
        Err(Error::DocumentChanged { key: key.to_owned(), version: found.map_or(0, |found| found.version) })
    }
}

/// True if a condition holds of what has a version, `None` if it is not there; but for its token.
pub(crate) fn holds(when: &DocumentCondition, found: Option<DocumentVersion>) -> bool {
    let (version, revision) = found.map_or((0, 0), |found| (found.version, found.revision));
    when.version.is_none_or(|expected| expected == version)
        && when.revision.is_none_or(|expected| expected == revision && found.is_some())
        && (found.is_some() || !when.exists)
}
