//! The wire format of protobuf, field by field.

use std::fmt;

/// Bytes of a length that is filled in later: numbers may be longer than they have to be.
const LENGTH_BYTES: usize = 4;

/// A field without its type, as its tag and wire type tell it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Raw<'b> {
    /// A number of variable or fixed length.
    Number(u64),
    /// Text, bytes or a message.
    Bytes(&'b [u8]),
}

/// The error of decoding a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireError {
    /// The message ends within a field.
    EndsEarly,
    /// The tag is invalid: field number 0, or too large.
    Tag(u64),
    /// A wire type that is not in use.
    WireType(u64),
    /// A number has more than 64 bits.
    TooLong,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::EndsEarly => f.write_str("the message ends within a field"),
            WireError::Tag(tag) => write!(f, "no field has the tag {tag}"),
            WireError::WireType(number) => write!(f, "wire type {number} is not in use"),
            WireError::TooLong => f.write_str("a number has more than 64 bits"),
        }
    }
}

impl std::error::Error for WireError {}

/// Takes the next field: its number and value; `None` at the end.
///
/// # Errors
/// Then nothing that follows can be read.
pub fn next_field<'b>(bytes: &mut &'b [u8]) -> Result<Option<(u32, Raw<'b>)>, WireError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let tag = varint(bytes)?;
    let number = u32::try_from(tag >> 3).ok().filter(|number| (1..1 << 29).contains(number));
    let number = number.ok_or(WireError::Tag(tag))?;
    let value = match tag & 7 {
        0 => Raw::Number(varint(bytes)?),
        1 => Raw::Number(u64::from_le_bytes(fixed(bytes)?)),
        5 => Raw::Number(u32::from_le_bytes(fixed(bytes)?).into()),
        2 => {
            let length = usize::try_from(varint(bytes)?).map_err(|_| WireError::EndsEarly)?;
            let (value, rest) = bytes.split_at_checked(length).ok_or(WireError::EndsEarly)?;
            *bytes = rest;
            Raw::Bytes(value)
        }
        other => return Err(WireError::WireType(other)),
    };
    Ok(Some((number, value)))
}

/// Takes a number of variable length.
///
/// # Errors
/// That it does not end, or is too long.
pub fn varint(bytes: &mut &[u8]) -> Result<u64, WireError> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(WireError::EndsEarly)?;
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
    Err(WireError::TooLong)
}

fn fixed<const BYTES: usize>(bytes: &mut &[u8]) -> Result<[u8; BYTES], WireError> {
    let (value, rest) = bytes.split_first_chunk::<BYTES>().ok_or(WireError::EndsEarly)?;
    *bytes = rest;
    Ok(*value)
}

/// Appends a field that is a number.
pub fn put_number(out: &mut Vec<u8>, field: u32, value: u64) {
    put_varint(out, u64::from(field) << 3);
    put_varint(out, value);
}

/// Appends a field that is text, bytes or a message.
pub fn put_bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    begin_bytes(out, field, value.len());
    out.extend_from_slice(value);
}

/// Begins a field that is text, bytes or a message, and of which so many bytes follow.
pub fn begin_bytes(out: &mut Vec<u8>, field: u32, length: usize) {
    put_tag(out, field);
    put_varint(out, length as u64);
}

/// Begins a field that has a length.
pub(crate) fn put_tag(out: &mut Vec<u8>, field: u32) {
    put_varint(out, u64::from(field) << 3 | 2);
}

/// Appends a field that is a number of eight bytes.
pub fn put_fixed64(out: &mut Vec<u8>, field: u32, value: u64) {
    put_varint(out, u64::from(field) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a field that is a message of less than 256 MiB, in one go: its length is filled in when it is
/// written.
pub fn put_message(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    put_tag(out, field);
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    write(out);
    let length = out.len() - start - LENGTH_BYTES;
    debug_assert!(length < 1 << (7 * LENGTH_BYTES), "limits keep frames far below 256 MiB");
    for (place, byte) in out[start..start + LENGTH_BYTES].iter_mut().enumerate() {
        let more = if place + 1 < LENGTH_BYTES { 0x80 } else { 0 };
        *byte = (length >> (7 * place)) as u8 & 0x7f | more;
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
