//! Rest: a journal without batches gives back the room that it has taken ahead.
//!
//! A journal at work has up to two segments ready, full of zeros, and a growing one that may be as long: room
//! that one which is idle does not need, and a node has up to 64 of them. So after
//! [`Options::rest_after`](crate::Options) without an order the segments that were made ahead are given up,
//! and the one that grows ends, which seals it where its batches end. The log goes on in a segment like the
//! first of a run: the next batch finds what it finds after an opening, and more room is made by the same
//! rule. Nothing is new on the disk, and nothing on the way of a batch.
//!
//! What was sealed may go once it is dead and covered by a snapshot: at rest less dead log is enough for one.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use super::Maintenance;
use crate::lock::lock;
use crate::log::writer::BEGIN_PART;

/// Log in the growing segment with which a journal is left alone, in bytes: the next segment is made behind
/// it after an opening.
const LEFT_ALONE_BYTES: u64 = 512 << 10;

/// Rest of a journal.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// Number of the last durable order.
    orders: u64,
    /// Time since when there is none after it; `None`: the next step notes it.
    since_us: Option<u64>,
    stage: Stage,
}

/// Stage on the way to rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    /// At work.
    #[default]
    Awake,
    /// Without an order for a while.
    Tired,
    /// Making the segment in which the log goes on; those that were made ahead are given up.
    Lying,
    /// At rest: all is given back.
    Asleep,
}

impl Maintenance {
    /// Looks whether the journal comes to rest, or is at work again.
    pub(super) fn watch_rest(&mut self, now_us: u64) {
        let orders = self.shared.durable_orders();
        let rest = &mut self.rest;
        if rest.since_us.is_none() || rest.orders != orders {
            *rest = Rest { orders, since_us: Some(now_us), stage: Stage::Awake };
            self.shared.rests.store(false, Relaxed);
        } else if rest.stage == Stage::Awake && self.rest_due_us().is_some_and(|at| now_us >= at) {
            self.rest.stage = Stage::Tired;
            self.shared.rests.store(true, Relaxed);
            // It may be time for a snapshot.
            self.shared.wake_shard();
        }
    }

    /// When the journal comes to rest; `None`: it does so now, or has.
    pub(super) fn rest_due_us(&self) -> Option<u64> {
        let since_us = self.rest.since_us.filter(|_| self.rest.stage == Stage::Awake)?;
        Some(since_us.saturating_add(self.shared.options.rest_after.as_micros() as u64))
    }

    /// True while the segment is made in which the log goes on at rest.
    pub(super) fn is_coming_to_rest(&self) -> bool {
        self.rest.stage == Stage::Lying
    }

    /// Gives back what the journal does not need at rest.
    pub(super) fn rest(&mut self) -> io::Result<bool> {
        match self.rest.stage {
            Stage::Awake | Stage::Asleep => Ok(false),
            Stage::Tired if self.has_room_ahead() => {
                self.give_up_preparing();
                self.shared.give_up_ready(&mut lock(&self.shared.manifest))?;
                self.rest.stage = Stage::Lying;
                Ok(true)
            }
            Stage::Tired => {
                self.rest.stage = Stage::Asleep;
                Ok(false)
            }
            // Where there is no room for its zeros the writer makes it without.
            Stage::Lying if self.preparing.is_none() => {
                let has_rolled = self.writer.roll().map_err(io::Error::other)?;
                if has_rolled {
                    self.rest.stage = Stage::Asleep;
                }
                Ok(has_rolled)
            }
            Stage::Lying => Ok(false),
        }
    }

    /// True when the journal has taken more room than after an opening, or its log can be sealed.
    fn has_room_ahead(&self) -> bool {
        let left_alone = LEFT_ALONE_BYTES.min(self.shared.options.segment_bytes / BEGIN_PART);
        self.preparing.is_some() || !lock(&self.shared.fresh).is_empty() || self.writer.is_beyond(left_alone)
    }
}
