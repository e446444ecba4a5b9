//! Fields of errors as bytes, for another node. Numbers are little-endian; a text has its length before it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Most texts of programs that are kept; a program has far fewer.
const TEXTS_MAX: usize = 1_000;

/// A field of an error.
pub(crate) trait Carried: Sized {
    /// Appends the field.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads the field from the front; `None`: the bytes are none.
    fn take(bytes: &mut &[u8]) -> Option<Self>;
}

impl Carried for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(u64::from_le_bytes(*number))
    }
}

impl Carried for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let len = usize::try_from(u64::take(bytes)?).ok()?;
        let (text, rest) = bytes.split_at_checked(len)?;
        *bytes = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

impl Carried for &'static str {
    fn put(&self, out: &mut Vec<u8>) {
        (*self).to_owned().put(out);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        text_of_program(String::take(bytes)?)
    }
}

/// A text of a program, which is kept for ever; `None`: there are too many.
fn text_of_program(text: String) -> Option<&'static str> {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = texts.get(text.as_str()) {
        return Some(known);
    }
    (texts.len() < TEXTS_MAX).then(|| {
        let kept: &'static str = text.leak();
        texts.insert(kept);
        kept
    })
}
