//! Searches by an index find what they find without: whatever messages do meanwhile, and however far the
//! index is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sluice_engine::change::{Change, ChangeAction, NewFields};
use sluice_engine::command::{SendItem, SettleItem, Settlement};
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::search::{SearchKind, SearchKinds};
use sluice_engine::settings::{Backoff, BackoffKind, QueuePatch};
use sluice_node::Node;
use sluice_node::api::ReceiveOptions;
use sluice_node::search::{MessageFilter, Search};

use crate::support::{memory, options, receive, send, sending, settle};

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
const QUEUES: [&str; 2] = ["q", "other"];
const TAGS: [&[&str]; 4] = [&[], &["red"], &["blue"], &["red", "blue"]];
const ERRORS: [&str; 4] = ["no such host", "timeout after 3012 ms", "timeout after 59999 ms", ""];

/// Numbers to draw by (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33) % end
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

async fn set(node: &Node, queue: &str, kinds: SearchKinds) {
    let patch = QueuePatch { search_index: Some(kinds), ..QueuePatch::default() };
    node.queue_set(NAMESPACE, queue, patch, true).await.unwrap();
}

/// Tells all terms.
async fn index_all(node: &Node) {
    let mut place = 0;
    while node.index_messages(0, &mut place).await.unwrap() {}
}

/// Ids of the messages that match, and the index that was used; pages have at most so many messages.
async fn found(node: &Node, queue: &str, filter: &str, limit: usize) -> (Vec<MessageId>, Option<SearchKind>) {
    let filter = Arc::new(MessageFilter::parse(filter).unwrap());
    let search = Search { namespace: NAMESPACE, queue: queue.into(), filter, now_ms: node.clock().now_ms() };
    let (mut ids, mut cursor, mut index) = (Vec::new(), None, None);
    loop {
        let page = node.search(&search, cursor, limit).await.unwrap();
        ids.extend(page.hits.iter().map(|hit| hit.view.id));
        index = index.or(page.index);
        cursor = page.next;
        if cursor.is_none() {
            return (ids, index);
        }
    }
}

