//! Texts of a request, and octets: in a field as text, or in the field's twin as base64.

use data_encoding::BASE64;

use sluice_calls::fault::{Fault, Read};

/// Description of valid base64, for errors.
const BASE64_EXPECTED: &str = "expected standard base64 with padding (RFC 4648 section 4)";

/// A text of a request: a piece of what came, or a piece of the source's scratch, when it held escapes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Text<'a> {
    /// Stands in the request as it is.
    Plain(&'a str),
    /// Start and end in the scratch buffer.
    Unescaped(usize, usize),
}

impl<'a> Text<'a> {
    /// The text itself; `scratch` is that of the source.
    pub(crate) fn get<'s>(self, scratch: &'s str) -> &'s str
    where
        'a: 's,
    {
        match self {
            Text::Plain(text) => text,
            Text::Unescaped(from, to) => scratch.get(from..to).unwrap_or_default(),
        }
    }
}

/// The names of a field for text and of its twin for base64.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    pub(crate) text: &'static str,
    pub(crate) base64: &'static str,
}

/// Octets as they were given, and where they are once decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'a> {
    /// Text, whose octets are meant.
    Text(Text<'a>),
    /// Base64 of the octets.
    Base64(Text<'a>),
    /// Start and end in the decoded octets.
    Decoded(usize, usize),
    /// The octets themselves.
    Octets(&'a [u8]),
}

impl<'a> Content<'a> {
    /// Appends what is base64 to `octets`.
    pub(crate) fn decode(&mut self, names: Names, scratch: &str, octets: &mut Vec<u8>) -> Read<()> {
        let Content::Base64(text) = *self else { return Ok(()) };
        let from = octets.len();
        decode_base64(text.get(scratch), octets)
            .map_err(|()| Fault::invalid(BASE64_EXPECTED).inside(names.base64))?;
        *self = Content::Decoded(from, octets.len());
        Ok(())
    }

    /// The octets.
    pub(crate) fn get<'s>(self, scratch: &'s str, octets: &'s [u8]) -> &'s [u8]
    where
        'a: 's,
    {
        match self {
            Content::Text(text) | Content::Base64(text) => text.get(scratch).as_bytes(),
            Content::Decoded(from, to) => &octets[from..to],
            Content::Octets(octets) => octets,
        }
    }
}

/// Appends the octets of `text` to `out`.
fn decode_base64(text: &str, out: &mut Vec<u8>) -> Result<(), ()> {
    let from = out.len();
    let room = BASE64.decode_len(text.len()).map_err(|_| ())?;
    out.resize(from + room, 0);
    let written = BASE64.decode_mut(text.as_bytes(), &mut out[from..]).map_err(|_| ())?;
    out.truncate(from + written);
    Ok(())
}
