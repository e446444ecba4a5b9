//! Bodies of receives and settlements, and their answers.

use serde_json::{Value, json};
use sluice_engine::limits::{DELAY_MS_MAX, LEASE_MS_MAX, PRIORITY_MAX};

use super::fields::{checkpoint_fields, payload_fields, request_fields, result_fields};
use super::parts::{either, integer, list, merged, number, object, one_of, reference, text};
use super::{AT_MS, ID, RECEIPT};
use crate::json::hot::settle::OUTCOMES;
use sluice_calls::hot::receive::WAIT_MS_MAX;

pub(super) fn receiving() -> Value {
    let terms = json!({
        "max": integer(1, 1_000, "Most messages; default 1"),
        "wait_ms": integer(0, WAIT_MS_MAX, "How long to wait for a first message; default 0"),
        "lease_ms": integer(1, LEASE_MS_MAX, "How long the messages are yours; default: the queue's"),
        "consumer": text("A name for those who look"),
    });
    let weighted = object(
        &["name"],
        json!({"name": text("Queue"), "weight": integer(1, 1_000, "Share")}),
        json!({"name": "b", "weight": 3}),
    );
    let queues = json!({"queues": list(json!({"oneOf": [{"type": "string"}, weighted]}))});
    let delivered = json!({
        "id": text("Id of the message"),
        "receipt": text("Proof of this delivery"),
        "queue": text("Where it comes from"),
        "from_queue": text("The queue in which it died before it came to this one"),
        "reason": text("Why it died there"),
        "priority": integer(0, u64::from(PRIORITY_MAX), ""),
        "attempt": number("From 1"),
        "max_attempts": number(""),
        "deliveries": number("Deliveries in all, released ones included"),
        "sent_at_ms": number(""),
        "lease_until_ms": number(""),
    });
    let fields = [
        "id",
        "receipt",
        "queue",
        "priority",
        "attempt",
        "max_attempts",
        "deliveries",
        "sent_at_ms",
        "lease_until_ms",
    ];
    let example = json!({
        "id": ID, "receipt": RECEIPT, "queue": "mail", "payload": "hello", "priority": 0, "attempt": 1,
        "max_attempts": 5, "deliveries": 1, "sent_at_ms": AT_MS, "lease_until_ms": AT_MS + 30_000,
    });
    json!({
        "ReceiveRequest": object(&[], terms.clone(), json!({"max": 10, "wait_ms": 20_000})),
        "ReceiveManyRequest": object(&["queues"], merged(terms, queues),
            json!({"queues": ["a", {"name": "b", "weight": 3}], "wait_ms": 20_000})),
        "Delivered": object(&fields, merged(payload_fields(), merged(delivered, merged(request_fields(), checkpoint_fields()))), example.clone()),
        "Received": object(&["messages"], json!({"messages": list(reference("Delivered"))}), json!({"messages": [example]})),
    })
}

/// A request to settle one or many, with the fields that this outcome takes.
fn settlement(fields: Value) -> Value {
    let one = object(
        &["receipt"],
        merged(json!({"receipt": text("Receipt")}), fields.clone()),
        json!({"receipt": RECEIPT}),
    );
    let many = object(
        &["receipts"],
        merged(json!({"receipts": list(text("Receipt"))}), fields),
        json!({"receipts": [RECEIPT]}),
    );
    either(one, many, json!([{"receipt": RECEIPT}, {"receipts": [RECEIPT]}]))
}

pub(super) fn settling() -> Value {
    let error = json!({"error": text("For the history; cut at 4096 bytes")});
    let delay = json!({"delay_ms": integer(0, DELAY_MS_MAX, "Ready again after so long")});
    let item = merged(
        merged(json!({"receipt": text("Receipt"), "outcome": one_of(OUTCOMES)}), error.clone()),
        merged(delay.clone(), result_fields()),
    );
    let extension = merged(
        json!({
            "receipt": text("Receipt"),
            "lease_ms": integer(1, LEASE_MS_MAX, "From now; default: the queue's"),
            "progress": object(&["percent"], json!({
                "percent": integer(0, 100, "How far the work has come"), "note": text("Up to 1 KiB"),
            }), json!({"percent": 40, "note": "two of five"})),
        }),
        checkpoint_fields(),
    );
    let extend_one = object(&["receipt"], extension, json!({"receipt": RECEIPT, "lease_ms": 60_000}));
    let extend_many = object(
        &["items"],
        json!({"items": list(extend_one.clone())}),
        json!({"items": [{"receipt": RECEIPT}]}),
    );
    let single = object(&[], json!({"already_settled": {"const": true}}), json!({}));
    json!({
        "AckRequest": settlement(result_fields()),
        "NackRequest": settlement(merged(error.clone(), delay.clone())),
        "ReleaseRequest": settlement(delay),
        "RejectRequest": settlement(error),
        "SettleRequest": object(&["items"], json!({"items": list(object(&["receipt", "outcome"], item,
            json!({"receipt": RECEIPT, "outcome": "ack"})))}),
            json!({"items": [{"receipt": RECEIPT, "outcome": "nack", "error": "timeout", "delay_ms": 5_000}]})),
        "ExtendRequest": either(extend_one, extend_many, json!([{"receipt": RECEIPT}])),
        "Results": object(&["results"], json!({"results": list(object(&["ok"], json!({
            "ok": {"type": "boolean"}, "already_settled": {"const": true}, "error": reference("ErrorBody"),
        }), json!({"ok": true})))}), json!({"results": [{"ok": true}, {"ok": true, "already_settled": true}]})),
        "Settled": either(single, reference("Results"), json!([{}, {"already_settled": true}])),
    })
}
