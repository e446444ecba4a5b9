//! Optional fields of a message, reached by its `extras` slot: a backoff of its own, its history, and its
//! options.

use crate::id::BlobRef;
use crate::limits::HISTORY_ATTEMPTS_MAX;
use crate::query::{Attempt, AttemptEnd};
use crate::queue::state::changed::{AllChanged, Changed};
use crate::queue::state::options::{AllOptions, Options};
use crate::queue::state::origin::{AllOrigins, Origin};
use crate::queue::state::results::{AllResults, Results};
use crate::queue::state::{ChangedSlot, EntrySlot, ExtrasSlot, LaneSlot, OptionsSlot, ResultsSlot};
use crate::settings::Backoff;
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

/// The optional fields of one message.
#[derive(Clone, Debug)]
pub(crate) struct Extras {
    pub(crate) backoff: Option<Backoff>,
    /// Oldest and newest entry of the history.
    head: EntrySlot,
    tail: EntrySlot,
    /// Slot among [`crate::queue::state::options::AllOptions`].
    options: OptionsSlot,
    entries: u16,
    next_vacant: Option<ExtrasSlot>,
}

const _: () = assert!(size_of::<Extras>() == 48);

impl PlainItem for Extras {
    const BLOCK: usize = 64;

    fn vacant(next: ExtrasSlot) -> Self {
        Extras {
            backoff: None,
            head: Slot::NIL,
            tail: Slot::NIL,
            options: Slot::NIL,
            entries: 0,
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<ExtrasSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.bool(self.backoff.is_some());
        if let Some(backoff) = &self.backoff {
            backoff.write(out);
        }
        self.head.write(out);
        self.tail.write(out);
        out.u16(self.entries);
        self.options.write(out);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let backoff = if reader.bool()? { Some(Backoff::read(reader)?) } else { None };
        let (head, tail, entries) = (Slot::read(reader)?, Slot::read(reader)?, reader.u16()?);
        let options = Slot::read(reader)?;
        Some(Extras { backoff, head, tail, options, entries, next_vacant: None })
    }
}

/// One entry of a history.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    attempt: Attempt,
    next: EntrySlot,
    vacant: bool,
}

const _: () = assert!(size_of::<Entry>() == 56);

impl PlainItem for Entry {
    const BLOCK: usize = 64;

    fn vacant(next: EntrySlot) -> Self {
        let attempt =
            Attempt { number: 0, end: AttemptEnd::Nacked, started_at_us: 0, ended_at_us: 0, error: None };
        Entry { attempt, next, vacant: true }
    }

    fn next_vacant(&self) -> Option<EntrySlot> {
        self.vacant.then_some(self.next)
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.next.write(out);
        out.u16(self.attempt.number);
        out.u8(self.attempt.end as u8);
        out.u64(self.attempt.started_at_us);
        out.u64(self.attempt.ended_at_us);
        out.bool(self.attempt.error.is_some());
        if let Some(error) = self.attempt.error {
            out.blob(error);
        }
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let next = Slot::read(reader)?;
        let number = reader.u16()?;
        let end = match reader.u8()? {
            0 => AttemptEnd::Nacked,
            1 => AttemptEnd::Released,
            2 => AttemptEnd::Rejected,
            3 => AttemptEnd::Expired,
            _ => return None,
        };
        let (started_at_us, ended_at_us) = (reader.u64()?, reader.u64()?);
        let error = if reader.bool()? { Some(reader.blob()?) } else { None };
        Some(Entry {
            attempt: Attempt { number, end, started_at_us, ended_at_us, error },
            next,
            vacant: false,
        })
    }
}

/// The optional fields of all messages.
#[derive(Debug, Default)]
pub(crate) struct AllExtras {
    pub(crate) slots: Slab<Extras, 1024>,
    pub(crate) entries: Slab<Entry, 1024>,
    pub(crate) options: AllOptions,
    pub(crate) results: AllResults,
    pub(crate) changed: AllChanged,
    pub(crate) origins: AllOrigins,
}

