//! Uploads and attachments, and the chunks that they are made of.

use crate::attachments::{SHA256_OF_NOTHING, UploadProgress};
use crate::core::namespace::NamespaceSlot;
use crate::core::wheel::Timed;
use crate::documents::DocumentVersion;
use crate::id::BlobRef;
use crate::store::key::Key;
use crate::store::key_index::Keyed;
use crate::store::list::{Link, Linked, PLACE};
use crate::store::slab::PlainItem;
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

pub(crate) type UploadSlot = Slot<Upload>;
pub(crate) type AttachmentSlot = Slot<Attachment>;
pub(crate) type ExtentSlot = Slot<Extent>;
pub(crate) type SetSlot = Slot<Set>;

/// Most chunks of an extent.
pub(crate) const EXTENT_CHUNKS: usize = 64;

/// Some chunks of an upload or attachment, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    /// In their order; none: the slot is vacant.
    pub(crate) chunks: Vec<BlobRef>,
    /// The chunks that follow; of a vacant slot, the next one.
    pub(crate) next: ExtentSlot,
}

impl Extent {
    pub(crate) fn bytes(&self) -> u64 {
        self.chunks.iter().map(|blob| u64::from(blob.len)).sum()
    }
}

impl PlainItem for Extent {
    const BLOCK: usize = 8;

    fn vacant(next: ExtentSlot) -> Self {
        Extent { chunks: Vec::new(), next }
    }

    fn next_vacant(&self) -> Option<ExtentSlot> {
        self.chunks.is_empty().then_some(self.next)
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.u16(self.chunks.len() as u16);
        self.chunks.iter().for_each(|blob| out.blob(*blob));
        self.next.write(out);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let count = reader.u16().filter(|count| (1..=EXTENT_CHUNKS).contains(&usize::from(*count)))?;
        let chunks = (0..count).map(|_| reader.blob()).collect::<Option<_>>()?;
        Some(Extent { chunks, next: Slot::read(reader)? })
    }
}

/// Chunks in their order, in extents that follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub(crate) first: ExtentSlot,
    pub(crate) last: ExtentSlot,
    pub(crate) chunks: u32,
}

impl Chain {
    pub(crate) const EMPTY: Chain = Chain { first: Slot::NIL, last: Slot::NIL, chunks: 0 };

    fn write(&self, out: &mut Vec<u8>) {
        self.first.write(out);
        self.last.write(out);
        out.u32(self.chunks);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Chain> {
        Some(Chain { first: Slot::read(reader)?, last: Slot::read(reader)?, chunks: reader.u32()? })
    }
}

/// Bytes that come in, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Upload {
    /// Key of the document, name of the attachment, and the number, with a zero byte between them.
    place: Key,
    /// A fencing token; 0: the slot is vacant.
    pub(crate) number: u64,
    pub(crate) namespace: NamespaceSlot,
    pub(crate) content_type: Box<str>,
    pub(crate) chain: Chain,
    pub(crate) progress: UploadProgress,
    pub(crate) hash: Box<[u8]>,
    pub(crate) sha256: [u8; 32],
    /// When it ends, in microseconds since the Unix epoch.
    pub(crate) due_us: u64,
    /// Its place among the timers; of a vacant slot, the next one.
    link: Link<Upload>,
    bucket: u16,
}

impl Upload {
    pub(crate) fn new(
        namespace: NamespaceSlot,
        (key, name): (&str, &str),
        number: u64,
        content_type: &str,
    ) -> Upload {
        Upload {
            place: Key::new(&[&Upload::places_of(key, name), &number.to_be_bytes()[..]].concat()),
            number,
            namespace,
            content_type: content_type.into(),
            chain: Chain::EMPTY,
            progress: UploadProgress::default(),
            hash: Box::default(),
            sha256: SHA256_OF_NOTHING,
            due_us: 0,
            link: Link::UNLINKED,
            bucket: 0,
        }
    }

    /// The first bytes of the places of the uploads for an attachment.
    pub(crate) fn places_of(key: &str, name: &str) -> Vec<u8> {
        [key.as_bytes(), &[0], name.as_bytes(), &[0]].concat()
    }

    /// Key of the document, and name of the attachment.
    pub(crate) fn target(&self) -> (String, String) {
        let mut parts = self.place.splitn(3, |byte| *byte == 0).map(String::from_utf8_lossy);
        let mut next = || parts.next().unwrap_or_default().into_owned();
        (next(), next())
    }

    /// True if it is for this attachment.
    pub(crate) fn is_for(&self, key: &str, name: &str) -> bool {
        self.place.starts_with(&Upload::places_of(key, name))
    }
}

impl PlainItem for Upload {
    const BLOCK: usize = 8;

