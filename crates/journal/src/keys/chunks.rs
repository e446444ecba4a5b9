//! Files that are written once from beginning to end, in chunks that can be read alone: tables, copied blobs,
//! snapshots.
//!
//! Such a file begins with magic `SLUICEC1`, 8 bytes 0 and a salt of 16 bytes. Then follow chunks of
//! [`CHUNK`] bytes, the last one shorter, each after its tag. A file that is not encrypted has none of this.
//! Lengths and offsets elsewhere are those of the decrypted content, unless they say that they are the
//! file's.

use std::io;
use std::sync::Arc;

use super::Random;
use super::cipher::{Aead, CHUNK, FileKey, TAG, derive, nonce};
use crate::disk::File;
use crate::file_kind::Kind;
use crate::seam::blob::BlobError;

const MAGIC: [u8; 8] = *b"SLUICEC1";
const SALT: usize = 16;

/// Number of bytes before the first chunk.
pub(crate) const HEAD: usize = 32;

/// Number of bytes of a full chunk in the file.
const SEALED: usize = TAG + CHUNK;

/// Number of chunks written at once.
const WRITE_CHUNKS: usize = 128;

/// Length of the file with so many bytes of content.
pub(crate) fn file_len(len: u64) -> u64 {
    HEAD as u64 + len + len.div_ceil(CHUNK as u64) * TAG as u64
}

/// Offset in the file of the byte of the content at `offset`.
pub(crate) fn offset_in_file(offset: u64) -> u64 {
    let chunk = CHUNK as u64;
    HEAD as u64 + offset / chunk * SEALED as u64 + TAG as u64 + offset % chunk
}

/// Number of bytes of content in a file of this length.
pub(crate) fn held_len(file_len: u64) -> u64 {
    let chunks = file_len.saturating_sub(HEAD as u64);
    let last = (chunks % SEALED as u64).saturating_sub(TAG as u64);
    chunks / SEALED as u64 * CHUNK as u64 + last
}

/// Cipher of the chunks of one file.
#[derive(Debug)]
pub(crate) struct ChunkCipher {
    aead: Aead,
    head: [u8; HEAD],
}

impl ChunkCipher {
    /// A cipher for a file that is about to be written, whatever was written under its name before.
    pub(crate) fn create(key: &FileKey, kind: Kind, random: &dyn Random) -> io::Result<ChunkCipher> {
        let mut head = [0; HEAD];
        head[..MAGIC.len()].copy_from_slice(&MAGIC);
        random.fill(&mut head[HEAD - SALT..])?;
        Ok(ChunkCipher { aead: aead(key, kind, &head), head })
    }

    /// A cipher for a file that begins with these bytes; `None`: it is not such a file.
    pub(crate) fn of_file(key: &FileKey, kind: Kind, head: &[u8; HEAD]) -> Option<ChunkCipher> {
        let known = head.starts_with(&MAGIC) && head[MAGIC.len()..HEAD - SALT].iter().all(|byte| *byte == 0);
        known.then(|| ChunkCipher { aead: aead(key, kind, head), head: *head })
    }

    /// Encrypts and appends chunks; `first` is the number of the first one.
    fn seal_into(&self, first: u64, bytes: &[u8], out: &mut Vec<u8>) {
        for (number, chunk) in (first..).zip(bytes.chunks(CHUNK)) {
            let start = out.len();
            out.resize(start + TAG, 0);
            out.extend_from_slice(chunk);
            let tag = self.aead.seal(nonce(number), &[], &mut out[start + TAG..]);
            out[start..start + TAG].copy_from_slice(&tag);
        }
    }

    /// Decrypts chunks; `None`: one of them does not authenticate.
    fn open_into(&self, first: u64, sealed: &mut [u8], out: &mut Vec<u8>) -> Option<()> {
        for (number, chunk) in (first..).zip(sealed.chunks_mut(SEALED)) {
            let (tag, bytes) = chunk.split_first_chunk_mut::<TAG>()?;
            if !self.aead.open(nonce(number), &[], tag, bytes) {
                return None;
            }
            out.extend_from_slice(bytes);
        }
        Some(())
    }

