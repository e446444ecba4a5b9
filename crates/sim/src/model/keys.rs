//! Messages with keys: rules that hold whatever the engine chooses.
//!
//! The model does not follow which of several messages a key or limit lets through: it counts blocked
//! messages as ready. At each delivery it checks by counting that the message's keys and limits allowed it.
//! At the end of a run everything must have been delivered, so blocked messages are let through in the end.

use sluice_engine::command::Command;
use sluice_engine::id::{MessageId, NamespaceId, QueueId};
use sluice_engine::item::SendOptions;
use sluice_engine::limit::{Cost, LimitRules};
use sluice_engine::outcome::Reply;
use sluice_engine::query::State;
use sluice_engine::settings::{OrderingRetry, QueuePatch};

use super::budgets::Limited;
use super::{Apply, Checked, ensure};
use super::{Message, MessagePlace, ModelState, Queue};

/// Keys of one message, and its cost; empty: none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Keys {
    pub(super) ordering: Vec<u8>,
    pub(super) fair: Vec<u8>,
    pub(super) limit: Vec<u8>,
    pub(super) cost: Cost,
}

impl Keys {
    pub(super) fn of(options: Option<&SendOptions<'_>>) -> Keys {
        let Some(options) = options else { return Keys::default() };
        Keys {
            ordering: options.ordering_key.to_vec(),
            fair: options.fair_key.to_vec(),
            limit: options.limit_key.to_vec(),
            cost: options.cost,
        }
    }

    pub(super) fn any(&self) -> bool {
        !(self.ordering.is_empty() && self.fair.is_empty() && self.limit.is_empty())
    }

    /// True when a message with these keys may be blocked.
    pub(super) fn may_block(&self) -> bool {
        !self.ordering.is_empty() || !self.limit.is_empty()
    }
}

impl Queue {
    /// Notes the keys of a message that comes to the queue.
    pub(super) fn knows(&mut self, keys: &Keys) {
        self.keyed |= keys.any();
        self.blocks |= keys.may_block();
    }
}

/// State of a message among those with its ordering key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Turn {
    /// True when the message has begun: the others wait until it ends.
    active: bool,
    /// True when others may have passed it: it was held, moved or redriven, or has stepped aside.
    strayed: bool,
}

impl Turn {
    pub(super) fn begins(&mut self, keys: &Keys) {
        self.active = !keys.ordering.is_empty();
    }

    /// Ends the turn: the message has no place in the order of sending any more.
    pub(super) fn ends(&mut self) {
        *self = Turn { active: false, strayed: true };
    }

    /// Notes that the message may have lost its place in the order of sending, unless it is its turn.
    pub(super) fn strays(&mut self) {
        self.strayed = true;
    }
}

impl ModelState {
    /// True when only priorities and the order of becoming ready decide in a queue.
    pub(super) fn is_plain(&self, queue: QueueId) -> bool {
        self.queues.get(&queue).is_none_or(|queue| !queue.keyed && queue.settings.limit.is_empty())
    }

    /// Notes that delayed messages of a queue step aside from now on, also those delayed when their turn
    /// comes.
    pub(super) fn let_step_aside(&mut self, queue: QueueId, patch: &QueuePatch) {
        if patch.ordering_retry == Some(OrderingRetry::StepAside) {
            let here = self.messages.values_mut().filter(|message| message.queue == queue);
            let delayed = here.filter(|message| matches!(message.place, MessagePlace::Delayed { .. }));
            delayed.for_each(|message| message.turn.strays());
        }
    }

    /// True when the engine's state of a message fits its place in the model.
    pub(super) fn agrees(&self, message: &Message, state: State) -> bool {
        let blocked = state == State::Blocked
            && (message.keys.may_block() || message.flow.may_block())
            && matches!(message.place, MessagePlace::Ready { .. } | MessagePlace::Delayed { .. });
        blocked || state == message.place.state()
    }
}

impl Apply<'_> {
    pub(super) fn limits(&mut self, command: &Command<'_>) -> Checked {
        match command {
            Command::LimitSet { namespace, limit, rules } => self.limit_set(*namespace, limit, *rules),
            Command::LimitDelete { namespace, limit } => self.limit_delete(*namespace, limit),
            other => Err(format!("{other:?} is no command of limits")),
        }
    }

    fn limit_set(&mut self, namespace: NamespaceId, name: &str, rules: LimitRules) -> Checked {
        if !self.world.namespaces.contains_key(&namespace) {
            return self.fails("namespace_not_found");
        }
        self.succeeds()?;
        let known = self.world.queue_limits.get_mut(&(namespace, name.to_owned()));
        let expected = Reply::Limit { created: known.is_none() };
        match known {
            Some(limited) => limited.follow(rules, self.now_us),
            None => {
                self.world.queue_limits.insert((namespace, name.to_owned()), Limited::new(rules));
            }
        }
        ensure!(self.outcome.reply == expected, "got {:?}, not {expected:?}", self.outcome.reply);
        Ok(())
    }

    fn limit_delete(&mut self, namespace: NamespaceId, name: &str) -> Checked {
        if !self.world.namespaces.contains_key(&namespace) {
            return self.fails("namespace_not_found");
        }
        let key = (namespace, name.to_owned());
        if !self.world.queue_limits.contains_key(&key) {
            return self.fails("limit_not_found");
        }
        let follows = |queue: &Queue| queue.namespace == namespace && *queue.settings.limit == *name;
        if self.world.queues.values().any(follows) {
            return self.fails("limit_in_use");
        }
        self.world.queue_limits.remove(&key);
        self.succeeds()
    }

    /// Checks that a message that is being delivered has its turn among those with its ordering key.
    pub(super) fn keeps_order(&self, id: MessageId) -> Checked {
        let message = &self.world.messages[&id];
        if message.keys.ordering.is_empty() {
            return Ok(());
        }
        for (other_id, other) in self.world.messages_of(message.queue) {
            // A message whose time is over may have ended in this record.
            let ended = other.waits() && other.is_over(self.now_us);
            if *other_id == id || other.keys.ordering != message.keys.ordering || ended {
                continue;
            }
            let ended = matches!(other.place, MessagePlace::Dead { .. } | MessagePlace::Done { .. });
            ensure!(
                ended || !other.turn.active,
                "message {id} was delivered while {other_id} with its ordering key goes on: {other:?}"
            );
            // A message that waits for parents lets others with its key pass.
            let was_first = other_id < &id
                && other.history.is_empty()
                // A dead letter that comes back, or a moved message, finds its own place.
                && !other.turn.strayed
                && !other.flow.may_block()
                && matches!(other.place, MessagePlace::Ready { .. } | MessagePlace::Delayed { .. });
            ensure!(
                !was_first,
                "message {id} was delivered before {other_id} with its ordering key: {other:?}"
            );
        }
        Ok(())
    }

    /// Lets the others of a delayed message's ordering key go on, if its queue says so.
    pub(super) fn step_aside(&mut self, id: MessageId) {
        let Some(message) = self.world.messages.get_mut(&id) else { return };
        if self.world.queues[&message.queue].settings.ordering_retry == OrderingRetry::StepAside {
            message.turn.ends();
        }
    }
}
