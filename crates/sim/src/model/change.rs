//! Changes that people make to existing messages. A record may change several messages, each by itself.

use sluice_engine::Engine;
use sluice_engine::blob::BlobHead;
use sluice_engine::change::{CHANGES_REMEMBERED_MAX, Change, ChangeAction, NewFields, Verb};
use sluice_engine::command::{Command, Deliver};
use sluice_engine::id::{BlobRef, MessageId, NamespaceId, QueueId};
use sluice_engine::item::SendOptions;
use sluice_engine::query::{Changed, MessageView};

use super::item::code;
use super::{Apply, Checked, Model, ensure};
use super::{Message, MessagePlace};

/// Changes made to one message, and what they leave for later.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Changes {
    /// True if the message was sent held.
    pub(super) hold: bool,
    /// Earliest time at which a held message may become ready, in microseconds since the Unix epoch; 0: at
    /// once.
    pub(super) due_us: u64,
    /// True for a leased message that is removed at the end of its lease, however that ends.
    pub(super) cancelled: bool,
    tags: Option<BlobRef>,
    log: Vec<Changed>,
}

impl Changes {
    pub(super) fn of(options: Option<&SendOptions<'_>>) -> Changes {
        Changes { hold: options.is_some_and(|options| options.hold), ..Changes::default() }
    }

    /// Blobs in the log that the changes refer to.
    pub(super) fn blobs(&self) -> impl Iterator<Item = BlobRef> {
        self.tags.into_iter().chain(self.log.iter().map(|changed| changed.note))
    }

    /// True when these tags replace those that the message was sent with.
    pub(super) fn has_tags(&self, tags: Option<BlobRef>) -> bool {
        tags == self.tags
    }

    fn remember(&mut self, changed: Changed) {
        self.log.push(changed);
        if self.log.len() > CHANGES_REMEMBERED_MAX {
            self.log.remove(1);
        }
    }

    /// Checks that the engine shows the same changes.
    pub(super) fn compare(&self, view: &MessageView) -> Checked {
        let same = view.cancelled == self.cancelled && view.tags == self.tags && view.changes == self.log;
        ensure!(same, "the engine shows {view:?}, the model has {self:?}");
        Ok(())
    }
}

impl Model {
    /// Takes over the versions of the messages that a record is about to change: a change may depend on the
    /// version.
    pub fn look(&mut self, command: &Command<'_>, engine: &Engine) {
        self.world.versions.clear();
        let Command::Change(change) = command else { return };
        for (id, _) in change.items {
            if let Ok(view) = engine.message(*id) {
                self.world.versions.insert(*id, view.version);
            }
        }
    }
}

