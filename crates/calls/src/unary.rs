//! The table of calls with one request and one answer: the operations with their requests' types, and the one
//! place in which every protocol runs them.

use schemars::SchemaGenerator;

pub use crate::call::{Body, Codec, Done, How, Schemas, Unary};
use crate::error::CallError;
use crate::fault::Read;
use crate::operation::Operation;
use crate::permit::Permit;

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

        /// Reads the request of a call, and does nothing; `None`: it is not one with one request and one
        /// answer.
        pub fn read<C: Codec>(operation: Operation, codec: &mut C) -> Option<Read<()>> {
            match operation {
                $(Operation::$operation => Some(codec.read::<$request>().map(drop)),)*
                _ => None,
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
                    how: <$request as Unary>::HOW,
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
    KeysShow => crate::keys::Show,
    KeysRotate => crate::keys::Rotate,
    FlowShow => crate::flows::Show,
    GroupShow => crate::groups::Show,
    LimitList => crate::limits::List,
    LimitShow => crate::limits::Show,
    LimitPut => crate::limits::Put,
    LimitDelete => crate::limits::Delete,
    NamespaceList => crate::namespaces::List,
    NamespaceShow => crate::namespaces::Show,
    NamespacePut => crate::namespaces::Put,
    NamespacePatch => crate::namespaces::Patch,
    NamespaceDelete => crate::namespaces::Delete,
    DefaultsList => crate::queue_defaults::List,
    DefaultsShow => crate::queue_defaults::Show,
    DefaultsPut => crate::queue_defaults::Put,
    DefaultsDelete => crate::queue_defaults::Delete,
    QueueList => crate::queues::List,
    QueueShow => crate::queues::Show,
    QueuePut => crate::queues::Put,
    QueuePatch => crate::queues::Patch,
    QueueDelete => crate::queues::Delete,
    QueuePause => crate::queues::Pause<true>,
    QueueResume => crate::queues::Pause<false>,
    QueueClose => crate::queues::Close<true>,
    QueueOpen => crate::queues::Close<false>,
    QueuePurge => crate::queues::Purge,
    ScheduleList => crate::schedules::List,
    ScheduleShow => crate::schedules::Show,
    ScheduleDelete => crate::schedules::Delete,
    ScheduleNext => crate::schedules::Next,
    SchedulePause => crate::schedules::Pause<true>,
    ScheduleResume => crate::schedules::Pause<false>,
    ScheduleTrigger => crate::schedules::Trigger,
    Status => crate::status::Show,
    TokenList => crate::tokens::List,
    TokenCreate => crate::tokens::Create,
    TokenRevoke => crate::tokens::Revoke,
    Audit => crate::tokens::ReadAudit,
    WhoAmI => crate::tokens::WhoAmI,
    MessageList => crate::messages::List,
    MessagePeek => crate::messages::Peek,
    MessageShow => crate::messages::Show,
    DeadList => crate::messages::DeadList,
    ResultShow => crate::results::Show,
}
