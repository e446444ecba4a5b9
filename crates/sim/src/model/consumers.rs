//! Consumers with credit: nobody holds more than that when it is given a message, and what is ready goes out
//! while there is credit. What a detached consumer did not settle goes back after its time of grace: without
//! counting, unless the consumer was lost and the delivery had reached it.

use std::collections::BTreeSet;

use sluice_engine::Engine;
use sluice_engine::command::{Attach, Command, DETACH_GRACE_MS};
use sluice_engine::id::{ConsumerId, MessageId, NamespaceId, Receipt};
use sluice_engine::outcome::Reply;
use sluice_engine::query::{ConsumerState, ConsumerView, MessageView};

use super::{Apply, Checked, ensure};
use super::{Message, MessagePlace, ModelState, Queue};

/// Consumers that one look at the engine may give: all of them.
const CONSUMERS_MAX: usize = 1_000;

/// One consumer.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Consumer {
    namespace: NamespaceId,
    queues: Vec<String>,
    credit: u32,
    lease_ms: u64,
    gone: Option<Gone>,
}

/// A consumer that was detached.
#[derive(Clone, PartialEq, Debug)]
struct Gone {
    /// When what it holds goes back.
    until_us: u64,
    /// The token up to which deliveries had reached it.
    reached: u64,
    /// What it held then and was not extended since.
    held: BTreeSet<MessageId>,
}

impl Consumer {
    /// Whether it is attached to a queue.
    pub(super) fn takes_from(&self, queue: &Queue) -> bool {
        self.gone.is_none() && self.namespace == queue.namespace && self.queues.contains(&queue.name)
    }

    /// Messages that it may hold.
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

    /// Whether a message, whose lease is over, is given back by a consumer that was detached.
    pub(super) fn is_given_back(&self, id: MessageId) -> bool {
        let hold = self.messages.get(&id).and_then(Message::hold);
        let Some((consumer, token)) = hold else { return false };
        let gone = self.consumers.get(&consumer).and_then(|consumer| consumer.gone.as_ref());
        gone.is_some_and(|gone| token > gone.reached)
    }

    /// A namespace is deleted, and its consumers with it.
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

    /// A message was extended: if its consumer was detached before, it keeps it beyond its time of grace.
    pub(super) fn keep(&mut self, id: MessageId) {
        let holder = self.messages.get(&id).and_then(Message::hold);
        let consumer = holder.and_then(|(consumer, _)| self.consumers.get_mut(&consumer));
        if let Some(gone) = consumer.and_then(|consumer| consumer.gone.as_mut()) {
            gone.held.remove(&id);
        }
    }

    /// A new epoch detaches all.
    pub(super) fn detach_all(&mut self) {
        let attached = self.consumers.iter().filter(|(_, consumer)| consumer.gone.is_none());
        let attached: Vec<u64> = attached.map(|(number, _)| *number).collect();
        attached.into_iter().for_each(|number| self.detach(number, DETACH_GRACE_MS, 0));
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
            gone: None,
        };
        self.world.consumers.insert(number, consumer);
        Ok(())
    }

    /// The consumer to which a command has to go well; `None`: it has to be refused, and was.
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

    /// Whether the engine gave this message to a consumer in this apply.
    pub(super) fn was_pushed(&self, id: MessageId) -> bool {
        self.outcome.pushed.iter().any(|(_, delivery)| delivery.receipt.id == id)
    }

    /// What the engine gave to consumers, last of all that it did.
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

    /// What a detached consumer holds has a shorter lease as soon as the engine comes to it: after a tick it
    /// must have, unless the engine says that it goes on at once.
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

    /// Nothing is ready that a consumer with credit might have.
    pub(super) fn all_is_given(&self) -> Checked {
        // Otherwise it goes on giving at once.
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

/// Whether the engine shows those who are attached, and how much each of them holds.
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
