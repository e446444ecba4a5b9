//! Pausing and closing of queues, dead-letter queues, redrives at a rate, and defaults of new queues.

use std::collections::BTreeSet;

use sluice_engine::Engine;
use sluice_engine::command::Command;
use sluice_engine::id::{MessageId, NamespaceId, QueueId};
use sluice_engine::outcome::Reply;
use sluice_engine::query::{QueueView, Redriving, State};
use sluice_engine::settings::{QueuePatch, QueueSettings};

use super::ModelState;
use super::{Apply, Checked, ensure};

/// Patterns in one read of the engine: enough for all.
const PATTERNS_MAX: usize = 1_000;
/// Slices per second of a fast redrive; a slow one gives one message at a time.
const SLICES_PER_SECOND: u64 = 100;

/// Queue in which a message died before it went to a dead-letter queue, the reason, and the time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Origin {
    pub(super) queue: String,
    pub(super) reason: &'static str,
}

/// A running redrive at a rate.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Redrive {
    per_second: u32,
    /// Dead letters that are still to be redriven, if they are dead then.
    left: BTreeSet<MessageId>,
    began_us: u64,
    given: u64,
}

impl ModelState {
    /// Settings of a queue of this name that is created now.
    pub(super) fn settings_of_new(&self, namespace: NamespaceId, name: &str) -> QueueSettings {
        let mut settings = QueueSettings::default();
        let matching = self
            .queue_defaults
            .iter()
            .filter(|((of, pattern), _)| *of == namespace && matches(pattern, name));
        let longest = matching.reduce(|best, next| if next.0.1.len() > best.0.1.len() { next } else { best });
        let Some((_, patch)) = longest else { return settings };
        change(&mut settings, patch);
        if !self.queue_limits.contains_key(&(namespace, settings.limit.to_string())) {
            settings.limit = Box::default();
        }
        if self.leads_back(namespace, name, &settings.dead_letter_queue) {
            settings.dead_letter_queue = Box::default();
        }
        settings
    }

    /// True when dead letters of a queue would come back to it through `target`.
    pub(super) fn leads_back(&self, namespace: NamespaceId, name: &str, target: &str) -> bool {
        let mut at = target;
        for _ in 0..=self.queues.len() {
            if at.is_empty() || at == name {
                break;
            }
            let next = self.queue_named(namespace, at).map(|queue| &self.queues[&queue]);
            at = next.map_or("", |queue| &queue.settings.dead_letter_queue);
        }
        at == name
    }

    pub(super) fn compare_redrive(&self, queue: QueueId, view: &QueueView) -> Checked {
        let redriving = self
            .redrives
            .get(&queue)
            .map(|redrive| Redriving { left: redrive.left.len() as u64, per_second: redrive.per_second });
        ensure!(view.redriving == redriving, "{view:?} redrives, the model {redriving:?}");
        Ok(())
    }
}

/// True when a pattern, in which `*` stands for any text, matches this name.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((begin, rest)) => name.strip_prefix(begin).is_some_and(|name| {
            (0..=name.len()).any(|at| name.get(at..).is_some_and(|name| matches(rest, name)))
        }),
    }
}

pub(super) fn change(settings: &mut QueueSettings, patch: &QueuePatch) {
    macro_rules! set {
        ($($setting:ident),* $(,)?) => {
            $(if let Some(value) = &patch.$setting {
                settings.$setting.clone_from(value);
            })*
        };
    }
    set!(
        lease_ms,
        max_attempts,
        max_deliveries,
        backoff,
        fair_weights,
        ordering_retry,
        placement,
        limit,
        on_expire,
        max_messages,
        max_bytes,
        overflow,
        max_age_ms,
        retain_done_ms,
        retain_done_count,
        paused,
        closed,
        dead_letter_queue,
        push_url,
        push_paused,
        search_index,
    );
}

