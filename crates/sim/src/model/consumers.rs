//! Consumers with credit: no consumer is given a message beyond its credit, and ready messages are given out
//! while there is credit. Messages that a detached consumer held are released after its grace period; this
//! counts as an attempt only if the consumer was lost and the delivery had reached it.

use std::collections::BTreeSet;

use sluice_engine::Engine;
use sluice_engine::command::{Attach, Command};
use sluice_engine::id::{ConsumerId, MessageId, NamespaceId, Receipt};
use sluice_engine::outcome::Reply;
use sluice_engine::query::{ConsumerState, ConsumerView, MessageView};

use super::{Apply, Checked, ensure};
use super::{Message, MessagePlace, ModelState, Queue};

/// Consumers in one read of the engine: enough for all.
const CONSUMERS_MAX: usize = 1_000;

/// An attached or detached consumer.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Consumer {
    namespace: NamespaceId,
    queues: Vec<String>,
    credit: u32,
    lease_ms: u64,
    grace_ms: u64,
    gone: Option<Gone>,
}

/// State of a detached consumer.
#[derive(Clone, PartialEq, Debug)]
struct Gone {
    /// End of the grace period, in microseconds since the Unix epoch.
    until_us: u64,
    /// Last token of a delivery that had reached the consumer.
    reached: u64,
    /// Messages held at detachment and not extended since.
    held: BTreeSet<MessageId>,
}

impl Consumer {
    /// True when the consumer is attached to this queue.
    pub(super) fn takes_from(&self, queue: &Queue) -> bool {
        self.gone.is_none() && self.namespace == queue.namespace && self.queues.contains(&queue.name)
    }

    /// Number of messages that it may hold.
    pub(super) fn credit(&self) -> usize {
        self.credit as usize
    }
}

impl Message {
    /// The consumer that holds the message, and the token under which it does.
    fn hold(&self) -> Option<(u64, u64)> {
        let MessagePlace::Leased { token, .. } = self.place else { return None };
        self.pushed.filter(|(_, of)| *of == token)
    }

    pub(super) fn compare_holder(&self, view: &MessageView) -> Checked {
        let shown = view.holder.as_ref().map(|holder| holder.consumer.0);
        let holder = self.hold().map(|(consumer, _)| consumer);
        ensure!(shown == holder, "message {} is held by {shown:?}, not {holder:?}", view.id);
        Ok(())
    }
}

impl ModelState {
    pub(super) fn held_by(&self, consumer: u64) -> impl Iterator<Item = (MessageId, u64)> {
        let held = move |(id, message): (&MessageId, &Message)| match message.place {
            MessagePlace::Leased { until_us, .. } if message.hold().is_some_and(|(of, _)| of == consumer) => {
                Some((*id, until_us))
            }
            _ => None,
        };
        self.messages.iter().filter_map(held)
    }

    /// True when a message whose lease is over counts as released by a detached consumer.
    pub(super) fn is_given_back(&self, id: MessageId) -> bool {
        let hold = self.messages.get(&id).and_then(Message::hold);
        let Some((consumer, token)) = hold else { return false };
        let gone = self.consumers.get(&consumer).and_then(|consumer| consumer.gone.as_ref());
        gone.is_some_and(|gone| token > gone.reached)
    }

    /// Removes the consumers of a deleted namespace.
    pub(super) fn forget_consumers(&mut self, namespace: NamespaceId) {
        self.consumers.retain(|_, consumer| consumer.namespace != namespace);
    }

    fn detach(&mut self, number: u64, grace_ms: u64, reached: u64) {
        let until_us = self.now_us + grace_ms * 1_000;
        let held = self.held_by(number).map(|(id, _)| id).collect();
        if let Some(consumer) = self.consumers.get_mut(&number) {
            consumer.gone = Some(Gone { until_us, reached, held });
        }
    }

    /// Notes an extension: a message of a detached consumer then stays leased beyond the grace period.
    pub(super) fn keep(&mut self, id: MessageId) {
        let holder = self.messages.get(&id).and_then(Message::hold);
        let consumer = holder.and_then(|(consumer, _)| self.consumers.get_mut(&consumer));
        if let Some(gone) = consumer.and_then(|consumer| consumer.gone.as_mut()) {
            gone.held.remove(&id);
        }
    }

