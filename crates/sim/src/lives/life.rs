//! The life of one message, according to its events.

use std::collections::BTreeMap;

use sluice_engine::event::{Event, EventDetail, EventKind};
use sluice_engine::id::{MessageId, QueueId};
use sluice_engine::outcome::Delivery;

use super::{Record, ensure};
use crate::model::Checked;

/// State of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// For a consumer, its time, a person, or other messages.
    Waits,
    Leased {
        token: u64,
        until_us: u64,
        /// True when the lease may end at another time than `until_us` by now.
        changed: bool,
    },
    Dead,
    /// By the record with this index; the message is kept, or gone.
    Acked {
        index: u64,
    },
    Gone,
}

impl Stage {
    pub(super) fn is_end(self) -> bool {
        matches!(self, Stage::Dead | Stage::Acked { .. } | Stage::Gone)
    }
}

/// The chain of a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Carried {
    /// Queues of the steps of its chain.
    pub(super) steps: Vec<String>,
    /// Queue of the step for its failure.
    pub(super) on_failure: Option<String>,
}

/// The life of one message.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) queue: QueueId,
    /// Number in the order of sending, from 1.
    pub(super) number: u64,
    pub(super) stage: Stage,
    /// Attempts that count; deliveries.
    pub(super) attempts: u16,
    pub(super) deliveries: u16,
    /// Time before which it must not be delivered, in microseconds since the Unix epoch; 0: none.
    pub(super) due_us: u64,
    /// End set by the sender, in microseconds since the Unix epoch; 0: none.
    pub(super) end_us: u64,
    pub(super) ordering: Vec<u8>,
    /// True when it may have lost its place in the order of sending.
    pub(super) strayed: bool,
    /// True when it died last because its next step was refused: then it takes its chain to the dead-letter
    /// queue.
    pub(super) step_refused: bool,
    /// Messages that must end first: all, or one.
    pub(super) parents: Vec<MessageId>,
    pub(super) one_parent_is_enough: bool,
    /// True when it is held if one of them fails; a person may then approve it.
    pub(super) held_on_failure: bool,
    pub(super) carried: Carried,
    pub(super) reply_to: Option<String>,
    /// Correlation id set by the sender; may be empty.
    pub(super) correlation_id: Vec<u8>,
}

impl Default for Life {
    /// A message sent without options.
    fn default() -> Life {
        Life {
            queue: QueueId(0),
            number: 0,
            stage: Stage::Waits,
            attempts: 0,
            deliveries: 0,
            due_us: 0,
            end_us: 0,
            ordering: Vec::new(),
            strayed: false,
            step_refused: false,
            parents: Vec::new(),
            one_parent_is_enough: false,
            held_on_failure: false,
            carried: Carried::default(),
            reply_to: None,
            correlation_id: Vec::new(),
        }
    }
}

impl Life {
    /// True when it was never delivered.
    pub(super) fn is_new(&self) -> bool {
        self.deliveries == 0
    }

    pub(super) fn holds(&self, of: u64) -> bool {
        matches!(self.stage, Stage::Leased { token, .. } if token == of)
    }

    /// The correlation id of a reply to the message, or of a step that follows it; `id` is its own id.
    pub(super) fn correlation_id_of(&self, id: MessageId) -> Vec<u8> {
        if self.correlation_id.is_empty() { id.to_text().into() } else { self.correlation_id.clone() }
    }

    /// Notes that the end of its lease may have changed.
    pub(super) fn changes_lease(&mut self) {
        if let Stage::Leased { changed, .. } = &mut self.stage {
            *changed = true;
        }
    }

    /// Notes an approval: after the failure of a parent the message waits for no parent any more.
    pub(super) fn goes_on_without(&mut self, ended: &BTreeMap<MessageId, bool>) {
        let failed = |parent| ended.get(parent) == Some(&false);
        if self.held_on_failure && self.parents.iter().any(failed) {
            self.parents.clear();
        }
    }

    pub(super) fn deliver(&mut self, now_us: u64, delivery: &Delivery) -> Checked {
        ensure!(self.stage == Stage::Waits, "it is delivered, and is {:?}", self.stage);
        ensure!(now_us >= self.due_us, "it is delivered at {now_us}, and was to wait until {}", self.due_us);
        ensure!(self.end_us == 0 || now_us < self.end_us, "it is delivered after its end at {}", self.end_us);
        self.attempts = self.attempts.saturating_add(1);
        self.deliveries = self.deliveries.saturating_add(1);
        ensure!(delivery.attempt == self.attempts, "it is attempt {}: {delivery:?}", self.attempts);
        ensure!(delivery.deliveries == self.deliveries, "it is delivery {}: {delivery:?}", self.deliveries);
        let Delivery { receipt, lease_until_us: until_us, .. } = *delivery;
        ensure!(until_us > now_us, "its lease is over at once: {delivery:?}");
        self.stage = Stage::Leased { token: receipt.token, until_us, changed: false };
        Ok(())
    }

