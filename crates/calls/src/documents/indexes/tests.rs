//! A query by an index finds what the same query finds by looking at all documents.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::documents::query::tests::{behind, query};
use crate::documents::{Delete as DeleteDocument, Put as PutDocument};
use crate::operation::Operation;
use crate::testing::{Open, Random};

const KEYS: usize = 60;

async fn declare(server: &Open, name: &str, pointer: &str) -> Value {
    let put = Put { pointer: Some(pointer.to_owned()) };
    let index = put.run(&server.permit(Operation::DocumentIndexPut, name)).await.unwrap().answer;
    serde_json::to_value(index).unwrap()
}

async fn states(server: &Open) -> Vec<State> {
    let listed = List {}.run(&server.permit(Operation::DocumentIndexList, "")).await.unwrap().answer;
    listed.indexes.into_iter().map(|index| index.state).collect()
}

async fn put(server: &Open, key: &str, content: &str) {
    let put = serde_json::from_value::<PutDocument>(json!({ "content": content })).unwrap();
    put.run(&server.permit(Operation::DocumentPut, key)).await.unwrap();
}

/// The keys of all pages, and the indexes that were used.
async fn found(
    server: &Open,
    filter: &Value,
    sort: &[(&str, bool)],
    limit: usize,
) -> (Vec<String>, BTreeSet<String>) {
    let first = query(&filter.to_string(), sort, limit as u64);
    let (mut keys, mut indexes, mut after) = (Vec::new(), BTreeSet::new(), None);
    loop {
        let permit = server.permit(Operation::DocumentQuery, "");
        let page = behind(&first, after).run(&permit).await.unwrap().answer;
        let page = serde_json::to_value(page).unwrap();
        let documents = page["documents"].as_array().unwrap();
        keys.extend(documents.iter().map(|document| document["key"].as_str().unwrap().to_owned()));
        indexes.extend(page["index"].as_str().map(str::to_owned));
        after = page["next"].as_str().map(str::to_owned);
        if after.is_none() {
            return (keys, indexes);
        }
    }
}

fn scalar(random: &mut Random) -> Value {
    match random.below(9) {
        0 => json!(null),
        1 => json!(random.below(2) == 1),
        2 | 3 => json!(random.below(5)),
        4 => json!(random.below(5) as f64 - 1.5),
        5 => one_of(random, &["", "a", "ab", "abcdefgh", "abcdefghi", "b"]).into(),
        6 => one_of(random, &["2026-01-01T00:00:00Z", "2026-11-27"]).into(),
        _ => json!(format!("t{}", random.below(4))),
    }
}

fn value(random: &mut Random) -> Value {
    match random.below(8) {
        0 => Value::Array((0..random.below(4)).map(|_| scalar(random)).collect()),
        1 => json!({ "b": scalar(random) }),
        _ => scalar(random),
    }
}

fn content(random: &mut Random) -> String {
    let content = match random.below(8) {
        0 => return "no JSON {".to_owned(),
        1 => json!({ "b": value(random) }),
        2 => json!({ "a": value(random) }),
        3 => json!([value(random)]),
        4 => json!({"a": (0..random.below(90)).collect::<Vec<_>>(), "b": value(random)}),
        _ => json!({"a": value(random), "b": value(random)}),
    };
    content.to_string()
}

