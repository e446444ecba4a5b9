//! The contract has the fields of the HTTP API, all of them and no others.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sluice_calls::Operation;

use crate::grpc::methods::{all, operation_of};
use crate::grpc::schema::{Field, Kind, MessageType, schema};
use crate::http::openapi;

/// Operations that gRPC does not have: of messages and queues those that the HTTP API does by other calls as
/// well, and all of neither.
const NOT_HERE: &[Operation] = &[
    // Receive takes one queue as well as many; Settle takes every outcome; any octets are a payload, a
    // result or a content here.
    Operation::Receive,
    Operation::Ack,
    Operation::Nack,
    Operation::Release,
    Operation::Reject,
    Operation::SendRaw,
    Operation::ReceiveRaw,
    Operation::ResultRaw,
    Operation::DocumentPutRaw,
    Operation::DocumentPatchRaw,
    Operation::DocumentRaw,
    Operation::UploadRaw,
    // The server itself.
    Operation::Status,
    Operation::Backup,
    Operation::KeysShow,
    Operation::KeysRotate,
    Operation::ClusterShow,
    Operation::ClusterStatus,
    Operation::ClusterTransfer,
    Operation::ClusterFinalize,
    Operation::ClusterLimits,
    Operation::ClusterLimitsSet,
    Operation::ClusterTokenCreate,
    Operation::ClusterJoin,
    Operation::ClusterAddress,
    Operation::ClusterRemove,
    Operation::TokenList,
    Operation::TokenCreate,
    Operation::TokenRevoke,
    Operation::PolicyShow,
    Operation::PolicyPut,
    Operation::PolicyDelete,
    Operation::Audit,
    Operation::WhoAmI,
    Operation::Statistics,
    Operation::Health,
    Operation::Ready,
    Operation::Metrics,
    Operation::OpenApi,
    Operation::Docs,
];

/// Fields that only one of the calls with their message gives; the media type of checkpoints, which the
/// description of HTTP leaves open; the place of an event, which is no part of its JSON; and the values that
/// an error is about, which that of a bulk has not.
const NOT_EVERYWHERE: &[&str] =
    &["message", "keys", "holds", "next", "checkpoint_content_type", "position", "details"];

/// Calls whose request is only one of the forms that HTTP takes: a list, not one item.
const LISTS_ONLY: &[Operation] = &[Operation::Send, Operation::Extend];

/// Streams of bytes, whose fields HTTP has in headers.
const STREAMS: &[Operation] = &[Operation::AttachmentPutRaw, Operation::AttachmentRaw];

#[test]
fn every_operation_has_its_call() {
    for operation in Operation::ALL {
        assert!(operation.grpc().is_some() != NOT_HERE.contains(operation), "{operation:?}");
    }
    for (name, operation) in all() {
        let path = format!("/sluice.v1.{name}");
        assert!(schema().call(&path).is_some() && operation_of(&path) == Some(operation), "{path}");
    }
}

#[test]
fn every_call_of_the_contract_is_served() {
    for path in schema().calls() {
        assert!(operation_of(path).is_some(), "{path} is not in the table");
    }
}

