//! The description of the API is true, and its examples work.

use serde_json::Value;

use crate::client::Answer;
use crate::schema::{reference, validate};
use crate::support::Server;

/// Id of a transaction over several namespaces that there is not.
const NO_TRANSACTION: &str = "00000000000000000000";

#[tokio::test]
async fn the_description_is_served_and_its_examples_follow_their_schemas() {
    let server = Server::start().await;
    let api = server.get("/openapi.json").await.json();
    assert_eq!(api["openapi"], "3.1.0");
    let schemas = &api["components"]["schemas"];
    for (name, schema) in schemas.as_object().unwrap() {
        for example in schema["examples"].as_array().into_iter().flatten() {
            validate(&api, &reference(name), example, name).unwrap();
        }
    }
    for (place, operation) in operations(&api) {
        let answers = operation["responses"].as_object().unwrap().values();
        for content in answers.chain([&operation["requestBody"]]) {
            let Some(name) = schema_of(content) else { continue };
            let examples = schemas[name]["examples"].as_array();
            assert!(examples.is_some_and(|all| !all.is_empty()), "{place}: {name} has no example");
        }
    }
}

#[tokio::test]
async fn nothing_that_may_be_left_out_is_null() {
    let server = Server::start().await;
    let api = server.get("/openapi.json").await.json();
    assert_eq!(nulls(&api["components"]["schemas"]), 0);
    for (place, operation) in operations(&api) {
        assert_eq!(nulls(&operation["parameters"]), 0, "{place}");
    }
}

/// The number of types, words and defaults in schemas that are null.
fn nulls(schema: &Value) -> usize {
    match schema {
        Value::Object(fields) => {
            let own = |name: &str| match fields.get(name) {
                Some(Value::Array(all)) => all.iter().filter(|one| one.is_null() || *one == "null").count(),
                one => usize::from(one.is_some_and(|one| one.is_null() || one == "null")),
            };
            own("type") + own("enum") + own("default") + fields.values().map(nulls).sum::<usize>()
        }
        Value::Array(all) => all.iter().map(nulls).sum(),
        _ => 0,
    }
}

/// Each operation with its method and path.
fn operations(api: &Value) -> Vec<(String, &Value)> {
    let mut operations = Vec::new();
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            operations.push((format!("{method} {path}"), operation));
        }
    }
    operations
}

/// The name of the schema that a body refers to, if it is JSON.
fn schema_of(body: &Value) -> Option<&str> {
    body["content"]["application/json"]["schema"]["$ref"].as_str()?.rsplit('/').next()
}

#[tokio::test]
async fn every_route_is_there() {
    let server = Server::start().await;
    let api = server.get("/openapi.json").await.json();
    let mut ids = Vec::new();
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            ids.push(operation["operationId"].as_str().unwrap().to_owned());
            assert_ne!(operation["summary"], "", "{method} {path}");
            assert_ne!(operation["responses"].as_object().unwrap().len(), 0, "{method} {path}");
            let real = path
                .replace("{queue}", "q")
                .replace("{id}", "x")
                .replace("{bulk}", "x")
                .replace("{token}", "x")
                .replace("{namespace}", "default");
            // A stream of events has no end.
            let is_stream = ["/events", "/stream", "/statistics"].iter().any(|end| real.ends_with(end));
            let method = if is_stream { "head" } else { method };
            let answer = server.call(&method.to_uppercase(), &real, "").await;
            let unknown = matches!(answer.status, 404 | 405)
                && matches!(code(&answer).as_str(), "not_found" | "method_not_allowed");
            assert!(!unknown, "{method} {path} is described but not served");
        }
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an operation id is there twice");
}