impl Apply<'_> {
    pub(super) fn queues(&mut self, command: &Command<'_>) -> Checked {
        match command {
            Command::DefaultsSet { namespace, pattern, patch } => {
                self.defaults_set(*namespace, pattern, patch)
            }
            Command::DefaultsDelete { namespace, pattern } => self.defaults_delete(*namespace, pattern),
            Command::DeadRedriveRate { namespace, queue, per_second } => {
                self.redrive_rate(*namespace, queue, *per_second)
            }
            other => Err(format!("{other:?} is no command of queues")),
        }
    }

    fn defaults_set(&mut self, namespace: NamespaceId, pattern: &str, patch: &QueuePatch) -> Checked {
        if !self.world.namespaces.contains_key(&namespace) {
            return self.fails("namespace_not_found");
        }
        if self.names_no_limit(namespace, patch) {
            return self.fails("limit_not_found");
        }
        self.succeeds()?;
        let before = self.world.queue_defaults.insert((namespace, pattern.to_owned()), patch.clone());
        let expected = Reply::Defaults { created: before.is_none() };
        ensure!(self.outcome.reply == expected, "got {:?}, not {expected:?}", self.outcome.reply);
        Ok(())
    }

    fn defaults_delete(&mut self, namespace: NamespaceId, pattern: &str) -> Checked {
        if !self.world.namespaces.contains_key(&namespace) {
            return self.fails("namespace_not_found");
        }
        match self.world.queue_defaults.remove(&(namespace, pattern.to_owned())) {
            Some(_) => self.succeeds(),
            None => self.fails("defaults_not_found"),
        }
    }

    /// True when a patch names a limit that does not exist.
    pub(super) fn names_no_limit(&self, namespace: NamespaceId, patch: &QueuePatch) -> bool {
        let limit = patch.limit.as_deref().filter(|limit| !limit.is_empty());
        limit.is_some_and(|limit| !self.world.queue_limits.contains_key(&(namespace, limit.to_owned())))
    }

    fn redrive_rate(&mut self, namespace: NamespaceId, name: &str, per_second: u32) -> Checked {
        let Some(queue) = self.existing(namespace, name)? else { return Ok(()) };
        self.succeeds()?;
        let before = self.world.redrives.remove(&queue);
        if per_second == 0 {
            return self.counted(before.map_or(0, |redrive| redrive.left.len()));
        }
        self.world.sweeps.remove(&queue);
        let dead = self.world.messages_of(queue).filter(|(_, message)| message.is_dead_in(queue));
        let left: BTreeSet<MessageId> = dead.map(|(id, _)| *id).collect();
        let count = left.len();
        let redrive = Redrive { per_second, left, began_us: self.now_us, given: 0 };
        self.world.redrives.insert(queue, redrive);
        self.counted(count)
    }

    /// Takes over the dead letters that the engine has redriven at a rate: in the order of dying, and no more
    /// than the rate allows by now.
    pub(super) fn follow_redrives(&mut self) -> Checked {
        let queues: Vec<QueueId> = self.world.redrives.keys().copied().collect();
        for queue in queues {
            let Some(mut redrive) = self.world.redrives.remove(&queue) else { continue };
            let world = &self.world;
            let is_left = |id: &MessageId| {
                world.messages.get(id).is_some_and(|m| m.queue == queue && m.place.state() == State::Dead)
            };
            redrive.left.retain(is_left);
            self.follow_redrive(&mut redrive)?;
            if !redrive.left.is_empty() {
                self.world.redrives.insert(queue, redrive);
            }
        }
        Ok(())
    }

    fn follow_redrive(&mut self, redrive: &mut Redrive) -> Checked {
        let mut given = Vec::new();
        for id in &redrive.left {
            if self.view(*id)?.state != State::Dead {
                given.push(*id);
            }
        }
        redrive.left.retain(|id| !given.contains(id));
        // The order of deaths within one record is not always known.
        let died = |id: &MessageId| self.world.messages[id].died.step;
        let last = given.iter().map(died).max();
        let passed = redrive.left.iter().find(|id| last.is_some_and(|last| died(id) < last));
        ensure!(passed.is_none(), "{given:?} were redriven before {passed:?}, which died earlier");
        redrive.given += given.len() as u64;
        let rate = u64::from(redrive.per_second);
        let slice = (rate / SLICES_PER_SECOND).max(1);
        let allowed = slice + (self.now_us - redrive.began_us) * rate / 1_000_000;
        ensure!(redrive.given <= allowed, "{redrive:?} has given more than {allowed} at {}", self.now_us);
        given.sort_by_key(|id| self.world.messages[id].died);
        let mut line = self.late_line();
        let mut before = None;
        for id in given {
            // Of messages that died in the same record any may be first.
            let died = self.world.messages[&id].died.step;
            if before.is_some_and(|before| before != died) {
                line = self.late_line();
            }
            before = Some(died);
            self.redrive_into(id, line);
        }
        Ok(())
    }

    /// Moves a message that has died to the dead-letter queue. Returns false if there is none that takes it.
    pub(super) fn forward(&mut self, id: MessageId, reason: &'static str) -> bool {
        let Some(message) = self.world.messages.get(&id) else { return false };
        let from = &self.world.queues[&message.queue];
        let (namespace, name) = (from.namespace, from.name.clone());
        let target = from.settings.dead_letter_queue.to_string();
        if target.is_empty() || !self.was_forwarded(id, &target) {
            return false;
        }
        let origin = Origin { queue: name, reason };
        let to = match self.queue_for(namespace, &target) {
            Ok(to) => to,
            Err(why) => {
                self.broken.get_or_insert(why);
                return false;
            }
        };
        self.move_to(id, to);
        if let Some(message) = self.world.messages.get_mut(&id) {
            message.attempts = 0;
            message.deliveries = 0;
            message.origin = Some(origin);
            message.flow.ends(reason);
        }
        self.forget_end(id);
        self.begin_age(id);
        self.blurred.insert(to);
        self.make_ready(id);
        true
    }

    /// True when a message that has died went to the dead-letter queue. Whether that had room depends on
    /// other consequences of the record; checks that the message went there if it could.
    fn was_forwarded(&mut self, id: MessageId, target: &str) -> bool {
        let message = &self.world.messages[&id];
        let namespace = self.world.queues[&message.queue].namespace;
        let Ok(view) = self.engine.message(id) else {
            return !self.takes_no_dead(namespace, target, message.blob.len);
        };
        let stayed = view.queue == message.queue;
        let to = self.world.queue_named(namespace, target);
        let bounded = to.is_some_and(|to| self.world.is_bounded(to));
        if stayed && !bounded && !self.takes_no_dead(namespace, target, message.blob.len) {
            self.broken.get_or_insert(format!("dead letter {id} did not go to {target:?}"));
        }
        !stayed
    }

    /// True when a dead-letter queue refuses messages: it is closed, or cannot be created.
    fn takes_no_dead(&self, namespace: NamespaceId, target: &str, bytes: u32) -> bool {
        match self.world.queue_named(namespace, target) {
            Some(queue) => {
                self.world.queues[&queue].settings.closed || !self.world.has_room(queue, 1, bytes.into())
            }
            None => self.cannot_be_made(namespace, target).is_some(),
        }
    }

    /// Code with which the creation of a queue at its first use is refused.
    pub(super) fn cannot_be_made(&self, namespace: NamespaceId, name: &str) -> Option<&'static str> {
        if !self.world.limits.auto_create {
            return Some("queue_not_found");
        }
        if self.world.settings_of_new(namespace, name).closed {
            return Some("queue_closed");
        }
        self.queue_quota_is_full(namespace).then_some("quota_exceeded")
    }
}

/// Checks that the engine shows the same default patterns.
pub(super) fn compare_defaults(world: &ModelState, engine: &Engine) -> Checked {
    for namespace in world.namespaces.keys() {
        let kept = world.queue_defaults.iter().filter(|((of, _), _)| of == namespace);
        let kept: Vec<(&str, &QueuePatch)> = kept.map(|((_, pattern), patch)| (&**pattern, patch)).collect();
        let shown = engine.defaults_after(*namespace, None, PATTERNS_MAX);
        let shown: Vec<(&str, &QueuePatch)> =
            shown.iter().map(|view| (&*view.pattern, &view.patch)).collect();
        ensure!(shown == kept, "{namespace:?} has queue defaults {shown:?}, the model {kept:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, expected) in
            [("*", "", true), ("al*", "alpha", true), ("*a", "alpha", true), ("a*l*a", "alpha", true)]
        {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        assert!(!matches("al", "alpha") && !matches("*b*", "alpha") && !matches("a*x", "alpha"));
    }
}