    /// Detaches all consumers, each with its own grace period, as a new epoch does.
    pub(super) fn detach_all(&mut self) {
        let attached = self.consumers.iter().filter(|(_, consumer)| consumer.gone.is_none());
        let attached: Vec<_> = attached.map(|(number, consumer)| (*number, consumer.grace_ms)).collect();
        attached.into_iter().for_each(|(number, grace_ms)| self.detach(number, grace_ms, 0));
    }
}

impl Apply<'_> {
    pub(super) fn consumers(&mut self, command: &Command<'_>) -> Checked {
        match *command {
            Command::Attach(ref attach) => self.attach(attach),
            Command::Credit { namespace, consumer, credit } => {
                if let Some(consumer) = self.attached(namespace, consumer)? {
                    consumer.credit = credit;
                }
                Ok(())
            }
            Command::Resume { namespace, consumer, receipts } => self.resume(namespace, consumer, receipts),
            Command::Detach { namespace, consumer, grace_ms, reached } => {
                if self.attached(namespace, consumer)?.is_some() {
                    self.world.detach(consumer.0, grace_ms, reached);
                }
                Ok(())
            }
            ref other => Err(format!("{other:?} is no command of consumers")),
        }
    }

    fn attach(&mut self, attach: &Attach<'_>) -> Checked {
        if !self.world.namespaces.contains_key(&attach.namespace) {
            return self.fails("namespace_not_found");
        }
        let known = |name: &&str| self.world.queue_named(attach.namespace, name).is_some();
        if !self.world.limits.auto_create && !attach.queues.iter().all(known) {
            return self.fails("queue_not_found");
        }
        self.succeeds()?;
        self.world.last_consumer += 1;
        let number = self.world.last_consumer;
        let expected = Reply::Consumer { consumer: ConsumerId(number) };
        ensure!(self.outcome.reply == expected, "got {:?}, not {expected:?}", self.outcome.reply);
        let consumer = Consumer {
            namespace: attach.namespace,
            queues: attach.queues.iter().map(|queue| (*queue).to_owned()).collect(),
            credit: attach.credit,
            lease_ms: attach.lease_ms,
            grace_ms: attach.grace_ms,
            gone: None,
        };
        self.world.consumers.insert(number, consumer);
        Ok(())
    }

    /// The consumer for which a command must succeed; `None`: the command must be refused, and was.
    fn attached(
        &mut self,
        namespace: NamespaceId,
        consumer: ConsumerId,
    ) -> Result<Option<&mut Consumer>, String> {
        if !self.world.namespaces.contains_key(&namespace) {
            return self.fails("namespace_not_found").map(|()| None);
        }
        let is_attached = |known: &Consumer| known.namespace == namespace && known.gone.is_none();
        if !self.world.consumers.get(&consumer.0).is_some_and(is_attached) {
            return self.fails("consumer_not_found").map(|()| None);
        }
        self.succeeds()?;
        Ok(self.world.consumers.get_mut(&consumer.0))
    }

    fn resume(&mut self, namespace: NamespaceId, consumer: ConsumerId, receipts: &[Receipt]) -> Checked {
        let Some(lease_ms) = self.attached(namespace, consumer)?.map(|known| known.lease_ms) else {
            return Ok(());
        };
        self.one_result_each(receipts.len())?;
        for (number, receipt) in receipts.iter().enumerate() {
            if self.may_extend(number, namespace, *receipt)? {
                self.extend_one(*receipt, lease_ms);
                self.give_to(consumer, *receipt);
                self.world.takes_key(consumer, receipt.id);
            }
        }
        Ok(())
    }

    fn give_to(&mut self, consumer: ConsumerId, receipt: Receipt) {
        if let Some(message) = self.world.messages.get_mut(&receipt.id) {
            message.pushed = Some((consumer.0, receipt.token));
        }
    }

    /// True when the engine gave this message to a consumer in this record.
    pub(super) fn was_pushed(&self, id: MessageId) -> bool {
        self.outcome.pushed.iter().any(|(_, delivery)| delivery.receipt.id == id)
    }

    /// Takes over the deliveries to consumers, which are the last step of a record.
    pub(super) fn follow_pushed(&mut self) -> Checked {
        for (consumer, delivery) in &self.outcome.pushed {
            let known = self.world.consumers.get(&consumer.0).filter(|known| known.gone.is_none());
            let Some(known) = known else {
                return Err(format!("{delivery:?} was given to {consumer:?}, which is not attached"));
            };
            let holds = self.world.held_by(consumer.0).count();
            ensure!(
                holds < known.credit(),
                "{consumer:?} has credit for {} messages, holds {holds}, and was given {delivery:?}",
                known.credit
            );
            let queue = self.world.queues.get(&delivery.queue).map(|queue| &queue.name);
            ensure!(
                queue.is_some_and(|queue| known.queues.contains(queue)),
                "{delivery:?} was given to {consumer:?}, which did not ask for {queue:?}"
            );
            let lease_ms = known.lease_ms;
            self.keeps_placement(*consumer, delivery.receipt.id)?;
            self.deliver(delivery, lease_ms)?;
            self.give_to(*consumer, delivery.receipt);
            self.world.has_turn(*consumer, delivery.receipt.id);
        }
        Ok(())
    }

    /// Takes over the grace periods: leases of a detached consumer's messages become shorter once the engine
    /// comes to them. After a tick all must be, unless the engine reports that it goes on at once.
    pub(super) fn follow_grace(&mut self, ticked: bool) -> Checked {
        let must = ticked && !self.goes_on();
        let gone = |consumer: &Consumer| consumer.gone.clone();
        let all = self.world.consumers.iter();
        let gone: Vec<(u64, Gone)> =
            all.filter_map(|(number, known)| Some((*number, gone(known)?))).collect();
        for (number, gone) in gone {
            let held: Vec<_> = self.world.held_by(number).collect();
            if held.is_empty() {
                self.world.consumers.remove(&number);
            }
            for (id, _) in held.into_iter().filter(|(_, until_us)| *until_us > gone.until_us) {
                let shown = self.view(id)?.deadline_us;
                if shown == Some(gone.until_us) {
                    self.world.shorten(id, gone.until_us);
                    continue;
                }
                ensure!(
                    !must || !gone.held.contains(&id),
                    "message {id} is leased until {shown:?}, and goes back at {}",
                    gone.until_us
                );
            }
        }
        Ok(())
    }

    /// Checks that no message is ready for which a consumer has credit.
    pub(super) fn all_is_given(&self) -> Checked {
        // The engine gives out the rest in a later slice.
        if self.goes_on() {
            return Ok(());
        }
        for (number, consumer) in &self.world.consumers {
            let view = self.engine.consumer(consumer.namespace, ConsumerId(*number));
            let Some(view) = view.filter(has_credit) else { continue };
            for name in &consumer.queues {
                let Some(queue) = self.world.queue_named(consumer.namespace, name) else { continue };
                let heads = self.heads(queue);
                ensure!(heads.is_empty(), "{name:?} has {:?} ready, and {view:?} has credit", heads.first());
            }
        }
        Ok(())
    }
}

