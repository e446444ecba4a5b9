//! A call with one request and one answer: the trait of its request, its outcome, and the codec by which a
//! protocol reads and writes it. `unary` lists and runs them.

use std::future::Future;

use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::CallError;
use crate::fault::Read;
use crate::permit::Permit;

/// A request that has one answer. Its fields are those of the body, or of the parameters for calls that only
/// look or delete; the name of what it is about stands in the permit.
pub trait Unary: DeserializeOwned + JsonSchema + Send {
    /// The answer.
    type Answer: Serialize + JsonSchema + Send;

    /// The body that it takes.
    const BODY: Body = Body::Optional;
    /// The effects that it can have when it succeeds.
    const HOW: &'static [How] = &[How::Done];

    /// Does what is asked for.
    fn run(self, permit: &Permit<'_>) -> impl Future<Output = Result<Done<Self::Answer>, CallError>> + Send;
}

/// The body of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// No body: one with fields is refused.
    None,
    /// Settings or options, none of which is required: a blank body leaves all of them out.
    Optional,
    /// Settings or options, some of which are required, or which replace all there are.
    Small,
    /// A list of ids, which is required; the longest of these.
    Items,
    /// A policy, which is required.
    Policy,
    /// A document with its content, which is required.
    Document,
}

/// The outcome of a call that succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done<T> {
    /// The answer.
    pub answer: T,
    /// The effect of the call.
    pub how: How,
    /// Its record in the audit log, beside the request.
    pub noted: Noted,
}

/// The record of a call in the audit log, beside its operation and target.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Noted {
    /// The name of what was made, where the request does not give it.
    pub made: Option<String>,
    /// The change as an object, where operation and target do not tell it.
    pub details: Option<Value>,
    /// True if nothing was changed: there is no entry.
    pub is_silent: bool,
}

/// The effect of a call that succeeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// The call did what was requested.
    Done,
    /// The call created its object.
    Created,
    /// The call began something that goes on after the answer.
    Begun,
}

impl<T> Done<T> {
    /// The outcome of a call that created its object, or changed it.
    pub fn made(answer: T, created: bool) -> Done<T> {
        Done { answer, how: if created { How::Created } else { How::Done }, noted: Noted::default() }
    }

    /// True if the call created its object.
    pub fn created(&self) -> bool {
        self.how == How::Created
    }

    /// The outcome of a call that has made something, with the name that it got.
    pub fn named(answer: T, how: How, name: String) -> Done<T> {
        Done { answer, how, noted: Noted { made: Some(name), ..Noted::default() } }
    }

    /// The same outcome, with what was done, for the audit log.
    pub fn with_details(mut self, details: Option<Value>) -> Done<T> {
        self.noted.details = details;
        self
    }
}

impl<T> From<T> for Done<T> {
    fn from(answer: T) -> Done<T> {
        Done { answer, how: How::Done, noted: Noted::default() }
    }
}

/// True for a field that is a condition of a change: left blank, as by a variable without a value, it must
/// not count as left out.
pub fn is_condition(field: &str) -> bool {
    field.starts_with("if_") || field == "token"
}

/// A protocol's way to read a request and to write an answer.
pub trait Codec: Send {
    /// The answer as the protocol has it.
    type Output;

    /// Reads the request.
    ///
    /// # Errors
    /// The fault in it.
    fn read<T: DeserializeOwned>(&mut self) -> Read<T>;

    /// Writes the answer.
    ///
    /// # Errors
    /// `internal`, when the answer has a field that the protocol cannot write.
    fn write<T: Serialize>(&mut self, done: &Done<T>) -> Result<Self::Output, CallError>;
}

/// The schemas of a request and its answer.
#[derive(Clone, Debug)]
pub struct Schemas {
    /// The request.
    pub request: Schema,
    /// The answer.
    pub answer: Schema,
    /// The effects that the call can have when it succeeds.
    pub how: &'static [How],
}
