//! Attachments through connections that break, with a server that keeps one upload and one attachment.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use data_encoding::{BASE64, HEXLOWER};
use sha2::{Digest as _, Sha256};
use sluice_client::{AttachmentCondition, ClientError};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::support::client;

/// Length of a chunk.
const CHUNK: usize = 1 << 16;
/// Bytes of an answer after which its connection breaks, while there are breaks left.
const CUT: usize = 100_000;

/// State of the server.
#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    etag: u64,
    /// Connections that are still to break.
    breaks: usize,
    /// The attachment is replaced when a connection breaks.
    replaces: bool,
    /// Beginnings of the ranges that were asked for.
    ranges: Vec<usize>,
    /// Offsets of the chunks that came.
    offsets: Vec<usize>,
    committed: Option<String>,
    /// The document is not there.
    is_missing: bool,
    /// Uploads that were ended.
    ended: usize,
}

type Shared = Arc<Mutex<State>>;

fn some_bytes(count: usize) -> Vec<u8> {
    (0..count as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

async fn serve(state: State) -> (SocketAddr, Shared) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, state) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(state)));
    let shared = Arc::clone(&state);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let shared = Arc::clone(&shared);
            tokio::spawn(async move { answer(&mut BufReader::new(stream), &shared).await });
        }
    });
    (address, state)
}

/// Answers the requests of a connection; `None`: it is over.
async fn answer(stream: &mut BufReader<TcpStream>, state: &Shared) -> Option<()> {
    loop {
        let (line, headers, body) = request(stream).await?;
        let (answer, is_cut) = respond(&mut state.lock().unwrap(), &line, &headers, &body);
        stream.get_mut().write_all(&answer).await.ok()?;
        if is_cut {
            return None;
        }
    }
}

async fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, HashMap<String, String>, Vec<u8>)> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
    let mut headers = HashMap::new();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.ok().filter(|count| *count > 0)?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((line, headers, body))
}

