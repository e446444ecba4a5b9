//! The names of the fields that the readers take.

/// A list of field names: those of a message that stands for itself, and these.
macro_rules! with_own_fields {
    ($($more:literal),*) => {
        &[
            "payload",
            "payload_base64",
            "content_type",
            "headers",
            "tags",
            "priority",
            "delay_ms",
            "deliver_at_ms",
            "max_attempts",
            "backoff",
            "ordering_key",
            "fair_key",
            "limit_key",
            "cost",
            "ttl_ms",
            "expires_at_ms",
            "result_ttl_ms",
            "correlation_id",
            "reply_to",
            "hold",
            $($more,)*
        ]
    };
}

/// The same with the fields of what a message may have to do with others.
macro_rules! with_message_fields {
    ($($more:literal),*) => {
        with_own_fields!(
            "unique",
            "depends_on",
            "depends_mode",
            "on_parent_failed",
            "chain",
            "on_failure"
            $(, $more)*
        )
    };
}

/// Fields of a message.
pub const MESSAGE_FIELDS: &[&str] = with_message_fields!();
/// Fields at the top of a send: those of one message, or the list.
pub(crate) const SEND_FIELDS: &[&str] = with_message_fields!("messages");
/// Fields of a group.
pub(crate) const GROUP_FIELDS: &[&str] = &["messages", "callback"];
/// Fields of its messages: those of a message, and its queue.
pub(crate) const GROUP_MESSAGE_FIELDS: &[&str] = with_message_fields!("queue");
/// Fields of a step of a chain: those of a message that stands for itself, and its queue.
pub(crate) const STEP_FIELDS: &[&str] = with_own_fields!("queue");