impl Apply<'_> {
    pub(super) fn change(&mut self, change: &Change<'_>) -> Checked {
        if !self.world.namespaces.contains_key(&change.namespace) {
            return self.fails("namespace_not_found");
        }
        let to = match change.action {
            ChangeAction::Move { to } => match self.move_target(change.namespace, to)? {
                Some(queue) => Some(queue),
                None => return Ok(()),
            },
            ChangeAction::Cancel
            | ChangeAction::Hold
            | ChangeAction::Approve
            | ChangeAction::Deny
            | ChangeAction::Retry
            | ChangeAction::Set(_) => None,
        };
        self.succeeds()?;
        self.one_result_each(change.items.len())?;
        let mut blobs = 0;
        let named = !change.by.is_empty() || !change.why.is_empty();
        let headers = [("by", change.by), ("why", change.why)];
        let note = named.then(|| self.blob_of_record(&mut blobs, BlobHead::len("", &headers)));
        let tags = self.tags_of(change, &mut blobs);
        for (number, (id, version)) in change.items.iter().enumerate() {
            let got = code(&self.outcome.results[number]);
            let expected = self.may_change(*id, *version, &change.action, to);
            ensure!(expected.contains(&got), "message {id} got {got}, not {}", expected.join(" or "));
            if got == "ok" {
                self.change_one(*id, change, to, tags)?;
                self.remember(*id, change.action.verb(), note);
            }
        }
        Ok(())
    }

    /// The queue to which a move goes; `None`: the move was rightly refused.
    fn move_target(&self, namespace: NamespaceId, to: &str) -> Result<Option<QueueId>, String> {
        match self.world.queue_named(namespace, to) {
            None => self.fails("queue_not_found").map(|()| None),
            Some(queue) if self.world.queues[&queue].settings.closed => {
                self.fails("queue_closed").map(|()| None)
            }
            queue => Ok(queue),
        }
    }

    fn tags_of(&self, change: &Change<'_>, blobs: &mut u32) -> Option<BlobRef> {
        let ChangeAction::Set(NewFields { tags: Some(tags), .. }) = change.action else { return None };
        if tags.is_empty() {
            return Some(BlobRef::EMPTY);
        }
        Some(self.blob_of_record(blobs, BlobHead::len_tagged("", &[], tags)))
    }

    /// Codes with which the change of one message may end. Where keys play a part the engine knows more than
    /// the model.
    fn may_change(
        &self,
        id: MessageId,
        version: u64,
        action: &ChangeAction<'_>,
        to: Option<QueueId>,
    ) -> &'static [&'static str] {
        let verb = action.verb();
        let Some(message) = self.world.messages.get(&id) else { return &["message_not_found"] };
        if version != 0 && self.world.versions.get(&id) != Some(&version) {
            return &["version_mismatch"];
        }
        let damaged = matches!(message.place, MessagePlace::Held { reason: "payload_damaged" });
        if !verb.states().contains(&message.place.state()) || (verb == Verb::Approve && damaged) {
            return &["wrong_state"];
        }
        if to == Some(message.queue) || self.would_end_before(message, action) {
            return &["invalid_argument"];
        }
        if let Some(refusal) = self.has_no_place(id, verb, to) {
            return refusal;
        }
        match verb {
            Verb::Retry if message.keys.may_block() => &["ok", "wrong_state"],
            _ => &["ok"],
        }
    }

    /// True if the message would be delayed until its end or beyond.
    fn would_end_before(&self, message: &Message, action: &ChangeAction<'_>) -> bool {
        let ChangeAction::Set(NewFields { deliver: Some(deliver), .. }) = action else { return false };
        let due_us = self.due_us(*deliver);
        due_us > self.now_us && message.is_over(due_us)
    }

    /// Codes for a message that cannot go to a queue: there is no room, or another message has its unique
    /// key.
    fn has_no_place(
        &self,
        id: MessageId,
        verb: Verb,
        to: Option<QueueId>,
    ) -> Option<&'static [&'static str]> {
        let message = &self.world.messages[&id];
        let is_dead = matches!(message.place, MessagePlace::Dead { .. });
        let (queue, needs_room, taken) = match (verb, to) {
            (Verb::Move, Some(to)) => (to, !is_dead, self.world.is_taken_in(id, to)),
            (Verb::Retry, _) if is_dead => (message.queue, true, self.world.rival(id).is_some()),
            _ => return None,
        };
        if needs_room && !self.world.has_room(queue, 1, message.blob.len.into()) {
            return Some(&["queue_full"]);
        }
        if verb == Verb::Move && !is_dead && !self.world.outlives(queue, Deliver::AtUs(message.due_us())) {
            return Some(&["invalid_argument"]);
        }
        taken.then_some(&["unique_key_taken"])
    }

    fn change_one(
        &mut self,
        id: MessageId,
        change: &Change<'_>,
        to: Option<QueueId>,
        tags: Option<BlobRef>,
    ) -> Checked {
        let place = self.world.messages[&id].place;
        match change.action {
            ChangeAction::Cancel => self.cancel(id),
            ChangeAction::Hold => self.hold(id, "hold"),
            ChangeAction::Approve => {
                let due_us = self.changes(id).map_or(0, |changes| std::mem::take(&mut changes.due_us));
                self.admit(id, due_us);
            }
            ChangeAction::Deny => self.die(id, "denied"),
            ChangeAction::Retry if matches!(place, MessagePlace::Dead { .. }) => self.redrive(id),
            ChangeAction::Retry => self.make_ready(id),
            ChangeAction::Move { .. } => {
                if let Some(to) = to {
                    self.move_to(id, to);
                    self.go_on(id, place);
                }
            }
            ChangeAction::Set(fields) => self.set(id, &fields, tags),
        }
        Ok(())
    }

    /// Sets the earliest time at which a held message may be ready once it is approved.
    pub(super) fn keep_due(&mut self, id: MessageId, due_us: u64) {
        self.changes(id).into_iter().for_each(|changes| changes.due_us = due_us);
    }

    fn changes(&mut self, id: MessageId) -> Option<&mut Changes> {
        self.world.messages.get_mut(&id).map(|message| &mut message.changes)
    }

    /// Adds the note of a change (by whom, and why) to the message, if the message is still there.
    fn remember(&mut self, id: MessageId, verb: Verb, note: Option<BlobRef>) {
        let at_us = self.now_us;
        if let (Some(note), Some(changes)) = (note, self.changes(id)) {
            changes.remember(Changed { verb, at_us, note });
        }
    }

    fn cancel(&mut self, id: MessageId) {
        match self.world.messages.get_mut(&id) {
            Some(message) if matches!(message.place, MessagePlace::Leased { .. }) => {
                message.changes.cancelled = true;
            }
            _ => self.remove_cancelled(id),
        }
    }

    /// Removes a message, and counts it as cancelled.
    pub(super) fn remove_cancelled(&mut self, id: MessageId) {
        self.total(id, |totals| totals.cancelled += 1);
        self.fail(id, "cancelled");
        self.remove(id);
    }

    pub(super) fn is_cancelled(&self, id: MessageId) -> bool {
        self.world.messages.get(&id).is_some_and(|message| message.changes.cancelled)
    }

    /// Holds a message for a decision; the rest of its delay is kept.
    pub(super) fn hold(&mut self, id: MessageId, reason: &'static str) {
        let now_us = self.now_us;
        let Some(message) = self.world.messages.get_mut(&id) else { return };
        if let MessagePlace::Delayed { until_us } = message.place
            && until_us > now_us
        {
            message.changes.due_us = until_us;
        }
        message.place = MessagePlace::Held { reason };
        message.turn.strays();
    }

    /// Puts a moved message into the same state in its new queue, as far as that is possible.
    fn go_on(&mut self, id: MessageId, place: MessagePlace) {
        match place {
            MessagePlace::Delayed { until_us } => self.admit(id, until_us),
            MessagePlace::Held { .. } => {}
            MessagePlace::Dead { .. } => {
                let line = self.next_line();
                self.world.messages.entry(id).and_modify(|message| message.died = line);
            }
            _ => self.make_ready(id),
        }
    }

    fn set(&mut self, id: MessageId, fields: &NewFields<'_>, tags: Option<BlobRef>) {
        let due_us = fields.deliver.map(|deliver| self.due_us(deliver));
        let Some(message) = self.world.messages.get_mut(&id) else { return };
        message.max_attempts = fields.max_attempts.unwrap_or(message.max_attempts);
        message.changes.tags = tags.or(message.changes.tags);
        message.keys.cost = fields.cost.unwrap_or(message.keys.cost);
        let priority = fields.priority.filter(|priority| *priority != message.priority);
        message.priority = priority.unwrap_or(message.priority);
        match message.place {
            _ if priority.is_none() && due_us.is_none() => {}
            MessagePlace::Held { .. } => message.changes.due_us = due_us.unwrap_or(message.changes.due_us),
            MessagePlace::Delayed { until_us } => self.admit(id, due_us.unwrap_or(until_us)),
            _ => self.admit(id, due_us.unwrap_or(0)),
        }
    }

    /// Time at which a message that is sent or changed now may be ready.
    pub(super) fn due_us(&self, deliver: Deliver) -> u64 {
        match deliver {
            Deliver::Now => 0,
            Deliver::AfterMs(ms) => self.now_us + ms * 1_000,
            Deliver::AtUs(us) => us,
        }
    }
}
