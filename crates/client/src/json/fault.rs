//! Errors in the JSON of an answer, with their place.

use std::fmt;

/// Longest piece of a foreign text in an error.
const CLIP_CHARS: usize = 64;

/// Why an answer could not be read.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Where: `messages[3].priority`; empty: the answer as a whole.
    field: String,
    reason: String,
    /// Number of bytes read before.
    at: usize,
}

/// The result of reading. The fault is boxed, since the good way must stay cheap.
pub(crate) type Read<T> = Result<T, Box<Fault>>;

impl Fault {
    #[cold]
    pub(crate) fn new(reason: impl Into<String>, at: usize) -> Box<Fault> {
        Box::new(Fault { field: String::new(), reason: reason.into(), at })
    }

    /// Adds the name of the field that the fault is in.
    #[cold]
    pub(crate) fn inside(mut self: Box<Self>, name: &str) -> Box<Fault> {
        let name = clip(name);
        self.field = match self.field.as_str() {
            "" => name,
            rest if rest.starts_with('[') => format!("{name}{rest}"),
            rest => format!("{name}.{rest}"),
        };
        self
    }

    /// Adds the position in the list that the fault is in.
    #[cold]
    pub(crate) fn at(self: Box<Self>, index: usize) -> Box<Fault> {
        self.inside(&format!("[{index}]"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{}, at byte {}", self.reason, self.at)
    }
}

/// Foreign text, cut: an error never grows with its cause.
fn clip(text: &str) -> String {
    match text.char_indices().nth(CLIP_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