impl AllExtras {
    /// Optional fields for a message which has none yet.
    pub(crate) fn add(&mut self, backoff: Option<Backoff>) -> ExtrasSlot {
        self.slots.insert(Extras { backoff, next_vacant: None, ..Extras::vacant(Slot::NIL) })
    }

    /// Gives a message its options, which it has not had.
    pub(crate) fn add_options(&mut self, extras: ExtrasSlot, options: Options) {
        let slot = self.options.insert(options);
        self.slots.get_mut(extras).options = slot;
    }

    /// The message's options; `None`: it has none.
    #[inline]
    pub(crate) fn options(&self, extras: ExtrasSlot) -> Option<&Options> {
        if extras == Slot::NIL {
            return None;
        }
        let slot = self.slots.get(extras).options;
        (slot != Slot::NIL).then(|| self.options.get(slot))
    }

    /// Where a message comes from, if it died elsewhere.
    pub(crate) fn origin(&self, extras: ExtrasSlot) -> Option<&Origin> {
        let slot = self.options(extras)?.origin;
        (slot != Slot::NIL).then(|| self.origins.get(slot))
    }

    /// Remembers where a message has died last.
    pub(crate) fn set_origin(&mut self, extras: ExtrasSlot, origin: Origin) {
        let options = self.enter_options(extras);
        let known = self.options.get(options).origin;
        if known == Slot::NIL {
            self.options.get_mut(options).origin = self.origins.insert(origin);
        } else {
            *self.origins.get_mut(known) = origin;
        }
    }

    /// The slot of a message's options, which it gets if it has none.
    pub(crate) fn enter_options(&mut self, extras: ExtrasSlot) -> OptionsSlot {
        if self.slots.get(extras).options == Slot::NIL {
            self.add_options(extras, Options::none());
        }
        self.slots.get(extras).options
    }

    /// The slot of what a message has of results.
    pub(crate) fn results_slot(&self, extras: ExtrasSlot) -> Option<ResultsSlot> {
        self.options(extras).map(|options| options.results).filter(|&results| results != Slot::NIL)
    }

    /// The results of a message.
    pub(crate) fn results(&self, extras: ExtrasSlot) -> Option<&Results> {
        self.results_slot(extras).map(|slot| self.results.get(slot))
    }

    /// The slot of what a message has of results, which it gets if it has none.
    pub(crate) fn enter_results(&mut self, extras: ExtrasSlot) -> ResultsSlot {
        if let Some(slot) = self.results_slot(extras) {
            return slot;
        }
        let slot = self.results.insert(Results::none());
        let options = self.enter_options(extras);
        self.options.get_mut(options).results = slot;
        slot
    }

    /// Gives a message which has options others.
    pub(crate) fn set_options(&mut self, extras: ExtrasSlot, options: Options) {
        let slot = self.slots.get(extras).options;
        *self.options.get_mut(slot) = options;
    }

    /// Puts a message which has options into another lane.
    pub(crate) fn set_fair(&mut self, extras: ExtrasSlot, lane: LaneSlot) {
        let slot = self.slots.get(extras).options;
        self.options.get_mut(slot).fair = lane;
    }

    /// The slot of what people have changed of a message.
    pub(crate) fn changed_slot(&self, extras: ExtrasSlot) -> Option<ChangedSlot> {
        self.options(extras).map(|options| options.changed).filter(|&changed| changed != Slot::NIL)
    }

    /// The changes that people have made to a message.
    pub(crate) fn changed(&self, extras: ExtrasSlot) -> Option<&Changed> {
        self.changed_slot(extras).map(|slot| self.changed.get(slot))
    }

    /// The slot of what people have changed of a message, which it gets if it has none.
    pub(crate) fn enter_changed(&mut self, extras: ExtrasSlot) -> ChangedSlot {
        if let Some(slot) = self.changed_slot(extras) {
            return slot;
        }
        let slot = self.changed.insert(Changed::none());
        let options = self.enter_options(extras);
        self.options.get_mut(options).changed = slot;
        slot
    }

    /// The message's own backoff.
    pub(crate) fn backoff(&self, extras: ExtrasSlot) -> Option<Backoff> {
        if extras == Slot::NIL { None } else { self.slots.get(extras).backoff }
    }