impl ModelState {
    fn shorten(&mut self, id: MessageId, short_us: u64) {
        if let Some(MessagePlace::Leased { until_us, .. }) = self.messages.get_mut(&id).map(|m| &mut m.place)
        {
            *until_us = short_us;
        }
    }
}

fn is_attached(view: &ConsumerView) -> bool {
    view.state == ConsumerState::Attached
}

fn has_credit(view: &ConsumerView) -> bool {
    is_attached(view) && view.in_flight < view.credit
}

/// Checks that the engine shows the attached consumers, and the number of messages that each holds.
pub(super) fn compare_consumers(world: &ModelState, engine: &Engine) -> Checked {
    for namespace in world.namespaces.keys() {
        let views = engine.consumers(*namespace, None, CONSUMERS_MAX);
        let shown: Vec<(u64, u32)> =
            views.iter().filter(|view| is_attached(view)).map(|view| (view.id.0, view.credit)).collect();
        let attached = |consumer: &Consumer| consumer.namespace == *namespace && consumer.gone.is_none();
        let known: Vec<(u64, u32)> = world
            .consumers
            .iter()
            .filter(|(_, consumer)| attached(consumer))
            .map(|(number, consumer)| (*number, consumer.credit))
            .collect();
        ensure!(shown == known, "{namespace:?} shows consumers {shown:?}, the model has {known:?}");
        for view in views {
            let holds = world.held_by(view.id.0).count();
            // Messages of deleted queues count until they are swept.
            ensure!(view.in_flight as usize >= holds, "{view:?} holds {holds} messages");
        }
    }
    Ok(())
}
