//! Bad input over the wire: each mistake has its status and code, and says where it is.

use serde_json::{Value, json};
use sluice_front::http::Hosts;

use crate::client::{Bare, request};
use crate::support::Server;

/// A call, and its answer: method, path, body, status, code, and a part of the message.
type Mistake<'a> = (&'a str, &'a str, &'a str, u16, &'a str, &'a str);

async fn assert_told(server: &Server, cases: &[Mistake<'_>]) {
    for &(method, path, body, status, code, part) in cases {
        let answer = server.call(method, path, body).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, status, "{method} {path} {body}: {text}");
        assert_eq!(answer.code(), code, "{method} {path} {body}: {text}");
        assert!(answer.message().contains(part), "{method} {path} {body}: {text}");
    }
}

#[tokio::test]
async fn mistakes_in_a_message_have_code_and_place() {
    let server = Server::start().await;
    for (body, code, part) in [
        ("{", "invalid_json", "line 1, column 2"),
        (r#"{"payload":"a","x":1}"#, "unknown_field", "x: unknown field"),
        (r#"{"payload":1}"#, "wrong_type", "payload: expected a string"),
        (r#"{"payload":"a","payload":"b"}"#, "duplicate_field", "payload:"),
        (r#"{"payload":"a","payload_base64":""}"#, "conflicting_fields", "payload and payload_base64"),
        (
            r#"{"payload":"a","delay_ms":1,"deliver_at_ms":1}"#,
            "conflicting_fields",
            "delay_ms and deliver_at_ms",
        ),
        (r#"{"payload_base64":"%"}"#, "invalid_argument", "payload_base64: expected standard base64"),
        (r#"{"payload":"a","priority":10}"#, "invalid_argument", "priority:"),
        (r#"{"payload":"a","delay_ms":999999999999999}"#, "invalid_argument", "delay"),
        (
            r#"{"payload":"a","delay_ms":-1}"#,
            "invalid_argument",
            "delay_ms: expected a number from 0 to 316224000000, got -1",
        ),
        ("nul", "invalid_json", "line 1, column 1: expected a value"),
        (r#"{"payload":tru}"#, "invalid_json", "expected a value"),
    ] {
        assert_told(&server, &[("POST", "/v1/queues/q/messages", body, 400, code, part)]).await;
    }
}

#[tokio::test]
async fn details_name_the_path_of_a_field_and_no_more() {
    let server = Server::start().await;
    let key = "x".repeat(129);
    for (fields, field) in [
        (json!({"payload": "a", "ordering_key": key}), "ordering_key"),
        (json!({"payload": "a", "unique": {"key": key}}), "unique.key"),
        (
            json!({"payload": "a", "chain": [{"queue": "q"}, {"queue": "q", "fair_key": key}]}),
            "chain[1].fair_key",
        ),
        (json!({"payload": "a", "tags": ["b", "x".repeat(200)]}), "tags[1]"),
    ] {
        let answer = server.post("/v1/queues/q/messages", &fields.to_string()).await;
        assert_eq!(answer.json()["error"]["details"]["field"], field, "{}", answer.message());
        assert!(answer.message().starts_with(&format!("{field}: ")), "{}", answer.message());
    }
}

#[tokio::test]
async fn mistakes_in_one_of_many_messages_say_in_which() {
    let server = Server::start().await;
    let (payload, header) = ("x".repeat(1_048_577), "x".repeat(16_385));
    let cases = [
        (json!({"payload": payload}), 413, "payload_too_large", "payload"),
        (json!({"headers": {"a": header}}), 413, "headers_too_large", "headers"),
        (json!({"reply_to": "a b"}), 400, "invalid_name", "reply_to"),
        (json!({"deliver_at_ms": 99_999_999_999_999_u64}), 400, "invalid_argument", "deliver_at_ms"),
        (json!({"expires_at_ms": 99_999_999_999_999_u64}), 400, "invalid_argument", "expires_at_ms"),
        (json!({"chain": [{"queue": "a b"}]}), 400, "invalid_name", "chain[0].queue"),
        (json!({"queue": "a b"}), 400, "invalid_name", "queue"),
    ];
    for (fields, status, code, field) in cases {
        let message = |queue: bool| {
            let mut message = json!({"payload": "x"});
            if queue {
                message["queue"] = "q".into();
            }
            message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            message
        };
        let mut bodies = Vec::new();
        if field != "queue" {
            let body = json!({"messages": [{"payload": "x"}, message(false)]});
            bodies.push(("/v1/queues/q/messages", body, "messages[1]"));
        }
        let (good, bad) = (json!({"queue": "q", "payload": "x"}), message(true));
        let group =
            |member: &Value, callback: &Value| json!({"messages": [good, member], "callback": callback});
        bodies.push(("/v1/groups", group(&bad, &good), "messages[1]"));
        bodies.push(("/v1/groups", group(&good, &bad), "callback"));
        for (path, body, place) in bodies {
            let answer = server.post(path, &body.to_string()).await;
            assert_eq!((answer.status, answer.code()), (status, code.to_owned()), "{path} {field}");
            let place = format!("{place}.{field}");
            assert!(answer.message().starts_with(&format!("{place}: ")), "{place}: {}", answer.message());
            assert_eq!(answer.json()["error"]["details"]["field"], place.as_str());
        }
    }
}

#[tokio::test]
async fn mistakes_in_names_have_code_and_place() {
    let server = Server::start().await;
    let long = "x".repeat(129);
    let cases = [
        ("POST", "/v1/queues/$q/messages", r#"{"payload":"a"}"#, 400, "invalid_name", "$q"),
        ("POST", "/v1/queues/a%20b/messages", r#"{"payload":"a"}"#, 400, "invalid_name", "a b"),
        ("POST", &format!("/v1/queues/{long}/messages"), r#"{"payload":"a"}"#, 400, "invalid_name", "128"),
        (
            "POST",
            "/v1/namespaces/none/queues/q/messages",
            r#"{"payload":"a"}"#,
            404,
            "namespace_not_found",
            "none",
        ),
    ];
    assert_told(&server, &cases).await;
}

#[tokio::test]
async fn mistakes_in_receives_and_settlements_have_code_and_place() {
    let cases = [
        (
            "POST",
            "/v1/queues/q/receive",
            r#"{"max":0}"#,
            400,
            "invalid_argument",
            "max: expected a number from 1 to 1000, got 0",
        ),
        ("POST", "/v1/receive", r#"{"queues":[]}"#, 400, "missing_field", "queues"),
        ("POST", "/v1/ack", r#"{"receipt":"x"}"#, 400, "invalid_receipt", "\"x\""),
        ("POST", "/v1/namespaces/none/ack", r#"{"receipts":["x"]}"#, 404, "namespace_not_found", "none"),
        (
            "POST",
            "/v1/ack",
            r#"{"receipt":"0000004000000000000000000000000000"}"#,
            400,
            "invalid_receipt",
            "",
        ),
        (
            "POST",
            "/v1/settle",
            r#"{"items":[{"receipt":"a","outcome":"done"}]}"#,
            400,
            "invalid_argument",
            "items[0].outcome",
        ),
    ];
    assert_told(&Server::start().await, &cases).await;
}

#[tokio::test]
async fn mistakes_in_other_calls_have_status_code_and_place() {
    let cases = [
        ("GET", "/v1/queues/none", "", 404, "queue_not_found", "none"),
        ("POST", "/v1/queues/none/purge", "", 404, "queue_not_found", "none"),
        ("GET", "/v1/queues/none/peek", "", 404, "queue_not_found", "none"),
        ("GET", "/v1/messages/zzz", "", 400, "invalid_message_id", "zzz"),
        ("GET", "/v1/messages/00000040000000000000", "", 404, "message_not_found", "00000040000000000000"),
        ("GET", "/v1/queues?limit=0", "", 400, "invalid_argument", "limit"),
        ("GET", "/v1/queues?page=2", "", 400, "unknown_field", "page: unknown query parameter"),
        ("GET", "/v1/queues/q/messages?state=gone", "", 400, "invalid_argument", "state"),
        ("GET", "/v1/queues/q/messages?cursor=x", "", 400, "invalid_argument", "cursor"),
        ("PUT", "/v1/queues/q", r#"{"lease_ms":43200001}"#, 400, "invalid_argument", "lease_ms"),
        ("POST", "/v1/queues/q/dead/delete", "{}", 400, "missing_field", "all"),
        ("POST", "/v1/queues/q/dead/delete", "", 400, "invalid_json", "the body is empty"),
        ("POST", "/v1/queues/q/dead/redrive", " ", 400, "invalid_json", "the body is empty"),
        ("POST", "/v1/bulk", "", 400, "invalid_json", "the body is empty"),
        ("POST", "/v1/tokens", "", 400, "invalid_json", "the body is empty"),
        ("DELETE", "/v1/namespaces/x?force=yes", "", 400, "wrong_type", "force"),
        ("GET", "/v1/nothing", "", 404, "not_found", "/v1/nothing"),
    ];
    assert_told(&Server::start().await, &cases).await;
}

#[tokio::test]
async fn the_id_in_the_path_of_a_change_is_checked_before_its_body() {
    let server = Server::start().await;
    for verb in ["cancel", "hold", "approve", "deny", "retry", "move", "change"] {
        let path = format!("/v1/messages/x/{verb}");
        for body in ["{", r#"{"by":1}"#, r#"{"nope":1}"#, "{}", ""] {
            let answer = server.call("POST", &path, body).await;
            assert_eq!((answer.status, answer.code()), (400, "invalid_message_id".into()), "{verb} {body}");
        }
    }
}

#[tokio::test]
async fn a_rate_that_is_not_whole_is_told_what_a_rate_is() {
    let server = Server::start().await;
    for (body, field) in [
        (r#"{"rate":{}}"#, "rate.count"),
        (r#"{"rate":{"count":1}}"#, "rate.period_ms"),
        (r#"{"rate_per_key":{"burst":1}}"#, "rate_per_key.count"),
    ] {
        let answer = server.call("PUT", "/v1/limits/l", body).await;
        assert_eq!(answer.code(), "missing_field");
        assert_eq!(answer.message(), format!("{field}: a rate is so many deliveries in a period"));
    }
    for count in ["0", "-1", "1000000001"] {
        let answer = server.call("PUT", "/v1/limits/l", &format!(r#"{{"rate":{{"count":{count}}}}}"#)).await;
        let told = format!("rate.count: expected a number from 1 to 1000000000, got {count}");
        assert_eq!((answer.code(), answer.message()), ("invalid_argument".into(), told));
    }
}

#[tokio::test]
async fn bodies_that_are_not_json_are_refused() {
    let server = Server::start().await;
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let answer = server.call_with("POST", "/v1/queues/q/messages", &form, br#"{"payload":"a"}"#).await;
    assert_eq!((answer.status, answer.code()), (415, "unsupported_media_type".to_owned()));
    assert!(answer.message().contains("curl: --json"));
    let answer = server.call_with("POST", "/v1/queues/q/messages", &[], b"{\"payload\":\"\xff\"}").await;
    assert_eq!(answer.code(), "invalid_json");
}

#[tokio::test]
async fn calls_without_a_body_refuse_one_and_do_nothing() {
    let server = Server::start().await;
    for _ in 0..2 {
        server.send("q", "a").await;
    }
    let calls = [
        ("POST", "/v1/queues/q/purge"),
        ("POST", "/v1/queues/q/pause"),
        ("DELETE", "/v1/queues/q"),
        ("GET", "/v1/queues/q"),
        ("GET", "/healthz"),
    ];
    let bodies = [
        (r#"{"state":"held"}"#, "unknown_field", "state: unknown field"),
        ("purge", "invalid_json", "line 1, column 1"),
        ("{} {}", "invalid_json", "line 1, column 4"),
        ("[]", "wrong_type", "expected an object"),
    ];
    for (method, path) in calls {
        for (body, code, part) in bodies {
            assert_told(&server, &[(method, path, body, 400, code, part)]).await;
        }
    }
    let queue = server.get("/v1/queues/q").await.json();
    assert_eq!(
        (&queue["counts"]["ready"], &queue["settings"]["paused"]),
        (&2.into(), &false.into()),
        "{queue}"
    );
    for body in ["", " \n", "{}", "{ }"] {
        assert_eq!(server.post("/v1/queues/q/pause", body).await.status, 200, "{body:?}");
        assert_eq!(server.call("GET", "/v1/queues/q", body).await.status, 200, "{body:?}");
    }
}

#[tokio::test]
async fn settings_that_are_replaced_need_a_body() {
    let server = Server::start().await;
    for (path, settings) in
        [("/v1/limits/l", r#"{"in_flight":1}"#), ("/v1/queue-defaults/a.*", r#"{"lease_ms":9}"#)]
    {
        assert_eq!(server.call("PUT", path, settings).await.status, 201);
        for body in ["", " "] {
            let empty = ("PUT", path, body, 400, "invalid_json", "the body is empty: expected JSON");
            assert_told(&server, &[empty]).await;
        }
        let kept = server.get(path).await.json();
        assert!(kept["settings"].as_object().is_some_and(|settings| !settings.is_empty()), "{kept}");
        assert_eq!(server.call("PUT", path, "{}").await.status, 200);
    }
    for (method, path, status) in [("PUT", "/v1/queues/q", 201), ("PATCH", "/v1/queues/q", 200)] {
        assert_eq!(server.call(method, path, "").await.status, status);
    }
}

#[tokio::test]
async fn raw_headers_are_checked() {
    let server = Server::start().await;
    let path = "/v1/queues/q/messages/raw";
    let answer = server.call_with("POST", path, &[("sluice-priority", "10")], b"x").await;
    assert_eq!((answer.status, answer.code()), (400, "invalid_argument".to_owned()));
    assert!(answer.message().starts_with("sluice-priority:"));
    let answer = server.call_with("POST", path, &[("sluice-prio", "1")], b"x").await;
    assert_eq!(answer.code(), "unknown_field");
    let answer = server.call_with("POST", "/v1/queues/q/receive/raw?wait=1", &[], b"").await;
    assert_eq!(answer.code(), "unknown_field");
    let answer = server.call_with("POST", "/v1/queues/q/receive/raw", &[], b"{}").await;
    assert_eq!(answer.code(), "body_too_large");
}

#[tokio::test]
async fn other_methods_are_told() {
    let server = Server::start().await;
    let answer = server.call("PUT", "/v1/ack", "{}").await;
    assert_eq!((answer.status, answer.header("allow")), (405, "POST, OPTIONS"));
    assert_eq!(answer.code(), "method_not_allowed");
    let answer = server.call("OPTIONS", "/v1/queues/q", "").await;
    assert_eq!((answer.status, answer.header("allow")), (204, "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"));
    let answer = server.call("HEAD", "/healthz", "").await;
    assert_eq!((answer.status, answer.body.len(), answer.header("content-length")), (200, 0, "3"));
    assert_eq!(server.call("HEAD", "/v1/queues/none", "").await.status, 404);
}

#[tokio::test]
async fn request_ids_come_back() {
    let server = Server::start().await;
    let answer = server.call_with("GET", "/healthz", &[("x-request-id", "my-id.1")], b"").await;
    assert_eq!(answer.header("x-request-id"), "my-id.1");
    for bad in ["a b", &"x".repeat(129)] {
        let answer = server.call_with("GET", "/healthz", &[("x-request-id", bad)], b"").await;
        assert_eq!(answer.header("x-request-id").len(), 16, "{bad}");
    }
    let error = server.get("/nothing").await;
    assert_ne!(error.header("x-request-id"), "");
}

#[tokio::test]
async fn pages_of_other_sites_may_not_call() {
    let server = Server::start().await;
    let path = "/v1/queues/q/messages/raw";
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        let answer = server.call_with("POST", path, &[("origin", origin)], b"x").await;
        assert_eq!((answer.status, answer.code()), (403, "forbidden_origin".to_owned()), "{origin}");
    }
    let own = format!("http://{}", server.address);
    let answer = server.call_with("POST", path, &[("origin", &own)], b"x").await;
    assert_eq!(answer.status, 201);
}

#[tokio::test]
async fn a_name_that_is_not_the_servers_may_not_call_it_while_nobody_is_asked() {
    let names = || vec!["queue.example.org".to_owned()];
    let server = Server::start_with(|http, _| http.hosts = Hosts::of_all(names())).await;
    let ask = async |server: &Server, host: &str, rest: &str| {
        let mut bare = Bare::connect(server.address).await;
        bare.write(&format!("GET /v1/queues HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{rest}\r\n"))
            .await;
        bare.read_to_end().await
    };
    let (good, refused) = ("HTTP/1.1 200", "HTTP/1.1 403");
    for own in ["127.0.0.1:7070", "localhost", "queue.example.org:7070"] {
        assert!(ask(&server, own, "").await.starts_with(good), "{own}");
    }
    let answer = ask(&server, "evil.example:7070", "").await;
    assert!(answer.starts_with(refused), "{answer}");
    for part in ["forbidden_origin", "evil.example:7070", "--listen"] {
        assert!(answer.contains(part), "{answer}");
    }

    let pages = Server::start_with(|http, _| http.hosts = Hosts::of_pages(names())).await;
    assert!(ask(&pages, "other.example", "").await.starts_with(good));
    for page in ["origin: http://evil.example\r\n", "sec-fetch-site: same-origin\r\n"] {
        assert!(ask(&pages, "evil.example", page).await.starts_with(refused), "{page}");
    }

    // With the first identity every name will do: callers show who they are.
    let token = r#"{"name":"root","scopes":["sluice://ns/*?perm=admin"]}"#;
    assert_eq!(server.post("/v1/tokens", token).await.status, 201);
    assert!(ask(&server, "evil.example:7070", "").await.starts_with("HTTP/1.1 401"));
}

#[tokio::test]
async fn what_is_no_http_ends_the_connection_and_nothing_else() {
    let server = Server::start().await;
    for noise in [
        "\0\0\0\0\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\0\0",
        "GET /\u{0} HTTP/1.1\r\n\r\n",
    ] {
        let mut bare = Bare::connect(server.address).await;
        bare.write(noise).await;
        tokio::io::AsyncWriteExt::shutdown(&mut bare.0).await.unwrap();
        bare.read_to_end().await;
    }
    assert_eq!(request(server.address, "GET", "/healthz", &[], b"").await.status, 200);
}

#[tokio::test]
async fn a_body_that_breaks_off_sends_nothing() {
    let server = Server::start().await;
    let mut bare = Bare::connect(server.address).await;
    bare.write("POST /v1/queues/q/messages/raw HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nabc").await;
    drop(bare);
    assert_eq!(
        server.post("/v1/queues/q/receive", r#"{"wait_ms":100}"#).await.json()["messages"],
        serde_json::json!([])
    );
}
