//! Attachments of many chunks, and documents of many attachments, are let go of in slices; also by an engine
//! that is restored between two of them.

#![allow(clippy::unwrap_used)]

mod common;

use common::Driver;
use sluice_engine::attachments::{AttachmentCommit, UploadBegin, UploadChunk, UploadId};
use sluice_engine::command::{DocumentDelete, DocumentPut, Transaction};
use sluice_engine::documents::DocumentCondition;
use sluice_engine::id::NamespaceId;
use sluice_engine::limits::{DOCUMENT_ATTACHMENTS_MAX, NAMESPACE_UPLOADS_MAX, UPLOAD_CHUNKS_MAX};
use sluice_engine::outcome::Reply;
use sluice_engine::settings::Quotas;
use sluice_engine::{BEHAVIOUR_VERSION, Command, Engine};

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
/// Most chunks that one record may let go of: a slice, and an extent more.
const SLICE: usize = 256 + 64;

fn driver() -> Driver {
    let mut driver = Driver::new();
    driver.apply(0, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    let put = DocumentPut {
        namespace: NAMESPACE,
        key: "k",
        when: DocumentCondition::default(),
        ttl_ms: None,
        history: None,
        request: 0,
        content_type: "",
        attributes: &[],
        content: b"x",
        terms: &[],
    };
    driver.apply(0, &Command::DocumentPut(put));
    driver.apply(0, &Command::DocumentPut(DocumentPut { key: "other", ..put }));
    driver
}

fn begin(driver: &mut Driver, namespace: NamespaceId, key: &str, name: &str) {
    driver.apply(0, &Command::UploadBegin(UploadBegin { namespace, key, name, content_type: "" }));
}

fn upload(driver: &mut Driver, name: &str, chunks: u32) -> UploadId {
    upload_of(driver, "k", name, chunks)
}

fn upload_of(driver: &mut Driver, key: &str, name: &str, chunks: u32) -> UploadId {
    begin(driver, NAMESPACE, key, name);
    let Reply::UploadBegun { upload } = driver.out.reply else { panic!("{:?}", driver.out.error) };
    for offset in 0..chunks {
        append(driver, upload, offset.into());
        assert_eq!(driver.out.error, None);
    }
    upload
}

fn append(driver: &mut Driver, upload: UploadId, offset: u64) {
    let (namespace, hash, sha256, content) = (NAMESPACE, &b"h"[..], [1; 32], &b"c"[..]);
    let chunk = UploadChunk { namespace, upload, offset, request: 0, hash, sha256, content };
    driver.apply(0, &Command::UploadChunk(chunk));
}

fn committing<'a>(key: &'a str, name: &'a str, upload: UploadId) -> Command<'a> {
    let (bytes, sha256, when) = (None, None, DocumentCondition::default());
    let commit = AttachmentCommit { namespace: NAMESPACE, key, name, upload, bytes, sha256, when };
    Command::AttachmentCommit(commit)
}

fn commit(driver: &mut Driver, name: &str, upload: UploadId) {
    driver.apply(0, &committing("k", name, upload));
}

fn refusal(driver: &Driver) -> Option<&'static str> {
    driver.out.error.as_ref().map(|error| error.code())
}

fn restart(driver: &mut Driver) {
    let mut bytes = Vec::new();
    driver.engine.snapshot_begin();
    while !driver.engine.snapshot_step(1_000, &mut bytes) {}
    let mut piece = Some(bytes);
    let digest = driver.engine.digest();
    driver.engine = Engine::restore(&mut || piece.take()).unwrap();
    assert_eq!(driver.engine.digest(), digest);
}

/// Ticks until nothing is due at once; returns the number of ticks.
fn tick_all(driver: &mut Driver) -> usize {
    let mut ticks = 0;
    while driver.engine.next_deadline().is_some_and(|due_us| due_us == 0) {
        restart(driver);
        driver.apply(0, &Command::Tick);
        assert!(driver.out.released.len() <= SLICE, "{}", driver.out.released.len());
        driver.engine.recount().unwrap();
        ticks += 1;
    }
    ticks
}

#[test]
fn chunks_go_in_slices() {
    let mut driver = driver();
    let first = upload(&mut driver, "a", UPLOAD_CHUNKS_MAX);
    append(&mut driver, first, UPLOAD_CHUNKS_MAX.into());
    assert_eq!(refusal(&driver), Some("limit_exceeded"));
    commit(&mut driver, "a", first);
    driver.engine.recount().unwrap();
    let chunks = |driver: &Driver, from| {
        let view = driver.engine.attachment(NAMESPACE, "k", "a").unwrap();
        driver.engine.attachment_chunks(NAMESPACE, ("k", "a"), view.version.revision, from, 3).unwrap()
    };
    assert_eq!(
        chunks(&driver, 9_999).iter().map(|chunk| chunk.start).collect::<Vec<_>>(),
        [9_999, 10_000, 10_001]
    );
    let second = upload(&mut driver, "a", 2);
    commit(&mut driver, "a", second);
    assert_eq!(driver.out.released, []);
    assert_eq!(chunks(&driver, 1).len(), 1);
    assert!(tick_all(&mut driver) >= UPLOAD_CHUNKS_MAX as usize / SLICE);
    assert_eq!(driver.blobs.len(), 4, "the documents and two chunks");
}