#[test]
fn requests_and_answers_have_the_same_fields() {
    let api = openapi("test");
    let seen = RefCell::default();
    for (name, operation) in all().filter(|(_, operation)| !STREAMS.contains(operation)) {
        let path = format!("/sluice.v1.{name}");
        let (input, output) = schema().call(&path).unwrap();
        let http = operation.http();
        let described = api["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap());
        let mut described =
            described.map(|(_, one)| one).filter(|one| one["operationId"] == operation.name());
        let described = described.next().unwrap();
        let context = Compared { api: &api, call: name, seen: &seen, is_answer: false };

        let mut request = context.fields(&described["requestBody"]["content"]["application/json"]["schema"]);
        for parameter in described["parameters"].as_array().into_iter().flatten() {
            if parameter["in"] == "query" {
                request.insert(parameter["name"].as_str().unwrap().to_owned(), parameter["schema"].clone());
            }
        }
        let apart = ["namespace", "idempotency_key", "name"];
        let captured = http.captured();
        let is_apart = |field: &str| apart.contains(&field) || captured == Some(field);
        if LISTS_ONLY.contains(&operation) {
            let ours = schema().message(input);
            request.retain(|field, _| ours.by_name(field).is_some());
        }
        context.compare(schema().message(input), &request, is_apart);

        let responses = described["responses"].as_object().unwrap();
        let (_, response) = responses.iter().find(|(status, _)| status.starts_with('2')).unwrap();
        let (_, content) = response["content"].as_object().unwrap().iter().next().unwrap();
        let mut answer = context.fields(&content["schema"]);
        if LISTS_ONLY.contains(&operation) || operation == Operation::Settle {
            let ours = schema().message(output);
            answer.retain(|field, _| ours.by_name(field).is_some());
        }
        let context = Compared { is_answer: true, ..context };
        context.compare(schema().message(output), &answer, |_| false);
    }
    for (message, fields) in seen.take() {
        for field in &schema().message(message).fields {
            let apart = ["namespace", "idempotency_key", "name"];
            let captured = Operation::ALL.iter().filter_map(|one| one.http().captured());
            let is_apart = apart.into_iter().chain(captured).any(|name| name == field.name);
            let is_there = is_apart || fields.contains(&field.name) || NOT_EVERYWHERE.contains(&&*field.name);
            assert!(is_there, "no call has {} of a message with {fields:?}", field.name);
        }
    }
}

/// A comparison with the description of the API, and where it is.
struct Compared<'a> {
    api: &'a Value,
    call: &'a str,
    /// The fields that were seen of each message. One message of the contract may serve several answers, none
    /// of which fills all of it; a request has each field of its message.
    seen: &'a RefCell<BTreeMap<usize, BTreeSet<String>>>,
    is_answer: bool,
}

impl Compared<'_> {
    /// The fields of an object, those of all its alternatives together; base64 counts as what it stands for.
    fn fields(&self, described: &Value) -> BTreeMap<String, Value> {
        let described = self.resolved(described);
        if let Some(alternatives) = described["oneOf"].as_array() {
            return alternatives.iter().flat_map(|one| self.fields(one)).collect();
        }
        let properties = described["properties"].as_object().into_iter().flatten();
        let plain = |name: &str| name.strip_suffix("_base64").unwrap_or(name).to_owned();
        properties.map(|(name, field)| (plain(name), field.clone())).collect()
    }

    fn resolved<'v>(&'v self, described: &'v Value) -> &'v Value {
        match described["$ref"].as_str() {
            Some(name) => &self.api["components"]["schemas"][name.rsplit('/').next().unwrap()],
            None => described,
        }
    }

    fn compare(&self, ours: &MessageType, theirs: &BTreeMap<String, Value>, apart: impl Fn(&str) -> bool) {
        for name in theirs.keys() {
            assert!(ours.by_name(name).is_some(), "{}: {name} is missing in the contract", self.call);
        }
        let place = schema().place(ours);
        self.seen.borrow_mut().entry(place).or_default().extend(theirs.keys().cloned());
        for field in ours.fields.iter().filter(|field| !apart(&field.name)) {
            match theirs.get(&field.name) {
                // The children of a message are messages again.
                Some(_) if matches!(field.kind, Kind::Message(at) if std::ptr::eq(schema().message(at), ours)) =>
                    {}
                Some(theirs) => self.compare_field(field, theirs),
                None if self.is_answer => {}
                None => assert!(NOT_EVERYWHERE.contains(&&*field.name), "{}: no {}", self.call, field.name),
            }
        }
    }

    fn compare_field(&self, field: &Field, theirs: &Value) {
        let Kind::Message(mut at) = field.kind else { return };
        let mut is_list = field.is_list;
        if let Some(inner) = schema().stands_for(at) {
            let Kind::Message(inner_at) = inner.kind else { return };
            (at, is_list) = (inner_at, inner.is_list);
        }
        let theirs = self.resolved(theirs);
        // A queue may be given by its name alone, too: only its object has fields.
        let fields = self.fields(if is_list { &theirs["items"] } else { theirs });
        let call = format!("{}, {}", self.call, field.name);
        Compared { call: &call, ..*self }.compare(schema().message(at), &fields, |_| false);
    }
}
