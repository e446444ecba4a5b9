//! How an input is cut.

use std::path::Path;

use crate::disk::MemDisk;

/// Cuts an input into records: `u16` length, then so many bytes, as far as they go. Few enough that one input
/// ends soon.
pub fn records(mut input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let next = move || {
        let (len, rest) = input.split_first_chunk::<2>()?;
        let len = usize::from(u16::from_le_bytes(*len)).min(rest.len());
        let (record, rest) = rest.split_at(len);
        input = rest;
        Some(record)
    };
    std::iter::from_fn(next).take(1_000)
}

/// The opposite of [`records`].
pub fn framed(records: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut input = Vec::new();
    for record in records {
        input.extend_from_slice(&(record.len() as u16).to_le_bytes());
        input.extend_from_slice(&record);
    }
    input
}

/// Damages files as an input says. A change is `u8` file, `u8` how, `u32` offset from the file's beginning
/// (which wraps), `u8` bytes; how: 0 puts the bytes that follow there, 1 puts zeros, 2 cuts the file, 3
/// removes it, 4 copies bytes of the same file from the offset that follows, as a misdirected write would.
pub fn damage(disk: &MemDisk, mut input: &[u8]) {
    for _ in 0..16 {
        let Some((head, rest)) = input.split_first_chunk::<7>() else { return };
        let paths = disk.paths();
        let Some(path) = paths.get(usize::from(head[0]) % paths.len().max(1)) else { return };
        let offset = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
        input = change(disk, path, head[1] % 5, offset, usize::from(head[6]), rest);
    }
}

fn change<'a>(
    disk: &MemDisk,
    path: &Path,
    how: u8,
    offset: usize,
    count: usize,
    input: &'a [u8],
) -> &'a [u8] {
    if how == 3 {
        let _ = sluice_journal::Disk::remove(disk, path);
        return input;
    }
    disk.change(path, |bytes| {
        let at = offset % (bytes.len() + 1);
        let end = (at + count).min(bytes.len());
        match how {
            0 => {
                let (new, rest) = input.split_at(input.len().min(end - at));
                bytes[at..at + new.len()].copy_from_slice(new);
                return rest;
            }
            1 => bytes[at..end].fill(0),
            2 => bytes.truncate(at),
            _ => {
                let Some((from, rest)) = input.split_first_chunk::<4>() else { return &[] };
                let from = u32::from_le_bytes(*from) as usize % (bytes.len() + 1);
                let len = (end - at).min(bytes.len() - from);
                bytes.copy_within(from..from + len, at);
                return rest;
            }
        }
        input
    })
}
