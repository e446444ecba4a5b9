//! Operations that send, receive and settle.

use schemars::JsonSchema;
use sluice_calls::hot::extend::ExtendRequest;
use sluice_calls::hot::receive::{ReceiveAnswer, ReceiveManyRequest, ReceiveRequest, WAIT_MS_MAX};
use sluice_calls::hot::send::{SendAnswer, SendRequest};
use sluice_calls::hot::settle::{
    AckRequest, NackRequest, RejectRequest, ReleaseRequest, Results, SettleRequest, Settled,
};
use sluice_calls::operation::Hot;
use sluice_calls::{groups, schedules, transactions};
use sluice_engine::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, LEASE_MS_MAX, PRIORITY_MAX};

use super::parts::{
    Answer, Content, Description, IDEMPOTENCY, Kind, PLAIN, RESULT_WAIT, Request, answer, header, json_of,
    ok, optional, query, required,
};

/// Describes a call that carries messages or receipts.
pub(super) fn hot(call: Hot) -> Description {
    match call {
        Hot::Send => Description {
            parameters: vec![IDEMPOTENCY],
            request: required::<SendRequest>(),
            answers: vec![answer(201, "Stored", json_of::<SendAnswer>())],
            ..PLAIN
        },
        Hot::Receive => Description {
            request: optional::<ReceiveRequest>(),
            answers: vec![ok::<ReceiveAnswer>()],
            ..PLAIN
        },
        Hot::ReceiveMany => Description {
            request: required::<ReceiveManyRequest>(),
            answers: vec![ok::<ReceiveAnswer>()],
            ..PLAIN
        },
        Hot::Ack => settled::<AckRequest>(),
        Hot::Nack => settled::<NackRequest>(),
        Hot::Release => settled::<ReleaseRequest>(),
        Hot::Reject => settled::<RejectRequest>(),
        Hot::Extend => settled::<ExtendRequest>(),
        Hot::Settle => {
            Description { request: required::<SettleRequest>(), answers: vec![ok::<Results>()], ..PLAIN }
        }
        Hot::GroupSend => group(),
        Hot::SchedulePut => schedule(),
        Hot::TransactionCommit => transaction(),
        Hot::TransactionStage => Description {
            request: required::<transactions::Stage>(),
            answers: vec![ok::<transactions::StageResults>()],
            ..PLAIN
        },
        Hot::TransactionClose => Description { answers: vec![ok::<transactions::Committed>()], ..PLAIN },
    }
}

fn settled<R: JsonSchema>() -> Description {
    Description { request: required::<R>(), answers: vec![ok::<Settled>()], ..PLAIN }
}

/// Describes a send whose payload is the body.
pub(super) fn send_raw() -> Description {
    Description {
        parameters: vec![
            IDEMPOTENCY,
            header("Sluice-Priority", Kind::Integer(0, PRIORITY_MAX as u64), "Higher first; default 0"),
            header("Sluice-Delay-Ms", Kind::Integer(0, DELAY_MS_MAX), "Ready after so long"),
            header("Sluice-Deliver-At-Ms", Kind::Integer(0, u64::MAX / 1_000), "Ready at this time"),
            header(
                "Sluice-Max-Attempts",
                Kind::Integer(1, ATTEMPTS_MAX as u64),
                "Attempts before it is a dead letter",
            ),
            header("Sluice-Backoff", Kind::Text, "A backoff, as JSON"),
            header("Sluice-Header-{name}", Kind::Text, "A header of the message"),
        ],
        request: Some(Request { required: false, content: Content::Octets }),
        answers: vec![answer(201, "Stored", json_of::<SendAnswer>())],
        ..PLAIN
    }
}

/// Describes a receive whose payload is the body.
pub(super) fn receive_raw() -> Description {
    Description {
        parameters: vec![
            query("wait_ms", Kind::Integer(0, WAIT_MS_MAX), "How long to wait for a message; default 0"),
            query("lease_ms", Kind::Integer(1, LEASE_MS_MAX), "The lease; default: the queue's"),
            query("consumer", Kind::Text, "A name for those who look"),
        ],
        answers: vec![
            answer(200, "A message", Content::Octets),
            Answer { status: 204, about: "There is none", content: None },
        ],
        ..PLAIN
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

fn group() -> Description {
    Description {
        parameters: vec![IDEMPOTENCY],
        request: required::<groups::Send>(),
        answers: vec![answer(201, "Stored", json_of::<groups::Sent>())],
        ..PLAIN
    }
}

fn transaction() -> Description {
    Description {
        parameters: vec![IDEMPOTENCY],
        request: required::<transactions::Commit>(),
        answers: vec![ok::<transactions::Committed>()],
        ..PLAIN
    }
}

fn schedule() -> Description {
    Description {
        request: required::<schedules::Put>(),
        answers: vec![
            answer(201, "Created", json_of::<schedules::Schedule>()),
            answer(200, "Changed", json_of::<schedules::Schedule>()),
        ],
        ..PLAIN
    }
}
