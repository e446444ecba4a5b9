//! Idempotency keys of sends: a repeated send is answered with what the first one gave.

use crate::core::Core;
use crate::error::Error;
use crate::id::MessageId;
use crate::limits::IDEMPOTENCY_DUPLICATES_MAX;
use crate::outcome::{Outcome, Reply};
use crate::queue::QueueModule;
use crate::queue::record::send::SendRecord;
use crate::queue::state::QueueSlot;
use crate::queue::state::sent::Sent;

impl QueueModule {
    /// True if an earlier send had this key; then what it gave is in `out`.
    #[inline(always)]
    pub(crate) fn repeated(
        &self,
        queue_slot: QueueSlot,
        send: &SendRecord<'_>,
        core: &Core,
        out: &mut Outcome,
    ) -> Result<bool, Error> {
        if send.idempotency_key.is_empty() {
            Ok(false)
        } else {
            self.repeated_key(queue_slot, send, core, out)
        }
    }

    #[inline(never)]
    fn repeated_key(
        &self,
        queue_slot: QueueSlot,
        send: &SendRecord<'_>,
        core: &Core,
        out: &mut Outcome,
    ) -> Result<bool, Error> {
        let queue = self.queues.get(queue_slot).number;
        let window_us = core.limits.idempotency_window_ms * 1_000;
        let request = (queue, send.idempotency_key, send.request_digest);
        let Some(earlier) = self.idempotency.find(request, core.now_us, window_us)? else {
            return Ok(false);
        };
        let id = |sequence| MessageId { namespace: send.namespace, sequence };
        if !earlier.duplicates.is_empty() {
            out.duplicates.extend(earlier.duplicates.iter().map(|(item, _)| item));
            out.ids.extend(earlier.sequences().map(id));
        }
        let first = out.ids.first().copied().unwrap_or(id(earlier.first));
        out.reply = Reply::Sent { first, count: earlier.count, duplicate: true };
        Ok(true)
    }

    /// Refuses a send of which more duplicates would have to be remembered than there is room for.
    pub(crate) fn admit_duplicates(
        &mut self,
        send: &SendRecord<'_>,
        count: usize,
        core: &Core,
    ) -> Result<(), Error> {
        if send.idempotency_key.is_empty() || count == 0 {
            return Ok(());
        }
        let window_us = core.limits.idempotency_window_ms * 1_000;
        self.idempotency.forget(core.now_us, window_us, core.limits.idempotency_keys);
        if self.idempotency.entries() + count as u64 > IDEMPOTENCY_DUPLICATES_MAX {
            let what = "duplicates remembered with idempotency keys";
            return Err(Error::LimitExceeded { what, limit: IDEMPOTENCY_DUPLICATES_MAX });
        }
        Ok(())
    }

    /// Remembers what a send gave, if it has a key.
    #[inline(always)]
    pub(crate) fn remember(
        &mut self,
        queue_slot: QueueSlot,
        first: u64,
        send: &SendRecord<'_>,
        core: &Core,
        out: &Outcome,
    ) {
        if !send.idempotency_key.is_empty() {
            self.remember_key(queue_slot, first, send, core, out);
        }
    }

    #[inline(never)]
    fn remember_key(
        &mut self,
        queue_slot: QueueSlot,
        first: u64,
        send: &SendRecord<'_>,
        core: &Core,
        out: &Outcome,
    ) {
        let queue = self.queues.get(queue_slot).number;
        let window_us = core.limits.idempotency_window_ms * 1_000;
        let duplicates = out.duplicates.iter().map(|&item| (item, out.ids[item as usize].sequence)).collect();
        let request = (queue, send.idempotency_key, send.request_digest);
        let sent = Sent { first, count: send.count, duplicates };
        self.idempotency.remember(request, sent, core.now_us, window_us, core.limits.idempotency_keys);
    }
}
