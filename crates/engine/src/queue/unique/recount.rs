//! Recount of unique keys.

use crate::core::agree;
use crate::query::State;
use crate::queue::QueueModule;
use crate::store::slot::Slot;

impl QueueModule {
    /// Each key has as many members as there are messages that name it, and is held by one of them at most.
    pub(crate) fn recount_unique(&self) -> Result<(), String> {
        self.unique.recount()?;
        let mut members = vec![0; self.unique.slots.slots() as usize];
        let key_of = |extras| self.extras.options(extras).map_or(Slot::NIL, |options| options.unique);
        for (_, message) in self.messages.iter() {
            let key = key_of(message.extras);
            if key != Slot::NIL {
                members[key.index() as usize] += 1;
            }
        }
        for (slot, key) in self.unique.slots.iter() {
            agree("members of a unique key", members[slot.index() as usize], u64::from(key.members()))?;
            if key.holder == Slot::NIL {
                continue;
            }
            let holder = self.messages.get(key.holder);
            let right = key_of(holder.extras) == slot
                && holder.sequence == key.first
                && !matches!(holder.state, None | Some(State::Dead | State::Done));
            if !right {
                return Err(format!("message {} does not hold unique key {slot}", holder.sequence));
            }
        }
        Ok(())
    }
}
