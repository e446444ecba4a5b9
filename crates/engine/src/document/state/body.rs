//! A version of a document, current or former.

use crate::documents::DocumentVersion;
use crate::id::BlobRef;
use crate::wire::{Put, Reader};

/// A version of a document, and where it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    pub(crate) blob: BlobRef,
    pub(crate) version: DocumentVersion,
}

impl Body {
    /// No version: that of a vacant slot.
    pub(crate) const NONE: Body =
        Body { blob: BlobRef::EMPTY, version: DocumentVersion { version: 0, revision: 0, changed_at_us: 0 } };

    /// Bytes that count against the quota of its namespace.
    pub(crate) fn bytes(&self) -> u64 {
        self.blob.len.into()
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let Body { blob, version: DocumentVersion { version, revision, changed_at_us } } = *self;
        out.blob(blob);
        out.u64(version);
        out.u64(revision);
        out.u64(changed_at_us);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Body> {
        let blob = reader.blob()?;
        let (version, revision, changed_at_us) = (reader.u64()?, reader.u64()?, reader.u64()?);
        Some(Body { blob, version: DocumentVersion { version, revision, changed_at_us } })
    }
}
