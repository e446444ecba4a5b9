//! The parameters that each operation knows behind the `?`. Others are refused before anything is done.

use super::events;
use super::handlers::{
    consumers, limits, messages, namespaces, queue_defaults, queues, results, schedules, tokens,
};
use super::hot::raw;
use super::route::table::Operation;

impl Operation {
    /// Their names.
    pub(crate) fn parameters(self) -> &'static [&'static str] {
        use Operation as O;
        match self {
            O::ReceiveRaw => raw::RECEIVE_PARAMS,
            O::QueueList => queues::LIST_PARAMS,
            O::MessageList => messages::LIST_PARAMS,
            O::MessagePeek => messages::PEEK_PARAMS,
            O::MessageShow => messages::SHOW_PARAMS,
            O::DeadList => messages::DEAD_PARAMS,
            O::ResultShow | O::ResultRaw => results::RESULT_PARAMS,
            O::Events => events::EVENTS_PARAMS,
            O::QueueEvents => events::QUEUE_EVENTS_PARAMS,
            O::ConsumerList => consumers::LIST_PARAMS,
            O::ConsumerShow => consumers::SHOW_PARAMS,
            O::ConsumerDetach => consumers::DETACH_PARAMS,
            O::LimitList => limits::LIST_PARAMS,
            O::LimitShow => limits::SHOW_PARAMS,
            O::ScheduleList => schedules::LIST_PARAMS,
            O::ScheduleNext => schedules::NEXT_PARAMS,
            O::DefaultsList => queue_defaults::LIST_PARAMS,
            O::NamespaceList => namespaces::LIST_PARAMS,
            O::NamespaceDelete => namespaces::DELETE_PARAMS,
            O::Audit => tokens::AUDIT_PARAMS,
            _ => &[],
        }
    }
}
