//! The schemas of bodies. Tests hold them against the readers' lists of fields and against real answers.

mod changing;

use serde_json::{Map, Value, json};
use sluice_engine::limit::{IN_FLIGHT_MAX, RATE_COUNT_MAX, RATE_PERIOD_MS_MAX};
use sluice_engine::limits::{
    ATTEMPTS_MAX, DELAY_MS_MAX, LEASE_MS_MAX, PARENTS_MAX, PRIORITY_MAX, REDRIVE_PER_SECOND_MAX,
};
use sluice_engine::options::{KEY_BYTES_MAX, WINDOW_MS_MAX};
use sluice_node::schedule::{EVERY_MS_MIN, MISSED};

use crate::http::messages::STATES;
use crate::http::receive::WAIT_MS_MAX;
use crate::http::results::RESULT_STATES;
use crate::http::send_options::{DEPENDS_MODES, ON_DUPLICATE, ON_PARENT_FAILED, UNTIL};
use crate::http::settings::{BACKOFF_KINDS, default_settings, settings_always_shown, settings_schemas};
use crate::http::settle::OUTCOMES;

const ID: &str = "00000040000000g000g0";
const RECEIPT: &str = "00000040000000g000g0000080000010";
const AT_MS: u64 = 1_767_225_600_000;

/// All schemas by name.
pub(super) fn all() -> Map<String, Value> {
    let mut schemas = Map::new();
    for group in [
        sending(),
        receiving(),
        settling(),
        queues(),
        limits(),
        schedules(),
        looking(),
        changing::all(),
        namespaces(),
        server(),
    ] {
        if let Value::Object(group) = group {
            schemas.extend(group);
        }
    }
    schemas
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

fn integer(min: u64, max: u64, about: &str) -> Value {
    json!({"type": "integer", "minimum": min, "maximum": max, "description": about})
}

fn number(about: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": about})
}

fn list(of: Value) -> Value {
    json!({"type": "array", "items": of})
}

fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// An object with these fields and no others.
fn object(required: &[&str], properties: Value, example: Value) -> Value {
    json!({
        "type": "object", "required": required, "properties": properties,
        "additionalProperties": false, "examples": [example],
    })
}

fn either(one: Value, other: Value, examples: Value) -> Value {
    json!({"oneOf": [one, other], "examples": examples})
}

fn merged(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            one.extend(other);
            Value::Object(one)
        }
        (one, _) => one,
    }
}

/// The fields of a payload, going in or out.
fn payload_fields() -> Value {
    json!({
        "payload": text("UTF-8 text"),
        "payload_base64": text("Any octets, as standard base64 with padding"),
        "content_type": text("Kept, not interpreted"),
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "tags": changing::tags(),
    })
}

