//! Indexes of messages over many blocks: what they find, and the memory that they take.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;

use common::{Driver, Numbers};
use sluice_engine::blob::MessageBlob;
use sluice_engine::change::{Change, ChangeAction, NewFields};
use sluice_engine::command::{Receive, Send, SendItem, SettleItem, Settlement};
use sluice_engine::id::{MessageId, NamespaceId, QueueId};
use sluice_engine::outcome::{Delivery, Reply};
use sluice_engine::query::State;
use sluice_engine::search::{SearchKind, SearchKinds, SearchTerm};
use sluice_engine::settings::QueuePatch;
use sluice_engine::{BEHAVIOUR_VERSION, Command, Engine, Error, error_fingerprint};

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
const START_US: u64 = 1_700_000_000_000_000;
/// Bytes of a posting that are promised.
const POSTING_BYTES_MAX: f64 = 16.0;

struct Indexed {
    driver: Driver,
    now_us: u64,
    queue: QueueId,
}

impl Indexed {
    fn new() -> Indexed {
        let mut driver = Driver::new();
        driver.apply(START_US, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
        let mut indexed = Indexed { driver, now_us: START_US, queue: QueueId(0) };
        indexed.set(&SearchKind::ALL);
        indexed.queue = indexed.driver.engine.queue_id(NAMESPACE, "jobs").unwrap();
        indexed
    }

    fn apply(&mut self, command: &Command<'_>) {
        command.check(self.driver.engine.limits()).unwrap();
        self.driver.apply(self.now_us, command);
        assert_eq!(self.driver.out.error, None, "{command:?}");
    }

    fn set(&mut self, kinds: &[SearchKind]) {
        let search_index = Some(SearchKinds::of(kinds.iter().copied()));
        let patch = QueuePatch { search_index, ..QueuePatch::default() };
        self.apply(&Command::QueueSet { namespace: NAMESPACE, queue: "jobs", patch, create: true });
    }

    /// Sends a message for each list of tags.
    fn send(&mut self, tags: &[Vec<String>]) -> Vec<MessageId> {
        let mut ids = Vec::new();
        for some in tags.chunks(1_000) {
            let lists: Vec<Vec<&str>> =
                some.iter().map(|tags| tags.iter().map(String::as_str).collect()).collect();
            let items: Vec<SendItem<'_>> =
                lists.iter().map(|tags| SendItem { tags, ..SendItem::default() }).collect();
            self.apply(&Command::Send(Send {
                namespace: NAMESPACE,
                queue: "jobs",
                idempotency_key: b"",
                request_digest: 0,
                items: &items,
            }));
            let Reply::Sent { first, count, .. } = self.driver.out.reply else { panic!("nothing is sent") };
            ids.extend((0..u64::from(count)).map(|at| MessageId { sequence: first.sequence + at, ..first }));
        }
        ids
    }

    fn receive(&mut self, count: u32) -> Vec<Delivery> {
        let receive = Receive {
            namespace: NAMESPACE,
            queues: &[("jobs", 0)],
            max_messages: count,
            max_bytes: u32::MAX,
            lease_ms: 0,
            consumer: "",
        };
        self.apply(&Command::Receive(receive));
        std::mem::take(&mut self.driver.out.deliveries)
    }

    /// Receives messages and settles each as told.
    fn settle<'e>(&mut self, count: u32, end: impl Fn(MessageId) -> (Settlement, &'e str)) {
        let deliveries = self.receive(count);
        if deliveries.is_empty() {
            return;
        }
        let items: Vec<SettleItem<'_>> = deliveries
            .iter()
            .map(|delivery| {
                let (settlement, error) = end(delivery.receipt.id);
                SettleItem { receipt: delivery.receipt, settlement, error, result: None, add_cost: 0 }
            })
            .collect();
        self.apply(&Command::Settle { namespace: NAMESPACE, items: &items });
    }

    /// Tells all terms.
    fn fill(&mut self) {
        while let (Some(work), _) = self.driver.engine.search_work(0, 500) {
            let messages = self.driver.read_terms(&work);
            self.driver.fill(self.now_us, &work, &messages);
            assert_eq!(self.driver.out.error, None);
        }
        self.recount();
    }

    fn tick(&mut self) {
        while self.driver.engine.next_deadline().is_some_and(|due| due <= self.now_us) {
            self.apply(&Command::Tick);
            self.recount();
        }
    }

    fn recount(&self) {
        self.driver.engine.recount().unwrap();
    }

    /// What the index finds; `None`: there is none.
    fn found(&self, kind: SearchKind, term: SearchTerm, limit: usize) -> Option<Vec<MessageId>> {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.driver.engine.search_page(self.queue, (kind, &[term]), None, cursor, limit)?;
            found.extend(page.items.iter().map(|view| view.id));
            cursor = page.next;
            if cursor.is_none() {
                return Some(found);
            }
        }
    }

    /// What the index finds of a tag, and up to which sequence it knows all messages.
    fn tagged_up_to(&self, tag: &str, limit: usize) -> (Vec<MessageId>, u64) {
        let (mut found, mut cursor, mut end) = (Vec::new(), None, 0);
        let (engine, terms) = (&self.driver.engine, (SearchKind::Tags, &[SearchTerm::of_tag(tag)][..]));
        while let Some(page) = engine.search_page(self.queue, terms, None, cursor, limit) {
            found.extend(page.items.iter().map(|view| view.id));
            (cursor, end) = (page.next, page.until);
            if cursor.is_none() {
                return (found, u64::MAX);
            }
        }
        (found, end)
    }

    fn tagged(&self, tag: &str, limit: usize) -> Option<Vec<MessageId>> {
        self.found(SearchKind::Tags, SearchTerm::of_tag(tag), limit)
    }

    fn posting_bytes(&self) -> f64 {
        let (postings, bytes) = self.driver.engine.search_postings();
        bytes as f64 / postings as f64
    }
}

