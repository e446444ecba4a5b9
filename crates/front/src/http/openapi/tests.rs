//! The description holds what the calls take: tests hold the decoders that are written by hand to the types.

use serde::de::DeserializeOwned;
use sluice_calls::hot::message::Message;
use sluice_calls::hot::receive::{ReceiveManyRequest, ReceiveRequest};
use sluice_calls::hot::settle::{Outcome, SettleRequest};
use sluice_calls::{Read, groups, schedules, transactions};
use sluice_engine::limits::Limits;

use super::*;
use crate::hot::options::UNIQUE_FIELDS;
use crate::hot::{extend, receive, schedules as put, send, settle, transactions as whole};
use crate::json::Reader;

/// Fields of a schema, those of all its forms together.
fn fields(schemas: &Value, schema: &Value) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return fields(schemas, &schemas[name.rsplit('/').next().unwrap()]);
    }
    if let Some(forms) = schema["oneOf"].as_array() {
        return forms.iter().flat_map(|one| fields(schemas, one)).collect();
    }
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

#[test]
fn requests_have_the_fields_that_the_decoders_take() {
    let schemas = openapi("1")["components"]["schemas"].take();
    for (schema, known) in [
        (&schemas["Message"], send::MESSAGE_FIELDS),
        (&schemas["SendRequest"], send::SEND_FIELDS),
        (&schemas["GroupRequest"], send::GROUP_FIELDS),
        (&schemas["GroupMessage"], send::GROUP_MESSAGE_FIELDS),
        (&schemas["Step"], send::STEP_FIELDS),
        (&schemas["Unique"], UNIQUE_FIELDS),
        (&schemas["SchedulePut"], put::SCHEDULE_FIELDS),
        (&schemas["TransactionRequest"], whole::TRANSACTION_FIELDS),
        (&schemas["TransactionOperation"], whole::OPERATION_FIELDS),
        (&schemas["ReceiveRequest"], receive::RECEIVE_FIELDS),
        (&schemas["ReceiveManyRequest"], receive::RECEIVE_MANY_FIELDS),
        (&schemas["ReceiveManyRequest"]["properties"]["queues"]["items"], receive::WEIGHTED_FIELDS),
        (&schemas["AckRequest"], settle::ACK_FIELDS),
        (&schemas["NackRequest"], settle::NACK_FIELDS),
        (&schemas["ReleaseRequest"], settle::RELEASE_FIELDS),
        (&schemas["RejectRequest"], settle::REJECT_FIELDS),
        (&schemas["SettleRequest"], settle::SETTLE_FIELDS),
        (&schemas["SettleItem"], settle::SETTLE_ITEM_FIELDS),
        (&schemas["ExtendRequest"], extend::EXTEND_FIELDS),
        (&schemas["Extension"], extend::EXTEND_ITEM_FIELDS),
        (&schemas["ProgressReport"], extend::PROGRESS_FIELDS),
    ] {
        let mut described = fields(&schemas, schema);
        described.sort_unstable();
        described.dedup();
        let mut known = known.to_vec();
        known.sort_unstable();
        assert_eq!(described, known, "{schema}");
    }
}

fn examples<'s>(schemas: &'s Value, name: &str) -> impl Iterator<Item = &'s Value> {
    schemas[name]["examples"].as_array().unwrap().iter()
}

#[test]
fn decoders_take_the_examples() {
    let schemas = &openapi("1")["components"]["schemas"];
    let limits = Limits::default();
    let check = |name: &str, decode: &dyn Fn(&[u8]) -> Read<()>| {
        for example in examples(schemas, name) {
            let decoded = decode(example.to_string().as_bytes());
            decoded.unwrap_or_else(|fault| panic!("{name}: {}: {}", fault.field, fault.reason));
        }
    };
    let settle = |name: &str, outcome: Outcome| {
        check(name, &|body| {
            settle::Settlements::read_one_outcome(Reader::new(body)?, outcome, &limits).map(drop)
        });
    };
    let most = limits.receive_messages;
    let receive =
        |body: &[u8]| receive::Terms::read(Reader::new(body)?, receive::RECEIVE_FIELDS, most).map(drop);
    let receive_many = |body: &[u8]| {
        receive::Terms::read(Reader::new(body)?, receive::RECEIVE_MANY_FIELDS, most)?.queues().map(drop)
    };
    check("Message", &|body| send::Batch::read(Reader::new(body)?, &limits).map(drop));
    check("SendRequest", &|body| send::Batch::read(Reader::new(body)?, &limits).map(drop));
    check("GroupRequest", &|body| send::Batch::read_group(Reader::new(body)?, &limits).map(drop));
    check("SchedulePut", &|body| put::Put::read(Reader::new(body)?, &limits).map(drop));
    check("TransactionRequest", &|body| whole::Operations::read(Reader::new(body)?, &limits).map(drop));
    check("ReceiveRequest", &receive);
    check("ReceiveManyRequest", &receive_many);
    settle("AckRequest", Outcome::Ack);
    settle("NackRequest", Outcome::Nack);
    settle("ReleaseRequest", Outcome::Release);
    settle("RejectRequest", Outcome::Reject);
    check("SettleRequest", &|body| settle::Settlements::read_mixed(Reader::new(body)?, &limits).map(drop));
    check("ExtendRequest", &|body| extend::Extensions::read(Reader::new(body)?, &limits).map(drop));
}