fn sending() -> Value {
    let message = json!({
        "priority": integer(0, u64::from(PRIORITY_MAX), "Higher first; default 0"),
        "delay_ms": integer(0, DELAY_MS_MAX, "Ready after so long"),
        "deliver_at_ms": number("Ready at this time; not together with delay_ms"),
        "max_attempts": integer(1, u64::from(ATTEMPTS_MAX), "Attempts before it is a dead letter; default: the queue's"),
        "backoff": reference("Backoff"),
    });
    let message = merged(message, send_options());
    let messages = object(
        &["messages"],
        json!({"messages": list(reference("Message"))}),
        json!({"messages": [{"payload": "a"}, {"payload_base64": "/wA="}]}),
    );
    let sent = object(
        &["id", "duplicate"],
        json!({"id": text("Id of the message"), "duplicate": {"type": "boolean"}}),
        json!({"id": ID, "duplicate": false}),
    );
    let sent_many = object(
        &["ids", "duplicate"],
        json!({
            "ids": list(text("Id")),
            "duplicate": {"type": "boolean"},
            "duplicates": list(number("Which messages, from 0, are duplicates by their unique key; absent: none")),
        }),
        json!({"ids": [ID], "duplicate": true}),
    );
    json!({
        "Message": object(&[], merged(payload_fields(), message.clone()), json!({
            "payload": "welcome", "headers": {"to": "ann"}, "priority": 5, "delay_ms": 60_000,
            "backoff": {"kind": "fixed", "base_ms": 5_000},
        })),
        "GroupMessage": object(&["queue"], merged(merged(payload_fields(), message), json!({"queue": text("Where to")})),
            json!({"queue": "mail", "payload": "a"})),
        "GroupRequest": object(&["messages", "callback"], json!({
            "messages": list(reference("GroupMessage")), "callback": reference("GroupMessage"),
        }), json!({"messages": [{"queue": "mail", "payload": "a"}], "callback": {"queue": "reports", "payload": "all sent"}})),
        "GroupSent": object(&["group", "ids", "duplicate"], json!({
            "group": text("Id of the callback"), "ids": list(text("Id")), "duplicate": {"type": "boolean"},
        }), json!({"group": ID, "ids": [ID], "duplicate": false})),
        "Group": object(&["group", "pending", "done", "dead", "callback"], json!({
            "group": text("Id of the callback"), "pending": number("Messages that have not ended"), "done": number(""),
            "dead": number("Dead, or gone without being done"), "callback": one_of(STATES),
        }), json!({"group": ID, "pending": 0, "done": 2, "dead": 1, "callback": "ready"})),
        "SendRequest": either(reference("Message"), messages, json!([{"payload": "hello"}, {"messages": [{"payload": "a"}]}])),
        "Sent": either(sent, sent_many, json!([{"id": ID, "duplicate": false}])),
        "Backoff": object(&[], json!({
            "kind": one_of(BACKOFF_KINDS),
            "base_ms": number("The first delay; default 1000"),
            "cap_ms": number("The longest delay; default 600000"),
            "jitter_percent": integer(0, 100, "Variation up and down; default 10"),
        }), json!({"kind": "exponential", "base_ms": 1_000, "cap_ms": 600_000, "jitter_percent": 10})),
    })
}

/// Optional fields of a message to send.
fn send_options() -> Value {
    let key = |means: &str| json!({"type": "string", "minLength": 1, "maxLength": KEY_BYTES_MAX, "description": means});
    json!({
        "ordering_key": key("First in, first out among messages with this key, and one in flight"),
        "fair_key": key("Messages of different keys are served in turn"),
        "limit_key": key("Counts against the queue's limit per key"),
        "unique": object(&["key"], json!({
            "key": key("At most one message with this key"),
            "window_ms": integer(1, WINDOW_MS_MAX, "How long it counts at most; default one day"),
            "until": one_of(UNTIL),
            "on_duplicate": one_of(ON_DUPLICATE),
        }), json!({"key": "invoice-7", "window_ms": 60_000})),
        "ttl_ms": integer(1, DELAY_MS_MAX, "Ends after so long if it still waits"),
        "expires_at_ms": number("Ends at this time if it still waits; not together with ttl_ms"),
        "result_ttl_ms": integer(0, WINDOW_MS_MAX, "How long the result of its ack is kept; default: not at all"),
        "correlation_id": key("Handed through to the reply"),
        "reply_to": text("Queue that gets its result as a message"),
        "hold": {"type": "boolean", "description": "Wait for approval first"},
        "depends_on": {
            "type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": PARENTS_MAX,
            "description": "Ids of messages that it waits for; \"#0\" is the first one of this send",
        },
        "depends_mode": one_of(DEPENDS_MODES),
        "on_parent_failed": one_of(ON_PARENT_FAILED),
    })
}

fn receiving() -> Value {
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

fn result_fields() -> Value {
    json!({
        "result": text("What the work gave, up to 256 KiB"),
        "result_base64": text("The same as standard base64; one of the two"),
        "result_content_type": text("Kept with the result"),
    })
}

fn checkpoint_fields() -> Value {
    json!({
        "checkpoint": text("What the next attempt can go on from, up to 256 KiB"),
        "checkpoint_base64": text("The same as standard base64; one of the two"),
    })
}

/// What a sender gave for the reply.
fn request_fields() -> Value {
    json!({"correlation_id": text("As sent"), "reply_to": text("Queue that gets the result")})
}

/// What is told of a message's result.
fn result_views() -> Value {
    merged(
        result_fields(),
        json!({
            "done_at_ms": number("When it was acked"),
            "kept_until_ms": number("Until when it is kept, if that is known"),
            "progress": reference("Progress"),
        }),
    )
}

fn settling() -> Value {
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

/// An object of numbers.
fn numbers(names: &[&str]) -> Value {
    let properties: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), number(""))).collect();
    let example: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), json!(0))).collect();
    object(names, Value::Object(properties), Value::Object(example))
}

