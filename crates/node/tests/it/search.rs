//! Searches: a filter finds the messages that it describes, page by page, and tells how far it is.

use std::sync::Arc;

use sluice_engine::Error;
use sluice_engine::command::{SendItem, SettleItem, Settlement};
use sluice_engine::id::NamespaceId;
use sluice_engine::item::SendOptions;
use sluice_engine::limit::Cost;
use sluice_node::Node;
use sluice_node::search::{Found, MessageFilter, Search};

use crate::support::{memory, receive, send, sending, settle};

fn search(node: &Node, queue: &str, filter: &str) -> Search {
    Search {
        namespace: NamespaceId::DEFAULT,
        queue: queue.into(),
        filter: Arc::new(MessageFilter::parse(filter).unwrap()),
        now_ms: node.clock().now_ms(),
    }
}

/// The payloads of all messages that match, as texts.
async fn found(node: &Node, filter: &str) -> String {
    let search = search(node, "q", filter);
    let found = node.search(&search, None, 1_000).await.unwrap();
    assert_eq!(found.next, None, "{filter}");
    let all = node.found(&search, &found.hits, true).await.unwrap();
    let payload = |blob: &[u8]| {
        let blob = sluice_engine::blob::MessageBlob::parse(blob).unwrap();
        String::from_utf8_lossy(blob.payload).into_owned()
    };
    all.iter().map(|stored| payload(stored.blob.as_ref().unwrap())).collect::<Vec<_>>().join(" ")
}

