//! Namespaces and their placement on shards.

use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::command::SendItem;
use sluice_engine::id::NamespaceId;
use sluice_engine::settings::Quotas;
use sluice_node::Node;
use sluice_node::api::ReceiveOptions;

use crate::support::{memory, options, payloads, receive_in, sending};
use crate::waits::{LONG_MS, soon, until_receives_wait};

#[tokio::test]
async fn namespaces_spread_over_shards_and_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut three = options(Some(dir.path()));
    three.shards = 3;
    let node = Node::start(three.clone()).unwrap();
    let mut shards = Vec::new();
    for name in ["a", "b", "c"] {
        let view = node.namespace_create(name, None, Quotas::default()).await.unwrap();
        shards.push(view.shard);
        let items = [SendItem { payload: name.as_bytes(), ..SendItem::default() }];
        node.send(&sending(view.id, "jobs", &items)).await.unwrap();
    }
    shards.sort_unstable();
    assert_eq!(shards, [0, 1, 2]);
    let pinned = node.namespace_create("d", Some(2), Quotas::default()).await.unwrap();
    assert_eq!(pinned.shard, 2);
    node.shutdown(Duration::from_secs(5)).await.unwrap();

    let node = Node::start(three).unwrap();
    let names: Vec<_> = node.namespaces().await.unwrap().into_iter().map(|view| view.name).collect();
    assert_eq!(names, ["$sys", "a", "b", "c", "d", "default"]);
    for name in ["a", "b", "c"] {
        let namespace = node.namespace_id(name).unwrap();
        let taken = receive_in(&node, namespace, "jobs", 10, 0).await.unwrap();
        assert_eq!(payloads(&taken), [name.as_bytes()]);
    }
}

#[tokio::test]
async fn creating_and_deleting_have_their_errors() {
    let node = Node::start(options(None)).unwrap();
    let create = |name, shard| node.namespace_create(name, shard, Quotas::default());
    assert!(matches!(create("default", None).await, Err(Error::NamespaceExists { .. })));
    assert!(matches!(create("$own", None).await, Err(Error::InvalidName { .. })));
    assert!(matches!(create("far", Some(9)).await, Err(Error::InvalidArgument { .. })));
    let view = create("a", None).await.unwrap();
    let items = [SendItem::default()];
    node.send(&sending(view.id, "jobs", &items)).await.unwrap();
    assert!(matches!(
        node.namespace_delete("a", false).await,
        Err(Error::NamespaceNotEmpty { queues: 1, .. })
    ));
    node.namespace_delete("a", true).await.unwrap();
    assert!(matches!(node.namespace_id("a"), Err(Error::NamespaceNotFound { .. })));
    assert!(node.namespace_delete("default", true).await.is_err());
    let unknown = node.send(&sending(NamespaceId(99), "jobs", &items)).await;
    assert!(matches!(unknown, Err(Error::NamespaceNotFound { .. })));
}

#[tokio::test]
async fn quotas_hold() {
    let node = Node::start(options(None)).unwrap();
    let quotas = Quotas { messages: 2, ..Quotas::default() };
    let view = node.namespace_create("small", None, quotas).await.unwrap();
    let items = vec![SendItem::default(); 2];
    node.send(&sending(view.id, "jobs", &items)).await.unwrap();
    let over = node.send(&sending(view.id, "jobs", &items[..1])).await;
    assert!(matches!(over, Err(Error::QuotaExceeded { limit: 2, .. })), "{over:?}");
    node.namespace_set("small", None, |_| Quotas::default()).await.unwrap();
    node.send(&sending(view.id, "jobs", &items[..1])).await.unwrap();
}

#[tokio::test]
async fn a_receive_from_a_queue_that_may_not_be_made_says_why_and_writes_nothing() {
    let node = memory();
    let quotas = Quotas { queues: 1, ..Quotas::default() };
    let view = node.namespace_create("small", None, quotas).await.unwrap();
    node.send(&sending(view.id, "one", &[SendItem::default()])).await.unwrap();
    let before = node.metrics().await.shards[0].journal.records;
    for wait_ms in [0, 10_000] {
        let refused = receive_in(&node, view.id, "another", 1, wait_ms).await;
        assert!(matches!(refused, Err(Error::QuotaExceeded { what: "queues", limit: 1, .. })), "{refused:?}");
    }
    assert_eq!(node.metrics().await.shards[0].journal.records, before);
}