fn queues() -> Value {
    let totals = [
        "sent",
        "delivered",
        "acked",
        "nacked",
        "released",
        "rejected",
        "expired",
        "died",
        "redriven",
        "dropped",
        "replies_lost",
        "cancelled",
        "moved_in",
        "moved_out",
    ];
    let zeros = |names: &[&str]| numbers(names)["examples"][0].clone();
    let fields = Value::Object(settings_schemas());
    let settings = default_settings();
    let example = json!({
        "name": "mail", "namespace": "default", "settings": settings, "counts": zeros(STATES),
        "totals": zeros(&totals), "bytes": 0, "created_at_ms": AT_MS,
    });
    let count = |name: &str| object(&[name], json!({name: number("Messages")}), json!({name: 13}));
    json!({
        "QueueSettings": object(&settings_always_shown(), fields.clone(), settings.clone()),
        "QueueSettingsPatch": object(&[], fields, json!({"lease_ms": 60_000})),
        "Counts": numbers(STATES),
        "Totals": numbers(&totals),
        "Queue": object(&["name", "namespace", "settings", "counts", "totals", "bytes", "created_at_ms"], json!({
            "name": text(""), "namespace": text(""), "settings": reference("QueueSettings"),
            "counts": reference("Counts"),
            "blocked_by": object(&[], json!({"ordering_key": number(""), "limit": number(""), "parents": number("")}), json!({"ordering_key": 3, "limit": 0})),
            "totals": reference("Totals"),
            "bytes": number("Content types, headers and payloads"), "created_at_ms": number(""),
            "redriving": object(&["left", "per_second"], json!({"left": number("Dead letters yet to be redriven"), "per_second": number("")}), json!({"left": 120, "per_second": 50})),
            "oldest_ready_age_ms": number("Since the message next in line was sent; absent when none is ready"),
        }), example.clone()),
        "QueueList": object(&["queues"], json!({"queues": list(reference("Queue")), "next": text("Go on after this name")}),
            json!({"queues": [example], "next": "mail"})),
        "Deleted": count("deleted"),
        "Purged": count("purged"),
        "Redriven": count("redriven"),
        "Left": count("left"),
        "QueueDefaults": object(&["pattern", "settings"], json!({"pattern": text("A name in which * stands for any number of characters"), "settings": reference("QueueSettingsPatch")}),
            json!({"pattern": "mail.*", "settings": {"lease_ms": 60_000}})),
        "QueueDefaultsList": object(&["defaults"], json!({"defaults": list(reference("QueueDefaults")), "next": text("Go on after this pattern")}),
            json!({"defaults": [{"pattern": "mail.*", "settings": {"lease_ms": 60_000}}]})),
    })
}

fn schedules() -> Value {
    let when = json!({
        "cron": text("Five fields, six with seconds first, or a word such as @daily"),
        "time_zone": text("Of cron; default UTC"),
        "every_ms": integer(EVERY_MS_MIN, DELAY_MS_MAX, "Each time that so long has passed"),
        "missed": one_of(&MISSED), "queue": text("Where it sends to"),
    });
    let figures = json!({
        "name": text(""), "paused": {"type": "boolean"},
        "next_at_ms": number("When it fires next; absent when it does not"),
        "fired": number("Times at which it sent"), "duplicates": number("Times at which its unique key was taken"),
        "refused": number("Times at which its message was refused"), "last_at_ms": number("The latest time"),
        "last_id": text("Id of the latest message"), "last_error": text("Code of the latest refusal"),
        "created_at_ms": number(""),
    });
    let schedule = merged(when.clone(), figures);
    let example = json!({
        "name": "nightly", "cron": "0 3 * * *", "time_zone": "Europe/Berlin", "missed": "once", "queue": "reports",
        "paused": false, "next_at_ms": AT_MS, "fired": 12, "duplicates": 0, "refused": 0, "created_at_ms": AT_MS - 9_000,
    });
    let put = json!({"cron": "0 3 * * *", "time_zone": "Europe/Berlin", "queue": "reports", "message": {"payload": "{}"}});
    let message = json!({"message": reference("Message")});
    let required = ["name", "queue", "paused", "fired", "duplicates", "refused", "created_at_ms"];
    json!({
        "SchedulePut": object(&["queue", "message"], merged(when, message.clone()), put),
        "Schedule": object(&required, schedule.clone(), example.clone()),
        "ScheduleWithMessage": object(&[&required[..], &["message"]].concat(), merged(schedule, message),
            merged(example.clone(), json!({"message": {"payload": "{}"}}))),
        "ScheduleList": object(&["schedules"], json!({"schedules": list(reference("Schedule")), "next": text("Go on after this name")}),
            json!({"schedules": [example]})),
        "ScheduleNext": object(&["next_at_ms"], json!({"next_at_ms": list(number(""))}), json!({"next_at_ms": [AT_MS]})),
        "ScheduleSent": object(&["id", "duplicate"], json!({
            "id": text("Of the message"), "duplicate": {"type": "boolean", "description": "Whether it was there with the same unique key"},
        }), json!({"id": ID, "duplicate": false})),
    })
}