#[test]
fn types_take_the_examples() {
    fn check<T: DeserializeOwned>(schemas: &Value, name: &str) {
        for example in examples(schemas, name) {
            let read = serde_json::from_value::<T>(example.clone());
            read.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
    let schemas = &openapi("1")["components"]["schemas"];
    check::<Message>(schemas, "Message");
    check::<groups::Send>(schemas, "GroupRequest");
    check::<schedules::Put>(schemas, "SchedulePut");
    check::<ReceiveRequest>(schemas, "ReceiveRequest");
    check::<ReceiveManyRequest>(schemas, "ReceiveManyRequest");
    check::<transactions::Commit>(schemas, "TransactionRequest");
    check::<SettleRequest>(schemas, "SettleRequest");
}

#[test]
fn every_tag_in_use_is_explained() {
    for operation in Operation::ALL {
        let topic = operation.topic();
        assert!(operations::TAGS.iter().any(|(name, _)| *name == topic), "{operation:?}: {topic}");
    }
}

#[test]
fn values_have_their_bounds_and_words() {
    let schemas = &openapi("1")["components"]["schemas"];
    let tags = json!({
        "type": "array", "maxItems": 16, "uniqueItems": true,
        "items": {"type": "string", "minLength": 1, "maxLength": 128},
    });
    for request in ["FieldsRequest", "BulkRequest"] {
        for (key, value) in tags.as_object().unwrap() {
            assert_eq!(&schemas[request]["properties"]["tags"][key], value, "{request}");
        }
    }
    for (schema, field, key, value) in [
        ("StoredMessage", "priority", "maximum", json!(9)),
        ("StoredMessage", "blocked_by", "enum", json!(["ordering_key", "limit", "parents", "consumer"])),
        ("StoredMessage", "cancelled", "enum", json!([true])),
        ("StoredMessage", "payload_damaged", "enum", json!([true])),
        ("ItemResult", "already_settled", "enum", json!([true])),
        ("Progress", "percent", "maximum", json!(100)),
        ("Awaited", "state", "enum", json!(["done", "dead", "pending"])),
        ("FlowParent", "ended", "enum", json!(["done", "failed"])),
        ("Bulk", "by", "maxLength", json!(256)),
        ("Bulk", "why", "maxLength", json!(4_096)),
        ("BulkError", "code", "enum", schemas["ErrorBody"]["properties"]["code"]["enum"].clone()),
        ("Schedule", "every_ms", "minimum", json!(1_000)),
        ("ScheduledMessage", "max_attempts", "minimum", json!(1)),
        ("ScheduledMessage", "ordering_key", "maxLength", json!(128)),
        ("ScheduledUnique", "key", "minLength", json!(1)),
    ] {
        assert_eq!(schemas[schema]["properties"][field][key], value, "{schema}.{field}");
    }
}

#[test]
fn an_answer_requires_the_field_that_only_it_has() {
    let schemas = &openapi("1")["components"]["schemas"];
    for (list, shown, field) in [
        ("Limit", "LimitShown", "keys"),
        ("Consumer", "ConsumerShown", "holds"),
        ("Schedule", "ScheduleShown", "message"),
        ("Lock", "LockShown", "waiters"),
        ("Token", "TokenMade", "token"),
    ] {
        let requires = |name: &str| schemas[name]["required"].as_array().unwrap().contains(&json!(field));
        assert!(requires(shown) && !requires(list), "{field}");
    }
}

#[test]
fn dead_letters_are_chosen_by_ids_or_all_of_them() {
    let schemas = &openapi("1")["components"]["schemas"];
    for (request, of_all) in [("RedriveRequest", &["all", "per_second"][..]), ("DeadDeleteRequest", &["all"])]
    {
        let [ids, all] = schemas[request]["oneOf"].as_array().unwrap().as_slice() else {
            panic!("{request}")
        };
        assert_eq!((&ids["required"], fields(schemas, ids)), (&json!(["ids"]), vec!["ids".to_owned()]));
        assert_eq!(
            (&all["required"], fields(schemas, all)),
            (&json!(["all"]), of_all.iter().map(|name| (*name).to_owned()).collect())
        );
        assert_eq!(all["properties"]["all"]["enum"], json!([true]));
    }
}
