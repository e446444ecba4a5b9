//! Each test breaks a rule, and the check has to find it.

use sluice_engine::Engine;
use sluice_engine::command::{Command, Send, SendItem, SettleItem, Settlement};
use sluice_engine::event::{Event, EventDetail, EventKind};
use sluice_engine::id::{BlobRef, MessageId, NamespaceId, QueueId, Receipt};
use sluice_engine::item::SendOptions;
use sluice_engine::outcome::{Delivery, Outcome, Reply};

use super::Lives;
use crate::model::Checked;

const QUEUE: QueueId = QueueId(1);

/// The id of a message by its sequence number.
fn id(sequence: u64) -> MessageId {
    MessageId { namespace: NamespaceId::DEFAULT, sequence }
}

fn event(kind: EventKind, of: u64, attempt: u16) -> Event {
    let (namespace, detail) = (NamespaceId::DEFAULT, EventDetail::None);
    Event { kind, namespace, queue: QUEUE, id: Some(id(of)), attempt, detail }
}

/// A log whose first record sends messages with one ordering key.
struct Log {
    lives: Lives,
    index: u64,
}

impl Log {
    fn of(messages: u64) -> Log {
        let mut log = Log { lives: Lives::new(), index: 0 };
        log.send(1, messages).unwrap();
        log
    }

    fn follow(&mut self, command: &Command<'_>, outcome: &Outcome) -> Checked {
        self.index += 1;
        self.lives.follow(self.index * 1_000, self.index, command, outcome, &Engine::new())
    }

    fn send(&mut self, first: u64, count: u64) -> Checked {
        let options = SendOptions { ordering_key: b"key", ..SendOptions::default() };
        let items = vec![SendItem { options: Some(&options), ..SendItem::default() }; count as usize];
        let (namespace, queue) = (NamespaceId::DEFAULT, "queue");
        let send = Send { namespace, queue, idempotency_key: b"", request_digest: 0, items: &items };
        let reply = Reply::Sent { first: id(first), count: count as u32, duplicate: false };
        let events = (first..first + count).map(|of| event(EventKind::Sent, of, 0)).collect();
        self.follow(&Command::Send(send), &Outcome { reply, events, ..Outcome::default() })
    }

    fn deliver(&mut self, of: u64, token: u64, attempt: u16) -> Checked {
        let delivery = Delivery {
            receipt: Receipt { id: id(of), token, tag: 0 },
            queue: QUEUE,
            blob: BlobRef::EMPTY,
            lease_until_us: 1_000_000,
            sent_at_us: 0,
            attempt,
            max_attempts: 9,
            deliveries: attempt,
            priority: 0,
            has_details: false,
        };
        let events = vec![event(EventKind::Delivered, of, attempt)];
        let outcome = Outcome { deliveries: vec![delivery], events, ..Outcome::default() };
        self.follow(&Command::Tick, &outcome)
    }

    /// Answers that a token has settled a message, with an event of this kind.
    fn settle(&mut self, of: u64, token: u64, kind: EventKind) -> Checked {
        let receipt = Receipt { id: id(of), token, tag: 0 };
        let items =
            [SettleItem { receipt, settlement: Settlement::Ack, error: "", result: None, add_cost: 0 }];
        let events = vec![event(kind, of, 1)];
        let outcome = Outcome { results: vec![Ok(())], events, ..Outcome::default() };
        self.follow(&Command::Settle { namespace: NamespaceId::DEFAULT, items: &items }, &outcome)
    }

    fn tell(&mut self, kind: EventKind, of: u64) -> Checked {
        let events = vec![event(kind, of, 1)];
        self.follow(&Command::Tick, &Outcome { events, ..Outcome::default() })
    }
}

#[track_caller]
fn wrong(told: Checked, why: &str) {
    let told = told.unwrap_err();
    assert!(told.contains(why), "{told}");
}

#[test]
fn a_life_that_is_right() {
    let mut log = Log::of(2);
    log.deliver(1, 7, 1).unwrap();
    log.settle(1, 7, EventKind::Nacked).unwrap();
    log.deliver(1, 8, 2).unwrap();
    wrong(log.tell(EventKind::Released, 1), "it is at attempt 2");
}

#[test]
fn nobody_gets_what_another_one_holds() {
    let mut log = Log::of(1);
    log.deliver(1, 7, 1).unwrap();
    wrong(log.deliver(1, 8, 2), "it is delivered, and is Leased");
}

#[test]
fn an_id_or_a_token_is_given_once() {
    let mut log = Log::of(2);
    wrong(log.send(2, 1), "the id was given before");
    log.deliver(1, 7, 1).unwrap();
    log.settle(1, 7, EventKind::Acked).unwrap();
    wrong(log.deliver(2, 7, 1), "token 7 comes after 7");
}

#[test]
fn what_was_acked_is_not_heard_of_again() {
    let mut log = Log::of(1);
    log.deliver(1, 7, 1).unwrap();
    log.settle(1, 7, EventKind::Acked).unwrap();
    wrong(log.deliver(1, 8, 2), "it is delivered, and is Acked");
    wrong(log.tell(EventKind::Dropped, 1), "it was acked");
}

#[test]
fn a_stale_token_settles_nothing() {
    let mut log = Log::of(1);
    log.deliver(1, 7, 1).unwrap();
    log.settle(1, 7, EventKind::Nacked).unwrap();
    log.deliver(1, 8, 2).unwrap();
    wrong(log.settle(1, 7, EventKind::Acked), "token 7 was good");
}

#[test]
fn attempts_count_on() {
    let mut log = Log::of(1);
    wrong(log.deliver(1, 7, 2), "it is attempt 1");
}

#[test]
fn an_ordering_key_is_in_order_and_one_at_a_time() {
    wrong(Log::of(2).deliver(2, 7, 1), "with its ordering key");
    let mut log = Log::of(2);
    log.deliver(1, 7, 1).unwrap();
    wrong(log.deliver(2, 8, 1), "with its ordering key is held");
}

#[test]
fn what_is_sent_follows_something() {
    wrong(Log::of(1).tell(EventKind::Sent, 2), "follows nothing");
}

#[test]
fn what_is_gone_stays_gone() {
    let mut log = Log::of(1);
    log.tell(EventKind::Cancelled, 1).unwrap();
    wrong(log.tell(EventKind::Redriven, 1), "it is gone");
}

#[test]
fn a_message_that_was_answered_came_into_being() {
    let mut log = Log::of(1);
    let reply = Reply::Sent { first: id(5), count: 1, duplicate: false };
    let outcome = Outcome { reply, ..Outcome::default() };
    let items = [SendItem::default()];
    let (namespace, queue) = (NamespaceId::DEFAULT, "queue");
    let send = Send { namespace, queue, idempotency_key: b"", request_digest: 0, items: &items };
    wrong(log.follow(&Command::Send(send), &outcome), "was not told of as sent");
}
