//! Unique keys: at most one of a queue's messages with the same unique key is at work at a time.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::command::{Deliver, Send, SendItem};
use sluice_engine::id::{BlobRef, MessageId, QueueId};
use sluice_engine::item::{DependsMode, Expires, OnDuplicate, OnParentFailed, SendOptions, UniqueUntil};
use sluice_engine::outcome::Reply;
use sluice_node::Duplicates;

use super::expiry::End;
use super::item::blob_len;
use super::{Apply, Checked, ensure};
use super::{Message, MessagePlace, ModelState};

/// Unique key of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unique {
    key: Vec<u8>,
    until: UniqueUntil,
    window_ms: u64,
    /// End of the window in which it counts, in microseconds since the Unix epoch.
    ends_us: u64,
}

/// Last message that took a key.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Taken {
    by: MessageId,
    until: UniqueUntil,
    ends_us: u64,
    /// True when that message has died and has not come back: only the window goes on.
    lingers: bool,
}

/// Expected outcome of a send: an id for each message, and the duplicates among them.
pub(super) struct Planned {
    ids: Vec<MessageId>,
    duplicates: Vec<u32>,
    /// Number of messages and bytes that are added.
    pub(super) more: (u64, u64),
    /// Bytes of the largest payload that replaces another one; 0: none does.
    pub(super) replacement: u64,
}

/// First message of a send with a key, for its later ones.
#[derive(Clone, Copy)]
struct OfSend {
    id: MessageId,
    until: UniqueUntil,
    /// End of the message, if it waits.
    end: End,
}

impl Planned {
    /// True when a message is new in the send, before a duplicate of it.
    fn is_new(&self, id: MessageId) -> bool {
        let duplicate = |place: usize| self.duplicates.contains(&(place as u32));
        self.ids.iter().position(|known| *known == id).is_some_and(|place| !duplicate(place))
    }
}

impl Unique {
    pub(super) fn of(options: Option<&SendOptions<'_>>) -> Option<Unique> {
        let unique = options?.unique?;
        let (until, window_ms) = (unique.until, unique.window_ms);
        Some(Unique { key: unique.key.to_vec(), until, window_ms, ends_us: 0 })
    }
}

impl ModelState {
    /// The message that holds a key of a queue.
    fn holder(&self, queue: QueueId, key: &[u8]) -> Option<MessageId> {
        let taken = self.unique.get(&(queue, key.to_vec()))?;
        let has_it = !taken.lingers && self.is_at_work(taken.by, queue);
        let counts = taken.until == UniqueUntil::Window || has_it;
        (taken.ends_us > self.now_us && counts).then_some(taken.by)
    }

    /// True when a message is in this queue, and neither dead nor done.
    fn is_at_work(&self, id: MessageId, queue: QueueId) -> bool {
        let here = self.messages.get(&id).filter(|message| message.queue == queue);
        here.is_some_and(|message| {
            !matches!(message.place, MessagePlace::Dead { .. } | MessagePlace::Done { .. })
        })
    }

    /// The message that holds the key of a dead letter.
    pub(super) fn rival(&self, id: MessageId) -> Option<MessageId> {
        let message = self.messages.get(&id)?;
        let unique = message.unique.as_ref().filter(|unique| unique.ends_us > self.now_us)?;
        self.holder(message.queue, &unique.key).filter(|holder| *holder != id)
    }

    /// True when another message of a queue holds the key of one that would move there.
    pub(super) fn is_taken_in(&self, id: MessageId, to: QueueId) -> bool {
        let message = &self.messages[&id];
        let Some(unique) = message.unique.as_ref().filter(|unique| unique.ends_us > self.now_us) else {
            return false;
        };
        let taken = self.unique.get(&(message.queue, unique.key.clone()));
        taken.is_some_and(|taken| taken.by == id && !taken.lingers) && self.holder(to, &unique.key).is_some()
    }

    /// True when one of these dead letters needs a key that another message holds or also needs.
    pub(super) fn are_rivals(&self, ids: &BTreeSet<MessageId>) -> bool {
        let needs = |id: &MessageId| self.messages[id].unique.as_ref().filter(|it| it.ends_us > self.now_us);
        let mut needed = BTreeSet::new();
        ids.iter().any(|id| {
            self.rival(*id).is_some() || needs(id).is_some_and(|unique| !needed.insert(unique.key.clone()))
        })
    }
}

