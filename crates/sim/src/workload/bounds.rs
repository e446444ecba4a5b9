//! Random unique keys and ends of messages, and bounds of queues.

use sluice_engine::command::Deliver;
use sluice_engine::item::{Expires, OnDuplicate, Unique, UniqueUntil};
use sluice_engine::settings::{OnExpire, Overflow, QueuePatch};

use super::Generator;
use super::{Item, Op};

const KEYS: [&[u8]; 3] = [b"u0", b"u1", b"u2"];

impl Op {
    /// Payloads of this command that may replace those of other messages.
    pub fn replacing(&self) -> impl Iterator<Item = &[u8]> {
        let items: &[Item] = if let Op::Send { items, .. } = self { items } else { &[] };
        let replaces = |item: &&Item| {
            item.options.unique.is_some_and(|unique| unique.on_duplicate == OnDuplicate::ReplacePayload)
        };
        items.iter().filter(replaces).map(|item| &*item.payload)
    }
}

impl Generator {
    /// Makes some messages unique, and gives some an end.
    pub(super) fn bound_item(&mut self, item: &mut Item) {
        if !self.bounded {
            return;
        }
        if self.rng.chance(1, 4) {
            item.options.unique = Some(Unique {
                key: self.rng.pick::<&[u8]>(&KEYS),
                window_ms: *self.rng.pick(&[50, 2_000, 60_000]),
                until: self.rng.weighted(&[(3, UniqueUntil::Gone), (1, UniqueUntil::Window)]),
                on_duplicate: self.rng.weighted(&[
                    (2, OnDuplicate::Keep),
                    (1, OnDuplicate::ReplacePayload),
                    (2, OnDuplicate::Debounce),
                ]),
            });
        }
        if self.rng.chance(1, if self.mixes { 4 } else { 8 }) {
            let wait_ms = *self.rng.pick(&[1, 400, 10_000]);
            item.options.expires = match item.deliver {
                Deliver::AfterMs(delay_ms) => Expires::AfterMs(delay_ms + wait_ms),
                Deliver::Now if self.rng.chance(1, 6) => Expires::AtUs(1),
                Deliver::Now | Deliver::AtUs(_) => Expires::AfterMs(wait_ms),
            };
        }
    }

    /// Sets or lifts a queue's maximum length or age at times.
    pub(super) fn bound_queue(&mut self, patch: &mut QueuePatch) {
        if !self.bounded {
            return;
        }
        let (narrow, rng) = (self.mixes, &mut self.rng);
        if rng.chance(1, 3) {
            let most = if narrow { rng.between(1, 3) } else { 4 };
            patch.max_messages = Some(rng.weighted(&[(3, 0), (1, most), (1, 30)]));
            patch.max_bytes = Some(rng.weighted(&[(3, 0), (1, 3_000)]));
            patch.overflow = Some(*rng.pick(&[Overflow::RefuseNew, Overflow::DeadLetterOldest]));
        }
        if rng.chance(1, 5) {
            patch.max_age_ms = Some(rng.weighted(&[(3, 0), (1, 400), (1, 10_000)]));
            patch.on_expire = Some(*rng.pick(&[OnExpire::DeadLetter, OnExpire::Drop]));
        }
    }
}