fn limits() -> Value {
    let rules = json!({
        "in_flight": integer(1, IN_FLIGHT_MAX.into(), "Leased messages of all queues that follow the limit"),
        "in_flight_per_key": integer(1, IN_FLIGHT_MAX.into(), "Leased messages of each limit key"),
        "rate": reference("Rate"), "rate_per_key": reference("Rate"),
    });
    let example = json!({"in_flight": 100, "rate_per_key": {"count": 50, "period_ms": 1_000, "burst": 10}});
    let next = number("When its rate lets the next one begin; absent when it does now");
    let figures = json!({
        "in_flight": number("Leased messages"), "waiting": number("Messages that it holds back"), "next_at_ms": next,
    });
    let limit = merged(
        figures.clone(),
        json!({
            "name": text(""), "settings": reference("LimitSettings"), "queues": list(text("Queues that follow it")),
        }),
    );
    let limit_example =
        json!({"name": "shop", "settings": example, "queues": ["mail"], "in_flight": 100, "waiting": 12});
    let key = json!({"key": "ann", "in_flight": 2, "waiting": 12, "next_at_ms": AT_MS});
    let required = ["name", "settings", "queues", "in_flight", "waiting"];
    json!({
        "Rate": object(&["count", "period_ms"], json!({
            "count": integer(1, RATE_COUNT_MAX.into(), "Deliveries in each period"),
            "period_ms": integer(1, RATE_PERIOD_MS_MAX, "The period"),
            "burst": integer(1, RATE_COUNT_MAX.into(), "Deliveries at once after a time without any; default: count"),
        }), json!({"count": 50, "period_ms": 1_000, "burst": 10})),
        "LimitSettings": object(&[], rules, example),
        "Limit": object(&required, limit.clone(), limit_example.clone()),
        "LimitKey": object(&["key", "in_flight", "waiting"], merged(figures, json!({"key": text("As sent")})), key.clone()),
        "LimitWithKeys": object(&[&required[..], &["keys"]].concat(), merged(limit, json!({
            "keys": list(reference("LimitKey")), "next": text("Cursor of the next page"),
        })), merged(limit_example.clone(), json!({"keys": [key]}))),
        "LimitList": object(&["limits"], json!({"limits": list(reference("Limit")), "next": text("Go on after this name")}),
            json!({"limits": [limit_example]})),
    })
}