    /// Appends to a history. Beyond [`HISTORY_ATTEMPTS_MAX`] entries the second oldest goes, so that the
    /// first and the latest stay; the error text that goes with it is returned.
    pub(crate) fn record(&mut self, extras: ExtrasSlot, attempt: Attempt) -> Option<BlobRef> {
        let entry = self.entries.insert(Entry { attempt, next: Slot::NIL, vacant: false });
        let slot = self.slots.get_mut(extras);
        let tail = std::mem::replace(&mut slot.tail, entry);
        slot.entries += 1;
        if tail == Slot::NIL {
            slot.head = entry;
        } else {
            self.entries.get_mut(tail).next = entry;
        }
        if usize::from(slot.entries) <= HISTORY_ATTEMPTS_MAX {
            return None;
        }
        slot.entries -= 1;
        let first = slot.head;
        let second = self.entries.get(first).next;
        let gone = self.entries.remove(second);
        self.entries.get_mut(first).next = gone.next;
        gone.attempt.error
    }

    /// A history, oldest first.
    pub(crate) fn history(&self, extras: ExtrasSlot) -> impl Iterator<Item = Attempt> + '_ {
        let mut at = if extras == Slot::NIL { Slot::NIL } else { self.slots.get(extras).head };
        std::iter::from_fn(move || {
            let entry = (at != Slot::NIL).then(|| self.entries.get(at))?;
            at = entry.next;
            Some(entry.attempt)
        })
    }

    /// The latest attempt of a history.
    pub(crate) fn last_attempt(&self, extras: ExtrasSlot) -> Option<&Attempt> {
        let tail = if extras == Slot::NIL { Slot::NIL } else { self.slots.get(extras).tail };
        (tail != Slot::NIL).then(|| &self.entries.get(tail).attempt)
    }

    /// Removes the optional fields of a message; gives the blobs that they refer to to `release`.
    pub(crate) fn remove(&mut self, extras: ExtrasSlot, mut release: impl FnMut(BlobRef)) {
        let &Extras { head, options: slot, .. } = self.slots.get(extras);
        self.slots.free(extras);
        if slot != Slot::NIL {
            let options = *self.options.get(slot);
            self.options.free(slot);
            if options.results != Slot::NIL {
                self.results.remove(options.results).blobs().for_each(&mut release);
            }
            if options.origin != Slot::NIL {
                self.origins.free(options.origin);
            }
            if options.changed != Slot::NIL {
                self.changed.remove(options.changed).blobs().for_each(&mut release);
            }
        }
        let mut at = head;
        while at != Slot::NIL {
            let entry = self.entries.remove(at);
            at = entry.next;
            if let Some(error) = entry.attempt.error {
                release(error);
            }
        }
    }

    /// Everything that optional fields refer to.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let errors = self.entries.iter().filter_map(|(_, entry)| entry.attempt.error);
        let of_results = self.results.iter().flat_map(|(_, results)| results.blobs());
        errors.chain(of_results).chain(self.changed.iter().flat_map(|(_, changed)| changed.blobs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_history_keeps_the_first_and_the_latest() {
        let mut all = AllExtras::default();
        let extras = all.add(None);
        let blob = |number: u16| BlobRef { index: u64::from(number), item: 0, len: 3 };
        let mut released = Vec::new();
        for number in 1..=40 {
            let error = Some(blob(number));
            let attempt =
                Attempt { number, end: AttemptEnd::Nacked, started_at_us: 0, ended_at_us: 0, error };
            released.extend(all.record(extras, attempt));
        }
        let kept: Vec<u16> = all.history(extras).map(|attempt| attempt.number).collect();
        assert_eq!(kept, std::iter::once(1).chain(10..=40).collect::<Vec<_>>());
        assert_eq!(released, (2..10).map(blob).collect::<Vec<_>>());
        all.remove(extras, |blob| released.push(blob));
        assert_eq!(released.len(), 40);
        assert_eq!((all.slots.used(), all.entries.used()), (0, 0));
    }
}
