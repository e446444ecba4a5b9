//! Octets in a field: text, or base64 in the field's twin.

use data_encoding::BASE64;

use crate::json::{Fault, Read, Reader, Text};

/// Description of valid base64, for errors.
pub(crate) const BASE64_EXPECTED: &str = "expected standard base64 with padding (RFC 4648 section 4)";

/// The names of a field for text and of its twin for base64.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    pub(crate) text: &'static str,
    pub(crate) base64: &'static str,
}

/// Octets as they were given, and where they are once decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'a> {
    Text(Text<'a>),
    Base64(Text<'a>),
    /// Start and end in the decoded octets.
    Octets(usize, usize),
}

impl<'a> Content<'a> {
    /// Reads the field `name`, one of `names`, of which one may be given.
    pub(crate) fn read(
        place: &mut Option<Content<'a>>,
        reader: &mut Reader<'a>,
        names: Names,
        name: &str,
    ) -> Read<()> {
        if place.is_some() {
            return Err(Fault::conflict(names.text, names.base64));
        }
        let text = reader.string()?;
        *place = Some(if name == names.text { Content::Text(text) } else { Content::Base64(text) });
        Ok(())
    }

    /// Appends what is base64 to `octets`.
    pub(crate) fn decode(&mut self, names: Names, scratch: &str, octets: &mut Vec<u8>) -> Read<()> {
        let Content::Base64(text) = *self else { return Ok(()) };
        let from = octets.len();
        decode_base64(text.get(scratch), octets)
            .map_err(|()| Fault::invalid(BASE64_EXPECTED).inside(names.base64))?;
        *self = Content::Octets(from, octets.len());
        Ok(())
    }

    /// The octets.
    pub(crate) fn get<'s>(self, scratch: &'s str, octets: &'s [u8]) -> &'s [u8]
    where
        'a: 's,
    {
        match self {
            Content::Text(text) | Content::Base64(text) => text.get(scratch).as_bytes(),
            Content::Octets(from, to) => &octets[from..to],
        }
    }
}

/// Appends the octets of `text` to `out`.
pub(crate) fn decode_base64(text: &str, out: &mut Vec<u8>) -> Result<(), ()> {
    let from = out.len();
    let room = BASE64.decode_len(text.len()).map_err(|_| ())?;
    out.resize(from + room, 0);
    let written = BASE64.decode_mut(text.as_bytes(), &mut out[from..]).map_err(|_| ())?;
    out.truncate(from + written);
    Ok(())
}
