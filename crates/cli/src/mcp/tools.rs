//! The tools: operations of the API, each with what an agent has to know about it.
//!
//! Name, arguments and their schemas are those of the API's description, so that nothing is said twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use sluice_calls::Operation;
use sluice_calls::operation::{Method, Scope, Trait};

use super::schema;

/// Longest lease that a receive takes if its caller names none, in milliseconds: an agent thinks for longer
/// than a program runs, and extends it.
const LEASE_MS: u64 = 900_000;
/// Most messages of a receive, so that an answer fits into the context of an agent.
pub(super) const MESSAGES_MAX: u64 = 16;
/// Most entries of a page if its caller names no number.
const PAGE_ENTRIES: u64 = 50;

/// An operation that is a tool.
struct Row {
    operation: Operation,
    /// True: it destroys something, or gives it up.
    destroys: bool,
    /// Remark for agents, behind the operation's own description; may be empty.
    note: &'static str,
}

/// Summaries of tools that do less than their operations: one message, one receipt.
const SUMMARIES: &[(Operation, &str)] = &[
    (Operation::Send, "Send a message"),
    (Operation::Extend, "Extend the lease of a message"),
    (Operation::Ack, "Ack a message: its work is done"),
    (Operation::Nack, "Nack a message: the attempt has failed, and is made again later"),
    (Operation::Release, "Release a message: it is ready again, and no attempt counts"),
    (Operation::Reject, "Reject a message: it becomes a dead letter"),
];

/// Descriptions of arguments, where tools have other bounds and defaults than their operations.
const ARGUMENTS: &[(Operation, &str, &str)] = &[
    (Operation::Send, "depends_on", "Ids of messages that it waits for."),
    (Operation::Receive, "max", "Maximum number of messages; default 1."),
    (
        Operation::Receive,
        "lease_ms",
        "The leases of the messages, in milliseconds; default 900000, 15 minutes.",
    ),
];

const fn row(operation: Operation, note: &'static str) -> Row {
    Row { operation, destroys: false, note }
}

const fn destroying(operation: Operation, note: &'static str) -> Row {
    Row { operation, destroys: true, note }
}

/// All tools, in the order in which they are listed.
const ROWS: &[Row] = &[
    row(Operation::WhoAmI, "Look here first when something is forbidden."),
    row(
        Operation::Send,
        "Where a person has to approve the message it is held, and the answer says so; result_show tells what has \
         become of it. A result_ttl_ms keeps the result for you.",
    ),
    row(
        Operation::Receive,
        "The lease ends after lease_ms, by default 15 minutes: extend it before, as often as needed, and then ack, \
         nack, release or reject it with its receipt.",
    ),
    row(
        Operation::Extend,
        "The heartbeat of long work: call it well before the lease ends. lease_lost or cancelled means: stop working \
         on the message.",
    ),
    row(
        Operation::Ack,
        "A result goes to whoever waits for it. add_cost counts what the work has cost against the budget of its \
         limit key.",
    ),
    row(Operation::Nack, "Say in error what went wrong. add_cost counts what the try has cost."),
    row(Operation::Release, ""),
    destroying(Operation::Reject, "Say in error why."),
    row(
        Operation::ResultShow,
        "With wait_ms it waits. pending means not yet: not run, running, or held until a person approves it. dead \
         means failed or denied, with the reason.",
    ),
    row(Operation::QueueList, ""),
    row(Operation::QueueShow, "Its counts: ready, leased, delayed, held, dead."),
    row(
        Operation::MessageList,
        "Takes nothing: to work on messages, receive them. state held lists what waits for approval.",
    ),
    row(Operation::MessagePeek, "Takes nothing: to work on messages, receive them."),
    row(Operation::MessageShow, ""),
    row(
        Operation::MessageSearch,
        "Takes nothing. `where` is a filter; go on with cursor until there is no next.",
    ),
    row(Operation::DeadList, ""),
    row(Operation::LimitShow, "A budget and what is left of it, for each key."),
    row(
        Operation::DocumentShow,
        "Its etag or version is the condition for a write that must not overwrite somebody else's.",
    ),
    row(Operation::DocumentList, ""),
    row(Operation::DocumentQuery, "For JSON documents; `where` is a filter."),
    row(
        Operation::DocumentPut,
        "Replaces the content. Use if_absent, if_version or if_etag, so that nothing is overwritten that you have not \
         seen.",
    ),
    row(Operation::DocumentPatch, "Changes a part, which others' changes of other parts do not disturb."),
    destroying(Operation::DocumentDelete, ""),
    row(
        Operation::LockAcquire,
        "Renew it before ttl_ms is over, and release it when you are done. Keep its token: it proves the lock in \
         writes.",
    ),
    row(Operation::LockRenew, "The heartbeat of a lock. lease_lost means: stop, others may hold it."),
    row(Operation::LockRelease, ""),
    row(Operation::LockShow, ""),
    row(Operation::LockList, ""),
];

