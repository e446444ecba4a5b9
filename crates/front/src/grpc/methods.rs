//! The one table of calls with one answer: each is an operation of the HTTP API.

use crate::http::routes::{Operation, ROUTES};

/// Path of a call behind `/sluice.v1.`, and what it does.
pub(super) static METHODS: &[(&str, Operation)] = &[
    ("Messages/Send", Operation::Send),
    ("Messages/Receive", Operation::ReceiveMany),
    ("Messages/Settle", Operation::Settle),
    ("Messages/Extend", Operation::Extend),
    ("Messages/List", Operation::MessageList),
    ("Messages/Peek", Operation::MessagePeek),
    ("Messages/Get", Operation::MessageShow),
    ("Messages/AwaitResult", Operation::ResultShow),
    ("Messages/Cancel", Operation::MessageCancel),
    ("Messages/Hold", Operation::MessageHold),
    ("Messages/Approve", Operation::MessageApprove),
    ("Messages/Deny", Operation::MessageDeny),
    ("Messages/Retry", Operation::MessageRetry),
    ("Messages/Move", Operation::MessageMove),
    ("Messages/Change", Operation::MessageChange),
    ("Messages/SendGroup", Operation::GroupSend),
    ("Messages/GetGroup", Operation::GroupShow),
    ("Messages/GetFlow", Operation::FlowShow),
    ("Queues/List", Operation::QueueList),
    ("Queues/Get", Operation::QueueShow),
    ("Queues/Put", Operation::QueuePut),
    ("Queues/Change", Operation::QueuePatch),
    ("Queues/Delete", Operation::QueueDelete),
    ("Queues/Pause", Operation::QueuePause),
    ("Queues/Resume", Operation::QueueResume),
    ("Queues/Close", Operation::QueueClose),
    ("Queues/Open", Operation::QueueOpen),
    ("Queues/Purge", Operation::QueuePurge),
    ("Queues/ListDead", Operation::DeadList),
    ("Queues/Redrive", Operation::DeadRedrive),
    ("Queues/EndRedrive", Operation::DeadRedriveEnd),
    ("Queues/DeleteDead", Operation::DeadDelete),
    ("Queues/ListDefaults", Operation::DefaultsList),
    ("Queues/GetDefaults", Operation::DefaultsShow),
    ("Queues/PutDefaults", Operation::DefaultsPut),
    ("Queues/DeleteDefaults", Operation::DefaultsDelete),
    ("Schedules/List", Operation::ScheduleList),
    ("Schedules/Get", Operation::ScheduleShow),
    ("Schedules/Put", Operation::SchedulePut),
    ("Schedules/Delete", Operation::ScheduleDelete),
    ("Schedules/Next", Operation::ScheduleNext),
    ("Schedules/Pause", Operation::SchedulePause),
    ("Schedules/Resume", Operation::ScheduleResume),
    ("Schedules/Trigger", Operation::ScheduleTrigger),
    ("Consumers/List", Operation::ConsumerList),
    ("Consumers/Get", Operation::ConsumerShow),
    ("Consumers/Detach", Operation::ConsumerDetach),
    ("Limits/List", Operation::LimitList),
    ("Limits/Get", Operation::LimitShow),
    ("Limits/Put", Operation::LimitPut),
    ("Limits/Delete", Operation::LimitDelete),
    ("Bulks/List", Operation::BulkList),
    ("Bulks/Start", Operation::BulkStart),
    ("Bulks/Get", Operation::BulkShow),
    ("Bulks/Cancel", Operation::BulkCancel),
    ("Namespaces/List", Operation::NamespaceList),
    ("Namespaces/Get", Operation::NamespaceShow),
    ("Namespaces/Put", Operation::NamespacePut),
    ("Namespaces/Change", Operation::NamespacePatch),
    ("Namespaces/Delete", Operation::NamespaceDelete),
];

/// The place of a call's route, by its path.
pub(super) fn route_of(path: &str) -> Option<usize> {
    let name = path.strip_prefix("/sluice.v1.")?;
    let (_, operation) = METHODS.iter().find(|(method, _)| *method == name)?;
    ROUTES.iter().position(|route| route.operation == *operation)
}
