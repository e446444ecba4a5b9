//! Calls of tools: from arguments to a request of the API.

use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};
use sluice_calls::Operation;
use sluice_client::{AnyCall, Client, ClientError};

use super::answer::{bounded, refusal, told};
use super::tools::{MESSAGES_MAX, McpTool, NAMESPACE};

/// Longest wait of a call, in milliseconds: clients give up calls that last for longer.
const WAIT_MS_MAX: u64 = 60_000;
/// Error code of a message that a person has to approve.
const APPROVAL_NEEDED: &str = "approval_needed";

/// A request of the API.
#[derive(Debug, PartialEq)]
pub(super) struct Asked {
    namespace: Option<String>,
    /// Value of the name in the path.
    named: Option<String>,
    query: Vec<(String, String)>,
    body: Option<Value>,
    wait: Duration,
}

impl Asked {
    /// True if it may last, without work for anybody.
    pub(super) fn waits(&self) -> bool {
        !self.wait.is_zero()
    }

    /// Lets the message that is sent wait for a person.
    fn hold(&mut self) {
        if let Some(body) = &mut self.body {
            body["hold"] = json!(true);
        }
    }

    /// True if it does.
    fn is_held(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body["hold"] == true)
    }

    /// True if a repeat adds a cost once more: an extend does, while what settles a receipt adds its cost
    /// once.
    fn adds_cost_each_time(&self, tool: &McpTool) -> bool {
        let cost = self.body.as_ref().and_then(|body| body.get("add_cost"));
        tool.operation == Operation::Extend && cost.is_some_and(|cost| *cost != json!(0))
    }
}

/// Reads the arguments of a tool.
///
/// # Errors
/// The error for the agent, as of [`call`].
pub(super) fn asked(tool: &McpTool, arguments: JsonObject) -> Result<Asked, Value> {
    read(tool, arguments).map_err(|message| refusal("invalid_argument", &message))
}

/// Calls a tool.
///
/// # Errors
/// The error for the agent: `{"error":{"code","message","details"}}`.
pub(super) async fn call(client: &Client, tool: &McpTool, mut asked: Asked) -> Result<Value, Value> {
    let client = match &asked.namespace {
        Some(namespace) => client.in_namespace(namespace),
        None => client.clone(),
    };
    let is_send = tool.operation == Operation::Send;
    let key = is_send.then(|| client.idempotency_key());
    let mut answer = run(&client, tool, &asked, key.as_deref()).await;
    if is_send && answer.as_ref().is_err_and(|error| error.code() == Some(APPROVAL_NEEDED)) {
        asked.hold();
        let key = client.idempotency_key();
        answer = run(&client, tool, &asked, Some(&key)).await;
    }
    let answer = answer.map_err(|error| told(&error))?;
    bounded(tool, if is_send && asked.is_held() { waiting_for_approval(answer) } else { answer })
}

async fn run(
    client: &Client,
    tool: &McpTool,
    asked: &Asked,
    key: Option<&str>,
) -> Result<Value, ClientError> {
    let http = tool.operation.http();
    let named = asked.named.as_deref().unwrap_or_default();
    let segments: Vec<&str> =
        http.segments.iter().map(|segment| if segment.starts_with('{') { named } else { *segment }).collect();
    let call = AnyCall {
        method: http.method.as_str(),
        segments: &segments,
        in_namespace: tool.in_namespace(),
        query: &asked.query,
        body: asked.body.as_ref(),
        key,
        repeatable: key.is_some() || (tool.is_repeatable() && !asked.adds_cost_each_time(tool)),
        wait: asked.wait,
    };
    client.any(&call).await
}

/// Notes in the answer to a send that a person has to approve the message. A duplicate is none: of the
/// message that was there before, nothing is known here.
fn waiting_for_approval(mut sent: Value) -> Value {
    if sent["duplicate"] == true {
        return sent;
    }
    let id = sent["id"].as_str().unwrap_or_default().to_owned();
    sent["held"] = json!(true);
    sent["waits_for"] = json!(format!(
        "a person's approval: they run `sluice message approve {id}`, or approve it in the console. It is delivered \
         only then; result_show with this id tells what has become of it"
    ));
    sent
}

/// Reads the arguments of a tool.
fn read(tool: &McpTool, arguments: JsonObject) -> Result<Asked, String> {
    let mut asked =
        Asked { namespace: None, named: None, query: Vec::new(), body: None, wait: Duration::ZERO };
    let mut body = Map::new();
    let defaults = tool.defaults().into_iter().filter(|(name, _)| !arguments.contains_key(*name));
    let given: Vec<(String, Value)> =
        defaults.map(|(name, value)| (name.to_owned(), json!(value))).chain(arguments.clone()).collect();
    for (name, value) in given {
        if name == "wait_ms" {
            asked.wait = wait_of(tool, &value)?;
        }
        if tool.operation == Operation::Receive
            && name == "max"
            && value.as_u64().is_some_and(|max| max > MESSAGES_MAX)
        {
            return Err(format!("max: expected at most {MESSAGES_MAX}, got {value}: receive again for more"));
        }
        if Some(name.as_str()) == tool.in_path() {
            asked.named = Some(name_of(&name, &value)?);
        } else if tool.in_query.contains(&name) {
            asked.query.push((name.clone(), plain(&name, &value)?));
        } else if tool.in_body.as_ref().is_some_and(|names| names.contains(&name)) {
            body.insert(name, value);
        } else if name == NAMESPACE && tool.in_namespace() {
            asked.namespace = Some(name_of(&name, &value)?);
        } else {
            return Err(unknown(tool, &name));
        }
    }
    if let Some(missing) = tool.required.iter().find(|name| !arguments.contains_key(*name)) {
        return Err(format!("{missing} is missing, which {} needs", tool.listed.name));
    }
    asked.body = tool.in_body.as_ref().map(|_| Value::Object(body));
    Ok(asked)
}

