//! The writer: appends to one byte vector, which may hold many values before it is sent.

use data_encoding::BASE64;

use super::scan::plain_len;

/// Appends an object; `fields` fills it.
#[inline]
pub(crate) fn object(out: &mut Vec<u8>, fields: impl FnOnce(&mut Object<'_>)) {
    out.push(b'{');
    fields(&mut Object { out, empty: true });
    out.push(b'}');
}

/// Appends an array; `write` appends one item.
#[inline]
pub(crate) fn push_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// Appends text in quotes, escaped.
#[inline]
pub(crate) fn push_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain_len(rest));
        out.extend_from_slice(plain);
        let Some((&byte, after)) = special.split_first() else { break };
        push_escape(out, byte);
        rest = after;
    }
    out.push(b'"');
}

fn push_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// The numbers from 0 to 99, two digits each.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

#[inline]
pub(crate) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    if number < 10 {
        return out.push(b'0' + number as u8);
    }
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    while number >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number > 0 {
        at -= 1;
        digits[at] = b'0' + number as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// The name of a field as it stands in an object, for [`Object::key`].
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}
pub(crate) use key;

/// An object that is being written.
#[derive(Debug)]
pub(crate) struct Object<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

impl Object<'_> {
    /// Appends the name of a field and gives the vector, to append its value.
    #[inline]
    pub(crate) fn name(&mut self, name: &'static str) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Appends what [`key!`] made of a field's name, at once: for objects that are written by the thousand.
    #[inline]
    pub(crate) fn key(&mut self, key: &'static str) -> &mut Vec<u8> {
        let key = if self.empty { &key[1..] } else { key };
        self.empty = false;
        self.out.extend_from_slice(key.as_bytes());
        self.out
    }

    /// A field with a number, by its key.
    #[inline]
    pub(crate) fn number_by_key(&mut self, key: &'static str, value: u64) {
        push_number(self.key(key), value);
    }

    /// A field whose name comes from outside.
    pub(crate) fn foreign(&mut self, name: &str, value: &str) {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        push_text(self.out, name);
        self.out.push(b':');
        push_text(self.out, value);
    }

    /// A field with text.
    #[inline]
    pub(crate) fn text(&mut self, name: &'static str, value: &str) {
        push_text(self.name(name), value);
    }

    /// A field with text that needs no escape: ids and receipts.
    #[inline]
    pub(crate) fn ascii(&mut self, name: &'static str, value: &[u8]) {
        let out = self.name(name);
        out.push(b'"');
        out.extend_from_slice(value);
        out.push(b'"');
    }

    /// A field with a number.
    #[inline]
    pub(crate) fn number(&mut self, name: &'static str, value: u64) {
        push_number(self.name(name), value);
    }

    /// A field with a truth value.
    pub(crate) fn boolean(&mut self, name: &'static str, value: bool) {
        self.name(name).extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// A field with octets as base64.
    pub(crate) fn base64(&mut self, name: &'static str, octets: &[u8]) {
        let out = self.name(name);
        out.push(b'"');
        let start = out.len();
        out.resize(start + BASE64.encode_len(octets.len()), 0);
        BASE64.encode_mut(octets, &mut out[start..]);
        out.push(b'"');
    }

    /// A field with an object.
    #[inline]
    pub(crate) fn object(&mut self, name: &'static str, fields: impl FnOnce(&mut Object<'_>)) {
        object(self.name(name), fields);
    }

    /// A field with an array.
    #[inline]
    pub(crate) fn list<T>(
        &mut self,
        name: &'static str,
        items: impl IntoIterator<Item = T>,
        write: impl FnMut(&mut Vec<u8>, T),
    ) {
        push_list(self.name(name), items, write);
    }
}
