//! Outcomes of transactions, for repeats with their idempotency keys.

use crate::core::field::{ReadField, WriteField};
use crate::core::idempotency::Gave;
use crate::documents::DocumentVersion;
use crate::id::MessageId;
use crate::locks::{LockGrant, LockToken};
use crate::transactions::OperationDone;
use crate::wire::{Put, Reader};

/// The outcomes of the operations of a transaction, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Committed(pub(crate) Box<[OperationDone]>);

mod tag {
    pub(super) const SENT: u8 = 0;
    pub(super) const SETTLED: u8 = 1;
    pub(super) const WRITTEN: u8 = 2;
    pub(super) const DELETED: u8 = 3;
    pub(super) const GRANTED: u8 = 4;
    pub(super) const RELEASED: u8 = 5;
    pub(super) const CHECKED: u8 = 6;
}

/// Outcomes as bytes, which [`decode_outcomes`] reads on another node.
pub fn encode_outcomes(done: &[OperationDone], out: &mut Vec<u8>) {
    out.u32(done.len() as u32);
    done.iter().for_each(|done| write(done, out));
}

/// Outcomes that another node has encoded; `None`: the bytes are none.
pub fn decode_outcomes(bytes: &[u8]) -> Option<Vec<OperationDone>> {
    let mut reader = Reader::new(bytes);
    let count = reader.u32()?;
    let done = (0..count).map(|_| read(&mut reader)).collect::<Option<_>>()?;
    reader.is_empty().then_some(done)
}

impl Gave for Committed {
    fn entries(&self) -> u64 {
        self.0.len() as u64
    }

    fn write_fixed(&self, _out: &mut Vec<u8>) {}

    fn write_entries(&self, out: &mut Vec<u8>) {
        encode_outcomes(&self.0, out);
    }

    fn read_fixed(_reader: &mut Reader<'_>) -> Option<Self> {
        Some(Committed::default())
    }

    fn read_entries(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let count = reader.u32()?;
        self.0 = (0..count).map(|_| read(reader)).collect::<Option<_>>()?;
        Some(())
    }
}

fn write(done: &OperationDone, out: &mut Vec<u8>) {
    match done {
        OperationDone::Sent { id } => {
            out.u8(tag::SENT);
            id.write(out);
        }
        OperationDone::Settled => out.u8(tag::SETTLED),
        OperationDone::Written { version, created } => {
            out.u8(tag::WRITTEN);
            write_version(version, out);
            out.bool(*created);
        }
        OperationDone::Deleted { version } => {
            out.u8(tag::DELETED);
            write_version(version, out);
        }
        OperationDone::Granted { grant } => {
            out.u8(tag::GRANTED);
            grant.token.write(out);
            out.u64(grant.until_us);
            out.u16(grant.calls);
        }
        OperationDone::Checked => out.u8(tag::CHECKED),
        OperationDone::Released => out.u8(tag::RELEASED),
    }
}

fn write_version(version: &DocumentVersion, out: &mut Vec<u8>) {
    out.u64(version.version);
    out.u64(version.revision);
    out.u64(version.changed_at_us);
}

fn read(reader: &mut Reader<'_>) -> Option<OperationDone> {
    Some(match reader.u8()? {
        tag::SENT => OperationDone::Sent { id: MessageId::read(reader)? },
        tag::SETTLED => OperationDone::Settled,
        tag::WRITTEN => OperationDone::Written { version: read_version(reader)?, created: reader.bool()? },
        tag::DELETED => OperationDone::Deleted { version: read_version(reader)? },
        tag::GRANTED => {
            let (token, until_us) = (LockToken::read(reader)?, reader.u64()?);
            OperationDone::Granted { grant: LockGrant { token, until_us, calls: reader.u16()? } }
        }
        tag::CHECKED => OperationDone::Checked,
        tag::RELEASED => OperationDone::Released,
        _ => return None,
    })
}

fn read_version(reader: &mut Reader<'_>) -> Option<DocumentVersion> {
    let (version, revision) = (reader.u64()?, reader.u64()?);
    Some(DocumentVersion { version, revision, changed_at_us: reader.u64()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NamespaceId;

    #[test]
    fn outcomes_are_read_as_written() {
        let version = DocumentVersion { version: 1, revision: 2, changed_at_us: 3 };
        let token = LockToken { number: 4, slot: 5, tag: 6 };
        let committed = Committed(Box::new([
            OperationDone::Sent { id: MessageId { namespace: NamespaceId(7), sequence: 8 } },
            OperationDone::Settled,
            OperationDone::Written { version, created: true },
            OperationDone::Deleted { version },
            OperationDone::Granted { grant: LockGrant { token, until_us: 9, calls: 10 } },
            OperationDone::Released,
            OperationDone::Checked,
        ]));
        let mut out = Vec::new();
        committed.write_entries(&mut out);
        let mut read = Committed::default();
        let mut reader = Reader::new(&out);
        read.read_entries(&mut reader).unwrap();
        assert!(reader.is_empty() && read.0 == committed.0);
        out.truncate(out.len() - 1);
        assert_eq!(read.read_entries(&mut Reader::new(&out)), None, "cut");
        assert_eq!(read.read_entries(&mut Reader::new(&[1, 0, 0, 0, 99])), None, "unknown");
    }
}
