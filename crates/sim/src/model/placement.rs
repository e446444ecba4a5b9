//! Choice among several consumers with credit, by the placement setting of the message's queue.

use std::collections::BTreeMap;

use sluice_engine::id::{ConsumerId, MessageId, QueueId};
use sluice_engine::settings::Placement;

use super::consumers::Consumer;
use super::{Apply, Checked, ensure};
use super::{ModelState, Queue};

/// Turns of the consumers, and owners of the ordering keys.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Turns {
    /// Number of messages given to consumers so far.
    served: u64,
    /// Number of the last delivery from a queue to a consumer; queues by name, as in an attachment.
    last: BTreeMap<(u64, String), u64>,
    /// Consumer that got the last message of an ordering key, for placement by key.
    owners: BTreeMap<(QueueId, Vec<u8>), u64>,
}

impl ModelState {
    /// The message's queue, and its ordering key in it.
    fn key_of(&self, id: MessageId) -> (&Queue, (QueueId, Vec<u8>)) {
        let message = &self.messages[&id];
        (&self.queues[&message.queue], (message.queue, message.keys.ordering.clone()))
    }

    /// Consumers of a queue that have credit: each with the number of messages it holds, where that counts,
    /// and its last turn.
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

    /// Makes a consumer the owner of a message's ordering key.
    pub(super) fn takes_key(&mut self, consumer: ConsumerId, id: MessageId) {
        let (queue, key) = self.key_of(id);
        if queue.settings.placement == Placement::Sticky && !key.1.is_empty() {
            self.turns.owners.insert(key, consumer.0);
        }
    }

    /// Notes a turn of a consumer.
    pub(super) fn has_turn(&mut self, consumer: ConsumerId, id: MessageId) {
        let name = self.key_of(id).0.name.clone();
        self.turns.served += 1;
        self.turns.last.insert((consumer.0, name), self.turns.served);
        self.takes_key(consumer, id);
    }
}

impl Apply<'_> {
    /// Checks that a consumer is the one to which a ready message must go.
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
