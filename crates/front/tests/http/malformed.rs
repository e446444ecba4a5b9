//! Requests of HTTP/1.1 that nobody should answer as if they were whole (RFC 9110, RFC 9112), and how a
//! connection goes on after a refusal.

use crate::client::{Bare, request_http2};
use crate::support::Server;

/// What comes of one request, after which the server is asked for the queues that there are.
async fn refused(server: &Server, head: &str, body: &str) -> String {
    let mut bare = Bare::connect(server.address).await;
    bare.write(&format!("{head}\r\n\r\n{body}")).await;
    let answer = bare.read_until("}}}").await;
    let queues = server.get("/v1/queues").await.json()["queues"].clone();
    assert_eq!(queues.as_array().unwrap().len(), 0, "{head}: it was done: {queues}");
    answer
}

#[tokio::test]
async fn a_request_has_one_host_one_origin_and_a_body_that_is_understood() {
    let server = Server::start().await;
    for (fields, status, code, part) in [
        ("content-length: 0", 400, "missing_field", "Host: "),
        ("host: x\r\nhost: x\r\ncontent-length: 0", 400, "duplicate_field", "Host: "),
        ("host: x y\r\ncontent-length: 0", 400, "invalid_argument", "Host: "),
        ("host: x@y\r\ncontent-length: 0", 400, "invalid_argument", "Host: "),
        ("host: x:y\r\ncontent-length: 0", 400, "invalid_argument", "Host: "),
        ("host: [::1]:7 0\r\ncontent-length: 0", 400, "invalid_argument", "Host: "),
        (
            "host: x\r\norigin: http://x\r\norigin: http://y\r\ncontent-length: 0",
            400,
            "duplicate_field",
            "Origin: ",
        ),
        ("host: x\r\ntransfer-encoding: gzip, chunked", 501, "unsupported_transfer_encoding", "gzip"),
        (
            "host: x\r\ntransfer-encoding: x\r\ntransfer-encoding: chunked",
            501,
            "unsupported_transfer_encoding",
            "x, chunked",
        ),
        (
            "host: x\r\ntransfer-encoding: chunked, chunked",
            501,
            "unsupported_transfer_encoding",
            "chunked, chunked",
        ),
    ] {
        let body = if fields.contains("chunked") { "0\r\n\r\n" } else { "" };
        let answer = refused(&server, &format!("PUT /v1/queues/q HTTP/1.1\r\n{fields}"), body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{fields}: {answer}");
        assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{fields}: {answer}");
        assert!(answer.contains(part), "{fields}: {answer}");
        if status == 501 {
            assert!(answer.contains("connection: close\r\n"), "{fields}: {answer}");
        }
    }
    // What is as it should be goes on; HTTP/1.0 knows no Host.
    for good in [
        "PUT /v1/queues/q HTTP/1.1\r\nhost: x:7070\r\ntransfer-encoding: Chunked\r\n\r\n0\r\n\r\n",
        "PUT /v1/queues/q HTTP/1.1\r\nhost:\r\ncontent-length: 0\r\n\r\n",
        "PUT /v1/queues/q HTTP/1.0\r\ncontent-length: 0\r\n\r\n",
    ] {
        let mut bare = Bare::connect(server.address).await;
        bare.write(good).await;
        let answer = bare.read_until("}").await;
        assert!(answer.contains(" 201 ") || answer.contains(" 200 "), "{good}: {answer}");
    }
}

#[tokio::test]
async fn after_a_refusal_the_connection_goes_on_or_says_that_it_does_not() {
    let server = Server::start().await;
    let large = "x".repeat(1 << 20);
    let chunk = "10000\r\n".to_owned() + &large[..0x1_0000] + "\r\n";
    for (request, body, goes_on) in [
        // Nobody reads these bodies; a small one is dropped, so that the connection can go on.
        ("POST /v1/nothing HTTP/1.1\r\nhost: x\r\ncontent-length: 2", "{}", true),
        ("POST /v1/nothing HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked", "2\r\n{}\r\n0\r\n\r\n", true),
        ("GET /v1/whoami HTTP/1.1\r\nhost: x\r\ncontent-length: 2", "{}", true),
        (
            "POST /v1/queues/q/messages HTTP/1.1\r\nhost: x\r\ncontent-type: text/x\r\ncontent-length: 1",
            "a",
            true,
        ),
        ("POST /v1/nothing HTTP/1.1\r\nhost: x\r\ncontent-length: 1048576", &large, false),
        ("POST /v1/nothing HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked", &chunk.repeat(16), false),
        ("POST /v1/nothing HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2", "", false),
    ] {
        let mut bare = Bare::connect(server.address).await;
        bare.write(&format!("{request}\r\n\r\n")).await;
        // The server may have had enough of it.
        let _ = tokio::io::AsyncWriteExt::write_all(&mut bare.0, body.as_bytes()).await;
        let answer = bare.read_until("}").await;
        assert_eq!(!answer.contains("connection: close\r\n"), goes_on, "{request}: {answer}");
        if goes_on {
            bare.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
            bare.read_until("ok\n").await;
        }
    }
}

/// What a request gets that is refused and ends its connection, when that has ended.
async fn last_answer(server: &Server, request: &str) -> String {
    let mut bare = Bare::connect(server.address).await;
    bare.write(request).await;
    let answer = bare.read_to_end().await;
    assert!(answer.contains("connection: close\r\n"), "{request}: {answer}");
    assert!(answer.contains("content-type: application/json\r\n"), "{request}: {answer}");
    answer
}

#[tokio::test]
async fn a_head_that_can_be_read_in_two_ways_is_refused_before_anything_is_done() {
    let server = Server::start().await;
    let fields = "x: y\r\n".repeat(101);
    for (request, status, code) in [
        (
            "PUT /v1/queues/q HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked",
            400,
            "conflicting_fields",
        ),
        (
            "PUT /v1/queues/q HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 5",
            400,
            "conflicting_fields",
        ),
        (
            "PUT /v1/queues/q HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6",
            400,
            "duplicate_field",
        ),
        ("PUT /v1/queues/q HTTP/1.1\r\nhost: x\r\ncontent-length: -1", 400, "invalid_argument"),
        ("PUT /v1/queues/q HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked", 400, "invalid_argument"),
        (
            "PUT /v1/queues/q HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip",
            501,
            "unsupported_transfer_encoding",
        ),
        (
            "PUT /v1/queues/q HTTP/1.1\r\nhost: x\r\ntransfer-encoding: identity",
            501,
            "unsupported_transfer_encoding",
        ),
        ("PUT /v1/queues/q HTTP/1.1\r\nhost: x\r\ntransfer-encoding:", 501, "unsupported_transfer_encoding"),
        ("PUT /v1/queues/q HTTP/1.1\r\nhost: x\r\nno field", 400, "invalid_argument"),
        (&format!("PUT /v1/queues/q HTTP/1.1\r\nhost: x\r\n{fields}"), 431, "head_too_large"),
        (
            &format!("PUT /v1/queues/q HTTP/1.1\r\nhost: x\r\nx: {}", "y".repeat(70_000)),
            431,
            "head_too_large",
        ),
    ] {
        let answer = last_answer(&server, &format!("{request}\r\n\r\n0\r\n\r\n")).await;
        let shown = &request[..request.len().min(200)];
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{shown}: {answer}");
        assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{shown}: {answer}");
    }
    let queues = server.get("/v1/queues").await.json()["queues"].clone();
    assert_eq!(queues.as_array().unwrap().len(), 0, "{queues}");
}

#[tokio::test]
async fn a_refused_head_follows_the_answers_to_what_came_before_it() {
    let server = Server::start().await;
    let good =
        "PUT /v1/queues/q HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    let bad =
        "PUT /v1/queues/r HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n";
    for piece in [1, 7, 1_000] {
        let mut bare = Bare::connect(server.address).await;
        let requests = [good, good, bad].concat();
        for part in requests.as_bytes().chunks(piece) {
            bare.write(std::str::from_utf8(part).unwrap()).await;
            if piece < 1_000 {
                tokio::task::yield_now().await;
            }
        }
        let answers = bare.read_to_end().await;
        assert_eq!(answers.matches("HTTP/1.1 20").count(), 2, "{answers}");
        assert_eq!(answers.matches("HTTP/1.1 400").count(), 1, "{answers}");
    }
    assert_eq!(server.get("/v1/queues/r").await.status, 404);
}

#[tokio::test]
async fn a_body_in_pieces_that_is_not_well_formed_ends_its_connection() {
    let server = Server::start().await;
    let head = "PUT /v1/queues/q HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    let answer = last_answer(&server, &format!("{head}x\r\n{{}}\r\n0\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("incomplete_body"), "{answer}");
}

#[tokio::test]
async fn a_request_has_one_content_type() {
    let server = Server::start().await;
    let twice = [("content-type", "application/json"), ("content-type", "text/plain")];
    for path in ["/v1/queues/q/messages", "/v1/queues/q/messages/raw"] {
        let body = br#"{"payload":"a"}"#;
        for answer in [
            server.call_with("POST", path, &twice, body).await,
            request_http2(server.address, "POST", path, &twice, body).await,
        ] {
            assert_eq!((answer.status, answer.code()), (400, "duplicate_field".to_owned()), "{path}");
            assert!(answer.message().starts_with("Content-Type: "), "{}", answer.message());
        }
    }
}
