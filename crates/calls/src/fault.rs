//! Faults in a request's body or parameters, with their place.

use std::fmt;

use serde::de;
use sluice_engine::Error;
use sluice_filter::FilterError;

use crate::near::nearest;

/// A fault in a request. Boxed in [`Read`], since the good way must stay cheap.
#[derive(Debug)]
pub struct Fault {
    /// The code of the error.
    pub code: &'static str,
    /// Path of the field, such as `messages[3].priority`; empty: the body as a whole.
    pub field: String,
    /// The reason: what is wrong and what would be right.
    pub reason: String,
    /// The names that would be right, when a name was wrong.
    pub allowed: Vec<&'static str>,
    /// An error of the engine that came up while reading; then code and reason are its own.
    pub engine: Option<Error>,
}

/// The result of reading.
pub type Read<T> = Result<T, Box<Fault>>;

impl Fault {
    /// A fault with a code and a reason; the place is added on the way out.
    #[cold]
    pub fn new(code: &'static str, reason: impl Into<String>) -> Box<Fault> {
        Box::new(Fault {
            code,
            field: String::new(),
            reason: reason.into(),
            allowed: Vec::new(),
            engine: None,
        })
    }

    /// A value of the right type that cannot be.
    #[cold]
    pub fn invalid(reason: impl Into<String>) -> Box<Fault> {
        Fault::new("invalid_argument", reason)
    }

    /// A word that is not among those known.
    #[cold]
    pub fn one_of(known: &'static [&'static str], got: &str) -> Box<Fault> {
        let reason = format!("expected one of {}, got {:?}", known.join(", "), clip(got));
        Box::new(Fault { allowed: known.to_vec(), ..*Fault::invalid(reason) })
    }

    /// A name that is not among those known.
    #[cold]
    pub fn unknown(what: &str, name: &str, allowed: &[&'static str]) -> Box<Fault> {
        let reason = if allowed.is_empty() {
            format!("unknown {what}: none are known here")
        } else {
            let known = allowed.join(", ");
            match nearest(name, allowed) {
                Some(meant) => format!("unknown {what}, did you mean {meant}? Known here are {known}"),
                None => format!("unknown {what}: known here are {known}"),
            }
        };
        Box::new(Fault { allowed: allowed.to_vec(), ..*Fault::new("unknown_field", reason) })
            .inside(&clip(name))
    }

    /// A field that must be there and is not.
    #[cold]
    pub fn missing(field: &str, reason: &str) -> Box<Fault> {
        Fault::new("missing_field", reason).inside(field)
    }

    /// Two fields that exclude each other.
    #[cold]
    pub fn conflict(one: &'static str, other: &'static str) -> Box<Fault> {
        Fault::new("conflicting_fields", format!("{one} and {other} are both given: give one of the two"))
    }

    /// A fault in a payload: where JSON stands in place of a string, tells how JSON is sent.
    #[cold]
    pub fn of_payload(mut self: Box<Self>) -> Box<Fault> {
        if self.code == "wrong_type" {
            self.reason.push_str(
                ": send JSON as text, such as \"payload\":\"{\\\"a\\\":1}\" with \
                 \"content_type\":\"application/json\", or as the body of a raw send",
            );
        }
        self
    }

    /// Adds the name of the field that the fault is in.
    #[cold]
    pub fn inside(mut self: Box<Self>, name: &str) -> Box<Fault> {
        self.field = match self.field.as_str() {
            "" => name.to_owned(),
            rest if rest.starts_with('[') => format!("{name}{rest}"),
            rest => format!("{name}.{rest}"),
        };
        self
    }

    /// Adds the position in the list that the fault is in.
    #[cold]
    pub fn at(self: Box<Self>, index: usize) -> Box<Fault> {
        self.inside(&format!("[{index}]"))
    }
}

impl From<Error> for Box<Fault> {
    fn from(error: Error) -> Self {
        Box::new(Fault { engine: Some(error.clone()), ..*Fault::new(error.code(), error.to_string()) })
    }
}

impl From<FilterError> for Box<Fault> {
    #[cold]
    fn from(error: FilterError) -> Box<Fault> {
        Box::new(Fault { field: error.at, ..*Fault::invalid(error.reason) })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.reason),
            field => write!(f, "{field}: {}", self.reason),
        }
    }
}

impl std::error::Error for Fault {}

/// The faults that derived decoders find. Whoever reads a field adds its name, and a list the position.
impl de::Error for Box<Fault> {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Fault::invalid(reason.to_string())
    }

    fn invalid_type(got: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Fault::new("wrong_type", format!("expected {expected}, got {got}"))
    }

    fn unknown_variant(got: &str, known: &'static [&'static str]) -> Self {
        Fault::one_of(known, got)
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Fault::unknown("field", name, known)
    }

    fn missing_field(name: &'static str) -> Self {
        Fault::missing(name, "the field is required")
    }

    /// Without a name: a key of an object whose keys are free.
    fn duplicate_field(name: &'static str) -> Self {
        let what = if name.is_empty() { "a key" } else { "the field" };
        Fault::new("duplicate_field", format!("{what} is given twice")).inside(name)
    }
}

/// Foreign text in an error is cut, so that an error never grows with its cause.
pub fn clip(text: &str) -> String {
    clip_to(64, text)
}

/// The first `chars_max` characters of a text, and a mark if there are more.
pub(crate) fn clip_to(chars_max: usize, text: &str) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
