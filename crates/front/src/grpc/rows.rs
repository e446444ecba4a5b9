//! The fields of a message as they came over the wire.

use sluice_calls::fault::{Fault, Read};

use super::schema::{Kind, MessageType, schema};
use super::wire::{INVALID, Raw, next_field, varint};

/// The fields of a message as they came: the place of each in its type, and its value.
pub(super) type Rows<'b> = Vec<(usize, Raw<'b>)>;

/// Reads the fields of a message. Those of a list come one by one; what is not known is refused.
pub(super) fn read_rows<'b>(message: &MessageType, mut bytes: &'b [u8]) -> Read<Rows<'b>> {
    let mut rows = Vec::new();
    while let Some((number, value)) = next_field(&mut bytes)? {
        let at = message.by_number(number).ok_or_else(|| unknown(number))?;
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

/// Checks that a message, and those inside it, have no field that is not known, and no number beyond the type
/// of its field.
///
/// # Errors
/// `unknown_field`, `invalid_argument` or `invalid_protobuf`, with the place.
pub(super) fn check_known(message: &MessageType, mut bytes: &[u8]) -> Read<()> {
    while let Some((number, value)) = next_field(&mut bytes)? {
        let at = message.by_number(number).ok_or_else(|| unknown(number))?;
        let field = &message.fields[at];
        let checked = match (field.kind, value) {
            (Kind::Message(at) | Kind::Entries(at), Raw::Bytes(bytes)) => {
                check_known(schema().message(at), bytes)
            }
            (Kind::Number, Raw::Number(number)) if field.is_short && number > u64::from(u32::MAX) => {
                Err(Fault::invalid(format!("expected a number from 0 to {}, got {number}", u32::MAX)))
            }
            _ => Ok(()),
        };
        checked.map_err(|fault| fault.inside(&field.name))?;
    }
    Ok(())
}

fn unknown(number: u32) -> Box<Fault> {
    let reason = format!("field number {number} is not known here: the server is older");
    Fault::new("unknown_field", reason)
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
