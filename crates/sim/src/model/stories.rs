//! Regression tests of the model: short scripts that it once predicted wrongly. Seeds change as soon as the
//! node draws random numbers in another order; these scripts stay.

use sluice_engine::change::{Change, ChangeAction, NewFields};
use sluice_engine::command::{Command, Deliver, Receive, Send, SendItem, SettleItem, Settlement};
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::item::{Expires, OnDuplicate, SendOptions, Unique, UniqueUntil};
use sluice_engine::outcome::Reply;
use sluice_engine::query::Counters;
use sluice_engine::settings::QueuePatch;
use sluice_engine::{BEHAVIOUR_VERSION, Engine, Outcome};
use sluice_journal::{Batch, Records};
use sluice_record::write_record;

use super::Model;
use crate::workload::Seen;

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;

/// An engine, and a model that must agree with it after each command.
struct Story {
    engine: Engine,
    model: Model,
    now_us: u64,
    index: u64,
    outcome: Outcome,
}

impl Story {
    fn begin() -> Story {
        let mut engine = Engine::new();
        engine.watch_events(true);
        let (model, outcome) = (Model::new(), Outcome::default());
        let mut story = Story { engine, model, now_us: 1_767_225_600_000_000, index: 0, outcome };
        story.goes_on(&Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
        story
    }

    fn goes_on(&mut self, command: &Command<'_>) {
        self.index += 1;
        let mut batch = Batch::new();
        write_record(&mut batch, command);
        let (bytes, _) = batch.take();
        let record = Records::new(&bytes).next().expect("a record");
        self.model.look(command, &self.engine);
        self.engine.apply(self.now_us, self.index, record.body, &mut self.outcome);
        let followed = self.model.apply(self.now_us, self.index, command, &self.outcome, &self.engine);
        followed.and_then(|()| self.model.compare(&self.engine)).expect("the model has the same idea");
    }

    /// Sends one message for each of these; returns their ids, without those of duplicates.
    fn sends(&mut self, queue: &str, messages: &[(SendOptions<'_>, Deliver)]) -> Vec<MessageId> {
        let item = |(options, deliver)| SendItem { deliver, options: Some(options), ..SendItem::default() };
        let items: Vec<_> = messages.iter().map(|(options, deliver)| item((options, *deliver))).collect();
        self.goes_on(&Command::Send(Send {
            namespace: NAMESPACE,
            queue,
            idempotency_key: b"",
            request_digest: 0,
            items: &items,
        }));
        let Reply::Sent { first, .. } = self.outcome.reply else { panic!("{:?}", self.outcome.reply) };
        let added = (items.len() - self.outcome.duplicates.len()) as u64;
        (0..added).map(|number| MessageId { sequence: first.sequence + number, ..first }).collect()
    }

    fn receives(&mut self, queue: &str) -> Vec<MessageId> {
        self.goes_on(&Command::Receive(Receive {
            namespace: NAMESPACE,
            queues: &[(queue, 0)],
            max_messages: 10,
            max_bytes: 1 << 20,
            lease_ms: 0,
            consumer: "",
        }));
        self.outcome.deliveries.iter().map(|delivery| delivery.receipt.id).collect()
    }

    /// Receives and acks all ready messages.
    fn works(&mut self, queue: &str) {
        self.receives(queue);
        let receipts = self.outcome.deliveries.iter().map(|delivery| delivery.receipt);
        let ack = |receipt| SettleItem {
            receipt,
            settlement: Settlement::Ack,
            error: "",
            result: None,
            add_cost: 0,
        };
        let items: Vec<_> = receipts.map(ack).collect();
        self.goes_on(&Command::Settle { namespace: NAMESPACE, items: &items });
    }

    fn changes(&mut self, ids: &[MessageId], action: ChangeAction<'_>) {
        let results = self.may_change(ids, action);
        assert!(results.iter().all(|code| *code == "ok"), "{results:?}");
    }

    /// Changes messages; returns the code of each result, `ok` for success.
    fn may_change(&mut self, ids: &[MessageId], action: ChangeAction<'_>) -> Vec<&'static str> {
        let items: Vec<_> = ids.iter().map(|id| (*id, 0)).collect();
        self.goes_on(&Command::Change(Change {
            namespace: NAMESPACE,
            items: &items,
            action,
            by: "",
            why: "",
        }));
        self.outcome.results.iter().map(super::item::code).collect()
    }

    fn counters(&self, queue: &str) -> Counters {
        let queue = self.engine.queue_id(NAMESPACE, queue).and_then(|queue| self.engine.queue(queue));
        queue.expect("a queue").counters
    }
}

/// A message of an ordering key that ends after this time, or never.
fn in_order(ttl_ms: Option<u64>) -> (SendOptions<'static>, Deliver) {
    let expires = ttl_ms.map_or(Expires::Never, Expires::AfterMs);
    (SendOptions { ordering_key: b"key", expires, ..SendOptions::default() }, Deliver::Now)
}

fn fair(key: &'static [u8], unique: Option<OnDuplicate>) -> SendOptions<'static> {
    let unique = unique.map(|on_duplicate| Unique {
        key: b"once",
        window_ms: 60_000,
        until: UniqueUntil::default(),
        on_duplicate,
    });
    SendOptions { fair_key: key, unique, ..SendOptions::default() }
}

#[test]
fn a_lane_keeps_its_place_when_its_first_message_is_put_off() {
    let mut story = Story::begin();
    let ids = story.sends(
        "queue",
        &[
            (fair(b"a", Some(OnDuplicate::Keep)), Deliver::Now),
            (fair(b"b", None), Deliver::Now),
            (fair(b"a", None), Deliver::Now),
            (fair(b"a", Some(OnDuplicate::Debounce)), Deliver::AfterMs(1_000)),
        ],
    );
    assert_eq!(story.receives("queue"), [ids[2], ids[1]]);
}

#[test]
fn one_is_cancelled_that_is_over_and_another_one_ends() {
    let mut story = Story::begin();
    let ids = story.sends("queue", &[in_order(None), in_order(Some(10)), in_order(Some(10))]);
    story.now_us += 20_000;
    story.changes(&[ids[1], ids[0]], ChangeAction::Cancel);
    assert_eq!((story.counters("queue").died, story.counters("queue").cancelled), (1, 2));
}

#[test]
fn one_that_is_over_and_moved_ends_where_it_comes_to() {
    let mut story = Story::begin();
    let patch = QueuePatch::default();
    story.goes_on(&Command::QueueSet { namespace: NAMESPACE, queue: "other", patch, create: true });
    let ids = story.sends("queue", &[in_order(None), in_order(Some(10))]);
    story.now_us += 20_000;
    story.changes(&ids, ChangeAction::Move { to: "other" });
    assert_eq!((story.counters("queue").died, story.counters("other").died), (0, 1));
}

#[test]
fn a_change_that_would_put_a_message_off_until_its_end_is_refused() {
    let mut story = Story::begin();
    let ids = story.sends("queue", &[in_order(Some(1_000)), in_order(Some(10_000))]);
    let action = |ms| {
        let deliver = Some(Deliver::AfterMs(ms));
        ChangeAction::Set(NewFields { deliver, ..NewFields::default() })
    };
    story.changes(&ids[1..], action(9_999));
    assert_eq!(story.may_change(&ids, action(5_000)), ["invalid_argument", "ok"]);
}

#[test]
fn a_duplicate_puts_the_first_off_until_its_end_and_the_next_one_is_a_message_of_its_own() {
    let debounced = |deliver| {
        let options = fair(b"", Some(OnDuplicate::Debounce));
        (SendOptions { expires: Expires::AfterMs(1_000), ..options }, deliver)
    };
    let late = || (fair(b"", Some(OnDuplicate::Debounce)), Deliver::AfterMs(5_000));
    let mut story = Story::begin();
    story.sends("queue", &[debounced(Deliver::AfterMs(10)), late(), debounced(Deliver::Now)]);
    assert_eq!((story.counters("queue").sent, story.counters("queue").died), (2, 1));
    story.sends("queue", &[debounced(Deliver::Now), late(), late()]);
    assert_eq!((story.counters("queue").sent, story.counters("queue").died), (3, 2));
}

#[test]
fn a_duplicate_ends_a_message_that_is_held() {
    let mut story = Story::begin();
    let (mut options, late) = (fair(b"", Some(OnDuplicate::Debounce)), Deliver::AfterMs(5_000));
    (options.hold, options.expires) = (true, Expires::AfterMs(1_000));
    story.sends("queue", &[(options, Deliver::Now)]);
    story.sends("queue", &[(fair(b"", Some(OnDuplicate::Debounce)), late)]);
    assert_eq!(story.counters("queue").died, 1);
}

#[test]
fn what_is_over_on_arrival_takes_no_key() {
    let mut story = Story::begin();
    let over =
        (SendOptions { expires: Expires::AtUs(1), ..fair(b"", Some(OnDuplicate::Keep)) }, Deliver::Now);
    let ids = story.sends("queue", &[over, (fair(b"", Some(OnDuplicate::Keep)), Deliver::Now)]);
    assert_eq!((ids.len(), story.counters("queue").died), (2, 1));
    assert_eq!(story.receives("queue"), [ids[1]]);
}

#[test]
fn what_is_held_and_over_on_arrival_ends() {
    let mut story = Story::begin();
    let options = SendOptions { hold: true, expires: Expires::AtUs(1), ..SendOptions::default() };
    story.sends("queue", &[(options, Deliver::Now)]);
    assert_eq!(story.counters("queue").died, 1);
}

#[test]
fn the_work_gets_less_with_one_that_leaves_a_reply_in_its_own_queue() {
    let mut story = Story::begin();
    story.sends("queue", &[(SendOptions { reply_to: "queue", ..SendOptions::default() }, Deliver::Now)]);
    let mut left = vec![Seen(&story.engine).work_left()];
    for _ in 0..2 {
        story.works("queue");
        left.push(Seen(&story.engine).work_left());
    }
    assert_eq!(left, [2, 1, 0]);
}