/// Each filter finds the same as one that no index is for.
async fn compare(node: &Node, limit: usize) -> bool {
    let timeout = format!("{:016x}", sluice_engine::error_fingerprint(b"timeout after 1234 ms"));
    let mut is_used = false;
    for queue in QUEUES {
        for filter in [
            r#"{"/tags":{"contains":"red"}}"#.to_owned(),
            r#"{"/tags":{"contains":"blue"},"/state":"ready"}"#.to_owned(),
            r#"{"/tags":{"contains":"red"},"/state":"dead"}"#.to_owned(),
            r#"{"/tags":{"contains":"red"},"/state":{"in":["dead","ready"]}}"#.to_owned(),
            r#"{"or":[{"/tags":{"contains":"red"},"/attempts":1},{"/tags":{"contains":"blue"}}]}"#.to_owned(),
            r#"{"/error":"no such host"}"#.to_owned(),
            r#"{"/error":{"in":["timeout after 3012 ms","none"]}}"#.to_owned(),
            format!(r#"{{"/error_fingerprint":"{timeout}"}}"#),
            format!(r#"{{"/error_fingerprint":"{timeout}","/tags":{{"contains":"red"}}}}"#),
            r#"{"/tags":{"contains":"none"}}"#.to_owned(),
        ] {
            let (by_index, index) = found(node, queue, &filter, limit).await;
            let without = format!(r#"{{"or":[{filter},{{"/priority":99}}]}}"#);
            let (one_by_one, none) = found(node, queue, &without, 1_000).await;
            assert_eq!(none, None, "no index is for {without}");
            assert_eq!(by_index, one_by_one, "{filter} in {queue}, {index:?}");
            is_used |= index.is_some();
        }
    }
    is_used
}

/// Does something to some messages.
async fn step(node: &Node, numbers: &mut Numbers) {
    let queue = numbers.pick(&QUEUES);
    match numbers.below(12) {
        0..=2 => {
            let count = 1 + numbers.below(30);
            let items: Vec<SendItem<'_>> =
                (0..count).map(|_| SendItem { tags: numbers.pick(&TAGS), ..SendItem::default() }).collect();
            node.send(&sending(NAMESPACE, queue, &items)).await.unwrap();
        }
        3..=6 => {
            let taken = receive(node, queue, 1 + numbers.below(20) as u32, 0).await.unwrap();
            let items: Vec<SettleItem<'_>> =
                taken.iter().map(|one| settled(one.delivery.receipt, numbers)).collect();
            if !items.is_empty() {
                node.settle(NAMESPACE, &items).await.unwrap();
            }
        }
        7 | 8 => change(node, queue, numbers).await,
        9 if numbers.below(4) == 0 => {
            node.queue_purge(NAMESPACE, queue).await.unwrap();
        }
        10 if numbers.below(3) == 0 => {
            let kinds = [SearchKinds::NONE, SearchKinds::TAGS, SearchKinds::ERRORS, SearchKinds::ALL];
            set(node, queue, numbers.pick(&kinds)).await;
        }
        _ => {
            let mut place = numbers.below(3) as u32;
            node.index_messages(0, &mut place).await.unwrap();
        }
    }
}

fn settled(receipt: sluice_engine::Receipt, numbers: &mut Numbers) -> SettleItem<'static> {
    let (settlement, error) = match numbers.below(4) {
        0 => (Settlement::Ack, ""),
        1 => (Settlement::Reject, numbers.pick(&ERRORS)),
        _ => (Settlement::Nack { delay_ms: Some(0) }, numbers.pick(&ERRORS)),
    };
    SettleItem { receipt, settlement, error, result: None, add_cost: 0 }
}

/// Gives messages other tags, another queue, or another try.
async fn change(node: &Node, queue: &str, numbers: &mut Numbers) {
    let (ids, _) = found(node, queue, "{}", 1_000).await;
    let items: Vec<(MessageId, u64)> =
        ids.into_iter().filter(|_| numbers.below(8) == 0).take(20).map(|id| (id, 0)).collect();
    if items.is_empty() {
        return;
    }
    let to = if queue == QUEUES[0] { QUEUES[1] } else { QUEUES[0] };
    let fields = NewFields { tags: Some(numbers.pick(&TAGS)), ..NewFields::default() };
    let action = match numbers.below(3) {
        0 => ChangeAction::Move { to },
        1 => ChangeAction::Set(fields),
        _ => ChangeAction::Retry,
    };
    node.change(&Change { namespace: NAMESPACE, items: &items, action, by: "", why: "" }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_finds_what_a_look_at_each_message_finds() {
    let mut used = 0;
    for seed in 0..6 {
        let (node, mut numbers) = (memory(), Numbers(seed));
        let death = QueuePatch { dead_letter_queue: Some("other".into()), ..QueuePatch::default() };
        node.queue_set(NAMESPACE, "q", death, true).await.unwrap();
        for queue in QUEUES {
            set(&node, queue, SearchKinds::ALL).await;
        }
        for at in 0..150 {
            step(&node, &mut numbers).await;
            if at % 10 == 0 {
                let limit = numbers.pick(&[1, 3, 1_000]);
                used += u32::from(compare(&node, limit).await);
            }
        }
        index_all(&node).await;
        compare(&node, 1_000).await;
    }
    assert!(used > 20, "{used}");
}

/// Receives messages for a moment: some leases end before they are settled.
async fn work_shortly(node: &Node, queue: &str, numbers: &mut Numbers) {
    let options = ReceiveOptions {
        namespace: NAMESPACE,
        queues: &[(queue, 0)],
        max_messages: 20,
        lease_ms: 1 + numbers.below(20),
        wait: Duration::ZERO,
        consumer: "",
        room: None,
    };
    let taken = node.receive(&options).await.unwrap();
    tokio::time::sleep(Duration::from_millis(numbers.below(10))).await;
    let receipts = taken.iter().map(|one| one.delivery.receipt).filter(|receipt| receipt.id.sequence % 4 > 0);
    let items: Vec<SettleItem<'_>> = receipts.map(|receipt| settled(receipt, numbers)).collect();
    if !items.is_empty() {
        node.settle(NAMESPACE, &items).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_built_while_everything_changes_misses_nothing() {
    let mut used = 0;
    for seed in 0..3 {
        let (node, mut numbers) = (memory(), Numbers(seed));
        let death = QueuePatch { dead_letter_queue: Some("other".into()), ..QueuePatch::default() };
        node.queue_set(NAMESPACE, "q", death, true).await.unwrap();
        for queue in QUEUES {
            // Nothing is delayed, so that in the end everything stays as it is.
            let backoff = Some(Backoff { kind: BackoffKind::None, base_ms: 0, cap_ms: 0, jitter_percent: 0 });
            node.queue_set(NAMESPACE, queue, QueuePatch { backoff, ..QueuePatch::default() }, true)
                .await
                .unwrap();
        }
        set(&node, "other", SearchKinds::ALL).await;
        let building = tokio::spawn({
            let node = node.clone();
            async move { node.keep_message_indexes().await }
        });
        let end = Instant::now() + Duration::from_secs(3);
        while Instant::now() < end {
            let queue = numbers.pick(&QUEUES);
            step(&node, &mut numbers).await;
            work_shortly(&node, queue, &mut numbers).await;
            let mut place = 0;
            // Beside the one that runs: what both read is told twice, or late.
            let (told, ()) =
                tokio::join!(node.index_messages(0, &mut place), work_shortly(&node, queue, &mut numbers));
            told.unwrap();
        }
        building.abort();
        // All leases end meanwhile.
        tokio::time::sleep(Duration::from_millis(200)).await;
        compare(&node, 1_000).await;
        index_all(&node).await;
        used += u32::from(compare(&node, 1_000).await);
    }
    assert!(used > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_looks_at_few_messages_and_tells_the_index() {
    let node = memory();
    let items: Vec<SendItem<'_>> = (0..5_000)
        .map(|at| SendItem { tags: if at == 3_000 { &["needle"] } else { &["hay"] }, ..SendItem::default() })
        .collect();
    node.send(&sending(NAMESPACE, "q", &items)).await.unwrap();
    let filter = Arc::new(MessageFilter::parse(r#"{"/tags":{"contains":"needle"}}"#).unwrap());
    let search = Search { namespace: NAMESPACE, queue: "q".into(), filter, now_ms: node.clock().now_ms() };
    let page = node.search(&search, None, 10).await.unwrap();
    assert_eq!((page.hits.len(), page.scanned, page.index), (1, 5_000, None));
    set(&node, "q", SearchKinds::TAGS).await;
    index_all(&node).await;
    let page = node.search(&search, None, 10).await.unwrap();
    assert_eq!((page.hits.len(), page.scanned, page.total), (1, 1, 5_000));
    assert_eq!((page.next, page.index), (None, Some(SearchKind::Tags)));
    send(&node, "q", &[&b"not known yet"[..]; 3]).await;
    let page = node.search(&search, None, 10).await.unwrap();
    assert_eq!((page.hits.len(), page.scanned, page.index), (1, 4, Some(SearchKind::Tags)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_in_a_state_looks_at_no_message_in_another() {
    let node = memory();
    set(&node, "q", SearchKinds::TAGS).await;
    let items = vec![SendItem { tags: &["hay"], ..SendItem::default() }; 5_000];
    node.send(&sending(NAMESPACE, "q", &items)).await.unwrap();
    index_all(&node).await;
    let filter = Arc::new(MessageFilter::parse(r#"{"/tags":{"contains":"hay"},"/state":"dead"}"#).unwrap());
    let search = Search { namespace: NAMESPACE, queue: "q".into(), filter, now_ms: node.clock().now_ms() };
    // A short list of all in the state, then more than it has room for.
    for (die, dead, index) in [(3, 3, None), (297, 300, Some(SearchKind::Tags))] {
        let taken = receive(&node, "q", die, 0).await.unwrap();
        settle(&node, &taken, Settlement::Reject).await;
        let page = node.search(&search, None, 1_000).await.unwrap();
        assert_eq!(
            (page.hits.len(), page.scanned, page.total, page.next),
            (dead, dead as u64, dead as u64, None)
        );
        assert_eq!(page.index, index);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let needle = r#"{"/tags":{"contains":"needle"}}"#;
    let node = Node::start(options(Some(dir.path()))).unwrap();
    set(&node, "q", SearchKinds::ALL).await;
    node.send(&sending(NAMESPACE, "q", &[SendItem { tags: &["needle"], ..SendItem::default() }]))
        .await
        .unwrap();
    send(&node, "q", &[&b"hay"[..]; 200]).await;
    index_all(&node).await;
    let before = found(&node, "q", needle, 10).await;
    assert_eq!((before.0.len(), before.1), (1, Some(SearchKind::Tags)));
    node.shutdown(Duration::from_secs(10)).await.unwrap();
    let node = Node::start(options(Some(dir.path()))).unwrap();
    assert_eq!(found(&node, "q", needle, 10).await, before);
    let taken = receive(&node, "q", 1, 0).await.unwrap();
    settle(&node, &taken, Settlement::Ack).await;
    assert_eq!(found(&node, "q", needle, 10).await, (Vec::new(), Some(SearchKind::Tags)));
}
