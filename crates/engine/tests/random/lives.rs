//! What becomes of each message: an id is given once and names one message, which is there until it ends, and
//! ends once.
//!
//! The events tell of each message by itself, except where many of a queue are gone at once: those are
//! counted.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::Engine;
use sluice_engine::event::{Event, EventDetail, EventKind};
use sluice_engine::id::MessageId;

/// All messages that were ever sent.
#[derive(Default)]
pub(super) struct Lives {
    /// Those that are here, and whether they are finished: such a one may go without a word.
    here: BTreeMap<MessageId, bool>,
    /// Those that have had an end, some of which are here still, dead or finished.
    ended: BTreeSet<MessageId>,
    /// Messages that were told to be gone with many others, and are still in `here`.
    swept: u64,
    /// Messages that were acked and became dead letters, since their next step was refused, by number of the
    /// queue.
    pub(super) refused: BTreeMap<u32, u64>,
}

impl Lives {
    /// Follows the events of one record.
    pub(super) fn follow(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.follow_one(event));
        let many = |event: &Event| match event.detail {
            EventDetail::Many { messages, .. } => messages,
            _ => 0,
        };
        self.swept += events.iter().map(many).sum::<u64>();
    }

    fn follow_one(&mut self, event: &Event) {
        let Some(id) = event.id else { return };
        match event.kind {
            EventKind::Sent => {
                assert!(!self.ended.contains(&id), "{id} was given before");
                assert_eq!(self.here.insert(id, false), None, "{id} was given twice");
            }
            EventKind::Acked => self.end(id, true),
            EventKind::Died => {
                let acked = self.here.get(&id) == Some(&true);
                *self.refused.entry(event.queue.0).or_default() += u64::from(acked);
                self.end(id, false);
            }
            EventKind::Cancelled | EventKind::Dropped => {
                self.end(id, false);
                self.here.remove(&id);
            }
            _ => assert!(self.here.contains_key(&id), "{} of {id}, which is gone", event.kind.name()),
        }
    }

    fn end(&mut self, id: MessageId, done: bool) {
        assert!(self.here.insert(id, done).is_some(), "{id} has ended twice, or was never sent");
        self.ended.insert(id);
    }

    /// Whether a message has ended; one that is gone with many others has.
    pub(super) fn has_ended(&self, id: MessageId, engine: &Engine) -> bool {
        self.ended.contains(&id) || engine.message(id).is_err()
    }

    /// Checks that all messages that have not ended are in the engine, except for as many as were told to be
    /// gone with many others.
    pub(super) fn check(&mut self, engine: &Engine) {
        let gone: Vec<(MessageId, bool)> = self
            .here
            .iter()
            .filter(|(id, _)| engine.message(**id).is_err())
            .map(|(id, done)| (*id, *done))
            .collect();
        for (id, _) in &gone {
            self.here.remove(id);
            self.ended.insert(*id);
        }
        let unfinished = gone.iter().filter(|(_, done)| !done).count() as u64;
        assert!(unfinished <= self.swept, "{} are gone without a word", unfinished - self.swept);
        assert!(gone.len() as u64 >= self.swept, "{} are here, and told to be gone", self.swept);
        self.swept = 0;
        let counted: u64 = engine.totals().states.iter().sum();
        assert_eq!(self.here.len() as u64, counted, "what is here was sent, and has not gone");
    }
}
