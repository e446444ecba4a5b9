//! Scenarios of locks, documents, transactions and errors.

use std::time::Duration;

use serde_json::{Value, json};
use sluice_client::{
    Client, ClientError, Document, DocumentChange, DocumentDelete, DocumentPatch, DocumentPut, DocumentQuery,
    LockRequest, Message, Options, Receive, Transaction,
};
use tokio::time::{sleep, timeout};

use super::support::{LONG, code, counts, eventually, is_empty, message, next, receive, send, texts};

pub(super) async fn lock(client: &Client) {
    let ttl = Duration::from_secs(5);
    let first = client.lock(&LockRequest { ttl, ..LockRequest::new("deploy") }).await.unwrap();
    assert_eq!(code(client.lock(&LockRequest::new("deploy")).await), "lock_held");
    let waiting = tokio::spawn({
        let client = client.clone();
        async move {
            let request = LockRequest { ttl, wait: LONG, owner: "second", ..LockRequest::new("deploy") };
            client.lock(&request).await.unwrap()
        }
    });
    let shown = async || client.lock_show("deploy").await.unwrap();
    eventually("the second one waits", async || shown().await.waiter_count == 1).await;
    assert!(!waiting.is_finished());
    let number = |token: &str| token.parse::<u64>().unwrap();
    let former = number(&first.grant().fencing_token);
    first.release().await.unwrap();
    let second = waiting.await.unwrap();
    assert!(number(&second.grant().fencing_token) > former);
    second.release().await.unwrap();
    assert_eq!(shown().await.holder_count, 0);
}

pub(super) async fn lock_is_renewed(client: &Client) {
    let request = LockRequest { ttl: Duration::from_secs(2), ..LockRequest::new("long") };
    let held = client.lock(&request).await.unwrap();
    assert!(timeout(Duration::from_millis(4_500), held.lost()).await.is_err());
    let holders = client.lock_show("long").await.unwrap().holders;
    assert_eq!(holders[0].fencing_token, held.grant().fencing_token);
    held.release().await.unwrap();
    let held = client.lock(&request).await.unwrap();
    client.lock_break("long").await.unwrap();
    timeout(Duration::from_secs(5), held.lost()).await.unwrap();
    assert_eq!(code(held.release().await), "lease_lost");
}

fn content(document: &Document) -> Value {
    serde_json::from_slice(&document.content).unwrap()
}

async fn patch(client: &Client, change: DocumentChange<'_>) -> u64 {
    client.document_patch("orders/17", &DocumentPatch::new(change)).await.unwrap().version
}

