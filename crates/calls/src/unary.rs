//! The table of calls with one request and one answer: the operations with their requests' types, and the one
//! place in which every protocol runs them.

use std::pin::Pin;

use schemars::SchemaGenerator;
use sluice_engine::Error;

pub use crate::call::{Body, Codec, Done, How, Schemas, Unary, is_condition};
use crate::error::CallError;
use crate::fault::Read;
use crate::operation::{Operation, unary_operations};
use crate::permit::Permit;
use crate::{
    attachments, bulk, changes, cluster, cluster_limits, consumers, dead, documents, finalize, flows, groups,
    health, keys, limits, locks, membership, messages, namespaces, policy, pushes, queue_defaults, queues,
    results, schedules, status, test_time, tokens, transactions,
};

macro_rules! unary {
    ($($operation:ident => $request:ty),* $(,)?) => {
        /// Runs a call.
        ///
        /// # Errors
        /// Those of the operation; `internal`: it is none of these.
        pub async fn run<C: Codec>(permit: &Permit<'_>, codec: &mut C) -> Result<C::Output, CallError> {
            match permit.operation() {
                $(Operation::$operation => one::<$request, C>(permit, codec).await,)*
                other => Err(none_of_these(other).into()),
            }
        }

        /// Reads the request of a call, and does nothing; `None`: it is not one with one request and one
        /// answer.
        pub fn read<C: Codec>(operation: Operation, codec: &mut C) -> Option<Read<()>> {
            match operation {
                $(Operation::$operation => Some(codec.read::<$request>().map(drop)),)*
                _ => None,
            }
        }

        /// The body that a call takes.
        ///
        /// # Errors
        /// `internal`: it is none of these.
        pub fn body(operation: Operation) -> Result<Body, Error> {
            match operation {
                $(Operation::$operation => Ok(<$request as Unary>::BODY),)*
                other => Err(none_of_these(other)),
            }
        }

        /// The schemas of a call; `None`: it is not one with one request and one answer.
        pub fn schemas(operation: Operation, generator: &mut SchemaGenerator) -> Option<Schemas> {
            match operation {
                $(Operation::$operation => Some(Schemas {
                    request: generator.subschema_for::<$request>(),
                    answer: generator.subschema_for::<<$request as Unary>::Answer>(),
                    how: <$request as Unary>::HOW,
                }),)*
                _ => None,
            }
        }
    };
}

#[cold]
fn none_of_these(operation: Operation) -> Error {
    Error::Internal { reason: format!("{} has no typed request", operation.name()) }
}

async fn one<R: Unary, C: Codec>(permit: &Permit<'_>, codec: &mut C) -> Result<C::Output, CallError> {
    let request: R = codec.read()?;
    let done = boxed(request, permit).await.map_err(|error| error.naming(permit.namespace_name()))?;
    codec.write(&done)
}

/// The run of a call.
type Run<'p, A> = Pin<Box<dyn Future<Output = Result<Done<A>, CallError>> + Send + 'p>>;

/// Runs a call behind a pointer: it is compiled once for all protocols, and what waits for it is not as large
/// as the largest of all calls.
fn boxed<'p, R: Unary + 'p>(request: R, permit: &'p Permit<'_>) -> Run<'p, R::Answer> {
    Box::pin(request.run(permit))
}

unary_operations!(unary);
