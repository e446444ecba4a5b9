//! What every server of HTTP is expected to do with answers: compress them, not send them again, and keep to
//! the methods.

use std::io::Read as _;

use bytes::Bytes;
use serde_json::json;
use sluice_front::http::Compression;

use crate::client::{Answer, Bare, request, request_http2};
use crate::support::Server;

const BROWSER: (&str, &str) = ("accept-encoding", "gzip, deflate, br, zstd");

async fn compressing(compression: Compression) -> Server {
    Server::start_with(|http, _| http.compression = compression).await
}

/// The same request in both versions of HTTP.
async fn both(
    server: &Server,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> [Answer; 2] {
    [
        request(server.address, method, path, headers, body).await,
        request_http2(server.address, method, path, headers, body).await,
    ]
}

/// The body as it was before it was compressed.
fn decoded(answer: &Answer) -> Vec<u8> {
    let mut plain = Vec::new();
    match answer.header("content-encoding") {
        "" => plain.extend_from_slice(&answer.body),
        "gzip" => drop(flate2::read::GzDecoder::new(&answer.body[..]).read_to_end(&mut plain).unwrap()),
        "br" => brotli::BrotliDecompress(&mut &answer.body[..], &mut plain).unwrap(),
        "zstd" => plain = zstd::stream::decode_all(&answer.body[..]).unwrap(),
        other => panic!("{other}"),
    }
    plain
}

#[tokio::test]
async fn answers_are_compressed_as_the_client_asks() {
    let server = Server::start().await;
    let plain = server.get("/openapi.json").await;
    assert_eq!((plain.header("content-encoding"), plain.header("vary")), ("", "accept-encoding"));
    for (accepted, coding) in
        [("gzip, deflate", "gzip"), ("br", "br"), (BROWSER.1, "zstd"), ("zstd;q=0.1, gzip", "gzip")]
    {
        for answer in both(&server, "GET", "/openapi.json", &[("accept-encoding", accepted)], b"").await {
            assert_eq!(answer.header("content-encoding"), coding, "{accepted}");
            assert_eq!(answer.header("vary"), "accept-encoding");
            assert_eq!(answer.header("content-type"), "application/json");
            assert_eq!(answer.header("content-length"), answer.body.len().to_string());
            assert!(answer.body.len() * 4 < plain.body.len(), "{coding}: {} bytes", answer.body.len());
            assert!(decoded(&answer) == plain.body, "{coding}");
            assert_eq!(answer.header("etag"), plain.header("etag"), "the tag is weak, and so the same");
        }
    }
    for path in ["/docs", "/metrics"] {
        for answer in both(&server, "GET", path, &[BROWSER], b"").await {
            assert_eq!(answer.header("content-encoding"), "zstd", "{path}");
        }
    }
    for accepted in ["identity", "deflate", "gzip;q=0", "compress, *;q=0"] {
        for answer in both(&server, "GET", "/openapi.json", &[("accept-encoding", accepted)], b"").await {
            assert_eq!((answer.header("content-encoding"), &answer.body), ("", &plain.body), "{accepted}");
        }
    }
}

/// Small answers, errors, what moves messages, and contents of messages stay as they are.
#[tokio::test]
async fn what_is_not_compressed() {
    let server = Server::start().await;
    let text = "the same again ".repeat(500);
    for _ in 0..4 {
        server.send("q", &text).await;
    }
    let id = server.send("q", &text).await;
    let raw = [BROWSER, ("content-type", "text/plain")];
    for (method, path, headers, body) in [
        ("GET", "/healthz", &[BROWSER][..], ""),
        ("GET", "/v1/queues", &[BROWSER], ""),
        ("GET", "/v1/none", &[BROWSER], ""),
        ("GET", "/v1/queues/q/peek", &[BROWSER], ""),
        ("GET", "/v1/queues/q/messages", &[BROWSER], ""),
        ("GET", &format!("/v1/messages/{id}"), &[BROWSER], ""),
        ("POST", "/v1/queues/q/receive", &[BROWSER], "{}"),
        ("POST", "/v1/queues/q/receive/raw", &[BROWSER], ""),
        ("POST", "/v1/queues/q/messages/raw", &raw, &text),
        ("GET", "/v1/admin/backup", &[BROWSER], ""),
    ] {
        for answer in both(&server, method, path, headers, body.as_bytes()).await {
            assert_eq!(answer.header("content-encoding"), "", "{method} {path}");
            assert!(!answer.body.is_empty(), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn the_operator_decides_about_contents_and_about_all() {
    let text = "the same again ".repeat(5_000);
    let (all, off) = (compressing(Compression::All).await, compressing(Compression::Off).await);
    for server in [&all, &off] {
        server.send("q", &text).await;
    }
    for answer in both(&all, "GET", "/v1/queues/q/peek", &[BROWSER], b"").await {
        assert_eq!(answer.header("content-encoding"), "zstd");
        let plain = Answer { body: Bytes::from(decoded(&answer)), ..answer };
        assert_eq!(plain.json()["messages"][0]["payload"], json!(text));
    }
    for answer in both(&all, "POST", "/v1/queues/q/receive", &[BROWSER], br#"{"max":1}"#).await {
        assert_eq!(
            (answer.header("content-encoding"), answer.header("vary")),
            ("", ""),
            "never: it has receipts"
        );
    }
    for answer in both(&off, "GET", "/openapi.json", &[BROWSER], b"").await {
        assert_eq!((answer.header("content-encoding"), answer.header("vary")), ("", ""));
    }
}

#[tokio::test]
async fn documents_that_the_client_has_are_not_sent_again() {
    let server = Server::start().await;
    for path in ["/openapi.json", "/docs"] {
        let first = server.get(path).await;
        let tag = first.header("etag");
        assert!(tag.starts_with("W/\"") && first.header("cache-control") == "no-cache", "{path}: {tag}");
        let several = format!("\"other\", {tag}");
        for known in [tag, "*", &several] {
            for method in ["GET", "HEAD"] {
                for answer in both(&server, method, path, &[("if-none-match", known), BROWSER], b"").await {
                    assert_eq!((answer.status, answer.body.len()), (304, 0), "{method} {path} {known}");
                    let told = ["etag", "cache-control", "vary"].map(|name| answer.header(name).to_owned());
                    assert_eq!(told, [tag, "no-cache", "accept-encoding"]);
                    assert_eq!(
                        (answer.header("content-length"), answer.header("content-encoding")),
                        ("", "")
                    );
                }
            }
        }
        for answer in both(&server, "GET", path, &[("if-none-match", "\"other\"")], b"").await {
            assert_eq!((answer.status, &answer.body), (200, &first.body));
        }
    }
}

#[tokio::test]
async fn compressed_bodies_of_requests_are_refused() {
    let server = Server::start().await;
    for path in ["/v1/queues/q/messages", "/v1/queues/q/messages/raw", "/v1/ack"] {
        for coding in ["gzip", "zstd, br", "anything"] {
            for answer in both(&server, "POST", path, &[("content-encoding", coding)], b"\x1f\x8b").await {
                assert_eq!((answer.status, answer.code()), (415, "unsupported_content_encoding".to_owned()));
                assert_eq!(answer.header("accept-encoding"), "identity");
                assert_eq!(answer.json()["error"]["details"]["content_encoding"], coding);
                assert!(answer.message().contains("send the body as it is"), "{}", answer.message());
            }
        }
    }
    let identity = [("content-encoding", "Identity"), ("content-type", "application/json")];
    for answer in both(&server, "POST", "/v1/queues/q/messages", &identity, br#"{"payload":"a"}"#).await {
        assert_eq!(answer.status, 201);
    }
    // A large one is read to its end, so that the client gets to read the answer.
    let large = vec![0; 8 << 20];
    let coding = [("content-encoding", "gzip")];
    for answer in both(&server, "POST", "/v1/queues/q/messages", &coding, &large).await {
        assert_eq!(answer.status, 415);
    }
}

#[tokio::test]
async fn head_tells_what_get_would() {
    let server = Server::start().await;
    for (path, headers) in
        [("/openapi.json", &[][..]), ("/openapi.json", &[BROWSER]), ("/healthz", &[]), ("/v1/none", &[])]
    {
        let (gets, heads) =
            (both(&server, "GET", path, headers, b"").await, both(&server, "HEAD", path, headers, b"").await);
        for (get, head) in gets.into_iter().zip(heads) {
            assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
            for name in
                ["content-type", "content-length", "content-encoding", "etag", "vary", "cache-control"]
            {
                assert_eq!(head.header(name), get.header(name), "{path} {name}");
            }
        }
    }
}

#[tokio::test]
async fn other_methods_are_answered_with_those_there_are() {
    let server = Server::start().await;
    for (path, methods) in
        [("/v1/ack", "POST"), ("/healthz", "GET, HEAD"), ("/v1/queues/q", "GET, HEAD, PUT, PATCH, DELETE")]
    {
        let allow = format!("{methods}, OPTIONS");
        for answer in both(&server, "OPTIONS", path, &[], b"").await {
            assert_eq!(
                (answer.status, answer.header("allow"), answer.body.len()),
                (204, &allow[..], 0),
                "{path}"
            );
            assert_eq!(answer.header("content-length"), "", "RFC 9110 §8.6");
        }
        for method in ["TRACE", "POUR"] {
            for answer in both(&server, method, path, &[], b"").await {
                assert_eq!((answer.status, answer.header("allow")), (405, &allow[..]), "{method} {path}");
                assert_eq!(answer.code(), "method_not_allowed");
            }
        }
    }
    for answer in both(&server, "HEAD", "/v1/ack", &[], b"").await {
        assert_eq!((answer.status, answer.header("allow"), answer.body.len()), (405, "POST, OPTIONS", 0));
    }
    let mut bare = Bare::connect(server.address).await;
    bare.write("OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    let text = bare.read_to_end().await;
    assert!(
        text.starts_with("HTTP/1.1 204")
            && text.contains("allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"),
        "{text}"
    );
}

#[tokio::test]
async fn each_answer_has_a_date_and_none_says_by_what_it_was_made() {
    let server = Server::start().await;
    for (method, path) in
        [("GET", "/healthz"), ("GET", "/v1/none"), ("POST", "/v1/queues/q/receive"), ("OPTIONS", "/docs")]
    {
        for answer in both(&server, method, path, &[], b"").await {
            assert!(answer.header("date").ends_with(" GMT"), "{method} {path}");
            assert_eq!((answer.header("server"), answer.header("x-powered-by")), ("", ""));
        }
    }
}

#[tokio::test]
async fn a_receive_gives_what_was_asked_for_whatever_the_messages_before_were_like() {
    let server = Server::start().await;
    for _ in 0..1_000 {
        server.send("mixed", "small").await;
    }
    server.receive("mixed").await;
    let large = "x".repeat(200_000);
    for _ in 0..30 {
        server.send("large", &large).await;
    }
    for asked in [5, 10] {
        let taken = server.post("/v1/queues/large/receive", &format!(r#"{{"max":{asked}}}"#)).await.json();
        assert_eq!(taken["messages"].as_array().unwrap().len(), asked);
    }
    for _ in 0..5 {
        let body = format!(r#"{{"payload":"{large}","priority":9}}"#);
        assert_eq!(server.post("/v1/queues/mixed/messages", &body).await.status, 201);
    }
    let taken = server.post("/v1/queues/mixed/receive", r#"{"max":5}"#).await.json();
    assert_eq!(taken["messages"].as_array().unwrap().len(), 5);
}