fn looking() -> Value {
    let stored = json!({
        "id": text(""), "queue": text(""), "state": one_of(STATES), "priority": number(""),
        "attempts": number("Begun"), "max_attempts": number(""), "deliveries": number(""), "sent_at_ms": number(""),
        "deadline_ms": number("Delayed: ready then. Leased: the lease ends then"),
        "receipt": text("Leased: proof of the running delivery, for operators"),
        "ordering_key": text("As sent"), "fair_key": text("As sent"), "limit_key": text("As sent"),
        "unique_key": text("As sent"), "expires_at_ms": number("It ends then if it still waits"),
        "blocked_by": one_of(&["ordering_key", "limit", "parents"]),
        "cancelled": {"const": true, "description": "Leased: gone when the lease ends"},
        "version": text("Another one after each change"), "changes": changing::changes(),
        "reason": text("Why it is dead or held, or why it died in from_queue"), "reason_at_ms": number(""),
        "from_queue": text("The queue in which it died, if that was another one"),
        "backoff": reference("Backoff"), "size_bytes": number("Content type, headers and payload"),
        "history": list(reference("Attempt")),
    });
    let fields = [
        "id",
        "queue",
        "state",
        "priority",
        "attempts",
        "max_attempts",
        "deliveries",
        "sent_at_ms",
        "version",
        "backoff",
        "size_bytes",
        "history",
    ];
    let attempt = json!({"attempt": 1, "end": "nacked", "started_at_ms": AT_MS, "ended_at_ms": AT_MS + 1_200, "error": "smtp: 451"});
    let example = json!({
        "id": ID, "queue": "mail", "state": "dead", "priority": 0, "attempts": 5, "max_attempts": 5, "deliveries": 5,
        "sent_at_ms": AT_MS, "reason": "max_attempts", "reason_at_ms": AT_MS + 9_000, "version": "00a3f19b2c4d5e6f", "backoff": {"kind": "none"},
        "payload": "hello", "size_bytes": 7, "history": [attempt],
    });
    json!({
        "Attempt": object(&["attempt", "end", "started_at_ms", "ended_at_ms"], json!({
            "attempt": number("From 1"), "end": one_of(&["nacked", "released", "rejected", "expired"]),
            "started_at_ms": number(""), "ended_at_ms": number(""), "error": text("As the consumer gave it"),
        }), attempt),
        "StoredMessage": object(&fields, merged(payload_fields(),
            merged(stored, merged(result_views(), merged(request_fields(), checkpoint_fields())))), example.clone()),
        "Progress": object(&["percent", "at_ms"], json!({
            "percent": integer(0, 100, ""), "note": text("As its holder gave it"), "at_ms": number(""),
        }), json!({"percent": 40, "note": "two of five", "at_ms": AT_MS})),
        "Awaited": object(&["state"], merged(result_views(), json!({
            "state": one_of(RESULT_STATES), "reason": text("Why it is dead"), "reason_at_ms": number(""),
        })), json!({"state": "done", "result": "42", "done_at_ms": AT_MS, "kept_until_ms": AT_MS + 60_000})),
        "MessageList": object(&["messages"], json!({"messages": list(reference("StoredMessage")), "next": text("Cursor of the next page")}),
            json!({"messages": [example], "next": "17"})),
        "PeekList": object(&["messages"], json!({"messages": list(reference("StoredMessage")), "truncated": {"type": "boolean", "description": "Whether there are fewer than asked for because they are large"}}),
            json!({"messages": [example]})),
        "DeadChoice": either(
            object(&["ids"], json!({"ids": list(text("Id"))}), json!({"ids": [ID]})),
            object(&["all"], json!({"all": {"const": true}}), json!({"all": true})),
            json!([{"ids": [ID]}, {"all": true}]),
        ),
        "RedriveRequest": either(
            object(&["ids"], json!({"ids": list(text("Id"))}), json!({"ids": [ID]})),
            object(&["all"], json!({
                "all": {"const": true},
                "per_second": integer(1, REDRIVE_PER_SECOND_MAX.into(), "How many per second; default: at once"),
            }), json!({"all": true, "per_second": 50})),
            json!([{"ids": [ID]}, {"all": true, "per_second": 50}]),
        ),
    })
}

