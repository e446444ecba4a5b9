//! Header blocks to fields (RFC 7541 §3.2, §6).

use thiserror::Error;

use super::dynamic_table::DynamicTable;
use super::{DEFAULT_TABLE_BYTES, HeaderArena, field_bytes, huffman, integer, static_table};

/// Most size updates at the beginning of a block: the smallest size since the last block, and the last one
/// (§4.2).
const SIZE_UPDATES_MAX: usize = 2;

/// The error of decoding a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The block is malformed, and the two sides' tables differ from here on: the connection ends with
    /// `COMPRESSION_ERROR` (RFC 9113 §4.3).
    #[error("malformed header block: {0}")]
    Compression(Malformed),
    /// The list is larger than this side takes. The tables are in step: the request is refused, and the
    /// connection goes on.
    #[error("the header list has more than {max_bytes} bytes (names, values and 32 for each field)")]
    ListTooLarge {
        /// The maximum.
        max_bytes: u32,
    },
}

/// The fault of a malformed header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// A block that ends inside of a field.
    #[error("it ends in the middle of a field")]
    Truncated,
    /// An integer that is cut off, larger than 32 bits, or padded beyond five octets (§5.1).
    #[error("an integer ends early or has more than 32 bits")]
    Integer,
    /// Text that ends in other bits than up to seven ones, or holds the symbol for its end (§5.2).
    #[error("a string is not in Huffman code or not padded with ones")]
    Huffman,
    /// An index that no table has (§2.3.3).
    #[error("index {index} is not in the tables, which end at {last}")]
    Index {
        /// The requested value.
        index: u32,
        /// The largest that there is.
        last: u32,
    },
    /// The table may not be that large (§6.3).
    #[error("a table of {size_bytes} bytes, where at most {max_bytes} are allowed")]
    TableSize {
        /// The requested value.
        size_bytes: u32,
        /// The maximum by the settings.
        max_bytes: u32,
    },
    /// A size update behind the first field, or a third one (§4.2).
    #[error("a size update that is not one of the first two of its block")]
    LateSizeUpdate,
    /// The setting was lowered and acknowledged, and the block does not begin with the size update that has
    /// to follow (§4.2).
    #[error("no size update after the table was limited to {max_bytes} bytes")]
    MissingSizeUpdate {
        /// The maximum by the settings.
        max_bytes: u32,
    },
}

type Result<T> = std::result::Result<T, Malformed>;

/// Decodes the header blocks of one direction of one connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// This side's `SETTINGS_HEADER_TABLE_SIZE`.
    setting_bytes: u32,
    /// Most that a size update may ask for: the setting, or what was so before, until it is acknowledged.
    table_bytes_max: u32,
    list_bytes_max: u32,
    /// Number of changes of the table.
    changes: u64,
}

impl Decoder {
    /// A decoder for a connection whose first settings from this side have `max_table_size` bytes as
    /// `SETTINGS_HEADER_TABLE_SIZE`. A list of fields may have `max_list_bytes`, counted as name + value + 32
    /// for each field.
    ///
    /// The peer's table begins with [`DEFAULT_TABLE_BYTES`] whatever the settings say. Is `max_table_size`
    /// smaller, that counts from [`Decoder::settings_acknowledged`] on.
    pub fn new(max_table_size: u32, max_list_bytes: u32) -> Decoder {
        Decoder {
            table: DynamicTable::new(),
            setting_bytes: max_table_size,
            table_bytes_max: max_table_size.max(DEFAULT_TABLE_BYTES),
            list_bytes_max: max_list_bytes,
            changes: 0,
        }
    }

    /// The peer has acknowledged the settings with the size given to [`Decoder::new`]: a larger table has to
    /// be made smaller by the next block (§4.2).
    pub fn settings_acknowledged(&mut self) {
        self.table_bytes_max = self.setting_bytes;
    }

    /// Number of changes of the table: between two changes, what leaves it unchanged has the same meaning
    /// when it comes again.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Decodes a whole header block (that of a HEADERS frame with its CONTINUATION frames) into the arena,
    /// which is cleared before.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Compression`]: the decoder must not be used any more. [`DecodeError::ListTooLarge`]:
    /// the arena has the fields that fit, and the decoder is in step for the next block.
    pub fn decode(&mut self, block: &[u8], into: &mut HeaderArena) -> std::result::Result<(), DecodeError> {
        into.clear();
        let size = ListSize { bytes: 0, max_bytes: self.list_bytes_max as usize };
        let mut list = FieldList { arena: into, size };
        self.decode_block(block, &mut list).map_err(DecodeError::Compression)?;
        if list.size.is_too_large() {
            return Err(DecodeError::ListTooLarge { max_bytes: self.list_bytes_max });
        }
        Ok(())
    }

    /// Size of the table's fields, as RFC 7541 §4.1 counts it.
    #[cfg(test)]
    pub(super) fn table_size_bytes(&self) -> usize {
        self.table.size_bytes()
    }