/// The answer to a request, and true if the connection breaks behind it.
fn respond(state: &mut State, line: &str, headers: &HashMap<String, String>, body: &[u8]) -> (Vec<u8>, bool) {
    let json = |status: u16, body: String| {
        format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    let missing = r#"{"error":{"code":"document_not_found","message":"there is none"}}"#;
    if line.starts_with("DELETE ") {
        state.ended += 1;
        return (json(200, "{}".to_owned()), false);
    }
    if line.starts_with("GET ") && line.contains("/attachments?") {
        return match state.is_missing {
            true => (json(404, missing.to_owned()), false),
            false => (json(200, listed(state)), false),
        };
    }
    if line.starts_with("GET ") {
        return download(state, headers);
    }
    if line.starts_with("PATCH ") {
        let offset: usize = headers["upload-offset"].parse().unwrap();
        state.offsets.push(offset);
        assert_eq!(headers["content-type"], "application/octet-stream");
        assert!(offset <= state.bytes.len(), "no byte is left out");
        state.bytes.truncate(offset);
        state.bytes.extend_from_slice(body);
        let is_cut = state.breaks > 0;
        state.breaks = state.breaks.saturating_sub(1);
        let answer = if is_cut { Vec::new() } else { b"HTTP/1.1 204 X\r\n\r\n".to_vec() };
        return (answer, is_cut);
    }
    if line.contains("/commit ") {
        if state.is_missing {
            return (json(404, missing.to_owned()), false);
        }
        state.committed = Some(String::from_utf8_lossy(body).into_owned());
        return (json(201, r#"{"version":1,"etag":"7","changed_at_ms":1}"#.to_owned()), false);
    }
    let sha256 = HEXLOWER.encode(&Sha256::digest(b""));
    let upload = format!(
        r#"{{"upload":"u","name":"a","bytes":0,"sha256":"{sha256}","chunk_bytes_max":{CHUNK},"expires_at_ms":9}}"#
    );
    (json(201, upload), false)
}

/// A list of the one attachment.
fn listed(state: &State) -> String {
    let etag = state.etag;
    format!(
        r#"{{"attachments":[{{"name":"a","version":3,"etag":"{etag}","changed_at_ms":5,"bytes":0,"sha256":""}}]}}"#
    )
}

fn download(state: &mut State, headers: &HashMap<String, String>) -> (Vec<u8>, bool) {
    let etag = format!("\"{}\"", state.etag);
    if headers.get("if-match").is_some_and(|asked| *asked != etag) {
        let body = r#"{"error":{"code":"version_mismatch","message":"it is another one"}}"#;
        let answer = format!("HTTP/1.1 412 X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        return (answer.into_bytes(), false);
    }
    let first = headers.get("range").map(|range| {
        range.strip_prefix("bytes=").unwrap().strip_suffix('-').unwrap().parse::<usize>().unwrap()
    });
    state.ranges.push(first.unwrap_or_default());
    let rest = &state.bytes[first.unwrap_or_default()..];
    let status = if first.is_some() { 206 } else { 200 };
    let digest = BASE64.encode(&Sha256::digest(&state.bytes));
    let mut answer = format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\netag: {etag}\r\nsluice-version: 3\r\n\
         sluice-changed-at-ms: 5\r\ncontent-type: a/b\r\nrepr-digest: sha-256=:{digest}:\r\n\r\n",
        rest.len()
    )
    .into_bytes();
    let is_cut = state.breaks > 0;
    answer.extend_from_slice(if is_cut { &rest[..CUT.min(rest.len() - 1)] } else { rest });
    state.breaks = state.breaks.saturating_sub(1);
    state.etag += u64::from(is_cut && state.replaces);
    (answer, is_cut)
}

#[tokio::test]
async fn chunks_whose_answers_are_lost_are_sent_again_and_none_is_missing() {
    let content = some_bytes(5 * CHUNK + 17);
    let (address, state) = serve(State { breaks: 3, ..State::default() }).await;
    let written = client(address).upload("k", "a", Some("a/b"), &mut &content[..]).await.unwrap();
    assert_eq!((written.version, written.created), (1, true));
    let state = state.lock().unwrap();
    assert!(state.bytes == content, "all bytes came");
    assert_eq!(state.offsets, [0, 0, 0, 0, 1, 2, 3, 4, 5].map(|chunk| chunk * CHUNK));
    let committed = state.committed.as_ref().unwrap();
    assert!(committed.contains(&HEXLOWER.encode(&Sha256::digest(&content))), "{committed}");
}

#[tokio::test]
async fn of_an_upload_that_is_refused_nothing_is_left() {
    let (address, state) = serve(State { is_missing: true, ..State::default() }).await;
    let error = client(address).upload("k", "a", None, &mut &b"content"[..]).await.unwrap_err();
    assert!(error.code() == Some("document_not_found") && error.is_refusal(), "{error}");
    assert_eq!(state.lock().unwrap().ended, 1);
}

#[tokio::test]
async fn an_upload_that_would_be_refused_is_told_before_it_begins() {
    let (address, state) = serve(State { etag: 9, ..State::default() }).await;
    let client = client(address);
    let none = AttachmentCondition::default();
    for (name, when, holds) in [
        ("a", none.clone(), true),
        ("a", AttachmentCondition { if_version: Some(3), if_etag: Some("9"), ..none.clone() }, true),
        ("a", AttachmentCondition { if_version: Some(3), if_etag: Some("8"), ..none.clone() }, false),
        ("a", AttachmentCondition { if_version: Some(2), ..none.clone() }, false),
        ("a", AttachmentCondition { if_absent: true, ..none.clone() }, false),
        ("b", AttachmentCondition { if_absent: true, ..none.clone() }, true),
        ("b", AttachmentCondition { if_version: Some(3), ..none.clone() }, false),
        ("b", AttachmentCondition { if_etag: Some("9"), ..none.clone() }, false),
    ] {
        let checked = client.upload_check("k", name, &when).await;
        let code = checked.as_ref().err().and_then(ClientError::code);
        assert_eq!(code, (!holds).then_some("version_mismatch"), "{name}: {when:?}");
    }
    state.lock().unwrap().is_missing = true;
    for when in [none.clone(), AttachmentCondition { if_absent: true, ..none }] {
        let error = client.upload_check("k", "a", &when).await.unwrap_err();
        assert_eq!(error.code(), Some("document_not_found"), "{error}");
    }
}

#[tokio::test]
async fn a_download_goes_on_behind_what_has_come() {
    let content = some_bytes(4 * CUT);
    let (address, state) =
        serve(State { bytes: content.clone(), etag: 9, breaks: 2, ..State::default() }).await;
    let mut came = Vec::new();
    let attachment = client(address).download("k", "a", &mut came).await.unwrap();
    assert!(came == content, "nothing is missing, and nothing came twice");
    assert_eq!((attachment.version, &*attachment.etag, attachment.bytes), (3, "9", content.len() as u64));
    assert_eq!((attachment.changed_at_ms, &*attachment.content_type), (5, "a/b"));
    assert_eq!(state.lock().unwrap().ranges, [0, CUT, 2 * CUT]);
}

#[tokio::test]
async fn a_download_does_not_go_on_with_another_version() {
    let bytes = some_bytes(2 * CUT);
    let (address, _) = serve(State { bytes, breaks: 1, replaces: true, ..State::default() }).await;
    let error = client(address).download("k", "a", &mut Vec::new()).await.unwrap_err();
    assert_eq!(error.code(), Some("version_mismatch"), "{error}");
}

#[tokio::test]
async fn what_is_there_already_is_compared_and_not_asked_for() {
    let content = some_bytes(2 * CUT);
    let (address, state) = serve(State { bytes: content.clone(), ..State::default() }).await;
    let client = client(address);
    let mut downloading = client.download_begin("k", "a").await.unwrap();
    downloading.skip(&content[..CUT]);
    let mut came = Vec::new();
    downloading.write_all(&mut came).await.unwrap();
    assert!(came == content[CUT..]);
    assert_eq!(state.lock().unwrap().ranges, [0, CUT]);
    for there in [&b"others"[..], &[&content[..], b"more"].concat()] {
        let mut downloading = client.download_begin("k", "a").await.unwrap();
        downloading.skip(there);
        let error = downloading.write_all(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.code(), Some("digest_mismatch"), "{error}");
    }
}

#[tokio::test]
async fn a_reader_or_writer_that_fails_ends_it() {
    let (address, _) = serve(State { bytes: some_bytes(10), ..State::default() }).await;
    let client = client(address);
    let mut failing = failing_reader();
    let error = client.upload("k", "a", None, &mut failing).await.unwrap_err();
    assert!(matches!(&error, ClientError::Server { code, .. } if code == "incomplete_body"), "{error}");
    let uploading = client.upload_begin("k", "a", None).await.unwrap();
    let operations = sluice_client::Transaction::new().attach(&uploading, &AttachmentCondition::default());
    assert_eq!(operations.len(), 1);
}

/// A reader that fails.
fn failing_reader() -> impl tokio::io::AsyncRead + Unpin {
    struct Failing;
    impl tokio::io::AsyncRead for Failing {
        fn poll_read(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            _: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::task::Poll::Ready(Err(std::io::Error::other("the disk is gone")))
        }
    }
    Failing
}
