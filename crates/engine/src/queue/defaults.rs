//! Settings by pattern: what a queue begins with that is not made yet, whether by use or by a person. The
//! longest pattern that matches counts, of equally long ones the first by name. Queues that are there stay as
//! they are.
//!
//! What cannot be had any more is left out: a limit that is gone or followed by too many, and a queue for
//! dead letters that would lead back to the new one, as to the queue `mail.dead` itself under a pattern
//! `mail.*`.

use std::ops::Bound;

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::error::Error;
use crate::id::NamespaceId;
use crate::limits::QUEUE_DEFAULTS_MAX;
use crate::outcome::{Outcome, Reply};
use crate::query::DefaultsView;
use crate::queue::QueueModule;
use crate::queue::state::defaults::{Defaults, matches};
use crate::settings::{QueuePatch, QueueSettings};

impl QueueModule {
    /// Sets all that queues with such names begin with.
    pub(crate) fn defaults_set(
        &mut self,
        namespace: NamespaceId,
        pattern: &str,
        patch: QueuePatch,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let namespace_slot = core.find_namespace(namespace)?;
        core.expect_behaviour(patch.since())?;
        self.check_limit(namespace_slot, None, &patch)?;
        let known = &self.indexes.get(namespace_slot).defaults;
        let found = known.get(pattern).copied();
        if found.is_none() && known.len() >= QUEUE_DEFAULTS_MAX {
            let limit = QUEUE_DEFAULTS_MAX as u64;
            return Err(Error::LimitExceeded { what: "patterns of queue defaults", limit });
        }
        match found {
            Some(slot) => self.queue_defaults.get_mut(slot).patch = patch,
            None => {
                let slot = self.queue_defaults.insert(Defaults::new(namespace_slot, pattern, patch));
                self.indexes.get_mut(namespace_slot).defaults.insert(pattern.into(), slot);
            }
        }
        out.reply = Reply::Defaults { created: found.is_none() };
        Ok(())
    }

    pub(crate) fn defaults_delete(
        &mut self,
        namespace: NamespaceId,
        pattern: &str,
        core: &mut Core,
    ) -> Result<(), Error> {
        let namespace_slot = core.find_namespace(namespace)?;
        match self.indexes.get_mut(namespace_slot).defaults.remove(pattern) {
            Some(slot) => {
                self.queue_defaults.remove(slot);
                Ok(())
            }
            None => Err(Error::DefaultsNotFound { pattern: pattern.to_owned() }),
        }
    }

    /// A namespace that is deleted: its patterns go. False when the budget was used up before.
    pub(crate) fn drop_defaults_of(&mut self, namespace_slot: NamespaceSlot, budget: &mut usize) -> bool {
        while *budget > 0 {
            let Some((_, slot)) = self.indexes.get_mut(namespace_slot).defaults.pop_first() else {
                return true;
            };
            *budget -= 1;
            self.queue_defaults.remove(slot);
        }
        false
    }

    /// Settings of a new queue with this name.
    pub(crate) fn settings_of_new(&self, namespace_slot: NamespaceSlot, name: &str) -> QueueSettings {
        let mut settings = QueueSettings::default();
        let defaults = &self.indexes.get(namespace_slot).defaults;
        let matching = defaults.iter().filter(|(pattern, _)| matches(pattern, name));
        // Of equals the last one counts as the largest.
        let Some((_, &slot)) = matching.rev().max_by_key(|(pattern, _)| pattern.len()) else {
            return settings;
        };
        let patch = &self.queue_defaults.get(slot).patch;
        settings.change(patch);
        if self.check_limit(namespace_slot, None, patch).is_err() {
            settings.limit = Box::default();
        }
        if self.check_circle(namespace_slot, name, &settings.dead_letter_queue).is_err() {
            settings.dead_letter_queue = Box::default();
        }
        settings
    }

    pub(crate) fn defaults(
        &self,
        namespace: NamespaceId,
        pattern: &str,
        core: &Core,
    ) -> Result<DefaultsView, Error> {
        let slot = core.namespace_slot(namespace).and_then(|slot| {
            let defaults = &self.indexes.get(slot).defaults;
            defaults.get(pattern).copied()
        });
        let slot = slot.ok_or_else(|| Error::DefaultsNotFound { pattern: pattern.to_owned() })?;
        Ok(DefaultsView { pattern: pattern.to_owned(), patch: self.queue_defaults.get(slot).patch.clone() })
    }

    pub(crate) fn defaults_after(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
        core: &Core,
    ) -> Vec<DefaultsView> {
        let Some(slot) = core.namespace_slot(namespace) else { return Vec::new() };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let found = self.indexes.get(slot).defaults.range::<str, _>((from, Bound::Unbounded));
        let found = found.take(limit.min(QUEUE_DEFAULTS_MAX));
        found
            .map(|(pattern, slot)| DefaultsView {
                pattern: pattern.to_string(),
                patch: self.queue_defaults.get(*slot).patch.clone(),
            })
            .collect()
    }
}
