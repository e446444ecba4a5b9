use sluice_engine::limits::UPLOAD_CHUNK_BYTES_MAX;

use super::attaching::{Asked, Attaching};
use super::*;
use crate::documents::Put;
use crate::error::Detail;
use crate::operation::Operation;
use crate::testing::Open;

fn put() -> Put {
    serde_json::from_value(json!({"content": "x"})).unwrap()
}

fn chunk(upload: &str, offset: u64, content: &[u8]) -> Chunk {
    Chunk {
        upload: Some(upload.to_owned()),
        offset: Some(Within::clamped(offset)),
        content_base64: Some(Octets::from(content)),
    }
}

#[tokio::test]
async fn what_was_uploaded_is_attached_and_read() {
    let server = Open::new();
    put().run(&server.permit(Operation::DocumentPut, "k")).await.unwrap();
    let permit = server.permit(Operation::UploadBegin, "k");
    let begin = Begin { name: Some("a".to_owned()), content_type: Some("text/plain".to_owned()) };
    let upload = begin.run(&permit).await.unwrap().answer.upload;
    let first = vec![b'a'; UPLOAD_CHUNK_BYTES_MAX];
    assert_eq!(chunk(&upload, 0, &first).run(&permit).await.unwrap().answer.bytes, first.len() as u64);
    assert_eq!(chunk(&upload, 0, &first).run(&permit).await.unwrap().answer.bytes, first.len() as u64);
    let wrong = chunk(&upload, 1, b"x").run(&permit).await.unwrap_err();
    assert_eq!(wrong.code(), "upload_offset");
    for (wrong, code) in [(0, "invalid_argument"), (first.len() + 1, "payload_too_large")] {
        let error = chunk(&upload, first.len() as u64, &vec![b'a'; wrong]).run(&permit).await.unwrap_err();
        let field = error.details().iter().next().cloned();
        assert_eq!(
            field,
            Some(("field", Detail::Text("content_base64".to_owned()))),
            "as the request has it"
        );
        assert_eq!(error.code(), code);
        assert!(error.message().starts_with("content_base64: "), "{}", error.message());
    }
    chunk(&upload, first.len() as u64, b"end").run(&permit).await.unwrap();
    let uploads = Uploads { name: Some("a".to_owned()), upload: None }.run(&permit).await.unwrap().answer;
    let sha256 = hex(ring::digest::digest(&ring::digest::SHA256, &[&first[..], b"end"].concat()).as_ref());
    assert_eq!((uploads.uploads[0].bytes, &uploads.uploads[0].sha256), (first.len() as u64 + 3, &sha256));
    let (name, upload) = (Some("a".to_owned()), Some(upload));
    let commit = Commit { name, upload, sha256: Some(SHA256_EXAMPLE.to_owned()), ..Commit::default() };
    assert_eq!(commit.clone().run(&permit).await.unwrap_err().code(), "digest_mismatch");
    let commit = Commit { sha256: Some(sha256.clone()), ..commit };
    let done = commit.clone().run(&permit).await.unwrap();
    assert!(done.created());
    assert_eq!(commit.run(&permit).await.unwrap().answer, done.answer, "a repeat");
    let list = List::default().run(&permit).await.unwrap().answer;
    assert_eq!((list.attachments.len(), &list.attachments[0].sha256), (1, &sha256));
    let read = reading::find(&permit, Some("a")).await.unwrap();
    let end = first.len() as u64 + 3;
    let mut stream = reading::stream(&permit, read, (end - 5, end - 1), |error| error).unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = stream.recv().await {
        bytes.extend_from_slice(&piece.unwrap());
    }
    assert_eq!(bytes, b"aaen");
    let delete = Delete { name: Some("a".to_owned()), ..Delete::default() };
    delete.clone().run(&permit).await.unwrap();
    assert_eq!(delete.run(&permit).await.unwrap_err().code(), "attachment_not_found");
}

#[tokio::test]
async fn the_upload_of_one_request_ends_with_it() {
    let server = Open::new();
    put().run(&server.permit(Operation::DocumentPut, "k")).await.unwrap();
    let permit = server.permit(Operation::AttachmentPutRaw, "k");
    let uploads = async || {
        let named = Uploads { name: Some("a".to_owned()), upload: None };
        named.run(&permit).await.unwrap().answer.uploads.len()
    };
    let when = Asked::default().when().unwrap();
    let mut attaching = Attaching::begin(&permit, "a", "", &when).await.unwrap();
    attaching.add(b"x").await.unwrap();
    assert_eq!(uploads().await, 1);
    drop(attaching);
    while uploads().await > 0 {
        tokio::task::yield_now().await;
    }
    let mut attaching = Attaching::begin(&permit, "a", "", &when).await.unwrap();
    attaching.add(b"x").await.unwrap();
    assert!(attaching.commit(None, when).await.unwrap().1, "it is new");
    drop(attaching);
    assert_eq!(reading::find(&permit, Some("a")).await.unwrap().bytes, 1);
}

#[tokio::test]
async fn an_upload_belongs_to_its_document() {
    let server = Open::new();
    let permit = server.permit(Operation::UploadBegin, "k");
    let begin = Begin { name: Some("a".to_owned()), ..Begin::default() };
    let upload = begin.run(&permit).await.unwrap().answer.upload;
    let other = server.permit(Operation::UploadChunk, "other");
    assert_eq!(chunk(&upload, 0, b"x").run(&other).await.unwrap_err().code(), "upload_not_found");
    let end = End { upload: Some(upload) };
    assert_eq!(end.clone().run(&other).await.unwrap_err().code(), "upload_not_found");
    let turns = permit.calls().chunk_turns();
    let all = turns.try_acquire_many(turns.available_permits() as u32).unwrap();
    let waiting = End::clone(&end).upload.unwrap();
    assert_eq!(chunk(&waiting, 0, b"x").run(&permit).await.unwrap_err().code(), "overloaded");
    drop(all);
    chunk(&waiting, 0, b"x").run(&permit).await.unwrap();
    end.run(&permit).await.unwrap();
    for (wrong, code) in [(chunk("x", 0, b"x"), "invalid_argument"), (Chunk::default(), "missing_field")] {
        assert_eq!(wrong.run(&permit).await.unwrap_err().code(), code);
    }
    let commit = Commit { name: Some("a".to_owned()), sha256: Some("x".to_owned()), ..Commit::default() };
    assert_eq!(commit.run(&permit).await.unwrap_err().code(), "missing_field");
}