async fn nack(node: &Node, queue: &str, error: &str) {
    let taken = receive(node, queue, 1, 0).await.unwrap();
    let item = SettleItem {
        receipt: taken[0].delivery.receipt,
        settlement: Settlement::Nack { delay_ms: Some(60_000) },
        error,
        result: None,
        add_cost: 0,
    };
    node.settle(NamespaceId::DEFAULT, &[item]).await.unwrap()[0].as_ref().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_field_is_found() {
    let node = memory();
    let keys = SendOptions {
        ordering_key: b"k/1",
        fair_key: b"ann",
        limit_key: b"\xff",
        correlation_id: b"c-7",
        reply_to: "answers",
        cost: Cost(3),
        hold: true,
        ..SendOptions::default()
    };
    let items = [
        SendItem { payload: b"1", priority: 9, tags: &["red", "b"], ..SendItem::default() },
        SendItem {
            payload: b"{\"a\":{\"b\":[1,\"x\"]}}",
            content_type: "application/json",
            headers: &[("to", "ann"), ("to", "bob"), ("n", "1")],
            ..SendItem::default()
        },
        SendItem { payload: b"three", options: Some(&keys), ..SendItem::default() },
    ];
    node.send(&sending(NamespaceId::DEFAULT, "q", &items)).await.unwrap();
    nack(&node, "q", "smtp: 451\ntry later, 12345").await;
    let json = "{\"a\":{\"b\":[1,\"x\"]}}";
    for (filter, expected) in [
        (r#"{}"#, format!("1 {json} three")),
        (r#"{"/priority":{"ge":1}}"#, "1".to_owned()),
        (r#"{"/state":"held"}"#, "three".to_owned()),
        (r#"{"/state":{"in":["held","ready"]}}"#, format!("{json} three")),
        (r#"{"/attempts":1,"/deliveries":1}"#, "1".to_owned()),
        (r#"{"/deadline_ms":{"gt":{"now":"30s"}}}"#, "1".to_owned()),
        (
            r#"{"/sent_at_ms":{"gt":{"now":"-1h"},"le":{"now":"1s"}},"/size_bytes":{"lt":9}}"#,
            "three".to_owned(),
        ),
        (r#"{"/tags":{"contains":"red"}}"#, "1".to_owned()),
        (r#"{"/tags":{"eq":[]}}"#, format!("{json} three")),
        (r#"{"/tags/1":"b"}"#, "1".to_owned()),
        (r#"{"/headers/n":"1"}"#, json.to_owned()),
        (r#"{"/headers/to":{"contains":"bob"}}"#, json.to_owned()),
        (r#"{"/content_type":{"prefix":"application/"}}"#, json.to_owned()),
        (r#"{"/payload/a/b/1":"x"}"#, json.to_owned()),
        (r#"{"/payload":1}"#, "1".to_owned()),
        (r#"{"/payload":{"exists":false}}"#, "three".to_owned()),
        (r#"{"/payload_text":{"contains":"hre"}}"#, "three".to_owned()),
        (r#"{"/error":{"contains":"451"}}"#, "1".to_owned()),
        (r#"{"/errors":{"contains":"later"}}"#, "1".to_owned()),
        (r#"{"/error":{"exists":false},"not":{"/state":"held"}}"#, json.to_owned()),
        (r#"{"/ordering_key":"k/1","/fair_key":"ann","/correlation_id":"c-7"}"#, "three".to_owned()),
        (r#"{"/limit_key":"\ufffd","/reply_to":"answers","/cost":3}"#, "three".to_owned()),
        (r#"{"/reason":"hold","/cancelled":false}"#, "three".to_owned()),
        (r#"{"/unique_key":{"exists":true}}"#, String::new()),
        (r#"{"or":[{"/state":"held"},{"/payload_text":"1"}]}"#, "1 three".to_owned()),
        (r#"{"not":{"/payload_text":"1"}}"#, format!("{json} three")),
    ] {
        assert_eq!(found(&node, filter).await, expected, "{filter}");
    }
    nack(&node, "q", "smtp: 451\nanother line").await;
    let of_first = format!("{:016x}", sluice_engine::error_fingerprint(b"smtp: 451"));
    let alike = found(&node, &format!("{{\"/error_fingerprint\":\"{of_first}\"}}")).await;
    assert_eq!(alike, format!("1 {json}"), "the first line decides");
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_found_in_bytes_that_are_no_text() {
    let node = memory();
    send(&node, "q", &[b"\xff\xfe needle \x00", b"{\"needle\":", b"hay"]).await;
    assert_eq!(found(&node, r#"{"/payload_text":{"contains":"needle"}}"#).await.matches("needle").count(), 2);
    assert_eq!(found(&node, r#"{"/payload_text":{"contains":" needle \u0000"}}"#).await.len(), 15);
}

/// A search of all pages, which does `between` after each.
async fn pages(node: &Node, search: &Search, limit: usize, mut between: impl AsyncFnMut()) -> Vec<Found> {
    let (mut all, mut next) = (Vec::new(), None);
    loop {
        let page = node.search(search, next, limit).await.unwrap();
        next = page.next;
        all.push(page);
        if next.is_none() {
            return all;
        }
        between().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_message_that_stays_is_found_once_whatever_others_do() {
    let node = memory();
    let texts: Vec<String> = (0..3_000).map(|n| format!("{{\"n\":{n},\"odd\":{}}}", n % 2)).collect();
    let payloads: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    send(&node, "q", &payloads).await;
    let odd = search(&node, "q", r#"{"/payload/odd":1,"/state":"ready"}"#);
    let pages = pages(&node, &odd, 70, async || {
        // The first in line are taken, and more come behind the end.
        let taken = receive(&node, "q", 20, 0).await.unwrap();
        assert!(settle(&node, &taken, Settlement::Ack).await.iter().all(Result::is_ok));
        send(&node, "q", &[b"{\"odd\":0}"]).await;
    })
    .await;
    let mut ids: Vec<_> = pages.iter().flat_map(|page| &page.hits).map(|hit| hit.view.id).collect();
    let scanned: u64 = pages.iter().map(|page| page.scanned).sum();
    assert!(ids.is_sorted() && pages.len() > 20, "{}", pages.len());
    ids.dedup();
    // The receives run ahead of the search nowhere: it passes 140 messages a page, they take 20.
    assert_eq!((ids.len(), pages[0].total), (1_500, 3_000));
    assert!(scanned >= 3_000, "{scanned}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_tells_how_far_it_is() {
    let node = memory();
    let payloads: Vec<&[u8]> = vec![b"x"; 1_000];
    send(&node, "q", &payloads).await;
    nack(&node, "q", "first").await;
    let all = search(&node, "q", "{}");
    let page = node.search(&all, None, 10).await.unwrap();
    assert_eq!((page.hits.len(), page.scanned, page.total), (10, 10, 1_000));
    let page = node.search(&all, page.next, 1_000).await.unwrap();
    assert_eq!((page.hits.len(), page.scanned, page.next), (990, 990, None));
    let delayed = search(&node, "q", r#"{"/state":"delayed"}"#);
    let page = node.search(&delayed, None, 10).await.unwrap();
    assert_eq!((page.hits.len(), page.scanned, page.total, page.next), (1, 1, 1, None));
    let none = search(&node, "q", r#"{"/payload_text":"y"}"#);
    let pages = pages(&node, &none, 10, async || {}).await;
    assert_eq!(pages.iter().map(|page| page.scanned).sum::<u64>(), 1_000);
    let missing = node.search(&search(&node, "none", "{}"), None, 1).await.unwrap_err();
    assert!(matches!(missing, Error::QueueNotFound { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_changed_since_it_was_found_is_not_shown_as_what_it_was() {
    let node = memory();
    send(&node, "q", &[b"1", b"2", b"3"]).await;
    let ready = search(&node, "q", r#"{"/state":"ready"}"#);
    let found = node.search(&ready, None, 10).await.unwrap();
    let taken = receive(&node, "q", 2, 0).await.unwrap();
    settle(&node, &taken[..1], Settlement::Ack).await;
    let shown = node.found(&ready, &found.hits, false).await.unwrap();
    assert_eq!(shown.iter().map(|one| one.view.id).collect::<Vec<_>>(), [found.hits[2].view.id]);
}