/// Fields of bodies that belong to open transactions, which no tool begins.
const NOT_FOR_TOOLS: &[&str] = &["transaction", "transaction_ttl_ms"];
/// Name of the argument that tells the number of entries of a page.
const LIMIT: &str = "limit";
/// Name of the argument that names the namespace.
pub(super) const NAMESPACE: &str = "namespace";

/// A tool with what it takes to call it.
#[derive(Clone, Debug)]
pub(super) struct McpTool {
    pub(super) operation: Operation,
    /// Arguments that stand in the query.
    pub(super) in_query: BTreeSet<String>,
    /// Arguments that stand in the body; `None`: there is no body.
    pub(super) in_body: Option<BTreeSet<String>>,
    pub(super) required: Vec<String>,
    /// Its description for clients.
    pub(super) listed: Tool,
}

impl McpTool {
    /// Name of the argument that is part of the path.
    pub(super) fn in_path(&self) -> Option<&'static str> {
        self.operation.http().captured()
    }

    /// True when it is called in a namespace.
    pub(super) fn in_namespace(&self) -> bool {
        self.operation.scope() == Scope::Namespaced
    }

    /// True when a repeat has no further effect: of reads, of what a receipt or a token names, and of
    /// receives, whose messages come back.
    pub(super) fn is_repeatable(&self) -> bool {
        let names_a_lease = self.operation.is(Trait::Relieves);
        reads(self.operation) || names_a_lease || self.operation == Operation::Receive
    }

    /// Values of arguments that are not given.
    pub(super) fn defaults(&self) -> Vec<(&'static str, u64)> {
        if self.operation == Operation::Receive {
            vec![("lease_ms", LEASE_MS)]
        } else if has_pages(&self.in_query, self.in_body.as_ref()) {
            vec![(LIMIT, PAGE_ENTRIES)]
        } else {
            Vec::new()
        }
    }
}

/// All tools, by the description of the API.
pub(super) fn all(description: &Value) -> Vec<McpTool> {
    ROWS.iter().map(|row| tool(row, description)).collect()
}