    /// Encrypts a whole file.
    pub(crate) fn seal_whole(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(file_len(bytes.len() as u64) as usize);
        out.extend_from_slice(&self.head);
        self.seal_into(0, bytes, &mut out);
        out
    }

    /// Decrypts a whole file; `None`: it does not authenticate.
    pub(crate) fn open_whole(key: &FileKey, kind: Kind, file: &mut [u8]) -> Option<Vec<u8>> {
        let (head, chunks) = file.split_first_chunk_mut::<HEAD>()?;
        let mut out = Vec::with_capacity(chunks.len());
        ChunkCipher::of_file(key, kind, head)?.open_into(0, chunks, &mut out)?;
        Some(out)
    }

    /// Reads up to `buffer.len()` bytes; fewer only at the end.
    pub(crate) fn read_at(
        &self,
        file: &dyn File,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<usize, BlobError> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let until = offset + buffer.len() as u64;
        let (at, opened, whole) = self.read_chunks(file, offset, until).map_err(BlobError::Io)?;
        if !whole {
            return Err(BlobError::Damaged(format!(
                "the bytes from {} on are not those that were encrypted",
                HEAD as u64 + at / CHUNK as u64 * SEALED as u64
            )));
        }
        let found = opened.get((offset - at) as usize..).unwrap_or_default();
        let len = found.len().min(buffer.len());
        buffer[..len].copy_from_slice(&found[..len]);
        Ok(len)
    }

    /// Reads like [`ChunkCipher::read_at`], but the whole chunks around the bytes from `from` to `until`, up
    /// to the first chunk that does not authenticate. Also returns the offset of the first byte.
    pub(crate) fn read_ahead(&self, file: &dyn File, from: u64, until: u64) -> io::Result<(u64, Vec<u8>)> {
        self.read_chunks(file, from, until).map(|(at, opened, _)| (at, opened))
    }

    /// Reads chunks: the offset of the first one, the content, and true when all of them authenticated.
    fn read_chunks(&self, file: &dyn File, from: u64, until: u64) -> io::Result<(u64, Vec<u8>, bool)> {
        let first = from / CHUNK as u64;
        let end = until.div_ceil(CHUNK as u64);
        let mut sealed = vec![0; (end - first) as usize * SEALED];
        let read = file.read_at(&mut sealed, HEAD as u64 + first * SEALED as u64)?;
        let mut opened = Vec::with_capacity(read);
        let whole = self.open_into(first, &mut sealed[..read], &mut opened).is_some();
        Ok((first * CHUNK as u64, opened, whole))
    }
}

fn aead(key: &FileKey, kind: Kind, head: &[u8; HEAD]) -> Aead {
    let word: &[u8] = match kind {
        Kind::Log => b"sluice log",
        Kind::Table => b"sluice table",
        Kind::Blobs => b"sluice blobs",
        Kind::Snapshot => b"sluice snapshot",
    };
    Aead::new(&derive(&key.secret.0, &[word, &head[HEAD - SALT..]]))
}

/// Writer of such a file, encrypted or not.
#[derive(Debug)]
pub(crate) struct Appender {
    file: Arc<dyn File>,
    cipher: Option<Arc<ChunkCipher>>,
    /// Content not yet written.
    pub(crate) buffer: Vec<u8>,
    /// Bytes of content written.
    written: u64,
    sealed: Vec<u8>,
}

impl Appender {
    pub(crate) fn new(file: Arc<dyn File>, cipher: Option<Arc<ChunkCipher>>) -> Appender {
        Appender { file, cipher, buffer: Vec::new(), written: 0, sealed: Vec::new() }
    }

    /// Length of the content, with what is not yet written.
    pub(crate) fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Writes full chunks; returns the number of bytes of content.
    pub(crate) fn write(&mut self) -> io::Result<u64> {
        let whole = if self.cipher.is_some() { self.buffer.len() / CHUNK * CHUNK } else { self.buffer.len() };
        self.write_first(whole)
    }

