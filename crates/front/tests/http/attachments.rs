//! Attachments over the raw routes: memory that uploads and downloads take, and refusals while bytes come.

use crate::client::Bare;
use crate::support::Server;
use crate::waits::until;

const CHUNK: usize = 1 << 20;
const RAW: &str = "/v1/documents/k/attachments/raw?name=a";

async fn with_document(server: &Server) {
    assert_eq!(server.call("PUT", "/v1/documents/k", r#"{"content":"x"}"#).await.status, 201);
}

#[tokio::test]
async fn uploads_leave_the_memory_of_bodies_to_others() {
    let server = Server::start_with(|http, _| http.bodies_bytes_max = 2 * CHUNK).await;
    with_document(&server).await;
    let mut slow = Bare::connect(server.address).await;
    slow.write(&format!("PUT {RAW} HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n12345")).await;
    // It has the memory of uploads, which is one chunk here, for as long as it comes.
    let put = async || server.call_with("PUT", RAW, &[], b"other").await.status;
    until(async || put().await == 429).await;
    let chunk = "/v1/documents/k/uploads/raw?upload=00000000800040000000";
    let chunk = server.call_with("PATCH", chunk, &[("upload-offset", "0")], b"x").await;
    assert_eq!((chunk.status, chunk.code()), (429, "overloaded".to_owned()));
    let large = vec![b'x'; CHUNK];
    assert_eq!(server.call_with("POST", "/v1/queues/q/messages/raw", &[], &large).await.status, 201);
    slow.write("67890").await;
    assert!(slow.read_until("etag").await.starts_with("HTTP/1.1 20"));
    until(async || put().await == 200).await;
}

#[tokio::test]
async fn downloads_have_their_chunks_of_the_memory_of_answers() {
    let server = Server::start_with(|http, _| http.answers_bytes_max = CHUNK).await;
    with_document(&server).await;
    assert_eq!(server.call_with("PUT", RAW, &[], &vec![b'x'; 2 * CHUNK]).await.status, 201);
    let whole = server.get(RAW).await;
    assert_eq!((whole.status, whole.code()), (413, "batch_too_large".to_owned()));
    let part = server.call_with("GET", RAW, &[("range", "bytes=5-104")], b"").await;
    assert_eq!((part.status, part.body.len()), (206, 100));
    let head = server.call_with("HEAD", RAW, &[("range", "bytes=5-104")], b"").await;
    assert_eq!((head.status, head.header("content-length")), (200, "2097152"));
}

#[tokio::test]
async fn refused_uploads_are_told_why_and_leave_nothing() {
    let server = Server::start().await;
    with_document(&server).await;
    let large = vec![b'x'; 8 * CHUNK];
    for (name, value, code) in [
        ("repr-digest", "sha-256=:AAAA:", "invalid_argument"),
        ("sluice-lock-token", "x", "invalid_argument"),
        ("content-range", "bytes 0-1/2", "invalid_argument"),
        ("idempotency-key", "k", "invalid_argument"),
        ("sluice-ttl-ms", "1000", "unknown_field"),
        ("content-encoding", "gzip", "unsupported_content_encoding"),
    ] {
        let answer = server.call_with("PUT", RAW, &[(name, value)], &large).await;
        assert_eq!(answer.code(), code, "{name}");
    }
    let wrong = format!("sha-256=:{}:", "A".repeat(43) + "=");
    let answer = server.call_with("PUT", RAW, &[("repr-digest", &wrong)], &large[..10]).await;
    assert_eq!((answer.status, answer.code()), (409, "digest_mismatch".to_owned()));
    let uploads = server.get("/v1/documents/k/uploads?name=a").await.json();
    assert_eq!(uploads, serde_json::json!({"uploads": []}));
    assert_eq!(server.get(RAW).await.status, 404);
}

#[tokio::test]
async fn conditions_in_headers_that_would_be_passed_over_are_refused() {
    let server = Server::start().await;
    with_document(&server).await;
    assert_eq!(server.call_with("PUT", RAW, &[], b"x").await.status, 201);
    let begun = server.call("POST", "/v1/documents/k/uploads", r#"{"name":"a"}"#).await.json();
    let upload = begun["upload"].as_str().unwrap().to_owned();
    let commit = format!(r#"{{"name":"a","upload":"{upload}"}}"#);
    let raw = format!("/v1/documents/k/uploads/raw?upload={upload}");
    for (method, path, body) in [
        ("GET", "/v1/documents/k", ""),
        ("GET", "/v1/documents/k/attachments/read?name=a", ""),
        ("DELETE", "/v1/documents/k/attachments?name=a", ""),
        ("POST", "/v1/documents/k/uploads", r#"{"name":"b"}"#),
        ("PATCH", &raw, "x"),
        ("POST", "/v1/documents/k/uploads/commit", &commit),
    ] {
        for (name, value) in [("if-match", "\"1\""), ("if-none-match", "*"), ("sluice-lock-token", "x")] {
            let answer = server.call_with(method, path, &[(name, value)], body.as_bytes()).await;
            assert_eq!(
                (answer.status, answer.code()),
                (400, "invalid_argument".to_owned()),
                "{method} {path} {name}"
            );
            assert_eq!(answer.json()["error"]["details"]["field"], name, "{method} {path}");
        }
    }
    assert_eq!(&server.get(RAW).await.body[..], b"x");
}

#[tokio::test]
async fn uploads_that_cannot_be_attached_are_refused_before_their_bytes() {
    let server = Server::start().await;
    let answered = async |condition: &str| {
        let mut sender = Bare::connect(server.address).await;
        let head = format!("PUT {RAW} HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\nexpect: 100-continue\r\n");
        sender.write(&format!("{head}{condition}\r\n")).await;
        sender.read_until("\r\n").await.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(answered("").await, "HTTP/1.1 404 Not Found");
    with_document(&server).await;
    assert_eq!(answered("").await, "HTTP/1.1 100 Continue");
    assert_eq!(answered("if-match: *\r\n").await, "HTTP/1.1 412 Precondition Failed");
    assert_eq!(server.call_with("PUT", RAW, &[], b"x").await.status, 201);
    assert_eq!(answered("if-none-match: *\r\n").await, "HTTP/1.1 412 Precondition Failed");
}

#[tokio::test]
async fn an_upload_ends_with_the_connection_that_sends_it() {
    let server = Server::start().await;
    with_document(&server).await;
    let uploads = async || {
        server.get("/v1/documents/k/uploads?name=a").await.json()["uploads"].as_array().unwrap().len()
    };
    let mut senders = Vec::new();
    for _ in 0..8 {
        let mut sender = Bare::connect(server.address).await;
        sender.write(&format!("PUT {RAW} HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n12345")).await;
        senders.push(sender);
    }
    until(async || uploads().await == 8).await;
    drop(senders);
    until(async || uploads().await == 0).await;
}

#[tokio::test]
async fn reads_say_what_is_missing() {
    let server = Server::start().await;
    assert_eq!(server.get(RAW).await.code(), "document_not_found");
    with_document(&server).await;
    assert_eq!(server.get(RAW).await.code(), "attachment_not_found");
    assert_eq!(server.call_with("PUT", RAW, &[], b"abc").await.status, 201);
    let read =
        async |offset| server.get(&format!("/v1/documents/k/attachments/read?name=a&offset={offset}")).await;
    assert_eq!(read(3).await.json()["content_base64"], "");
    let behind = read(4).await;
    assert_eq!((behind.status, behind.json()["error"]["details"]["field"].as_str()), (400, Some("offset")));
    let far = server.call_with("GET", RAW, &[("range", "bytes=18446744073709551616-")], b"").await;
    assert_eq!(far.status, 416);
}
