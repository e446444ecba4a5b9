//! The description of the API is true, and its examples work.

use serde_json::Value;

use crate::client::Answer;
use crate::schema::{reference, validate};
use crate::support::Server;

#[tokio::test]
async fn the_description_is_served_and_its_examples_follow_their_schemas() {
    let server = Server::start().await;
    let api = server.get("/openapi.json").await.json();
    assert_eq!(api["openapi"], "3.1.0");
    for (name, schema) in api["components"]["schemas"].as_object().unwrap() {
        let examples = schema["examples"].as_array().unwrap_or_else(|| panic!("{name} has no example"));
        for example in examples {
            validate(&api, &reference(name), example, name).unwrap();
        }
    }
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
            let method = if real.ends_with("/events") { "head" } else { method };
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
async fn examples_of_requests_are_taken() {
    let server = Server::start().await;
    let api = server.get("/openapi.json").await.json();
    let examples = |name: &str| api["components"]["schemas"][name]["examples"].as_array().unwrap().clone();
    for (method, path, schema) in [
        ("POST", "/v1/queues/q/messages", "SendRequest"),
        ("POST", "/v1/queues/q/messages", "Message"),
        ("PUT", "/v1/queues/q", "QueueSettingsPatch"),
        ("PATCH", "/v1/queues/q", "QueueSettingsPatch"),
        ("PUT", "/v1/namespaces/n", "NamespacePut"),
        ("PATCH", "/v1/namespaces/n", "NamespacePatch"),
        ("POST", "/v1/settle", "SettleRequest"),
    ] {
        for example in examples(schema) {
            let answer = server.call(method, path, &example.to_string()).await;
            assert!(answer.status < 300, "{schema}: {}", String::from_utf8_lossy(&answer.body));
        }
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