    fn decode_block(&mut self, block: &[u8], list: &mut FieldList<'_>) -> Result<()> {
        let mut rest = self.size_updates(block)?;
        while let Some((&first, behind)) = rest.split_first() {
            rest = behind;
            match first {
                0x80.. => self.indexed(first, &mut rest, list)?,
                0x40..0x80 => self.literal(first, 6, &mut rest, list)?,
                0x20..0x40 => return Err(Malformed::LateSizeUpdate),
                // Without indexing, or never to be indexed: as this side passes nothing on, they are the
                // same.
                0x00..0x20 => self.literal(first, 4, &mut rest, list)?,
            }
        }
        Ok(())
    }

    /// Reads the size updates at the start of a block (§4.2, §6.3); returns the rest.
    fn size_updates<'a>(&mut self, block: &'a [u8]) -> Result<&'a [u8]> {
        let mut rest = block;
        for _ in 0..SIZE_UPDATES_MAX {
            let Some((&first @ 0x20..0x40, behind)) = rest.split_first() else { break };
            rest = behind;
            let size_bytes = integer::decode(first, 5, &mut rest).ok_or(Malformed::Integer)?;
            if size_bytes > self.table_bytes_max {
                return Err(Malformed::TableSize { size_bytes, max_bytes: self.table_bytes_max });
            }
            self.table.set_max_bytes(size_bytes as usize);
            self.changes += 1;
        }
        if self.table.max_bytes() > self.table_bytes_max as usize {
            return Err(Malformed::MissingSizeUpdate { max_bytes: self.table_bytes_max });
        }
        Ok(rest)
    }

    /// A field that is in a table (§6.1).
    fn indexed(&mut self, first: u8, rest: &mut &[u8], list: &mut FieldList<'_>) -> Result<()> {
        let index = integer::decode(first, 7, rest).ok_or(Malformed::Integer)?;
        let (name, value) = self.field(index)?;
        if list.size.count(name, value) {
            list.arena.push(name, value);
        }
        Ok(())
    }

    /// A field that is spelled out (§6.2); with a prefix of 6 bits it goes into the table. It is decoded
    /// behind the others in the arena in any case, and taken away again when the list has no room for it.
    fn literal(
        &mut self,
        first: u8,
        prefix_bits: u32,
        rest: &mut &[u8],
        list: &mut FieldList<'_>,
    ) -> Result<()> {
        let start = list.arena.bytes.len();
        match integer::decode(first, prefix_bits, rest).ok_or(Malformed::Integer)? {
            0 => string(rest, &mut list.arena.bytes)?,
            index => list.arena.bytes.extend_from_slice(self.field(index)?.0),
        }
        let name_end = list.arena.bytes.len();
        string(rest, &mut list.arena.bytes)?;
        let (name, value) = list.arena.bytes[start..].split_at(name_end - start);
        if prefix_bits == 6 {
            self.table.insert(0, name, value);
            self.changes += 1;
        }
        if list.size.count(name, value) {
            list.arena.finish_field(name_end);
        } else {
            list.arena.bytes.truncate(start);
        }
        Ok(())
    }

    fn field(&self, index: u32) -> Result<(&[u8], &[u8])> {
        let position = index as usize;
        if let Some(row) = static_table::get(position) {
            return Ok((row.name, row.value));
        }
        let dynamic =
            position.checked_sub(static_table::ROWS + 1).and_then(|position| self.table.get(position));
        dynamic
            .ok_or_else(|| Malformed::Index { index, last: (static_table::ROWS + self.table.len()) as u32 })
    }
}

/// A string, in Huffman code or not (§5.2), appended to `out`.
fn string(rest: &mut &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (&first, behind) = rest.split_first().ok_or(Malformed::Truncated)?;
    *rest = behind;
    let len = integer::decode(first, 7, rest).ok_or(Malformed::Integer)?;
    let (text, behind) = rest.split_at_checked(len as usize).ok_or(Malformed::Truncated)?;
    *rest = behind;
    if first & 0x80 == 0 {
        out.extend_from_slice(text);
        return Ok(());
    }
    huffman::decode(text, out).ok_or(Malformed::Huffman)
}

/// The fields that are decoded, as far as they fit.
struct FieldList<'a> {
    arena: &'a mut HeaderArena,
    size: ListSize,
}

/// The size of a block's fields, as RFC 9113 §6.5.2 counts it. After a field for which there is no room, none
/// is kept.
struct ListSize {
    bytes: usize,
    max_bytes: usize,
}

impl ListSize {
    fn is_too_large(&self) -> bool {
        self.bytes > self.max_bytes
    }

    /// Counts a field, and says whether it still fits.
    fn count(&mut self, name: &[u8], value: &[u8]) -> bool {
        self.bytes = self.bytes.saturating_add(field_bytes(name, value));
        !self.is_too_large()
    }
}
