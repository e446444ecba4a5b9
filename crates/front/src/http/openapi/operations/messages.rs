//! What operations that send, receive, settle and look do.

use super::{
    Answer, CURSOR, Content, Description, IDEMPOTENCY, Kind, LIMIT, PAYLOAD, PLAIN, RESULT_WAIT, Request,
    answer, header, ok, optional, query, required,
};
use crate::http::route::table::Operation;

pub(super) fn moving(operation: Operation) -> Description {
    match operation {
        Operation::Send => Description {
            summary: "Send one message or many, all or nothing",
            about: "The queue is created by its first message.",
            parameters: vec![IDEMPOTENCY],
            request: required("SendRequest"),
            answers: vec![answer(201, "Stored", Content::Json("Sent"))],
            ..PLAIN
        },
        Operation::SendRaw => Description {
            summary: "Send one message, its payload as the body",
            about: "Content-Type is kept with the message, and so is traceparent.",
            parameters: vec![
                IDEMPOTENCY,
                header("Sluice-Priority", Kind::Integer(0, 9), "Higher first; default 0"),
                header("Sluice-Delay-Ms", Kind::Integer(0, u64::MAX), "Ready after so long"),
                header("Sluice-Deliver-At-Ms", Kind::Integer(0, u64::MAX / 1_000), "Ready at this time"),
                header(
                    "Sluice-Max-Attempts",
                    Kind::Integer(1, 10_000),
                    "Attempts before it is a dead letter",
                ),
                header("Sluice-Backoff", Kind::Text, "A backoff, as JSON"),
                header("Sluice-Header-{name}", Kind::Text, "A header of the message"),
            ],
            request: Some(Request { required: false, content: Content::Octets }),
            answers: vec![answer(201, "Stored", Content::Json("Sent"))],
            ..PLAIN
        },
        Operation::Receive => Description {
            summary: "Take messages under a lease",
            about: "Returns with the first messages there are; waits up to wait_ms for a first one.",
            request: optional("ReceiveRequest"),
            answers: vec![ok("Received")],
            ..PLAIN
        },
        Operation::ReceiveMany => Description {
            summary: "Take messages from several queues",
            about: "In the order given, or in proportion to weights.",
            request: required("ReceiveManyRequest"),
            answers: vec![ok("Received")],
            ..PLAIN
        },
        _ => Description {
            summary: "Take one message, its payload as the body",
            about: "The fields are in Sluice- headers; those of the message in Sluice-Header-{name}.",
            parameters: vec![
                query("wait_ms", Kind::Integer(0, 60_000), "How long to wait for a message; default 0"),
                query("lease_ms", Kind::Integer(1, 43_200_000), "The lease; default: the queue's"),
                query("consumer", Kind::Text, "A name for those who look"),
            ],
            answers: vec![
                answer(200, "A message", Content::Octets),
                Answer { status: 204, about: "There is none", content: None },
            ],
            ..PLAIN
        },
    }
}

pub(super) fn settling(operation: Operation) -> Description {
    match operation {
        Operation::Ack => Description {
            summary: "Done: the message is gone, or kept with its result",
            request: required("AckRequest"),
            answers: vec![ok("Settled")],
            ..PLAIN
        },
        Operation::Nack => Description {
            summary: "Failed: another attempt after the backoff",
            about: "After max_attempts the message becomes a dead letter.",
            request: required("NackRequest"),
            answers: vec![ok("Settled")],
            ..PLAIN
        },
        Operation::Release => Description {
            summary: "Not now: give back, the attempt does not count",
            request: required("ReleaseRequest"),
            answers: vec![ok("Settled")],
            ..PLAIN
        },
        Operation::Reject => Description {
            summary: "Never: to the dead letters",
            request: required("RejectRequest"),
            answers: vec![ok("Settled")],
            ..PLAIN
        },
        Operation::Settle => Description {
            summary: "Settle many, each with its own outcome",
            request: required("SettleRequest"),
            answers: vec![ok("Results")],
            ..PLAIN
        },
        _ => Description {
            summary: "Extend leases",
            about: "The lease ends lease_ms from now. Progress and checkpoint are kept, and the checkpoint is handed to the next attempt.",
            request: required("ExtendRequest"),
            answers: vec![ok("Settled")],
            ..PLAIN
        },
    }
}

pub(super) fn looking(operation: Operation) -> Description {
    match operation {
        Operation::MessageList => Description {
            summary: "List the messages of a queue",
            about: "By id. A page may be short, even empty, and have a next one.",
            parameters: vec![
                query(
                    "state",
                    Kind::OneOf(crate::http::handlers::messages::STATES),
                    "Only messages in this state",
                ),
                CURSOR,
                LIMIT,
                PAYLOAD,
            ],
            answers: vec![ok("MessageList")],
            ..PLAIN
        },
        Operation::MessagePeek => Description {
            summary: "Look at the messages next in line",
            about: "At most some 16 MiB; the answer is truncated when that cuts it short.",
            parameters: vec![query("limit", Kind::Integer(1, 100), "Most messages; default 10")],
            answers: vec![ok("PeekList")],
            ..PLAIN
        },
        Operation::ResultShow => Description {
            summary: "Wait for a message's end, and get its result",
            about: "message_not_found when it is gone: no longer kept, purged, or acked without anybody wanting its result.",
            parameters: vec![RESULT_WAIT],
            answers: vec![ok("Awaited")],
            ..PLAIN
        },
        Operation::ResultRaw => Description {
            summary: "Wait for a message's end, and get its result as the body",
            about: "Sluice-State tells done, dead or pending.",
            parameters: vec![RESULT_WAIT],
            answers: vec![
                answer(200, "The result", Content::Octets),
                Answer { status: 204, about: "There is none, or not yet", content: None },
            ],
            ..PLAIN
        },
        _ => Description {
            summary: "Show a message with its history",
            parameters: vec![PAYLOAD],
            answers: vec![ok("StoredMessage")],
            ..PLAIN
        },
    }
}
