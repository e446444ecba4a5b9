//! Attachments over gRPC: uploads by chunks and as a stream, and downloads.

use bytes::Bytes;
use data_encoding::{BASE64, HEXLOWER};
use http::HeaderMap;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use sluice_calls::access::{Access, AccessOptions};
use sluice_proto::framing::frame_with;

use super::support::{Client, Ended, Frames, start};
use crate::grpc::from_json;
use crate::grpc::schema::schema;

const CHUNK: usize = 1 << 20;

fn some_bytes(count: usize) -> Vec<u8> {
    (0..count as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, bytes).as_ref())
}

async fn with_document() -> Client {
    let mut client = Client::connect(start(|_, _| {}).await).await;
    client.call("Documents/Put", json!({"key": "k", "content": "x"})).await.unwrap();
    client
}

/// Calls `Attachments/Upload` with these messages.
async fn upload(client: &mut Client, messages: &[Value]) -> Ended {
    let path = "/sluice.v1.Attachments/Upload";
    let (input, _) = schema().call(path).unwrap();
    let mut body = Vec::new();
    for message in messages {
        let message = from_json::encode(input, message.to_string().as_bytes()).unwrap();
        frame_with(&mut body, |out| out.extend_from_slice(&message));
    }
    client.post(path, body.into()).await
}

fn content(bytes: &[u8]) -> Value {
    json!({"content_base64": BASE64.encode(bytes)})
}

/// All of a download: the first message, the bytes, and the trailers.
async fn download(client: &mut Client, request: Value) -> (Value, Vec<u8>, HeaderMap) {
    let mut frames = client.stream("Attachments/Download", request).await;
    let head = frames.next().await.unwrap();
    let (bytes, trailers) = rest(&mut frames, head["offset"].as_u64().unwrap_or_default()).await;
    (head, bytes, trailers)
}

async fn rest(frames: &mut Frames, from: u64) -> (Vec<u8>, HeaderMap) {
    let mut bytes = Vec::new();
    loop {
        match frames.next().await {
            Ok(piece) => {
                assert_eq!(piece["offset"].as_u64().unwrap_or_default(), from + bytes.len() as u64);
                let content = piece["content_base64"].as_str().unwrap();
                bytes.extend(BASE64.decode(content.as_bytes()).unwrap());
            }
            Err(trailers) => return (bytes, trailers),
        }
    }
}

#[tokio::test]
async fn chunks_become_an_attachment_of_the_key_that_is_given() {
    let mut client = with_document().await;
    let begun = json!({"key": "k", "name": "a", "content_type": "a/b"});
    let id = client.call("Attachments/Begin", begun).await.unwrap()["upload"].clone();
    let chunk = json!({"key": "k", "upload": id, "offset": 0, "content_base64": BASE64.encode(b"hello")});
    assert_eq!(client.call("Attachments/Append", chunk).await.unwrap()["bytes"], 5);
    let commit = json!({"key": "k", "name": "a", "upload": id, "sha256": sha256(b"hello")});
    assert_eq!(client.call("Attachments/Commit", commit).await.unwrap()["version"], 1);
    let listed = client.call("Attachments/List", json!({"key": "k"})).await.unwrap();
    assert_eq!(listed["attachments"][0]["name"], "a");
    let read = client.call("Attachments/Read", json!({"key": "k", "name": "a", "offset": 1})).await.unwrap();
    assert_eq!(read["content_base64"], BASE64.encode(b"ello"));
    client.call("Attachments/Delete", json!({"key": "k", "name": "a"})).await.unwrap();
    let gone = client.call("Attachments/Read", json!({"key": "k", "name": "a"})).await.unwrap_err();
    assert_eq!(gone.0, "attachment_not_found");
}