#[tokio::test]
async fn every_route_refuses_parameters_that_it_does_not_describe() {
    let server = Server::start().await;
    server.send("q", "stays").await;
    let api = server.get("/openapi.json").await.json();
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let real = path.replace("{queue}", "q").replace("{namespace}", "default").replace(['{', '}'], "");
            let answer = server.call(&method.to_uppercase(), &format!("{real}?not_known=1"), "").await;
            assert_eq!((answer.status, code(&answer).as_str()), (400, "unknown_field"), "{method} {real}");
            let described = operation["parameters"].as_array().unwrap().iter();
            let described = described.filter(|parameter| parameter["in"] == "query");
            let known = sorted(described.map(|parameter| &parameter["name"]));
            let details = &answer.json()["error"]["details"];
            assert_eq!(details["field"], "not_known", "{method} {real}");
            assert_eq!(
                sorted(details["allowed"].as_array().into_iter().flatten()),
                known,
                "{method} {real}: {}",
                answer.message()
            );
        }
    }
    let queue = server.get("/v1/queues/q").await.json();
    assert_eq!(queue["counts"]["ready"], 1, "and nothing was done: {queue}");
}

fn sorted<'v>(names: impl Iterator<Item = &'v Value>) -> Vec<&'v str> {
    let mut names: Vec<&str> = names.map(|name| name.as_str().unwrap()).collect();
    names.sort_unstable();
    names
}

/// The code, if the answer is an error as the API has them.
fn code(answer: &Answer) -> String {
    let value: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    value["error"]["code"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_blank_body_is_refused_where_the_description_requires_one() {
    let server = Server::start().await;
    let id = server.send("q", "x").await;
    let api = server.get("/openapi.json").await.json();
    for (place, operation) in operations(&api) {
        let body = &operation["requestBody"];
        if body["content"]["application/json"].is_null() {
            continue;
        }
        let (method, path) = place.split_once(' ').unwrap();
        let real = path.replace("{queue}", "q").replace("{namespace}", "default").replace("{id}", &id);
        let real = real.replace(['{', '}'], "");
        for blank in ["", " \n"] {
            let answer = server.call(&method.to_uppercase(), &real, blank).await;
            let is_required = body["required"].as_bool().unwrap();
            let is_refused = matches!(code(&answer).as_str(), "invalid_json" | "missing_field");
            assert_eq!(is_refused, is_required, "{place}: {}", code(&answer));
        }
    }
}

#[tokio::test]
async fn examples_of_requests_are_taken() {
    let server = Server::start().await;
    let api = server.get("/openapi.json").await.json();
    let examples = |name: &str| api["components"]["schemas"][name]["examples"].as_array().unwrap().clone();
    assert!(server.call("PUT", "/v1/namespaces/n", "{}").await.status < 300);
    server.send("b", "x").await;
    let shown = examples("Delivered").remove(0);
    for (place, operation) in operations(&api) {
        let Some(schema) = schema_of(&operation["requestBody"]) else { continue };
        let (method, path) = place.split_once(' ').unwrap();
        if operation["operationId"].as_str().unwrap().ends_with("_in_namespace") {
            continue;
        }
        for example in examples(schema) {
            // Receives find a message in each queue that they name.
            server.send("a", "x").await;
            let id = server.send("q", "x").await;
            server.send("held", "x").await;
            let held = server.receive("held").await;
            // Receipts and ids of another server are refused: those of this one stand in their place.
            let body = ["receipt", "id"].iter().fold(example.to_string(), |body, name| {
                body.replace(shown[name].as_str().unwrap(), held[name].as_str().unwrap())
            });
            let path = path.replace("{queue}", "q").replace("{namespace}", "n").replace("{id}", &id);
            let path = path.replace("{transaction}", NO_TRANSACTION).replace(['{', '}'], "");
            let answer = server.call(&method.to_uppercase(), &path, &body).await;
            // A request that names what is not there was read nonetheless.
            let is_taken = answer.status < 300 || matches!(answer.status, 404 | 409);
            assert!(is_taken, "{place}: {body}: {}", String::from_utf8_lossy(&answer.body));
        }
    }
    for example in examples("Message") {
        let answer = server.call("POST", "/v1/queues/q/messages", &example.to_string()).await;
        assert!(answer.status < 300, "{}", String::from_utf8_lossy(&answer.body));
    }
}

#[tokio::test]
async fn the_page_needs_nothing_from_outside() {
    let server = Server::start().await;
    let answer = server.get("/docs").await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-security-policy").starts_with("default-src 'none'"));
    let page = String::from_utf8(answer.body.to_vec()).unwrap();
    for outside in ["http://", "https://", "src=\"/", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
}