#[test]
fn attachments_go_in_slices_with_their_document() {
    let mut driver = driver();
    for number in 0..DOCUMENT_ATTACHMENTS_MAX {
        let name = number.to_string();
        let begun = upload(&mut driver, &name, 1);
        commit(&mut driver, &name, begun);
    }
    let one_more = upload(&mut driver, "more", 1);
    commit(&mut driver, "more", one_more);
    assert_eq!(refusal(&driver), Some("limit_exceeded"));
    let delete = DocumentDelete { namespace: NAMESPACE, key: "k", when: DocumentCondition::default() };
    driver.apply(0, &Command::DocumentDelete(delete));
    assert_eq!(driver.out.released.len(), 1, "the document");
    assert!(tick_all(&mut driver) >= DOCUMENT_ATTACHMENTS_MAX as usize / 256);
    assert_eq!(driver.blobs.len(), 2, "that of the upload, and the other document");
}

#[test]
fn one_namespace_leaves_uploads_to_others() {
    let mut driver = driver();
    for number in 0..NAMESPACE_UPLOADS_MAX {
        begin(&mut driver, NAMESPACE, "k", &number.to_string());
        assert_eq!(refusal(&driver), None);
    }
    restart(&mut driver);
    begin(&mut driver, NAMESPACE, "k", "more");
    assert_eq!(refusal(&driver), Some("limit_exceeded"));
    let create =
        Command::NamespaceCreate { number: None, name: "other", shard: 0, quotas: Quotas::default() };
    driver.apply(0, &create);
    let Reply::Namespace { namespace } = driver.out.reply else { panic!("{:?}", driver.out.error) };
    begin(&mut driver, namespace, "k", "a");
    assert_eq!(refusal(&driver), None);
    driver.engine.recount().unwrap();
    let number = driver.engine.uploads_for(NAMESPACE, "k", "0", 1)[0].id;
    driver.apply(0, &Command::UploadEnd { namespace: NAMESPACE, upload: number });
    begin(&mut driver, NAMESPACE, "k", "more");
    assert_eq!(refusal(&driver), None);
    driver.engine.recount().unwrap();
}

#[test]
fn a_transaction_counts_the_new_attachments_of_each_document() {
    let mut driver = driver();
    for number in 2..DOCUMENT_ATTACHMENTS_MAX {
        let name = number.to_string();
        let begun = upload(&mut driver, &name, 0);
        commit(&mut driver, &name, begun);
    }
    // Room for two, beside one that is replaced and three of another document.
    let names = [("other", "a"), ("other", "b"), ("other", "c"), ("k", "2"), ("k", "x"), ("k", "y")];
    let uploads = names.map(|(key, name)| upload_of(&mut driver, key, name, 0));
    let mut operations: Vec<Command<'_>> =
        names.iter().zip(uploads).map(|((key, name), upload)| committing(key, name, upload)).collect();
    let more = upload(&mut driver, "z", 0);
    operations.push(committing("k", "z", more));
    let mut whole = Transaction {
        namespace: NAMESPACE,
        idempotency_key: b"",
        request_digest: 0,
        operations: &operations,
    };
    driver.apply(0, &Command::Transaction(whole));
    assert_eq!((refusal(&driver), driver.out.refused_at), (Some("limit_exceeded"), Some(6)));
    whole.operations = &operations[..6];
    driver.apply(0, &Command::Transaction(whole));
    assert_eq!(refusal(&driver), None);
    driver.engine.recount().unwrap();
}

#[test]
fn a_repeated_commit_of_other_bytes_is_refused() {
    let mut driver = driver();
    let begun = upload(&mut driver, "a", 1);
    let when = DocumentCondition::default();
    let (bytes, sha256) = (Some(1), Some([1; 32]));
    let first =
        AttachmentCommit { namespace: NAMESPACE, key: "k", name: "a", upload: begun, bytes, sha256, when };
    for (commit, refused) in [
        (first, None),
        (first, None),
        (AttachmentCommit { bytes: None, sha256: None, ..first }, None),
        (AttachmentCommit { bytes: Some(2), ..first }, Some("upload_incomplete")),
        (AttachmentCommit { sha256: Some([2; 32]), ..first }, Some("digest_mismatch")),
    ] {
        driver.apply(0, &Command::AttachmentCommit(commit));
        assert_eq!(refusal(&driver), refused, "{commit:?}");
    }
    driver.engine.recount().unwrap();
}