#[tokio::test]
async fn a_receive_makes_all_of_its_queues_or_none() {
    let node = memory();
    let view = node.namespace_create("small", None, Quotas { queues: 2, ..Quotas::default() }).await.unwrap();
    node.send(&sending(view.id, "one", &[SendItem::default()])).await.unwrap();
    let receive = async |queues: &[(&str, u16)]| {
        let (namespace, wait) = (view.id, Duration::ZERO);
        let options = ReceiveOptions {
            namespace,
            queues,
            max_messages: 1,
            lease_ms: 0,
            wait,
            consumer: "",
            room: None,
        };
        node.receive(&options).await
    };
    let refused = receive(&[("one", 0), ("two", 0), ("three", 0)]).await;
    assert!(matches!(refused, Err(Error::QuotaExceeded { what: "queues", limit: 2, .. })), "{refused:?}");
    assert_eq!(node.namespace("small").await.unwrap().queues, 1, "what is refused has made nothing");
    assert_eq!(receive(&[("two", 0), ("one", 0)]).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_of_quotas_all_count() {
    let node = memory();
    node.namespace_create("shared", None, Quotas::default()).await.unwrap();
    for round in 1..100 {
        let queues = node.namespace_set("shared", None, move |quotas| Quotas { queues: round, ..quotas });
        let bytes = node.namespace_set("shared", None, move |quotas| Quotas { bytes: round, ..quotas });
        let (queues, bytes) = tokio::join!(queues, bytes);
        assert!(queues.is_ok() && bytes.is_ok());
        let quotas = node.namespace("shared").await.unwrap().quotas;
        assert_eq!(quotas, Quotas { queues: round, bytes: round, messages: 0 });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_beside_a_delete_of_a_namespace_leaves_it_or_makes_it_anew() {
    let node = memory();
    for round in 1..100 {
        node.namespace_put("busy", None, |quotas| quotas).await.unwrap();
        let put = node.namespace_put("busy", None, move |quotas| Quotas { bytes: round, ..quotas });
        let (put, deleted) = tokio::join!(put, node.namespace_delete("busy", true));
        assert!(put.is_ok() && deleted.is_ok(), "{put:?} {deleted:?}");
    }
}

#[tokio::test]
async fn a_shard_whose_directory_is_missing_is_not_taken_for_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut two = options(Some(dir.path()));
    two.shards = 2;
    let node = Node::start(two.clone()).unwrap();
    let view = node.namespace_create("far", Some(1), Quotas::default()).await.unwrap();
    node.send(&sending(view.id, "jobs", &[SendItem::default()])).await.unwrap();
    node.shutdown(Duration::from_secs(5)).await.unwrap();
    for lost in ["shard-000", "shard-001"] {
        std::fs::rename(dir.path().join(lost), dir.path().join("aside")).unwrap();
        let refused = Node::start(two.clone()).unwrap_err();
        assert!(refused.to_string().contains("missing") && refused.to_string().contains(lost), "{refused}");
        let mut one = two.clone();
        one.shards = 1;
        assert!(Node::start(one).is_err());
        let _ = std::fs::remove_dir_all(dir.path().join(lost));
        std::fs::create_dir(dir.path().join(lost)).unwrap();
        let refused = Node::start(two.clone()).unwrap_err();
        assert!(
            refused.to_string().contains("missing"),
            "an empty directory, as of a disk that is not mounted: {refused}"
        );
        std::fs::remove_dir_all(dir.path().join(lost)).unwrap();
        std::fs::rename(dir.path().join("aside"), dir.path().join(lost)).unwrap();
    }
    let node = Node::start(two).unwrap();
    assert_eq!(receive_in(&node, view.id, "jobs", 10, 0).await.unwrap().len(), 1);
}

#[tokio::test]
async fn deleting_a_namespace_of_many_queues_ends_the_waits_in_it() {
    let node = Node::start(options(None)).unwrap();
    let view = node.namespace_create("many", None, Quotas::default()).await.unwrap();
    for queue in 0..2_500 {
        let patch = sluice_engine::settings::QueuePatch::default();
        node.queue_set(view.id, &format!("q{queue:04}"), patch, true).await.unwrap();
    }
    let waits: Vec<_> = ["q0000", "q2499"]
        .map(|queue| {
            let node = node.clone();
            tokio::spawn(async move { soon(receive_in(&node, view.id, queue, 1, LONG_MS)).await })
        })
        .into();
    until_receives_wait(&node, 2).await;
    node.namespace_delete("many", true).await.unwrap();
    for wait in waits {
        let ended = wait.await.unwrap();
        assert!(matches!(ended, Err(Error::NamespaceNotFound { .. })), "{ended:?}");
    }
}