fn namespaces() -> Value {
    let quotas = json!({
        "queues": number("0: no quota"), "messages": number("0: no quota"), "bytes": number("0: no quota"),
    });
    let example = json!({
        "name": "shop", "shard": 0, "quotas": {"queues": 100, "messages": 1_000_000, "bytes": 0},
        "queues": 3, "messages": 1_200, "bytes": 340_000, "created_at_ms": AT_MS,
    });
    let patch = json!({"quotas": reference("Quotas")});
    let shard = json!({"shard": number("Where a new namespace lives; default: the server chooses")});
    json!({
        "Quotas": object(&[], quotas, json!({"messages": 1_000_000})),
        "Namespace": object(&["name", "shard", "quotas", "queues", "messages", "bytes", "created_at_ms"], json!({
            "name": text(""), "shard": number(""), "quotas": reference("Quotas"), "queues": number(""),
            "messages": number(""), "bytes": number(""), "created_at_ms": number(""),
        }), example.clone()),
        "NamespaceList": object(&["namespaces"], json!({"namespaces": list(reference("Namespace"))}), json!({"namespaces": [example]})),
        "NamespacePut": object(&[], merged(patch.clone(), shard), json!({"quotas": {"queues": 100}})),
        "NamespacePatch": object(&[], patch, json!({"quotas": {"queues": 100}})),
        "Nothing": object(&[], json!({}), json!({})),
    })
}

fn server() -> Value {
    let error = json!({"code": "queue_not_found", "message": "queue \"mial\" does not exist", "details": {"queue": "mial"}});
    let status = json!({
        "version": text(""), "started_at_ms": number(""), "uptime_ms": number(""), "durability": text(""),
        "ready": {"type": "boolean"}, "shards": list(json!({"type": "object"})),
    });
    json!({
        "ErrorBody": object(&["code", "message", "details"], json!({
            "code": one_of(&crate::codes::TABLE.iter().map(|row| row.code).collect::<Vec<_>>()),
            "message": text("For people"), "details": {"type": "object"},
        }), error.clone()),
        "Error": object(&["error"], json!({"error": reference("ErrorBody")}), json!({"error": error})),
        "Status": object(&["version", "started_at_ms", "uptime_ms", "durability", "ready", "shards"], status,
            json!({"version": "0.1.0", "started_at_ms": AT_MS, "uptime_ms": 5, "durability": "always", "ready": true, "shards": []})),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{dead, extend, limits, namespaces, receive, schedules, send, settings, settle};

    /// Fields of a schema, those of all its alternatives together.
    fn fields(schemas: &Map<String, Value>, schema: &Value) -> Vec<String> {
        if let Some(name) = schema["$ref"].as_str() {
            return fields(schemas, &schemas[name.rsplit('/').next().unwrap()]);
        }
        if let Some(alternatives) = schema["oneOf"].as_array() {
            return alternatives.iter().flat_map(|one| fields(schemas, one)).collect();
        }
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn requests_have_the_fields_that_the_readers_take() {
        let schemas = all();
        for (name, known) in [
            ("Message", send::MESSAGE_FIELDS),
            ("GroupRequest", send::GROUP_FIELDS),
            ("GroupMessage", send::GROUP_MESSAGE_FIELDS),
            ("Backoff", settings::BACKOFF_FIELDS),
            ("QueueSettingsPatch", settings::SETTINGS_FIELDS),
            ("Quotas", settings::QUOTA_FIELDS),
            ("SchedulePut", schedules::SCHEDULE_FIELDS),
            ("LimitSettings", limits::LIMIT_FIELDS),
            ("Rate", limits::RATE_FIELDS),
            ("ReceiveRequest", receive::RECEIVE_FIELDS),
            ("ReceiveManyRequest", receive::RECEIVE_MANY_FIELDS),
            ("AckRequest", settle::ACK_FIELDS),
            ("NackRequest", settle::NACK_FIELDS),
            ("ReleaseRequest", settle::RELEASE_FIELDS),
            ("RejectRequest", settle::REJECT_FIELDS),
            ("SettleRequest", settle::SETTLE_FIELDS),
            ("ExtendRequest", extend::EXTEND_FIELDS),
            ("DeadChoice", dead::CHOICE_FIELDS),
            ("RedriveRequest", dead::REDRIVE_FIELDS),
            ("NamespacePut", namespaces::PUT_FIELDS),
            ("NamespacePatch", namespaces::PATCH_FIELDS),
        ] {
            let mut described = fields(&schemas, &schemas[name]);
            described.sort_unstable();
            described.dedup();
            let mut known = known.to_vec();
            known.sort_unstable();
            assert_eq!(described, known, "{name}");
        }
        let items = |name: &str| fields(&schemas, &schemas[name]["properties"]["items"]["items"]);
        assert_eq!(items("SettleRequest").len(), settle::SETTLE_ITEM_FIELDS.len());
    }
}
