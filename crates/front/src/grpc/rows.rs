//! The fields of a message as they came over the wire.

use sluice_calls::fault::{Fault, Read};

use super::schema::{Kind, MessageType};
use super::wire::{INVALID, Raw, next_field, varint};

/// The fields of a message as they came: the place of each in its type, and its value.
pub(super) type Rows<'b> = Vec<(usize, Raw<'b>)>;

/// Reads the fields of a message. Those of a list come one by one; what is not known is refused.
pub(super) fn read_rows<'b>(message: &MessageType, mut bytes: &'b [u8]) -> Read<Rows<'b>> {
    let mut rows = Vec::new();
    while let Some((number, value)) = next_field(&mut bytes)? {
        let at = message.by_number(number).ok_or_else(|| {
            Fault::new(
                "unknown_field",
                format!("field number {number} is not known here: the server is older"),
            )
        })?;
        let field = &message.fields[at];
        let is_number = matches!(field.kind, Kind::Number | Kind::Boolean);
        match value {
            Raw::Number(_) if is_number => rows.push((at, value)),
            Raw::Bytes(mut packed) if is_number && field.is_list => {
                while !packed.is_empty() {
                    rows.push((at, Raw::Number(varint(&mut packed)?)));
                }
            }
            Raw::Bytes(_) if !is_number => rows.push((at, value)),
            _ => return Err(Fault::new(INVALID, "the field is of another wire type").inside(&field.name)),
        }
    }
    // In the order of the type; what was given twice stays in the order in which it came.
    rows.sort_by_key(|(at, _)| *at);
    Ok(rows)
}

/// The value of a text field; of several, the last counts.
pub(super) fn text_of<'b>(message: &MessageType, rows: &Rows<'b>, at: usize) -> Read<&'b str> {
    match rows.iter().rev().find(|(other, _)| *other == at) {
        Some((_, Raw::Bytes(bytes))) => text(bytes).map_err(|fault| fault.inside(&message.fields[at].name)),
        _ => Ok(""),
    }
}

/// The text that bytes are.
pub(super) fn text(bytes: &[u8]) -> Read<&str> {
    std::str::from_utf8(bytes).map_err(|_| Fault::invalid("the text is not UTF-8"))
}
