//! Batches and tables on their way to the disk and back: encrypted, when their segment is.

use std::borrow::Cow;
use std::io;

use crate::disk::File;
use crate::file_kind::Kind;
use crate::keys::chunks::ChunkCipher;
use crate::keys::cipher::{BatchCipher, CHUNK, TAG, tag_bytes};
use crate::log::files::{Files, Seal};
use crate::log::header::next_sector;
use crate::log::header::{HEADER, Header, Position, checksum, front};
use crate::log::manifest::Sealed;
use crate::log::table::Table;
use crate::open_error::OpenError;
use crate::seam::batch::seal_blobs;
use crate::seam::blob::BlobError;

/// Bytes read with a head, in the hope that the blob that is looked for, or at least all tags, are among
/// them.
const PROBE: usize = 4 << 10;

/// Appends a batch to `out`, in which the blobs have their checksums yet to come when they are `new`. The
/// head is complete afterwards. An error means that the segment is none to write to.
pub(crate) fn append_batch(
    out: &mut Vec<u8>,
    seal: &Seal,
    identity: u64,
    header: &mut Header,
    records: &[u8],
    new: bool,
) -> Result<(), String> {
    let start = out.len();
    let front = front(records.len(), !seal.is_plain());
    out.resize(start + front, 0);
    out.extend_from_slice(records);
    let (head, body) = out[start..].split_at_mut(front);
    if new {
        seal_blobs(body, header.first_index);
    }
    header.len = records.len() as u32;
    header.nonce = None;
    if let Seal::Batches(cipher, _) = seal {
        let nonce = cipher.take_nonces(body.len())?;
        header.nonce = Some(nonce);
        cipher.seal(&header.authenticated(), nonce, body, &mut head[HEADER..]);
        header.content_checksum = checksum(identity, &head[HEADER..]);
    } else {
        header.content_checksum = checksum(identity, body);
    }
    let (encoded, sum) = header.encode(identity);
    head[..HEADER].copy_from_slice(&encoded);
    header.checksum = sum;
    Ok(())
}

/// The records of a batch, of which this is what follows the head; `None`: they are not those that the head
/// tells of.
pub(crate) fn open_batch(seal: &Seal, identity: u64, header: &Header, bytes: &[u8]) -> Option<Vec<u8>> {
    let (tags, records) = bytes.split_at_checked(header.front() - HEADER)?;
    let mut records = (records.len() == header.len as usize).then(|| records.to_vec())?;
    let summed = if let Seal::Batches(cipher, _) = seal {
        let opened = cipher.open(&header.authenticated(), header.nonce?, &mut records, tags);
        opened.then_some(tags)?
    } else {
        header.nonce.is_none().then_some(&records[..])?
    };
    (checksum(identity, summed) == header.content_checksum).then_some(records)
}

