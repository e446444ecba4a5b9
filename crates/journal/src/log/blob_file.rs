//! The end of a file of copied blobs.

use std::io;

use crate::disk::File;
use crate::keys::chunks::Appender;
use crate::log::files::Handle;
use crate::log::manifest::BlobFile;
use crate::log::shared::Shared;
use crate::log::table::Table;

/// Writes the table behind the blobs, and syncs the file, which is only read from then on; its name is yet to
/// be synced. Returns what the manifest is to say of it, for blobs of these ranges of record indexes.
pub(crate) fn end_blob_file(
    shared: &Shared,
    handle: &Handle,
    file: &mut Appender,
    table: &Table,
    ranges: Vec<(u64, u64)>,
) -> io::Result<BlobFile> {
    let data_len = file.len();
    let bytes = table.encode();
    file.buffer.extend_from_slice(&bytes);
    file.finish()?;
    handle.file.sync_data()?;
    shared.count_syncs(1);
    handle.file.only_read();
    let (table_len, table_checksum) = (bytes.len() as u64, crc32fast::hash(&bytes));
    Ok(BlobFile { number: handle.number, data_len, table_len, table_checksum, ranges })
}