fn tool(row: &Row, description: &Value) -> McpTool {
    let operation = row.operation;
    let described = schema::described(operation, description);
    let mut properties = Map::new();
    let mut required: Vec<String> = Vec::new();
    if let Some(name) = operation.http().captured() {
        properties.insert(name.to_owned(), json!({"type": "string"}));
        required.push(name.to_owned());
    }
    let mut in_query = BTreeSet::new();
    // Where the name in the path is that of a parameter, this has its default.
    for parameter in
        described.query.into_iter().filter(|it| Some(it.name.as_str()) != operation.http().captured())
    {
        in_query.insert(parameter.name.clone());
        required.extend(parameter.required.then(|| parameter.name.clone()));
        properties.insert(parameter.name, parameter.schema);
    }
    let in_body = described.body.map(|body| {
        let mut names = BTreeSet::new();
        for (name, schema) in body.properties {
            if !NOT_FOR_TOOLS.contains(&name.as_str()) {
                names.insert(name.clone());
                properties.insert(name, schema);
            }
        }
        required.extend(body.required);
        names
    });
    if operation.scope() == Scope::Namespaced {
        properties.insert(
            NAMESPACE.to_owned(),
            json!({"type": "string", "description": "Default: the agent's own."}),
        );
    }
    describe(operation, &mut properties);
    bound(operation, has_pages(&in_query, in_body.as_ref()), &mut properties);
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if !described.definitions.is_empty() {
        schema["$defs"] = Value::Object(described.definitions);
    }
    let listed = Tool::new(operation.name(), about(row), Arc::new(object(schema)));
    let listed = listed.with_annotations(annotations(row));
    McpTool { operation, in_query, in_body, required, listed }
}

/// Describes what differs from the operation.
fn describe(operation: Operation, properties: &mut JsonObject) {
    for (_, name, words) in ARGUMENTS.iter().filter(|(of, ..)| *of == operation) {
        if let Some(schema) = properties.get_mut(*name) {
            schema["description"] = json!(words);
        }
    }
}

/// Narrows what an agent may ask for, and says what it gets if it does not ask.
fn bound(operation: Operation, has_pages: bool, properties: &mut JsonObject) {
    let mut set = |name: &str, field: &str, value: u64| {
        if let Some(schema) = properties.get_mut(name) {
            schema[field] = json!(value);
        }
    };
    if operation == Operation::Receive {
        set("max", "maximum", MESSAGES_MAX);
        set("lease_ms", "default", LEASE_MS);
    }
    if has_pages {
        set(LIMIT, "default", PAGE_ENTRIES);
        let about = properties.get_mut(LIMIT).and_then(|schema| schema.get_mut("description"));
        if let Some(Value::String(about)) = about
            && let Some(end) = about.find("; default")
        {
            about.truncate(end);
            about.push_str(&format!("; default {PAGE_ENTRIES}."));
        }
    }
}

fn has_pages(in_query: &BTreeSet<String>, in_body: Option<&BTreeSet<String>>) -> bool {
    in_query.contains(LIMIT) || in_body.is_some_and(|names| names.contains(LIMIT))
}