/// One of some texts.
fn one_of(random: &mut Random, texts: &[&'static str]) -> &'static str {
    texts[random.below(texts.len())]
}

fn condition(random: &mut Random) -> Value {
    let (bound, text) =
        (one_of(random, &["lt", "le", "gt", "ge"]), one_of(random, &["", "a", "abcdefgh", "b", "t", "t2"]));
    match random.below(8) {
        0 => json!({ "contains": scalar(random) }),
        1 => json!({ "in": [scalar(random), scalar(random)] }),
        2 => json!({ bound: random.below(5) }),
        3 => json!({ bound: text }),
        4 => json!({ "prefix": text }),
        5 => json!({ "exists": random.below(2) == 1 }),
        _ => json!({ "eq": scalar(random) }),
    }
}

fn filter(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 3 } else { 7 }) {
        0..3 => json!({ one_of(random, &["/a", "/b"]): condition(random) }),
        3 => json!({ "or": [filter(random, depth - 1), filter(random, depth - 1)] }),
        4 => json!({ "not": filter(random, depth - 1) }),
        _ => json!({ "and": [filter(random, depth - 1), filter(random, depth - 1)] }),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_by_an_index_finds_what_a_scan_does() {
    let (indexed, scanned) = (Open::new(), Open::new());
    let builder = tokio::spawn(keep_indexes(indexed.node().clone()));
    let (mut random, mut used) = (Random(27), BTreeSet::new());
    for round in 0..12 {
        for _ in 0..60 {
            let (key, content) = (format!("k{}", random.below(KEYS)), content(&mut random));
            put(&indexed, &key, &content).await;
            put(&scanned, &key, &content).await;
        }
        if round % 5 == 1 {
            declare(&indexed, "a", "/a").await;
            declare(&indexed, "b", ["/a", "/b"][round / 5 % 2]).await;
        }
        let key = format!("k{}", random.below(KEYS));
        for server in [&indexed, &scanned] {
            let _ = DeleteDocument::default().run(&server.permit(Operation::DocumentDelete, &key)).await;
        }
        for _ in 0..60 {
            let filter = filter(&mut random, 2);
            let sort: &[(&str, bool)] = [&[][..], &[("/b", true)]][random.below(2)];
            let limit = 1 + random.below(20);
            let (by_index, indexes) = found(&indexed, &filter, sort, limit).await;
            let (by_scan, _) = found(&scanned, &filter, sort, limit).await;
            assert_eq!(by_index, by_scan, "{filter} {sort:?}");
            used.extend(indexes);
        }
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    assert_eq!(used.into_iter().collect::<Vec<_>>(), ["a", "b"]);
    builder.abort();
}

#[tokio::test]
async fn an_index_that_is_built_later_knows_what_was_there_before() {
    let server = Open::new();
    for at in 0..2_500 {
        put(&server, &format!("k{at}"), &json!({"a": at % 250}).to_string()).await;
    }
    let filter = json!({"/a": 7});
    assert_eq!(declare(&server, "a", "/a").await["state"], "building");
    let (keys, indexes) = found(&server, &filter, &[], 1_000).await;
    assert!(keys.len() == 10 && indexes.is_empty());
    let builder = tokio::spawn(keep_indexes(server.node().clone()));
    while states(&server).await != [State::Ready] {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let (by_index, indexes) = found(&server, &filter, &[], 1_000).await;
    assert_eq!((by_index, indexes.len()), (keys, 1));
    builder.abort();
    let many = json!({"/a": {"ge": 0}});
    assert_eq!(found(&server, &many, &[], 1_000).await.0.len(), 2_500);
}

#[tokio::test]
async fn bad_indexes_are_refused() {
    let server = Open::new();
    for (pointer, code) in [(None, "missing_field"), (Some("a"), "invalid_argument")] {
        let put = Put { pointer: pointer.map(str::to_owned) };
        let refused = put.run(&server.permit(Operation::DocumentIndexPut, "x")).await;
        assert_eq!(refused.unwrap_err().code(), code);
    }
    let put = Put { pointer: Some("/a".to_owned()) };
    let refused = put.run(&server.permit(Operation::DocumentIndexPut, "a b")).await;
    assert_eq!(refused.unwrap_err().code(), "invalid_name");
    let refused = Delete {}.run(&server.permit(Operation::DocumentIndexDelete, "x")).await;
    assert_eq!(refused.unwrap_err().code(), "index_not_found");
    assert_eq!(states(&server).await, []);
}