/// Tags of messages: one of its own, and of every third that of all of them.
fn tags(count: usize) -> Vec<Vec<String>> {
    let of = |at: usize| {
        let own = format!("order-{at}");
        if at.is_multiple_of(3) { vec![own, "third".to_owned()] } else { vec![own] }
    };
    (0..count).map(of).collect()
}

#[test]
fn one_message_of_many_is_found_and_many_by_id() {
    let mut indexed = Indexed::new();
    let ids = indexed.send(&tags(20_000));
    assert_eq!(indexed.tagged("order-7", 10), None, "nothing is told yet");
    indexed.fill();
    for at in [0, 1, 2_047, 2_048, 19_999] {
        assert_eq!(indexed.tagged(&format!("order-{at}"), 10), Some(vec![ids[at]]));
    }
    let thirds: Vec<MessageId> = ids.iter().copied().step_by(3).collect();
    for limit in [1, 7, 200, 1_000] {
        assert_eq!(indexed.tagged("third", limit).as_ref(), Some(&thirds));
    }
    assert_eq!(indexed.tagged("none", 10), Some(Vec::new()));
}

#[test]
fn a_posting_takes_no_more_than_is_promised() {
    let mut indexed = Indexed::new();
    let ids = indexed.send(&tags(30_000));
    indexed.fill();
    let of_new = indexed.posting_bytes();
    assert!(of_new < 9.0, "in the order of sending {of_new}");
    let failed = error_fingerprint(b"it failed");
    let mut numbers = Numbers::new(7);
    let mut left: BTreeSet<MessageId> = ids.iter().copied().collect();
    // Some end at random, others fail and come again, until few are left.
    let mut worst = of_new;
    for _ in 0..40 {
        let acked: BTreeSet<u64> = (0..3_000).filter(|_| numbers.one_in(4)).collect();
        let mut gone = Vec::new();
        let gone_of = std::cell::RefCell::new(&mut gone);
        let at = std::cell::Cell::new(0);
        indexed.settle(1_000, |id| {
            at.set(at.get() + 1);
            if acked.contains(&at.get()) {
                gone_of.borrow_mut().push(id);
                return (Settlement::Ack, "");
            }
            (Settlement::Nack { delay_ms: Some(0) }, "it failed")
        });
        gone.iter().for_each(|id| assert!(left.remove(id)));
        indexed.fill();
        worst = worst.max(indexed.posting_bytes());
    }
    println!("{of_new:.1} bytes a posting of new messages, {worst:.1} at worst");
    assert!(worst <= POSTING_BYTES_MAX, "with ends at random {worst}");
    let found = indexed.found(SearchKind::Errors, SearchTerm::of_error(failed), 500).unwrap();
    let page = |state| indexed.driver.engine.messages(indexed.queue, state, None, 1).items.len();
    assert!(found.iter().all(|id| left.contains(id)) && found.len() > 1_000);
    assert!(page(Some(State::Ready)) + page(Some(State::Dead)) > 0);
}

#[test]
fn postings_go_with_their_messages_and_with_their_queue() {
    for delete in [false, true] {
        let mut indexed = Indexed::new();
        indexed.send(&tags(9_000));
        indexed.fill();
        let (namespace, queue) = (NAMESPACE, "jobs");
        match delete {
            true => indexed.apply(&Command::QueueDelete { namespace, queue }),
            false => indexed.apply(&Command::QueuePurge { namespace, queue }),
        }
        indexed.recount();
        indexed.tick();
        assert_eq!(indexed.driver.engine.search_postings(), (0, 0));
        assert_eq!(indexed.driver.engine.queue_count(), u64::from(!delete));
    }
}