fn about(row: &Row) -> String {
    let operation = row.operation;
    let own = SUMMARIES.iter().find(|(of, _)| *of == operation).map(|(_, summary)| *summary);
    let summary = own.unwrap_or_else(|| operation.summary());
    let parts = [format!("{summary}."), operation.notes(), row.note.to_owned()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn reads(operation: Operation) -> bool {
    operation.http().method == Method::Get || operation == Operation::DocumentQuery
}

fn annotations(row: &Row) -> ToolAnnotations {
    let reads = reads(row.operation);
    let annotations = ToolAnnotations::new().read_only(reads).open_world(false);
    if reads { annotations } else { annotations.destructive(row.destroys) }
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<McpTool> {
        all(&sluice_front::http::openapi("0"))
    }

    fn find(name: &str) -> McpTool {
        tools().into_iter().find(|tool| tool.listed.name == name).unwrap()
    }

    #[test]
    fn no_two_arguments_of_a_tool_have_one_name() {
        for tool in tools() {
            let body: Vec<&String> = tool.in_body.iter().flatten().collect();
            let path = tool.in_path().map(str::to_owned);
            let names: Vec<&String> = tool.in_query.iter().chain(body).chain(&path).collect();
            let different: BTreeSet<&&String> = names.iter().collect();
            assert_eq!(different.len(), names.len(), "{}: {names:?}", tool.listed.name);
            assert!(!names.iter().any(|name| *name == NAMESPACE), "{}", tool.listed.name);
        }
    }

    #[test]
    fn every_reference_of_a_schema_leads_somewhere() {
        for tool in tools() {
            let schema = Value::Object((*tool.listed.input_schema).clone());
            let text = schema.to_string();
            assert!(!text.contains("#/components/"), "{}: {text}", tool.listed.name);
            for reference in text.split("\"$ref\":\"").skip(1) {
                let path = reference.split('"').next().unwrap().trim_start_matches('#');
                assert!(schema.pointer(path).is_some(), "{}: {path}", tool.listed.name);
            }
            assert_eq!(schema["type"], "object");
            for form in ["oneOf", "anyOf", "allOf"] {
                assert!(schema.get(form).is_none(), "{}: models do not take {form}", tool.listed.name);
            }
            for name in &tool.required {
                assert!(schema["properties"].get(name).is_some(), "{}: {name}", tool.listed.name);
            }
        }
    }

    #[test]
    fn arguments_are_those_of_the_api() {
        let send = find("send");
        assert_eq!(send.in_path(), Some("queue"));
        assert_eq!(send.required, ["queue"]);
        assert!(send.in_body.as_ref().unwrap().contains("payload"));
        let receive = find("receive");
        assert!(!receive.in_body.as_ref().unwrap().contains("transaction"));
        assert_eq!(receive.listed.input_schema["properties"]["max"]["maximum"], json!(MESSAGES_MAX));
        assert_eq!(receive.defaults(), [("lease_ms", LEASE_MS)]);
        assert_eq!(find("queue_list").defaults(), [("limit", PAGE_ENTRIES)]);
        assert_eq!(find("document_query").defaults(), [("limit", PAGE_ENTRIES)]);
        assert!(find("limit_show").defaults().is_empty() && find("send").defaults().is_empty());
        assert_eq!(find("ack").required, ["receipt"]);
        assert!(find("document_put").in_body.as_ref().unwrap().contains("if_version"));
        assert!(find("document_delete").in_body.is_none());
    }

    #[test]
    fn descriptions_are_those_of_the_tool() {
        let said = |tool: &str, argument: &str| {
            let schema = find(tool).listed.input_schema;
            schema["properties"][argument]["description"].as_str().unwrap().to_owned()
        };
        for (operation, argument, words) in ARGUMENTS {
            assert_eq!(said(operation.name(), argument), *words);
        }
        assert!(
            said("message_peek", "limit").ends_with("; default 50."),
            "{}",
            said("message_peek", "limit")
        );
        for tool in tools() {
            let about = tool.listed.description.unwrap();
            assert!(!about.contains("or many"), "{}: {about}", tool.listed.name);
            let limit = &tool.listed.input_schema["properties"][LIMIT]["description"];
            let default = limit.as_str().and_then(|about| about.split_once("default "));
            assert!(default.is_none_or(|(_, default)| default == "50."), "{}: {limit}", tool.listed.name);
        }
    }

    #[test]
    fn nothing_that_approves_is_a_tool() {
        for tool in tools() {
            let right = tool.operation.right();
            use sluice_calls::access::Right;
            assert!(!matches!(right, Right::Operate | Right::Admin), "{}", tool.listed.name);
        }
    }

    #[test]
    fn tools_say_whether_they_change_something() {
        let hints = |name: &str| find(name).listed.annotations.unwrap();
        assert_eq!(hints("queue_list").read_only_hint, Some(true));
        assert_eq!(hints("document_query").read_only_hint, Some(true));
        assert_eq!(
            (hints("send").read_only_hint, hints("send").destructive_hint),
            (Some(false), Some(false))
        );
        assert_eq!(hints("document_delete").destructive_hint, Some(true));
        let repeatable = |name: &str| find(name).is_repeatable();
        assert!(
            repeatable("ack") && repeatable("lock_renew") && repeatable("receive") && repeatable("whoami")
        );
        assert!(!repeatable("send") && !repeatable("document_put") && !repeatable("lock_acquire"));
    }
}