/// Reads a part of the file that lies within the records of the batch whose head is at `head`.
pub(crate) fn read_from(
    cipher: &BatchCipher,
    file: &dyn File,
    head: Position,
    buffer: &mut [u8],
    from: u64,
) -> Result<usize, BlobError> {
    let damaged = |what: &str| BlobError::Damaged(what.to_owned());
    let mut probe = [0; PROBE];
    let read = file.read_at(&mut probe, head.offset).map_err(BlobError::Io)?;
    let probe = &probe[..read];
    // Whatever of the head is wrong, nothing opens with it.
    let header = Header::parse(head, probe).ok_or_else(|| damaged("its batch has no head"))?;
    let nonce = header.nonce.ok_or_else(|| damaged("its batch is not encrypted"))?;
    let bytes = |from: u64, len: usize| -> Result<Cow<'_, [u8]>, BlobError> {
        let start = (from - head.offset) as usize;
        if let Some(held) = probe.get(start..start + len) {
            return Ok(Cow::Borrowed(held));
        }
        let mut bytes = vec![0; len];
        let read = file.read_at(&mut bytes, from).map_err(BlobError::Io)?;
        bytes.truncate(read);
        Ok(Cow::Owned(bytes))
    };
    let start =
        from.checked_sub(header.records_at()).ok_or_else(|| damaged("its batch is another one"))? as usize;
    let end = start + buffer.len();
    if end > header.len as usize {
        return Err(damaged("its batch is too short"));
    }
    let (first, last) = (start / CHUNK, end.saturating_sub(1).max(start) / CHUNK);
    let chunks_end = ((last + 1) * CHUNK).min(header.len as usize);
    let chunks = bytes(header.records_at() + (first * CHUNK) as u64, chunks_end - first * CHUNK)?;
    let tags_at = head.offset + (HEADER + first * TAG) as u64;
    let tags = bytes(tags_at, tag_bytes(chunks_end - first * CHUNK))?;
    let mut chunks = chunks.into_owned();
    if !cipher.open(&header.authenticated(), nonce + first as u64, &mut chunks, &tags) {
        return Err(damaged("the bytes are not those that were encrypted"));
    }
    let at = start - first * CHUNK;
    let found = chunks.get(at..at + buffer.len()).ok_or_else(|| damaged("the file ends early"))?;
    buffer.copy_from_slice(found);
    Ok(buffer.len())
}

/// Decrypts what lies in a segment from the chunk that holds the byte `from` on: all chunks that begin before
/// `until`, of as many batches as that are, up to the first that does not open. Only batches whose heads lie
/// before `committed` are looked at. Gives where this begins in the file; `None` when the batch, whose head
/// is at `head`, does not hold `from`.
pub(crate) fn read_ahead(
    cipher: &BatchCipher,
    file: &dyn File,
    head: Position,
    from: u64,
    until: u64,
    committed: u64,
) -> io::Result<Option<(u64, Vec<u8>)>> {
    let last = until + CHUNK as u64;
    // The tags of a long batch lie far before its later chunks.
    let is_near = from.saturating_sub(head.offset) <= PROBE as u64;
    let mut part = Part::read(file, head.offset, if is_near { last } else { head.offset + HEADER as u64 })?;
    let Some(header) = Header::parse(head, &part.bytes) else { return Ok(None) };
    let Some(start) = from.checked_sub(header.records_at()) else { return Ok(None) };
    let first = start as usize / CHUNK;
    let begin = header.records_at() + (first * CHUNK) as u64;
    let tags = if is_near {
        part.tags(&header, first).to_vec()
    } else {
        let tags_at = head.offset + (HEADER + first * TAG) as u64;
        let chunks = last.saturating_sub(begin).div_ceil(CHUNK as u64);
        part = Part::read(file, begin, last)?;
        Part::read(file, tags_at, header.records_at().min(tags_at + chunks * TAG as u64))?.bytes
    };
    let mut end = part.open(cipher, &header, first, &tags, until);
    let mut header = header;
    while end == header.end() {
        let Some(next) = part.next_head(&header, committed) else { break };
        header = next;
        let tags = part.tags(&header, 0).to_vec();
        end = part.open(cipher, &header, 0, &tags, until).max(end);
    }
    Ok(Some((begin, part.cut(begin, end))))
}

/// A part of a segment, in which batches are decrypted where they are.
struct Part {
    /// Where it begins in the file.
    at: u64,
    bytes: Vec<u8>,
}

impl Part {
    /// From one place to another, or to the end of the file.
    fn read(file: &dyn File, from: u64, until: u64) -> io::Result<Part> {
        let mut bytes = vec![0; until.saturating_sub(from) as usize];
        let read = file.read_at(&mut bytes, from)?;
        bytes.truncate(read);
        Ok(Part { at: from, bytes })
    }

    fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    /// The tags of a batch, from that of this chunk on; none when they are not all here.
    fn tags(&self, header: &Header, first: usize) -> &[u8] {
        let place = |offset: u64| offset.checked_sub(self.at).map(|at| at as usize);
        let from = place(header.at.offset + (HEADER + first * TAG) as u64);
        let found = from.zip(place(header.records_at())).and_then(|(from, to)| self.bytes.get(from..to));
        found.unwrap_or_default()
    }