    /// Writes the rest; nothing may be added afterwards.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.write_first(self.buffer.len()).map(|_| ())
    }

    /// Writes the first `len` bytes. After an error they are still there, and would be sealed again as they
    /// were.
    fn write_first(&mut self, len: usize) -> io::Result<u64> {
        let bytes = &self.buffer[..len];
        let Some(cipher) = &self.cipher else {
            self.file.write_at(bytes, self.written)?;
            return Ok(self.wrote(len));
        };
        if self.written == 0 {
            self.file.write_at(&cipher.head, 0)?;
        }
        let mut number = self.written / CHUNK as u64;
        for chunks in bytes.chunks(WRITE_CHUNKS * CHUNK) {
            self.sealed.clear();
            cipher.seal_into(number, chunks, &mut self.sealed);
            self.file.write_at(&self.sealed, HEAD as u64 + number * SEALED as u64)?;
            number += WRITE_CHUNKS as u64;
        }
        Ok(self.wrote(len))
    }

    fn wrote(&mut self, len: usize) -> u64 {
        self.buffer.drain(..len);
        self.written += len as u64;
        len as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::FsDisk;
    use crate::key_id::KeyId;
    use crate::keys::SystemRandom;
    use crate::log::file_keys::Keys;
    use crate::log::files::Files;

    #[test]
    fn lengths_are_told_both_ways() {
        for len in [0, 1, 100, CHUNK as u64 - 1, CHUNK as u64, CHUNK as u64 + 1, 10 * CHUNK as u64 + 7] {
            assert_eq!(held_len(file_len(len)), len);
        }
        assert_eq!(held_len(3), 0);
    }

    #[test]
    fn any_part_is_read_as_it_was_written_and_any_flipped_bit_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::new(Arc::new(FsDisk), dir.path(), 4, Keys::none());
        let handle = files.create(Kind::Blobs, 1).unwrap();
        let key = FileKey::generate(KeyId(1), &SystemRandom).unwrap();
        let cipher = Arc::new(ChunkCipher::create(&key, Kind::Blobs, &SystemRandom).unwrap());
        let plain: Vec<u8> = (0..3 * CHUNK + 100).map(|at| (at % 251) as u8).collect();
        let mut appender = Appender::new(handle.file.clone(), Some(cipher.clone()));
        for part in plain.chunks(5_000) {
            appender.buffer.extend_from_slice(part);
            appender.write().unwrap();
        }
        appender.finish().unwrap();
        assert_eq!(appender.len(), plain.len() as u64);
        let mut file = std::fs::read(&*handle.path).unwrap();
        assert_eq!(file.len() as u64, file_len(plain.len() as u64));
        assert_eq!(file, cipher.seal_whole(&plain));
        for (from, len) in
            [(0, 1), (0, plain.len()), (CHUNK - 1, 2), (2 * CHUNK, CHUNK), (plain.len() - 5, 5)]
        {
            let mut buffer = vec![0; len];
            assert_eq!(cipher.read_at(&*handle.file, &mut buffer, from as u64).unwrap(), len);
            assert_eq!(buffer, plain[from..from + len]);
        }
        let mut buffer = [0; 9];
        assert_eq!(cipher.read_at(&*handle.file, &mut buffer, plain.len() as u64 - 2).unwrap(), 2);
        assert_eq!(cipher.read_at(&*handle.file, &mut buffer, 1 << 40).unwrap(), 0);
        assert!(ChunkCipher::open_whole(&key, Kind::Snapshot, &mut file.clone()).is_none(), "another kind");
        assert_eq!(ChunkCipher::open_whole(&key, Kind::Blobs, &mut file.clone()), Some(plain));
        for at in (0..file.len()).step_by(499) {
            file[at] ^= 4;
            assert!(ChunkCipher::open_whole(&key, Kind::Blobs, &mut file.clone()).is_none(), "byte {at}");
            file[at] ^= 4;
        }
    }
}