/// The wait that a call asks for.
fn wait_of(tool: &McpTool, value: &Value) -> Result<Duration, String> {
    match value.as_u64() {
        Some(ms) if ms > WAIT_MS_MAX => {
            Err(format!("wait_ms: expected at most {WAIT_MS_MAX}, got {ms}: call again to wait on"))
        }
        Some(ms) => Ok(Duration::from_millis(ms)),
        // In a query a text may be a number for the server.
        None if tool.in_query.contains("wait_ms") => {
            Err(format!("wait_ms: expected a number of milliseconds, got {}", shown(value)))
        }
        // In a body the server tells it.
        None => Ok(Duration::ZERO),
    }
}

/// A name, which is not empty.
fn name_of(name: &str, value: &Value) -> Result<String, String> {
    let text = value.as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned)
        .ok_or_else(|| format!("{name}: expected a text that is not empty, got {}", shown(value)))
}

/// A value as it stands in a query.
fn plain(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(format!("{name}: expected a text, a number or a truth value, got {}", shown(value))),
    }
}

fn unknown(tool: &McpTool, name: &str) -> String {
    let mut known: Vec<&str> = tool.in_path().into_iter().collect();
    known.extend(tool.in_query.iter().chain(tool.in_body.iter().flatten()).map(String::as_str));
    known.extend(tool.in_namespace().then_some(NAMESPACE));
    let shown: String = name.chars().take(60).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    format!("{shown:?} is no argument of {}, which has {known}", tool.listed.name)
}

/// The beginning of a value, for errors.
fn shown(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> McpTool {
        let tools = super::super::tools::all(&sluice_front::http::openapi("0"));
        tools.into_iter().find(|tool| tool.listed.name == name).unwrap()
    }

    fn asked(name: &str, arguments: Value) -> Result<Asked, String> {
        read(&tool(name), arguments.as_object().unwrap().clone())
    }

    #[test]
    fn arguments_go_where_the_api_has_them() {
        let sent = asked("send", json!({"queue": "jobs", "payload": "a", "namespace": "shop"})).unwrap();
        assert_eq!((sent.named.as_deref(), sent.namespace.as_deref()), (Some("jobs"), Some("shop")));
        assert_eq!(sent.body, Some(json!({"payload": "a"})));
        let taken = asked("receive", json!({"queue": "jobs", "wait_ms": 5_000})).unwrap();
        assert_eq!(taken.body, Some(json!({"lease_ms": 900_000, "wait_ms": 5_000})));
        assert_eq!(taken.wait, Duration::from_secs(5));
        let own = asked("receive", json!({"queue": "jobs", "lease_ms": 7})).unwrap();
        assert_eq!(own.body, Some(json!({"lease_ms": 7})));
        let listed = asked("queue_list", json!({"prefix": "a&b", "stale": true})).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(listed.query, [pair("limit", "50"), pair("prefix", "a&b"), pair("stale", "true")]);
        assert_eq!(listed.body, None);
    }

    #[test]
    fn no_cost_is_added_twice_by_a_repeat() {
        for (name, arguments, adds) in [
            ("extend", json!({"receipt": "r", "add_cost": 5}), true),
            ("extend", json!({"receipt": "r", "add_cost": 0}), false),
            ("extend", json!({"receipt": "r"}), false),
            ("ack", json!({"receipt": "r", "add_cost": 5}), false),
        ] {
            let told = asked(name, arguments.clone()).unwrap().adds_cost_each_time(&tool(name));
            assert_eq!(told, adds, "{name} {arguments}");
        }
    }

    #[test]
    fn arguments_that_are_wrong_are_told_with_what_would_be_right() {
        for (name, arguments, told) in [
            ("send", json!({"payload": "a"}), "queue is missing"),
            (
                "send",
                json!({"queue": "", "payload": "a"}),
                "queue: expected a text that is not empty, got \"\"",
            ),
            ("send", json!({"queue": 7}), "queue: expected a text that is not empty, got 7"),
            (
                "send",
                json!({"queue": "q", "messages": []}),
                "\"messages\" is no argument of send, which has queue",
            ),
            ("receive", json!({"queue": "q", "transaction": "t"}), "is no argument of receive"),
            ("receive", json!({"queue": "q", "wait_ms": 60_001}), "expected at most 60000, got 60001"),
            (
                "result_show",
                json!({"id": "7", "wait_ms": "60000"}),
                "wait_ms: expected a number of milliseconds, got \"60000\"",
            ),
            ("receive", json!({"queue": "q", "max": 17}), "max: expected at most 16, got 17"),
            ("queue_list", json!({"prefix": ["a"]}), "prefix: expected a text, a number or a truth value"),
            ("whoami", json!({"namespace": "shop"}), "is no argument of whoami, which has none"),
            ("ack", json!({"namespace": null, "receipt": "r"}), "namespace: expected a text"),
        ] {
            let error = asked(name, arguments).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        let long = "x".repeat(1 << 20);
        assert!(asked("ack", json!({"receipt": "r", long.as_str(): 1})).unwrap_err().len() < 1_000);
    }

    #[test]
    fn a_proposal_is_answered_with_what_it_waits_for() {
        let told = waiting_for_approval(json!({"id": "0007", "duplicate": false}));
        assert_eq!((&told["id"], &told["held"]), (&json!("0007"), &json!(true)));
        assert!(told["waits_for"].as_str().unwrap().contains("sluice message approve 0007"), "{told}");
        let duplicate = json!({"id": "0007", "duplicate": true});
        assert_eq!(waiting_for_approval(duplicate.clone()), duplicate);
    }
}
