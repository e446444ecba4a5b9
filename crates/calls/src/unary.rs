//! Calls with one request and one answer: the one place in which every protocol runs them.

use std::future::Future;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::CallError;
use crate::fault::Read;
use crate::operation::Operation;
use crate::permit::Permit;

/// A request that has one answer. Its fields are those of the body, or of the parameters for calls that only look or delete;
/// the name of what it is about stands in the permit.
pub trait Unary: DeserializeOwned + JsonSchema + Send {
    /// The answer.
    type Answer: Serialize + JsonSchema + Send;

    /// The body that it takes.
    const BODY: Body = Body::Small;

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
    /// Whether the call has made what it is about.
    pub created: bool,
    /// The name of what was made, for the audit log, where the request does not give it.
    pub made: Option<String>,
}

impl<T> Done<T> {
    /// The outcome of a call that has made what it is about, or changed it.
    pub fn made(answer: T, created: bool) -> Done<T> {
        Done { answer, created, made: None }
    }
}

impl<T> From<T> for Done<T> {
    fn from(answer: T) -> Done<T> {
        Done { answer, created: false, made: None }
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
}

macro_rules! unary {
    ($($operation:ident => $request:ty),* $(,)?) => {
        /// Runs a call; `None`: the operation is not one with one request and one answer.
        ///
        /// # Errors
        /// Those of the operation.
        pub async fn run<C: Codec>(permit: &Permit<'_>, codec: &mut C) -> Result<Option<C::Output>, CallError> {
            match permit.operation() {
                $(Operation::$operation => one::<$request, C>(permit, codec).await.map(Some),)*
                _ => Ok(None),
            }
        }

        /// The body that a call takes; `None`: it is not one with one request and one answer.
        pub fn body(operation: Operation) -> Option<Body> {
            match operation {
                $(Operation::$operation => Some(<$request as Unary>::BODY),)*
                _ => None,
            }
        }

        /// The schemas of a call; `None`: it is not one with one request and one answer.
        pub fn schemas(operation: Operation, generator: &mut SchemaGenerator) -> Option<Schemas> {
            match operation {
                $(Operation::$operation => Some(Schemas {
                    request: generator.subschema_for::<$request>(),
                    answer: generator.subschema_for::<<$request as Unary>::Answer>(),
                }),)*
                _ => None,
            }
        }
    };
}

async fn one<R: Unary, C: Codec>(permit: &Permit<'_>, codec: &mut C) -> Result<C::Output, CallError> {
    let request: R = codec.read()?;
    let done = request.run(permit).await?;
    codec.write(&done)
}

unary! {
    BulkList => crate::bulk::List,
    BulkStart => crate::bulk::Start,
    BulkShow => crate::bulk::Show,
    BulkCancel => crate::bulk::Cancel,
    MessageCancel => crate::changes::Cancel,
    MessageHold => crate::changes::Hold,
    MessageApprove => crate::changes::Approve,
    MessageDeny => crate::changes::Deny,
    MessageRetry => crate::changes::Retry,
    MessageMove => crate::changes::Move,
    MessageChange => crate::changes::Change,
    ConsumerList => crate::consumers::List,
    ConsumerShow => crate::consumers::Show,
    ConsumerDetach => crate::consumers::Detach,
    DeadRedrive => crate::dead::Redrive,
    DeadRedriveEnd => crate::dead::RedriveEnd,
    DeadDelete => crate::dead::Delete,
    FlowShow => crate::flows::Show,
    GroupShow => crate::groups::Show,
    LimitList => crate::limits::List,
    LimitShow => crate::limits::Show,
    LimitPut => crate::limits::Put,
    LimitDelete => crate::limits::Delete,
    MessageList => crate::messages::List,
    MessagePeek => crate::messages::Peek,
    MessageShow => crate::messages::Show,
    DeadList => crate::messages::DeadList,
    ResultShow => crate::results::Show,
}