impl Apply<'_> {
    /// Expected outcome of a send with unique keys; `None`: it has none.
    pub(super) fn plan(&self, send: &Send<'_>) -> Option<Planned> {
        send.items.iter().find_map(unique_of)?;
        let queue = self.world.queue_named(send.namespace, send.queue);
        let mut next = self.next_id(send.namespace)?;
        let mut planned = Planned { ids: Vec::new(), duplicates: Vec::new(), more: (0, 0), replacement: 0 };
        // `None`: the send itself ends the message that held the key.
        let mut of_send: BTreeMap<&[u8], Option<OfSend>> = BTreeMap::new();
        let mut failed = BTreeSet::new();
        for (number, item) in (0..).zip(send.items) {
            let unique = unique_of(item);
            let bytes = u64::from(blob_len(item));
            let earlier = unique.and_then(|unique| match of_send.get(unique.key) {
                Some(here) => *here,
                None => self.first_of(queue?, unique.key),
            });
            let Some(OfSend { id: earlier, until, end }) = earlier else {
                let cancelled = self.is_cancelled_with(item, &planned.ids, &failed);
                if cancelled || self.comes_over(item) {
                    failed.insert(next);
                }
                if let Some(unique) = unique.filter(|_| !self.comes_over(item)) {
                    let expires = item.options.map_or(Expires::Never, |options| options.expires);
                    let end = End::of(expires).begun(self.now_us);
                    let has_it = !cancelled || unique.until == UniqueUntil::Window;
                    let first = OfSend { id: next, until: unique.until, end };
                    of_send.insert(unique.key, has_it.then_some(first));
                }
                planned.ids.push(next);
                planned.more = (planned.more.0 + 1, planned.more.1 + bytes);
                next.sequence += 1;
                continue;
            };
            planned.ids.push(earlier);
            planned.duplicates.push(number);
            if let Some(unique) = unique.filter(|unique| unique.on_duplicate == OnDuplicate::Debounce) {
                let due_us = self.due_us(item.deliver);
                if until == UniqueUntil::Gone && due_us > self.now_us && end.is_over(due_us) {
                    of_send.insert(unique.key, None);
                }
            }
            if unique.is_some_and(|unique| unique.on_duplicate == OnDuplicate::ReplacePayload) {
                // The send counts with what it adds where the first message waits, and so takes over the
                // payload.
                let has_it = |message: &&Message| {
                    let key = (message.queue, unique.map_or(Vec::new(), |unique| unique.key.to_vec()));
                    let lingers = self.world.unique.get(&key).is_none_or(|taken| taken.lingers);
                    !lingers && message.waits() && self.world.is_at_work(earlier, message.queue)
                };
                let freed = match self.world.messages.get(&earlier) {
                    None => planned.is_new(earlier).then_some(0),
                    Some(first) => has_it(&first).then_some(first.blob.len.into()),
                };
                if let Some(freed) = freed {
                    planned.more.1 += bytes.saturating_sub(freed);
                    planned.replacement = planned.replacement.max(bytes);
                }
            }
        }
        Some(planned)
    }

    /// The message that already holds a key.
    fn first_of(&self, queue: QueueId, key: &[u8]) -> Option<OfSend> {
        let id = self.world.holder(queue, key)?;
        let until = self.world.unique[&(queue, key.to_vec())].until;
        let waiting = self.world.messages.get(&id).filter(|message| message.waits());
        Some(OfSend { id, until, end: waiting.map_or(End::default(), |message| message.end) })
    }

    /// True when a message of a send is cancelled at once, since its parents have failed before or fail with
    /// the send.
    fn is_cancelled_with(
        &self,
        item: &SendItem<'_>,
        ids: &[MessageId],
        failed: &BTreeSet<MessageId>,
    ) -> bool {
        let Some(depends_on) = item.options.and_then(|options| options.depends_on) else { return false };
        let places = depends_on.places().map(|place| ids[place as usize]);
        let has_failed = |id| failed.contains(&id) || self.has_ended(id) == Some(false);
        let mut parents = depends_on.ids().chain(places).map(has_failed);
        let hopeless = match depends_on.mode {
            DependsMode::All => parents.any(|failed| failed),
            DependsMode::Any => parents.all(|failed| failed),
        };
        hopeless && depends_on.on_parent_failed == OnParentFailed::Cancel
    }

    /// Applies a send as planned; returns its first id, and the duplicates that a repeat is told.
    pub(super) fn sends_planned(
        &mut self,
        queue: QueueId,
        send: &Send<'_>,
        planned: Planned,
    ) -> Result<(MessageId, Option<Duplicates>), String> {
        self.succeeds()?;
        let Planned { ids, duplicates, .. } = planned;
        let reply = Reply::Sent { first: ids[0], count: ids.len() as u32, duplicate: false };
        ensure!(self.outcome.reply == reply, "a send got {:?}, not {reply:?}", self.outcome.reply);
        let known =
            (!duplicates.is_empty()).then(|| Duplicates { ids: ids.clone(), items: duplicates.clone() });
        self.tells_of(known.as_ref())?;
        for (number, (item, id)) in (0..).zip(send.items.iter().zip(&ids)) {
            let blob = BlobRef { index: self.index, item: number, len: blob_len(item) };
            if duplicates.contains(&number) {
                self.meet(*id, item, blob);
            } else {
                self.give_id(*id);
                self.place_sent(*id, Message { queue, ..Message::of_item(blob, item) }, item.deliver);
            }
        }
        Ok((ids[0], known))
    }

    /// Checks that the outcome names the duplicates of a send, and the messages that they repeat.
    pub(super) fn tells_of(&self, known: Option<&Duplicates>) -> Checked {
        let got = (&*self.outcome.ids, &*self.outcome.duplicates);
        let expected = known.map_or((&[][..], &[][..]), |known| (&known.ids[..], &known.items[..]));
        ensure!(got == expected, "a send got {got:?}, not {expected:?}");
        Ok(())
    }

    /// True when the end of a message that is sent now has come: it takes no key.
    fn comes_over(&self, item: &SendItem<'_>) -> bool {
        let expires = item.options.map_or(Expires::Never, |options| options.expires);
        End::of(expires).begun(self.now_us).is_over(self.now_us)
    }

    /// Gives a message its key: a new one unless its end has come, or a dead letter that comes back.
    pub(super) fn take_key(&mut self, id: MessageId, is_new: bool) {
        let now_us = self.now_us;
        let Some(message) = self.world.messages.get_mut(&id) else { return };
        let (queue, over) = (message.queue, message.end.begun(now_us).is_over(now_us));
        let Some(unique) = &mut message.unique else { return };
        if is_new {
            unique.ends_us = now_us + unique.window_ms * 1_000;
        }
        if is_new && over {
            return;
        }
        if unique.ends_us > now_us {
            let taken = Taken { by: id, until: unique.until, ends_us: unique.ends_us, lingers: false };
            self.world.unique.insert((queue, unique.key.clone()), taken);
        }
    }

    /// Takes the key of a moved message along, if it holds it.
    pub(super) fn take_key_along(&mut self, id: MessageId, to: QueueId) {
        let Some(message) = self.world.messages.get(&id) else { return };
        let Some(unique) = message.unique.clone() else { return };
        let from = (message.queue, unique.key.clone());
        if self.world.unique.get(&from).is_none_or(|taken| taken.by != id || taken.lingers) {
            return;
        }
        if let Some(taken) = self.world.unique.remove(&from)
            && unique.ends_us > self.now_us
        {
            self.world.unique.insert((to, unique.key), taken);
        }
    }

    /// Takes the key from a message that dies.
    pub(super) fn lose_key(&mut self, id: MessageId) {
        let taken = self.world.unique.values_mut().filter(|taken| taken.by == id);
        taken.for_each(|taken| taken.lingers = true);
    }

    /// Applies a duplicate to the first message, if that one waits.
    fn meet(&mut self, first: MessageId, item: &SendItem<'_>, blob: BlobRef) {
        let Some(unique) = item.options.and_then(|options| options.unique) else { return };
        let Some(message) = self.world.messages.get_mut(&first).filter(|message| message.waits()) else {
            return;
        };
        match unique.on_duplicate {
            OnDuplicate::Keep => {}
            OnDuplicate::ReplacePayload => message.blob = blob,
            OnDuplicate::Debounce => self.put_off(first, item.deliver),
        }
    }

    /// Starts the delay of a waiting message anew.
    fn put_off(&mut self, id: MessageId, deliver: Deliver) {
        let due_us = self.due_us(deliver);
        match self.world.messages[&id].place {
            MessagePlace::Held { .. } => {
                self.keep_due(id, due_us);
                self.ends.push(id);
            }
            MessagePlace::Ready { .. } if due_us <= self.now_us => {}
            _ => {
                self.leaves_lane(id);
                self.admit(id, due_us);
            }
        }
    }
}

fn unique_of<'a>(item: &SendItem<'a>) -> Option<sluice_engine::item::Unique<'a>> {
    item.options?.unique
}
