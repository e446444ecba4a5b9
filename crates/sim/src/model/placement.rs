//! The choice among several consumers with credit, by the placement of the message's queue.

use std::collections::BTreeMap;

use sluice_engine::id::{ConsumerId, MessageId, QueueId};
use sluice_engine::settings::Placement;

use super::consumers::Consumer;
use super::{Apply, Checked, ensure};
use super::{ModelState, Queue};

/// When consumers had their turns, and whose the ordering keys are.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Turns {
    /// Messages given to consumers so far.
    served: u64,
    /// Number of the last delivery from a queue to a consumer; queues by name, as consumers know them.
    last: BTreeMap<(u64, String), u64>,
    /// The consumer that had the last message of an ordering key, where consumers keep their keys.
    owners: BTreeMap<(QueueId, Vec<u8>), u64>,
}

impl ModelState {
    /// Where a message is, and its ordering key.
    fn key_of(&self, id: MessageId) -> (&Queue, (QueueId, Vec<u8>)) {
        let message = &self.messages[&id];
        (&self.queues[&message.queue], (message.queue, message.keys.ordering.clone()))
    }

    /// Consumers of a queue with credit: what each holds where that counts, and when it had its last turn.
    fn turns_of<'a>(&'a self, queue: &'a Queue) -> impl Iterator<Item = (u64, (usize, u64))> + 'a {
        let by_load = queue.settings.placement == Placement::LeastLoaded;
        self.consumers.iter().filter(|(_, consumer)| consumer.takes_from(queue)).filter_map(
            move |(number, consumer)| {
                let holds = self.held_by(*number).count();
                let last = self.turns.last.get(&(*number, queue.name.clone()));
                let turn = (if by_load { holds } else { 0 }, last.copied().unwrap_or(0));
                (holds < consumer.credit()).then_some((*number, turn))
            },
        )
    }

    /// A consumer has the last message of an ordering key.
    pub(super) fn takes_key(&mut self, consumer: ConsumerId, id: MessageId) {
        let (queue, key) = self.key_of(id);
        if queue.settings.placement == Placement::Sticky && !key.1.is_empty() {
            self.turns.owners.insert(key, consumer.0);
        }
    }

    /// A consumer has had its turn.
    pub(super) fn has_turn(&mut self, consumer: ConsumerId, id: MessageId) {
        let name = self.key_of(id).0.name.clone();
        self.turns.served += 1;
        self.turns.last.insert((consumer.0, name), self.turns.served);
        self.takes_key(consumer, id);
    }
}

impl Apply<'_> {
    /// Whether a consumer is the one to which a message that is ready has to go.
    pub(super) fn keeps_placement(&self, consumer: ConsumerId, id: MessageId) -> Checked {
        let (queue, key) = self.world.key_of(id);
        let owner = self.world.turns.owners.get(&key).copied();
        let owner = owner.filter(|owner| {
            let known: Option<&Consumer> = self.world.consumers.get(owner);
            queue.settings.placement == Placement::Sticky
                && known.is_some_and(|known| known.takes_from(queue))
        });
        if let Some(owner) = owner {
            ensure!(
                owner == consumer.0,
                "{id} was given to {consumer:?}, and its ordering key is of {owner}"
            );
            return Ok(());
        }
        let turns: BTreeMap<u64, (usize, u64)> = self.world.turns_of(queue).collect();
        ensure!(
            turns.get(&consumer.0) == turns.values().min(),
            "{id} of {:?} was given to {consumer:?}, out of turn: {turns:?}",
            queue.name
        );
        Ok(())
    }
}