#[test]
fn an_index_with_other_terms_begins_anew_and_takes_nothing_that_was_read_before() {
    let mut indexed = Indexed::new();
    let ids = indexed.send(&tags(6_000));
    let (Some(early), _) = indexed.driver.engine.search_work(0, 500) else { panic!("there is work") };
    let read = indexed.driver.read_terms(&early);
    indexed.fill();
    indexed.set(&[]);
    assert_eq!(indexed.tagged("order-7", 10), None);
    indexed.driver.fill(indexed.now_us, &early, &read);
    indexed.set(&[SearchKind::Tags]);
    let restored = restored(&mut indexed.driver.engine);
    restored.recount().unwrap();
    indexed.tick();
    indexed.driver.fill(indexed.now_us, &early, &read);
    assert_eq!(indexed.driver.engine.search_postings(), (0, 0), "what was read before counts no more");
    indexed.fill();
    assert_eq!(indexed.tagged("order-7", 10), Some(vec![ids[7]]));
    assert_eq!(indexed.found(SearchKind::Errors, SearchTerm::of_error(7), 10), None, "of tags alone");
    let restored = self::restored(&mut indexed.driver.engine);
    indexed.driver.engine = restored;
    indexed.recount();
    assert_eq!(indexed.tagged("third", 100).unwrap().len(), 2_000);
}

/// Tags of which many messages have one or several.
const SHARED: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

impl Indexed {
    /// All messages of a queue, by id, with their tags.
    fn tags_of(&self, queue: &str) -> Vec<(MessageId, Vec<String>)> {
        let (engine, mut all, mut cursor) = (&self.driver.engine, Vec::new(), None);
        let Some(queue) = engine.queue_id(NAMESPACE, queue) else { return all };
        loop {
            let page = engine.messages(queue, None, cursor, 1_000);
            all.extend(page.items.iter().map(|view| {
                // Of no tags there is no blob.
                let bytes = self.driver.blobs.get(&view.tags.unwrap_or(view.blob));
                let blob = bytes.and_then(|bytes| MessageBlob::parse(bytes));
                (view.id, blob.iter().flat_map(MessageBlob::tags).map(str::to_owned).collect())
            }));
            cursor = page.next;
            if cursor.is_none() {
                return all;
            }
        }
    }

    /// Changes some of the messages of a queue that are there.
    fn change(&mut self, queue: &str, numbers: &mut Numbers, action: ChangeAction<'_>) {
        let all = self.tags_of(queue);
        if let Some(span) = (all.len() as u64).checked_sub(1).filter(|span| *span > 0) {
            // Neighbours, so that whole blocks change, or such that are far from each other.
            let (first, every) = (numbers.below(span) as usize, numbers.pick(&[1, 1, 7]));
            let some = all[first..].iter().step_by(every).take(1_000);
            let items: Vec<(MessageId, u64)> = some.map(|(id, _)| (*id, 0)).collect();
            let (namespace, items) = (NAMESPACE, &items[..]);
            self.apply(&Command::Change(Change { namespace, items, action, by: "", why: "" }));
        }
    }

    fn some_tags(numbers: &mut Numbers) -> Vec<String> {
        SHARED.iter().filter(|_| numbers.one_in(3)).map(|tag| (*tag).to_owned()).collect()
    }

    /// Something happens to many messages.
    fn happen(&mut self, numbers: &mut Numbers) {
        match numbers.below(9) {
            0 | 1 => {
                let tags: Vec<Vec<String>> = (0..2_000).map(|_| Indexed::some_tags(numbers)).collect();
                self.send(&tags);
            }
            2 | 3 => {
                let ends: Vec<u64> = (0..7).map(|_| numbers.below(4)).collect();
                self.settle(1_000, |id| match ends[id.sequence as usize % 7] {
                    0 => (Settlement::Ack, ""),
                    1 => (Settlement::Reject, "it failed"),
                    _ => (Settlement::Nack { delay_ms: Some(0) }, "it failed"),
                });
            }
            4 => {
                let tags = Indexed::some_tags(numbers);
                let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
                let fields = NewFields { tags: Some(&tags), ..NewFields::default() };
                self.change("jobs", numbers, ChangeAction::Set(fields));
            }
            5 => self.change("jobs", numbers, ChangeAction::Move { to: "other" }),
            6 => self.change("other", numbers, ChangeAction::Move { to: "jobs" }),
            7 if numbers.one_in(6) => {
                let queue = "jobs";
                self.apply(&Command::QueuePurge { namespace: NAMESPACE, queue });
            }
            7 if numbers.one_in(2) => {
                self.set(numbers.pick::<&[SearchKind]>(&[&[], &[SearchKind::Tags], &SearchKind::ALL]));
            }
            _ => self.driver.engine = restored(&mut self.driver.engine),
        }
        self.recount();
    }
}