pub(super) async fn documents(client: &Client) {
    let new = DocumentPut {
        history: Some(2),
        attributes: vec![("by", "ann")],
        ..DocumentPut::new(br#"{"state":"new","total":80}"#)
    };
    let first = client.document_put("orders/17", &new).await.unwrap();
    let read = client.document_get("orders/17", None).await.unwrap().unwrap();
    assert_eq!((read.about.version, content(&read)), (1, json!({"state": "new", "total": 80})));
    assert_eq!(read.attributes["by"], "ann");
    let paid = DocumentPut { if_version: Some(1), ..DocumentPut::new(br#"{"state":"paid","total":80}"#) };
    client.document_put("orders/17", &paid).await.unwrap();
    for stale in [
        DocumentPut { if_etag: Some(&first.etag), ..DocumentPut::new(b"{}") },
        DocumentPut { if_absent: true, ..DocumentPut::new(b"{}") },
    ] {
        assert_eq!(code(client.document_put("orders/17", &stale).await), "version_mismatch");
    }
    assert_eq!(patch(client, DocumentChange::Merge(r#"{"draft":true}"#)).await, 3);
    assert_eq!(patch(client, DocumentChange::Patch(r#"[{"op":"remove","path":"/draft"}]"#)).await, 4);
    assert_eq!(patch(client, DocumentChange::Increment(vec![("/total", "20")])).await, 5);
    let read = client.document_get("orders/17", None).await.unwrap().unwrap();
    assert_eq!(content(&read), json!({"state": "paid", "total": 100}));
    let versions = client.document_history("orders/17").await.unwrap();
    assert_eq!(versions.iter().map(|one| one.version).collect::<Vec<_>>(), [5, 4, 3]);
    client.document_put("orders/18", &DocumentPut::new(br#"{"state":"new","total":5}"#)).await.unwrap();
    looked_up(client).await;
    client.document_delete("orders/17", &DocumentDelete::default()).await.unwrap();
    assert_eq!(client.document_get("orders/17", None).await.unwrap(), None);
    assert_eq!(code(client.document_show("orders/17", None).await), "document_not_found");
}

async fn looked_up(client: &Client) {
    let found = async |query: DocumentQuery<'_>| {
        let page = client.document_query(&query).await.unwrap();
        page.documents.into_iter().map(|one| one.about.key).collect::<Vec<_>>()
    };
    let filter = Some(json!({"/total": {"ge": 50}}));
    assert_eq!(
        found(DocumentQuery { filter, prefix: "orders/", ..DocumentQuery::default() }).await,
        ["orders/17"]
    );
    let sort = vec![("/total", true)];
    assert_eq!(found(DocumentQuery { sort, ..DocumentQuery::default() }).await, ["orders/17", "orders/18"]);
    let listed = client.documents("orders/").await.unwrap();
    assert_eq!(listed.iter().map(|one| one.key.as_str()).collect::<Vec<_>>(), ["orders/17", "orders/18"]);
    let all = client.document_changes("orders/", None, Duration::ZERO).await.unwrap();
    assert_eq!(all.changes.len(), 2);
    client.document_delete("orders/18", &DocumentDelete::default()).await.unwrap();
    let next = client.document_changes("orders/", Some(&all.next), LONG).await.unwrap();
    assert_eq!(next.changes.len(), 1, "{next:?}");
}

pub(super) async fn transaction(client: &Client) {
    client.document_put("o/1", &DocumentPut::new(br#"{"state":"new"}"#)).await.unwrap();
    send(client, "q", message("work")).await;
    let got = receive(client, "q", 1).await;
    let receipt = &got[0].receipt;
    let operations = |version| {
        let paid = DocumentPut { if_version: Some(version), ..DocumentPut::new(br#"{"state":"paid"}"#) };
        Transaction::new().ack(receipt).put("o/1", paid).send("out", message("thank you"))
    };
    assert_eq!(code(client.commit(&operations(7), None).await), "version_mismatch");
    let version = async || client.document_show("o/1", None).await.unwrap().about.version;
    assert_eq!((counts(client, "q").await.leased, version().await), (1, 1));
    assert_eq!(code(client.queue("out").await), "queue_not_found");
    let done = client.commit(&operations(1), Some(receipt)).await.unwrap();
    assert_eq!(done.results[1].written.as_ref().unwrap().version, 2);
    assert!(done.results[2].id.is_some() && !done.duplicate);
    assert!(client.commit(&operations(1), Some(receipt)).await.unwrap().duplicate);
    assert!(is_empty(client, "q").await);
    assert_eq!(texts(&receive(client, "out", 5).await), ["thank you"]);
    over_several_calls(client).await;
}

/// Operations that are staged, with reads in between.
async fn over_several_calls(client: &Client) {
    send(client, "q", message("more")).await;
    let open = client.transaction_begin(LONG).await.unwrap().transaction;
    let got = client.transaction_receive(&open, &Receive::from_queue("q").wait(LONG)).await.unwrap();
    assert_eq!(texts(&got), ["more"]);
    client.transaction_stage(&open, &Transaction::new().put("o/2", DocumentPut::new(b"{}"))).await.unwrap();
    assert_eq!(client.document_get("o/2", None).await.unwrap(), None);
    client.transaction_commit(&open).await.unwrap();
    assert!(client.document_get("o/2", None).await.unwrap().is_some() && is_empty(client, "q").await);
    let open = client.transaction_begin(LONG).await.unwrap().transaction;
    let delete = Transaction::new().delete("o/2", DocumentDelete::default());
    client.transaction_stage(&open, &delete).await.unwrap();
    client.transaction_rollback(&open).await.unwrap();
    assert!(client.document_get("o/2", None).await.unwrap().is_some());
}

pub(super) async fn errors(client: &Client) {
    let missing = client.queue("none").await.unwrap_err();
    let ClientError::Server { status, code: told, message: text, details, .. } = &missing else {
        panic!("{missing}")
    };
    assert_eq!((*status, told.as_str(), &details["queue"]), (404, "queue_not_found", &json!("none")));
    assert!(text.contains("none"));
    assert_eq!(code(client.send("no such name!", &[message("x")]).await), "invalid_name");
    assert_eq!(code(client.ack("nonsense").await), "invalid_receipt");
    let large = vec![b'x'; 2 << 20];
    assert_eq!(code(client.send("q", &[Message::new(&large)]).await), "payload_too_large");
    client.document_put("text", &DocumentPut::new(br#"{"n":"text"}"#)).await.unwrap();
    let increment = DocumentPatch::new(DocumentChange::Increment(vec![("/n", "1")]));
    assert_eq!(code(client.document_patch("text", &increment).await), "patch_failed");
    send(client, "q", message("x")).await;
    let lease = Some(Duration::from_millis(50));
    let got = client.receive(&Receive::from_queue("q").lease(lease)).await.unwrap();
    sleep(Duration::from_millis(100)).await;
    assert_eq!(code(client.extend(&got[0].receipt, None).await), "lease_lost");
    assert_eq!(next(client, "q").await.attempt, 2);
    let options = Options { connect_retry_for: Duration::from_millis(100), ..Options::default() };
    let nobody = Client::with_options("http://127.0.0.1:1", options).unwrap();
    assert!(nobody.send("q", &[message("x")]).await.unwrap_err().is_transport());
}