    /// Applies an event other than `Sent` and `Delivered`; `forwarded`: the message went to a dead-letter
    /// queue.
    pub(super) fn tell(&mut self, record: &Record<'_>, event: &Event, forwarded: bool) -> Checked {
        match event.kind {
            EventKind::Acked => {
                self.ends_lease(event)?;
                self.stage = Stage::Acked { index: record.index };
            }
            EventKind::Nacked | EventKind::Rejected => self.ends_lease(event)?,
            EventKind::Released => {
                self.ends_lease(event)?;
                self.attempts -= 1;
            }
            EventKind::Expired => {
                let over = match self.stage {
                    Stage::Leased { until_us, changed, .. } => changed || until_us <= record.now_us,
                    _ => false,
                };
                ensure!(over, "its lease is not over: {:?}", self.stage);
                self.ends_lease(event)?;
            }
            EventKind::Died => self.die(record)?,
            EventKind::Redriven => {
                ensure!(self.stage == Stage::Dead, "it is {:?}", self.stage);
                self.comes_back();
            }
            EventKind::Cancelled | EventKind::Dropped => {
                let acked = matches!(self.stage, Stage::Acked { .. });
                ensure!(!acked, "it was acked");
                self.stage = Stage::Gone;
            }
            EventKind::Moved => self.moves(event, forwarded)?,
            EventKind::Delayed | EventKind::Due => {
                ensure!(self.stage == Stage::Waits, "it is {:?}", self.stage);
            }
            EventKind::Held | EventKind::Approved | EventKind::Retried | EventKind::Changed => {
                self.is_changed(event)?;
            }
            EventKind::Sent | EventKind::Delivered => {}
        }
        Ok(())
    }

    fn ends_lease(&mut self, event: &Event) -> Checked {
        let leased = matches!(self.stage, Stage::Leased { .. });
        ensure!(leased, "nobody holds it: it is {:?}", self.stage);
        ensure!(event.attempt == self.attempts, "it is at attempt {}", self.attempts);
        self.stage = Stage::Waits;
        // The message may have to wait behind others now.
        self.strayed = true;
        Ok(())
    }

    fn die(&mut self, record: &Record<'_>) -> Checked {
        // A message dies while it waits, or when its next step is refused; a lease ends by an event of its
        // own.
        self.step_refused = self.stage == Stage::Acked { index: record.index };
        ensure!(self.stage == Stage::Waits || self.step_refused, "it is {:?}", self.stage);
        self.stage = Stage::Dead;
        self.parents.clear();
        Ok(())
    }

    /// Starts anew: the message was redriven, or went to a dead-letter queue.
    fn comes_back(&mut self) {
        self.stage = Stage::Waits;
        (self.attempts, self.deliveries) = (0, 0);
        (self.due_us, self.end_us) = (0, 0);
        self.strayed = true;
    }

    fn moves(&mut self, event: &Event, forwarded: bool) -> Checked {
        let from = EventDetail::From(self.queue);
        ensure!(event.detail == from, "it was in {:?}", self.queue);
        ensure!(matches!(self.stage, Stage::Waits | Stage::Dead), "it is {:?}", self.stage);
        self.queue = event.queue;
        self.strayed = true;
        if forwarded {
            self.comes_back();
            if !self.step_refused {
                self.carried = Carried::default();
            }
        }
        Ok(())
    }

    /// Applies `Held`, `Approved`, `Retried` and `Changed`.
    fn is_changed(&mut self, event: &Event) -> Checked {
        let damaged = event.detail == EventDetail::Why("payload_damaged");
        let over = matches!(self.stage, Stage::Acked { .. }) || (self.stage == Stage::Dead && !damaged);
        ensure!(!over, "it is {:?}", self.stage);
        if damaged {
            self.stage = Stage::Waits;
            self.end_us = 0;
        }
        if event.detail == EventDetail::Why("parent_failed") {
            self.parents.clear();
        }
        if matches!(event.kind, EventKind::Retried | EventKind::Changed) {
            self.due_us = 0;
        }
        self.strayed = true;
        Ok(())
    }
}