#[test]
fn an_index_of_many_blocks_finds_what_a_look_at_each_message_finds() {
    for seed in 1..=2 {
        let (mut indexed, mut numbers) = (Indexed::new(), Numbers::new(seed));
        let patch = QueuePatch { search_index: Some(SearchKinds::ALL), ..QueuePatch::default() };
        indexed.apply(&Command::QueueSet { namespace: NAMESPACE, queue: "other", patch, create: true });
        let mut read = Vec::new();
        for _ in 0..60 {
            indexed.happen(&mut numbers);
            for _ in 0..numbers.below(12) {
                let (work, _) = indexed.driver.engine.search_work(numbers.below(2) as u32, 500);
                read.extend(work.map(|work| (indexed.driver.read_terms(&work), work)));
                if !numbers.one_in(4)
                    && let Some((messages, work)) = read.pop()
                {
                    indexed.driver.fill(indexed.now_us, &work, &messages);
                    assert_eq!(indexed.driver.out.error, None);
                }
            }
            indexed.tick();
            indexed.recount();
            let is_known = numbers.one_in(5);
            if is_known {
                indexed.fill();
            }
            let all = indexed.tags_of("jobs");
            for tag in SHARED {
                let (found, end) = indexed.tagged_up_to(tag, numbers.pick(&[50, 1_000]));
                assert!(found.is_sorted_by(|one, next| one < next), "by id, each once");
                let there =
                    all.iter().filter(|(id, tags)| id.sequence <= end && tags.iter().any(|it| it == tag));
                let there: BTreeSet<MessageId> = there.map(|(id, _)| *id).collect();
                let found: BTreeSet<MessageId> = found.into_iter().collect();
                assert!(found.is_superset(&there), "{seed}: {:?}", there.difference(&found).next());
                assert!(!is_known || found == there, "{seed}: more than there is");
            }
        }
    }
}

#[test]
fn a_message_that_has_changed_since_its_terms_were_read_is_found_until_they_are_told() {
    let mut indexed = Indexed::new();
    let ids = indexed.send(&tags(3));
    indexed.set(&[]);
    indexed.tick();
    // Both failed before there was an index; now they are in somebody's hands again.
    indexed.settle(2, |_| (Settlement::Nack { delay_ms: Some(0) }, "it failed"));
    indexed.receive(3);
    indexed.set(&SearchKind::ALL);
    let (Some(work), _) = indexed.driver.engine.search_work(0, 500) else { panic!("there is work") };
    let messages = indexed.driver.read_terms(&work);
    // Their leases end, which is an attempt without an error.
    indexed.now_us += 3_600_000_000;
    indexed.apply(&Command::Tick);
    indexed.driver.fill(indexed.now_us, &work, &messages);
    indexed.recount();
    for (at, id) in ids.iter().enumerate() {
        let found = indexed.tagged(&format!("order-{at}"), 10).unwrap();
        assert!(found.contains(id), "order-{at} is not among {found:?}");
    }
    indexed.fill();
    assert_eq!(indexed.tagged("order-1", 10), Some(vec![ids[1]]));
    let failed = SearchTerm::of_error(error_fingerprint(b"it failed"));
    assert_eq!(indexed.found(SearchKind::Errors, failed, 10), Some(Vec::new()));
}

#[test]
fn fills_that_are_out_of_order_or_too_large_are_refused() {
    let mut indexed = Indexed::new();
    indexed.send(&tags(3));
    let (Some(work), _) = indexed.driver.engine.search_work(0, 500) else { panic!("there is work") };
    let mut messages = indexed.driver.read_terms(&work);
    messages.reverse();
    let fill = |messages: &[_]| {
        let (namespace, queue) = (work.namespace, work.queue);
        let command = Command::SearchFill(sluice_engine::command::SearchFill {
            namespace,
            queue,
            began: work.began,
            from: 0,
            until: work.until,
            messages,
        });
        command.check(indexed.driver.engine.limits())
    };
    assert!(matches!(fill(&messages), Err(Error::InvalidArgument { .. })));
    messages.reverse();
    assert_eq!(fill(&messages), Ok(()));
    messages[0].terms = vec![SearchTerm::of_tag("x"); 18];
    assert!(matches!(fill(&messages), Err(Error::InvalidArgument { .. })));
}

fn restored(engine: &mut Engine) -> Engine {
    let mut bytes = Vec::new();
    engine.snapshot_begin();
    while !engine.snapshot_step(10_000, &mut bytes) {}
    let mut pieces = bytes.chunks(1_000);
    let restored = Engine::restore(&mut || pieces.next().map(<[u8]>::to_vec)).unwrap();
    assert_eq!(restored.digest(), engine.digest());
    restored
}
