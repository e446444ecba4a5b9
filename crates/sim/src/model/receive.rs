//! Receiving: checks that each delivered message was next in line.

use sluice_engine::command::Receive;
use sluice_engine::id::{EPOCH_SHIFT, QueueId};
use sluice_engine::outcome::Delivery;

use super::{Apply, Checked, ensure};
use super::{Message, MessagePlace};

impl Apply<'_> {
    pub(super) fn receive(&mut self, receive: &Receive<'_>) -> Checked {
        if !self.world.namespaces.contains_key(&receive.namespace) {
            return self.fails("namespace_not_found");
        }
        self.succeeds()?;
        let named = |(name, _): &(&str, u16)| self.world.queue_named(receive.namespace, name);
        let queues: Vec<QueueId> = receive.queues.iter().filter_map(named).collect();
        let in_order = receive.queues.iter().all(|(_, weight)| *weight == 0);
        let most = receive.max_messages.min(self.world.limits.receive_messages) as usize;
        let deliveries = &self.outcome.deliveries;
        ensure!(deliveries.len() <= most, "{} messages were given, {most} wanted", deliveries.len());
        let mut bytes = 0;
        for delivery in deliveries {
            ensure!(queues.contains(&delivery.queue), "{delivery:?} is of a queue that was not asked for");
            if in_order {
                self.no_earlier_queue(&queues, delivery.queue)?;
            }
            self.deliver(delivery, receive.lease_ms)?;
            bytes += u64::from(delivery.blob.len);
        }
        // The first message may be larger than the limit; then only empty ones can follow.
        let first = deliveries.first().map_or(0, |delivery| delivery.blob.len);
        ensure!(
            bytes <= u64::from(receive.max_bytes.max(first)),
            "{bytes} bytes were given, {} wanted",
            receive.max_bytes
        );
        if deliveries.len() < most {
            self.nothing_left(&queues, bytes, receive.max_bytes)?;
        }
        Ok(())
    }

    /// Checks that earlier queues of the request were empty when a later one was taken from.
    fn no_earlier_queue(&self, queues: &[QueueId], taken: QueueId) -> Checked {
        for earlier in queues.iter().take_while(|queue| **queue != taken) {
            ensure!(
                self.heads(*earlier).is_empty(),
                "queue {taken:?} was served before {earlier:?}, which has ready messages and stands first"
            );
        }
        Ok(())
    }

    /// Checks that a receive took all that it may: it ends early only before a message that would exceed the
    /// bytes.
    fn nothing_left(&self, queues: &[QueueId], bytes: u64, max_bytes: u32) -> Checked {
        let heads: Vec<&Message> = queues.iter().flat_map(|queue| self.heads(*queue)).collect();
        let too_many = |message: &&Message| bytes + u64::from(message.blob.len) > u64::from(max_bytes);
        // The first message is unknown where keys decide; it may be too large.
        let known = |queue: &QueueId| self.world.is_plain(*queue) || self.world.is_fair(*queue);
        let unsure = !queues.iter().all(known);
        ensure!(
            heads.is_empty()
                || (!self.outcome.deliveries.is_empty() && (unsure || heads.iter().any(too_many))),
            "fewer messages were given than wanted, and there are ready ones: {:?}",
            heads.first()
        );
        Ok(())
    }

    /// The messages of which one must be next: the first ones of the highest priority; with turns, those of
    /// the keys whose turn it may be. Empty where ordering keys or limits decide: then none must be.
    pub(super) fn heads(&self, queue: QueueId) -> Vec<&Message> {
        let world = &self.world;
        if world.queues.get(&queue).is_some_and(|queue| queue.settings.paused) {
            return Vec::new();
        }
        if world.is_fair(queue) {
            return world.next_in_turn(queue);
        }
        let plain = world.is_plain(queue);
        let ready = |message: &Message| match message.place {
            MessagePlace::Ready { line } if plain && !message.is_over(self.now_us) => {
                Some((std::cmp::Reverse(message.priority), line))
            }
            _ => None,
        };
        let first = world.messages_of(queue).filter_map(|(_, message)| ready(message)).min();
        world
            .messages_of(queue)
            .map(|(_, message)| message)
            .filter(|message| first.is_some() && ready(message) == first)
            .collect()
    }

    pub(super) fn deliver(&mut self, delivery: &Delivery, lease_ms: u64) -> Checked {
        let (id, token) = (delivery.receipt.id, delivery.receipt.token);
        let Some(message) = self.world.messages.get(&id) else {
            return Err(format!("message {id} was delivered, and does not exist"));
        };
        ensure!(
            matches!(message.place, MessagePlace::Ready { .. }) || self.was_let_go(message),
            "message {id} was delivered while it is {:?}",
            message.place
        );
        let queue = &self.world.queues[&message.queue];
        ensure!(!queue.settings.paused, "message {id} was delivered by {:?}, which is paused", queue.name);
        if self.world.is_plain(message.queue) || self.world.is_fair(message.queue) {
            self.stands_first(delivery)?;
        }
        self.keeps_flow(id)?;
        self.keeps_end(id)?;
        self.keeps_order(id)?;
        self.keeps_limit(id)?;
        ensure!(token > self.world.last_token, "token {token} was given after {}", self.world.last_token);
        ensure!(
            token >> EPOCH_SHIFT == self.world.epoch,
            "token {token} is not of epoch {}",
            self.world.epoch
        );
        self.world.last_token = token;
        self.world.given.insert(delivery.receipt);
        self.lease(delivery, lease_ms)?;
        self.gave(id);
        Ok(())
    }

    /// True when a message whose delay is over may have waited for its ordering key until the message before
    /// it ended in this record.
    fn was_let_go(&self, message: &Message) -> bool {
        let over = matches!(message.place, MessagePlace::Delayed { until_us } if until_us <= self.now_us);
        over && !message.keys.ordering.is_empty() && self.world.queues[&message.queue].ends
    }

    fn stands_first(&self, delivery: &Delivery) -> Checked {
        let message = &self.world.messages[&delivery.receipt.id];
        let heads = self.heads(message.queue);
        ensure!(
            heads.contains(&message),
            "{delivery:?} ({:?}) was delivered out of turn: next is {:?}",
            message.place,
            heads.first()
        );
        Ok(())
    }

    fn lease(&mut self, delivery: &Delivery, lease_ms: u64) -> Checked {
        let id = delivery.receipt.id;
        self.total(id, |totals| totals.delivered += 1);
        let Some(message) = self.world.messages.get_mut(&id) else { return Ok(()) };
        let settings = self.world.queues[&message.queue].settings.clone();
        let lease_ms = if lease_ms == 0 { settings.lease_ms } else { lease_ms };
        message.attempts += 1;
        message.deliveries += 1;
        message.turn.begins(&message.keys);
        let until_us = self.now_us + lease_ms * 1_000;
        message.place =
            MessagePlace::Leased { token: delivery.receipt.token, until_us, since_us: self.now_us };
        let expected = Delivery {
            receipt: delivery.receipt,
            queue: message.queue,
            blob: message.blob,
            lease_until_us: until_us,
            sent_at_us: message.sent_us,
            attempt: message.attempts,
            max_attempts: message.max_attempts(&settings),
            deliveries: message.deliveries,
            priority: message.priority,
            has_details: delivery.has_details,
        };
        ensure!(*delivery == expected, "{delivery:?} was given, and should be {expected:?}");
        self.carries_details(delivery)
    }
}