#[tokio::test]
async fn a_stream_of_messages_becomes_an_attachment_and_comes_back_as_one() {
    let mut client = with_document().await;
    let bytes = some_bytes(2 * CHUNK + 77);
    let head =
        json!({"key": "k", "name": "a", "content_type": "a/b", "sha256": sha256(&bytes), "if_absent": true});
    let mut messages = vec![head];
    messages.extend(bytes.chunks(CHUNK).map(content));
    let written = upload(&mut client, &messages).await.unwrap();
    assert_eq!(written["version"], 1);

    let asked = json!({"key": "k", "name": "a"});
    let (head, came, trailers) = download(&mut client, asked.clone()).await;
    let told = &head["attachment"];
    assert_eq!((&told["sha256"], &told["etag"]), (&json!(sha256(&bytes)), &written["etag"]));
    assert_eq!((came == bytes, &trailers["grpc-status"]), (true, &"0".parse().unwrap()));
    let part = json!({"key": "k", "name": "a", "offset": CHUNK - 3, "bytes": 7, "if_etag": written["etag"]});
    let (_, came, _) = download(&mut client, part).await;
    assert_eq!(came, bytes[CHUNK - 3..CHUNK + 4]);
    let (_, came, _) = download(&mut client, json!({"key": "k", "name": "a", "offset": 5 * CHUNK})).await;
    assert_eq!(came, b"");

    let small = json!({"key": "k", "name": "small", "content_base64": BASE64.encode(b"first ")});
    upload(&mut client, &[small, content(b""), content(b"second")]).await.unwrap();
    assert_eq!(download(&mut client, json!({"key": "k", "name": "small"})).await.1, b"first second");
    upload(&mut client, &[json!({"key": "k", "name": "empty"})]).await.unwrap();
    assert_eq!(download(&mut client, json!({"key": "k", "name": "empty"})).await.1, b"");
    for (field, value) in [("if_etag", json!("1")), ("name", json!("none"))] {
        let mut asked = asked.clone();
        asked[field] = value;
        assert!(client.call("Attachments/Download", asked).await.is_err(), "{field}");
    }
}

#[tokio::test]
async fn uploads_that_are_refused_leave_nothing() {
    let mut client = with_document().await;
    let head = || json!({"key": "k", "name": "a"});
    let with = |field: &str, value: Value| {
        let mut head = head();
        head[field] = value;
        head
    };
    let other_bytes = with("sha256", json!(sha256(b"other")));
    for (messages, code) in [
        (vec![], "incomplete_body"),
        (vec![json!({"key": "k"}), content(b"x")], "missing_field"),
        (vec![json!({"name": "a"}), content(b"x")], "missing_field"),
        (vec![json!({"key": "none", "name": "a"}), content(b"x")], "document_not_found"),
        (vec![other_bytes, content(b"x")], "digest_mismatch"),
        (vec![with("sha256", json!("x")), content(b"x")], "invalid_argument"),
        (vec![with("if_version", json!(3)), content(b"x")], "version_mismatch"),
        (vec![head(), content(b"x"), head()], "invalid_argument"),
        (vec![head(), content(&vec![0; 2 * CHUNK])], "invalid_protobuf"),
    ] {
        let (found, message, _) = upload(&mut client, &messages).await.unwrap_err();
        assert_eq!(found, code, "{message}");
    }
    let path = "/sluice.v1.Attachments/Upload";
    let cut = client.post(path, Bytes::from_static(&[0, 0, 0, 0, 9, 1])).await.unwrap_err();
    assert_eq!(cut.0, "incomplete_body");
    let uploads = client.call("Attachments/Uploads", head()).await.unwrap();
    assert_eq!(uploads, json!({}), "nothing is left of them");
}

#[tokio::test]
async fn a_download_ends_when_its_reader_loses_the_right() {
    let access = Access::new(AccessOptions::default()).unwrap();
    let address = start(|_, asks| *asks = access).await;
    let mut root = Client::connect(address).await;
    root.token = root.make_token("root", "sluice://ns/*?perm=admin").await;
    root.call("Documents/Put", json!({"key": "k", "content": "x"})).await.unwrap();
    let bytes = some_bytes(16 * CHUNK);
    let mut messages = vec![json!({"key": "k", "name": "a"})];
    messages.extend(bytes.chunks(CHUNK).map(content));
    upload(&mut root, &messages).await.unwrap();
    let mut reader = Client::connect(address).await;
    reader.token = root.make_token("reader", "sluice://ns/default?perm=observer").await;
    let mut frames = reader.stream("Attachments/Download", json!({"key": "k", "name": "a"})).await;
    frames.next().await.unwrap();
    root.revoke_token("reader").await;
    let (came, trailers) = rest(&mut frames, 0).await;
    assert!(came.len() < bytes.len(), "it breaks off");
    assert_eq!(trailers["sluice-code"], "unauthenticated");
}
