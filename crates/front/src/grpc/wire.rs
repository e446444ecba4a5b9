//! The wire format of protobuf, field by field.

use bytes::BufMut;

use crate::http::json::{Fault, Read};

/// The code of bytes that are no message.
pub(super) const INVALID: &str = "invalid_protobuf";

/// How a field is written, which is all that its tag tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Raw<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// Takes the next field: its number and value; `None` at the end.
pub(super) fn next_field<'b>(bytes: &mut &'b [u8]) -> Read<Option<(u32, Raw<'b>)>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let tag = varint(bytes)?;
    let number = u32::try_from(tag >> 3).ok().filter(|number| (1..1 << 29).contains(number));
    let number = number.ok_or_else(|| Fault::new(INVALID, format!("no field has the tag {tag}")))?;
    let value = match tag & 7 {
        0 => Raw::Number(varint(bytes)?),
        1 => Raw::Number(u64::from_le_bytes(fixed(bytes)?)),
        5 => Raw::Number(u32::from_le_bytes(fixed(bytes)?).into()),
        2 => {
            let length = varint(bytes)?;
            let length = usize::try_from(length).ok().filter(|length| *length <= bytes.len());
            let length = length.ok_or_else(ends_early)?;
            let (value, rest) = bytes.split_at(length);
            *bytes = rest;
            Raw::Bytes(value)
        }
        other => return Err(Fault::new(INVALID, format!("wire type {other} is not in use"))),
    };
    Ok(Some((number, value)))
}

/// Takes a number of variable length.
pub(super) fn varint(bytes: &mut &[u8]) -> Read<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or_else(ends_early)?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if shift == 63 && part > 1 {
            break;
        }
        value |= part << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Fault::new(INVALID, "a number has more than 64 bits"))
}

fn fixed<const BYTES: usize>(bytes: &mut &[u8]) -> Read<[u8; BYTES]> {
    let (value, rest) = bytes.split_first_chunk::<BYTES>().ok_or_else(ends_early)?;
    *bytes = rest;
    Ok(*value)
}

fn ends_early() -> Box<Fault> {
    Fault::new(INVALID, "the message ends within a field")
}

/// Appends a field that is a number.
pub(super) fn put_number(out: &mut impl BufMut, field: u32, value: u64) {
    put_varint(out, u64::from(field) << 3);
    put_varint(out, value);
}

/// Appends a field that is text, bytes or a message.
pub(super) fn put_bytes(out: &mut impl BufMut, field: u32, value: &[u8]) {
    put_varint(out, u64::from(field) << 3 | 2);
    put_varint(out, value.len() as u64);
    out.put_slice(value);
}

fn put_varint(out: &mut impl BufMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}
