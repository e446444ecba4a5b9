//! A call with one request and one answer: the trait of its request, its outcome, and the codec by which a
//! protocol reads and writes it. `unary` lists and runs them.

use std::future::Future;

use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::CallError;
use crate::fault::Read;
use crate::permit::Permit;

/// A request that has one answer. Its fields are those of the body, or of the parameters for calls that only
/// look or delete; the name of what it is about stands in the permit.
pub trait Unary: DeserializeOwned + JsonSchema + Send {
    /// The answer.
    type Answer: Serialize + JsonSchema + Send;

    /// The body that it takes.
    const BODY: Body = Body::Small;
    /// What it can have done when it succeeds.
    const HOW: &'static [How] = &[How::Done];

    /// Does what is asked for.
    fn run(self, permit: &Permit<'_>) -> impl Future<Output = Result<Done<Self::Answer>, CallError>> + Send;
}

/// The body of a request, by its greatest length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// It takes none, and reads none.
    None,
    /// Settings or options.
    Small,
    /// A list of ids or receipts.
    Items,
    /// Messages.
    Messages,
}

/// The outcome of a call that succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done<T> {
    /// The answer.
    pub answer: T,
    /// What the call has done.
    pub how: How,
    /// The name of what was made, for the audit log, where the request does not give it.
    pub made: Option<String>,
}

/// What a call that succeeded has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// What was asked for.
    Done,
    /// Made what it is about.
    Created,
    /// Begun what goes on after the answer.
    Begun,
}

impl<T> Done<T> {
    /// The outcome of a call that has made what it is about, or changed it.
    pub fn made(answer: T, created: bool) -> Done<T> {
        Done { answer, how: if created { How::Created } else { How::Done }, made: None }
    }

    /// Whether the call has made what it is about.
    pub fn created(&self) -> bool {
        self.how == How::Created
    }

    /// The outcome of a call that has made something, with the name that it got.
    pub fn named(answer: T, how: How, name: String) -> Done<T> {
        Done { answer, how, made: Some(name) }
    }
}

impl<T> From<T> for Done<T> {
    fn from(answer: T) -> Done<T> {
        Done { answer, how: How::Done, made: None }
    }
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
    /// What the call can have done when it succeeds.
    pub how: &'static [How],
}