    fn vacant(next: UploadSlot) -> Self {
        let mut vacant = Upload::new(Slot::NIL, ("", ""), 0, "");
        vacant.link.next = next;
        vacant
    }

    fn next_vacant(&self) -> Option<UploadSlot> {
        (self.number == 0).then_some(self.link.next)
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.place.write(out);
        out.u64(self.number);
        self.namespace.write(out);
        out.bytes16(self.content_type.as_bytes());
        self.chain.write(out);
        let UploadProgress { bytes, last_offset, last_request } = self.progress;
        [bytes, last_offset, last_request].into_iter().for_each(|number| out.u64(number));
        out.bytes16(&self.hash);
        out.raw(&self.sha256);
        out.u64(self.due_us);
        self.link.write(out);
        out.u16(self.bucket);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Upload {
            place: Key::read(reader)?,
            number: reader.u64().filter(|number| *number != 0)?,
            namespace: Slot::read(reader)?,
            content_type: std::str::from_utf8(reader.bytes16()?).ok()?.into(),
            chain: Chain::read(reader)?,
            progress: UploadProgress {
                bytes: reader.u64()?,
                last_offset: reader.u64()?,
                last_request: reader.u64()?,
            },
            hash: reader.bytes16()?.into(),
            sha256: *reader.array()?,
            due_us: reader.u64()?,
            link: Link::read(reader)?,
            bucket: reader.u16()?,
        })
    }
}

impl Keyed for Upload {
    fn scope(&self) -> u64 {
        self.namespace.index().into()
    }

    fn key(&self) -> &[u8] {
        &self.place
    }
}

impl Linked<PLACE> for Upload {
    fn link(&self) -> Link<Upload> {
        self.link
    }

    fn link_mut(&mut self) -> &mut Link<Upload> {
        &mut self.link
    }
}

impl Timed for Upload {
    fn due_us(&self) -> u64 {
        self.due_us
    }

    fn bucket(&self) -> u16 {
        self.bucket
    }

    fn set_bucket(&mut self, bucket: u16) {
        self.bucket = bucket;
    }
}

/// Bytes under a name, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    pub(crate) set: SetSlot,
    /// Empty: the slot is vacant.
    pub(crate) name: Key,
    pub(crate) content_type: Box<str>,
    pub(crate) chain: Chain,
    pub(crate) bytes: u64,
    pub(crate) sha256: [u8; 32],
    pub(crate) version: DocumentVersion,
    /// Number of the upload that has made it; of a vacant slot, the next one.
    pub(crate) upload: u64,
}

impl PlainItem for Attachment {
    const BLOCK: usize = 16;

    fn vacant(next: AttachmentSlot) -> Self {
        Attachment {
            set: Slot::NIL,
            name: Key::default(),
            content_type: "".into(),
            chain: Chain::EMPTY,
            bytes: 0,
            sha256: SHA256_OF_NOTHING,
            version: DocumentVersion::default(),
            upload: next.index().into(),
        }
    }

    fn next_vacant(&self) -> Option<AttachmentSlot> {
        self.name.is_empty().then_some(Slot::new(self.upload as u32))
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.set.write(out);
        self.name.write(out);
        out.bytes16(self.content_type.as_bytes());
        self.chain.write(out);
        out.u64(self.bytes);
        out.raw(&self.sha256);
        let DocumentVersion { version, revision, changed_at_us } = self.version;
        [version, revision, changed_at_us, self.upload].into_iter().for_each(|number| out.u64(number));
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Attachment {
            set: Slot::read(reader)?,
            name: Key::read(reader).filter(|name| !name.is_empty())?,
            content_type: std::str::from_utf8(reader.bytes16()?).ok()?.into(),
            chain: Chain::read(reader)?,
            bytes: reader.u64()?,
            sha256: *reader.array()?,
            version: DocumentVersion {
                version: reader.u64()?,
                revision: reader.u64()?,
                changed_at_us: reader.u64()?,
            },
            upload: reader.u64()?,
        })
    }
}

/// The attachments of a document together, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    /// Number of them, those that are let go of included.
    pub(crate) count: u32,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// The next vacant slot, of a slot that is vacant.
    next_vacant: Option<SetSlot>,
}

impl Set {
    pub(crate) const EMPTY: Set = Set { count: 0, bytes: 0, next_vacant: None };
}

impl PlainItem for Set {
    const BLOCK: usize = 64;

    fn vacant(next: SetSlot) -> Self {
        Set { next_vacant: Some(next), ..Set::EMPTY }
    }

    fn next_vacant(&self) -> Option<SetSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.u32(self.count);
        out.u64(self.bytes);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Set { count: reader.u32()?, bytes: reader.u64()?, next_vacant: None })
    }
}
