//! Recount of the ends of messages.

use crate::core::{Core, agree};
use crate::query::State;
use crate::queue::QueueModule;
use crate::store::slot::Slot;

impl QueueModule {
    /// Each end belongs to the message that names it, and its timer is set as long as that message may end.
    pub(crate) fn recount_expiry(&self, core: &Core) -> Result<(), String> {
        self.expiry.recount()?;
        let mut ends = 0;
        for (slot, message) in self.messages.iter() {
            let expiry = self.extras.options(message.extras).map_or(Slot::NIL, |options| options.expiry);
            if expiry == Slot::NIL {
                continue;
            }
            ends += 1;
            let known = self.expiry.slots.get(expiry);
            agree("message of an end", known.message.index().into(), slot.index().into())?;
            let ended = matches!(message.state, Some(State::Dead | State::Done));
            let fired =
                known.end_us == 0 || (known.end_us <= core.now_us && message.state == Some(State::Leased));
            if known.armed == ended && !fired {
                return Err(format!("the end of message {} has armed = {}", message.sequence, known.armed));
            }
        }
        agree("ends of messages", ends, u64::from(self.expiry.slots.used()))
    }
}
