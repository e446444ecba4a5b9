//! Recount of the search for the oldest messages of queues that are too long.

use crate::core::agree;
use crate::queue::QueueModule;
use crate::queue::state::QueueSlot;
use crate::queue::state::message::mark;
use crate::queue::state::queue::Queue;
use crate::store::slot::Slot;

impl QueueModule {
    /// Checks that what waits was not passed, or has come back since.
    pub(crate) fn recount_trim(&self, slot: QueueSlot, queue: &Queue) -> Result<(), String> {
        let trim = &queue.trim;
        let (mut returned, mut last) = (0, 0);
        for at in self.all_of(queue) {
            let message = self.messages.get(at);
            let is_returned = message.is_marked(mark::RETURNED);
            returned += u64::from(is_returned);
            if is_returned != trim.returned.contains(&message.sequence) {
                return Err(format!("message {} is not kept as it has come back", message.sequence));
            }
            if message.is_marked(mark::PASSED_LAST) {
                last += 1;
                agree("the message passed last", at.index().into(), trim.passed.index().into())?;
            }
            if message.waits() && !queue.is_stale(message) && self.is_passed(message) && !is_returned {
                return Err(format!("message {} waits and was passed", message.sequence));
            }
        }
        agree("messages that have come back", returned, trim.returned.len() as u64)?;
        agree("messages passed last", last, u64::from(trim.passed != Slot::NIL))?;
        if trim.running && !queue.working {
            return Err(format!("queue {slot} is too long, and nothing goes on"));
        }
        Ok(())
    }
}
