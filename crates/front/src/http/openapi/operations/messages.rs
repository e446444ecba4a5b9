//! What operations that send, receive, settle and look do.

use sluice_calls::Operation;

use super::{
    Answer, Content, Description, IDEMPOTENCY, Kind, PLAIN, RESULT_WAIT, Request, answer, header, ok,
    optional, query, required,
};

pub(super) fn moving(operation: Operation) -> Description {
    match operation {
        Operation::Send => Description {
            parameters: vec![IDEMPOTENCY],
            request: required("SendRequest"),
            answers: vec![answer(201, "Stored", Content::Json("Sent"))],
            ..PLAIN
        },
        Operation::SendRaw => Description {
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
        Operation::Receive => {
            Description { request: optional("ReceiveRequest"), answers: vec![ok("Received")], ..PLAIN }
        }
        Operation::ReceiveMany => {
            Description { request: required("ReceiveManyRequest"), answers: vec![ok("Received")], ..PLAIN }
        }
        _ => Description {
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
        Operation::Ack => {
            Description { request: required("AckRequest"), answers: vec![ok("Settled")], ..PLAIN }
        }
        Operation::Nack => {
            Description { request: required("NackRequest"), answers: vec![ok("Settled")], ..PLAIN }
        }
        Operation::Release => {
            Description { request: required("ReleaseRequest"), answers: vec![ok("Settled")], ..PLAIN }
        }
        Operation::Reject => {
            Description { request: required("RejectRequest"), answers: vec![ok("Settled")], ..PLAIN }
        }
        Operation::Settle => {
            Description { request: required("SettleRequest"), answers: vec![ok("Results")], ..PLAIN }
        }
        _ => Description { request: required("ExtendRequest"), answers: vec![ok("Settled")], ..PLAIN },
    }
}

pub(super) fn result() -> Description {
    Description {
        parameters: vec![RESULT_WAIT],
        answers: vec![
            answer(200, "The result", Content::Octets),
            Answer { status: 204, about: "There is none, or not yet", content: None },
        ],
        ..PLAIN
    }
}

pub(super) fn group() -> Description {
    Description {
        parameters: vec![IDEMPOTENCY],
        request: required("GroupRequest"),
        answers: vec![answer(201, "Stored", Content::Json("GroupSent"))],
        ..PLAIN
    }
}

pub(super) fn schedule() -> Description {
    Description {
        request: required("SchedulePut"),
        answers: vec![
            answer(201, "Created", Content::Json("Schedule")),
            answer(200, "Changed", Content::Json("Schedule")),
        ],
        ..PLAIN
    }
}
