//! What must hold of each delivery: its token is new, its message has not ended, and is the only one of its
//! ordering key; nobody holds more than its credit.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::Engine;
use sluice_engine::id::{MessageId, NamespaceId, QueueId};
use sluice_engine::outcome::{Delivery, Outcome};
use sluice_engine::query::State;

/// An ordering key of a queue.
type Key = (QueueId, Box<[u8]>);

#[derive(Default)]
pub(super) struct Deliveries {
    tokens: BTreeSet<u64>,
    /// The message of each ordering key that was delivered last.
    latest: BTreeMap<Key, MessageId>,
    /// Whether messages of a key go strictly by the order of sending: nothing is done to them but work.
    pub(super) in_order: bool,
}

impl Deliveries {
    pub(super) fn new(in_order: bool) -> Deliveries {
        Deliveries { in_order, ..Deliveries::default() }
    }

    /// Checks what one record has given, and to whom.
    pub(super) fn follow(&mut self, now_us: u64, out: &Outcome, engine: &Engine) {
        let pushed = out.pushed.iter().map(|(_, delivery)| delivery);
        for delivery in out.deliveries.iter().chain(pushed) {
            self.follow_one(now_us, delivery, engine);
        }
        for (consumer, delivery) in &out.pushed {
            let namespace: NamespaceId = delivery.receipt.id.namespace;
            let view = engine.consumer(namespace, *consumer).unwrap();
            assert!(view.in_flight <= view.credit, "{view:?} holds more than it has credit for");
        }
    }

    fn follow_one(&mut self, now_us: u64, delivery: &Delivery, engine: &Engine) {
        assert!(self.tokens.insert(delivery.receipt.token), "a token was given twice");
        assert!(delivery.lease_until_us > now_us);
        let id = delivery.receipt.id;
        let view = engine.message(id).unwrap();
        assert_eq!(view.state, State::Leased);
        assert!(view.expires_at_us.is_none_or(|end_us| end_us > now_us), "{id} was delivered after its end");
        if view.ordering_key.is_empty() {
            return;
        }
        let queue = view.queue;
        let before = self.latest.insert((queue, view.ordering_key), id).filter(|before| *before != id);
        let Some(before) = before else { return };
        // It may be in another queue by now.
        let leased =
            engine.message(before).is_ok_and(|view| view.state == State::Leased && view.queue == queue);
        assert!(!leased, "{before} and {id} of one ordering key are leased");
        assert!(!self.in_order || before < id, "{id} was delivered after {before}, which was sent later");
    }
}