    /// Decrypts chunks of a batch, of which these are the tags from the chunk `first` on: those that begin
    /// before `until` and are here as a whole. Where they end.
    fn open(&mut self, cipher: &BatchCipher, header: &Header, first: usize, tags: &[u8], until: u64) -> u64 {
        let mut at = header.records_at() + (first * CHUNK) as u64;
        let Some(nonce) = header.nonce else { return at };
        let authenticated = header.authenticated();
        let end = header.end().min(self.end());
        for (number, tag) in (first as u64..).zip(tags.as_chunks::<TAG>().0) {
            let next = header.end().min(at + CHUNK as u64);
            if at >= until || next > end || next == at {
                break;
            }
            let chunk = &mut self.bytes[(at - self.at) as usize..(next - self.at) as usize];
            if !cipher.open(&authenticated, nonce + number, chunk, tag) {
                break;
            }
            at = next;
        }
        at
    }

    /// The head of the batch after this one, if it is here and lies before `committed`.
    fn next_head(&self, header: &Header, committed: u64) -> Option<Header> {
        let places = [header.end(), next_sector(header.end())];
        places.into_iter().filter(|offset| *offset < committed).find_map(|offset| {
            let bytes = self.bytes.get(offset.checked_sub(self.at)? as usize..)?;
            Header::parse(Position { offset, ..header.at }, bytes)
        })
    }

    /// The bytes from one place to another.
    fn cut(mut self, from: u64, to: u64) -> Vec<u8> {
        let place = |offset: u64| (offset.saturating_sub(self.at) as usize).min(self.bytes.len());
        let (from, to) = (place(from), place(to));
        self.bytes.truncate(to.max(from));
        self.bytes.drain(..from);
        self.bytes
    }
}

/// Puts the table of a sealed segment in place, encrypted when the segment is; the directory is yet to be
/// synced. Gives the segment with what the manifest is to say of the table. One that tells of no blobs makes
/// no file.
pub(crate) fn write_table(files: &Files, sealed: &Sealed, table: &Table) -> io::Result<Sealed> {
    let mut bytes = table.encode();
    if let Some(key) = files.keys().get(sealed.number)
        && !bytes.is_empty()
    {
        bytes = ChunkCipher::create(&key, Kind::Table, files.keys().random())?.seal_whole(&bytes);
    }
    if !bytes.is_empty() {
        files.write_whole(&Kind::Table.name(sealed.number), &bytes)?;
    }
    let (table_len, table_checksum) = (bytes.len() as u64, crc32fast::hash(&bytes));
    Ok(Sealed { table_len, table_checksum, ..*sealed })
}

/// Reads the table of a sealed segment; `None` when it is missing or damaged.
pub(crate) fn load_table(files: &Files, sealed: &Sealed) -> Result<Option<Table>, OpenError> {
    let key = files.keys().get(sealed.number);
    if sealed.table_len == 0 {
        return Ok(Table::decode_log(&[], key.is_some()));
    }
    let path = files.path(Kind::Table, sealed.number);
    let file = match files.open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(OpenError::Io { file: path, action: "open", error }),
    };
    if file.len().map_err(OpenError::io(&path, "read"))? < sealed.table_len {
        return Ok(None);
    }
    let mut bytes = vec![0; sealed.table_len as usize];
    let read = file.read_at(&mut bytes, 0).map_err(OpenError::io(&path, "read"))?;
    if read < bytes.len() || crc32fast::hash(&bytes) != sealed.table_checksum {
        return Ok(None);
    }
    Ok(match key {
        None => Table::decode_log(&bytes, false),
        Some(key) => ChunkCipher::open_whole(&key, Kind::Table, &mut bytes)
            .and_then(|bytes| Table::decode_log(&bytes, true)),
    })
}
