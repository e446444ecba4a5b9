//! The plan of a send with unique keys: which items are new messages, and which are duplicates of which. It
//! is made before anything is changed.
//!
//! The items count for each other in their order, as if each were sent by itself. But consequences are done
//! after all items. So the plan finds out which messages will end because of their own batch: they are over
//! on arrival, their parents have failed, or a duplicate puts them off until their end.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::Core;
use crate::error::Error;
use crate::id::MessageId;
use crate::item::{DependsMode, DependsOn, OnDuplicate, OnParentFailed, SendOptions, UniqueUntil};
use crate::outcome::Outcome;
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::record::send::{ItemOptions, SendRecord};
use crate::queue::state::flow::End;
use crate::queue::state::{QueueSlot, UniqueSlot};
use crate::queue::unique::Holder;
use crate::store::slot::Slot;

/// Resources that a planned send needs.
#[derive(Default)]
pub(crate) struct Needs {
    pub(crate) messages: u64,
    /// Bytes of new messages, and bytes by which payloads are larger than those that they replace.
    pub(crate) bytes: u64,
    /// Bytes of new messages alone.
    pub(crate) sent_bytes: u64,
    /// Bytes of the largest payload that replaces another one; 0: none does.
    replacement: u64,
    /// Slot of the unique key that was found last.
    pub(crate) key: UniqueSlot,
    /// Ends of messages that are gone and have duplicates in the send, by sequence number.
    pub(crate) gone: BTreeMap<u64, End>,
}

/// The plan of the items so far.
struct Plan<'a> {
    needs: Needs,
    /// Holders of unique keys after the items so far, where these matter; `None`: the key is free.
    keys: BTreeMap<&'a [u8], Option<Holder>>,
    /// Sequence numbers of new messages that are over on arrival or cancelled.
    failed: BTreeSet<u64>,
}

impl QueueModule {
    /// Plans a send to a queue (`found`, if it is there) whose new messages have the sequence numbers from
    /// `first` on. Writes ids and duplicates into `out`, and changes nothing else.
    pub(crate) fn plan_unique<'a>(
        &self,
        found: Option<QueueSlot>,
        first: u64,
        send: &SendRecord<'a>,
        options: &ItemOptions<'a>,
        core: &Core,
        out: &mut Outcome,
    ) -> Needs {
        let mut plan = Plan { needs: Needs::default(), keys: BTreeMap::new(), failed: BTreeSet::new() };
        for (n, item) in (0u32..).zip(send.items()) {
            let (mut read, none) = (None, SendOptions::default());
            let options = options.get(n, &item, &mut read).unwrap_or(&none);
            let bytes = u64::from(item.blob_len);
            let earlier = options.unique.and_then(|unique| match plan.keys.get(unique.key) {
                Some(here) => *here,
                None => {
                    plan.needs.key = self.unique.find(self.queues.get(found?).number, unique.key)?;
                    self.holder_of(plan.needs.key, core)
                }
            });
            let sequence = earlier.map_or(first + plan.needs.messages, |holder| holder.sequence);
            if let Some(holder) = earlier {
                out.duplicates.push(n);
                self.plan_duplicate(&mut plan, options, holder, bytes);
                if let Some(unique) = &options.unique
                    && unique.on_duplicate == OnDuplicate::Debounce
                    && holder.until == UniqueUntil::Gone
                    && self.comes_too_late(item.deliver, holder.ends_us, core)
                {
                    plan.keys.insert(unique.key, None);
                }
            } else {
                plan.needs.messages += 1;
                plan.needs.bytes += bytes;
                plan.needs.sent_bytes += bytes;
                self.plan_new(&mut plan, options, send, sequence, core, out);
            }
            out.ids.push(MessageId { namespace: send.namespace, sequence });
        }
        plan.needs
    }

    fn plan_duplicate(&self, plan: &mut Plan<'_>, options: &SendOptions<'_>, holder: Holder, bytes: u64) {
        plan.needs.gone.extend(holder.end.map(|end| (holder.sequence, end)));
        if options.unique.is_some_and(|unique| unique.on_duplicate == OnDuplicate::ReplacePayload)
            && let Some(freed) = self.replaced_bytes(&holder)
        {
            plan.needs.bytes += bytes.saturating_sub(freed);
            plan.needs.replacement = plan.needs.replacement.max(bytes);
        }
    }

    /// Bytes of the payload that a duplicate of this message replaces, 0 if the message comes with the same
    /// batch; `None`: it does not wait, and keeps its payload.
    pub(crate) fn replaced_bytes(&self, holder: &Holder) -> Option<u64> {
        if holder.slot == Slot::NIL {
            return holder.end.is_none().then_some(0);
        }
        self.waits_here(holder.slot).then(|| self.messages.get(holder.slot).blob_len.into())
    }

    fn plan_new<'a>(
        &self,
        plan: &mut Plan<'a>,
        options: &SendOptions<'a>,
        send: &SendRecord<'_>,
        sequence: u64,
        core: &Core,
        out: &Outcome,
    ) {
        let has_ended = self.has_ended(options.expires, core);
        let is_cancelled =
            || options.depends_on.is_some_and(|on| self.will_be_cancelled(plan, &on, send, core, out));
        let fails = has_ended || is_cancelled();
        if fails {
            plan.failed.insert(sequence);
        }
        let Some(unique) = options.unique.filter(|_| send.count > 1) else { return };
        let until = unique.until;
        if !has_ended && (!fails || until == UniqueUntil::Window) {
            let ends_us = self.end_us(options.expires, core);
            plan.keys
                .insert(unique.key, Some(Holder { sequence, slot: Slot::NIL, end: None, until, ends_us }));
        } else if !has_ended {
            plan.keys.insert(unique.key, None);
        }
    }

    /// True if a new message is cancelled at once for its parents, which have failed or fail with the batch.
    fn will_be_cancelled(
        &self,
        plan: &Plan<'_>,
        depends_on: &DependsOn<'_>,
        send: &SendRecord<'_>,
        core: &Core,
        out: &Outcome,
    ) -> bool {
        if depends_on.on_parent_failed != OnParentFailed::Cancel {
            return false;
        }
        let places = depends_on.places().filter_map(|place| out.ids.get(place as usize).copied());
        let mut parents = depends_on.ids().chain(places).map(|id| self.has_failed(plan, send, id, core));
        match depends_on.mode {
            DependsMode::All => parents.any(|failed| failed),
            DependsMode::Any => parents.all(|failed| failed),
        }
    }

    fn has_failed(&self, plan: &Plan<'_>, send: &SendRecord<'_>, id: MessageId, core: &Core) -> bool {
        if plan.failed.contains(&id.sequence) {
            return true;
        }
        if let Some(end) = plan.needs.gone.get(&id.sequence) {
            return *end == End::Failed;
        }
        let slot = self.message_slot(MessageId { namespace: send.namespace, ..id }, core);
        slot.is_some_and(|slot| self.messages.get(slot).state == Some(State::Dead))
    }

    /// Refuses payloads that replace others and would be too large for their queue by themselves.
    pub(crate) fn admit_replacements(&self, found: Option<QueueSlot>, needs: &Needs) -> Result<(), Error> {
        match found {
            Some(queue) if needs.replacement > 0 => self.admit_replacement(queue, needs.replacement),
            _ => Ok(()),
        }
    }
}
