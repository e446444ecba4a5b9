//! A state that a leader has offered, on its way into the journal of this node.
//!
//! It is taken in stages: the content of its snapshot, of which the owner makes a state; the blobs that this
//! state needs and this node does not have; the sync of all that. Each answer is written by another thread,
//! with which the [`Receiving`] is meanwhile. What has come out of order is dropped, and asked for again.

use std::collections::VecDeque;

use bytes::Bytes;
use sluice_journal::{BlobKey, Received, Receiving, StateHead};

use super::work::{Arrived, Attempt, End, Taken, Task, Work};
use crate::entry::Position;
use crate::message::Message;
use crate::plant::{self, Plant};
use crate::transfer::{BLOBS_MAX, PART_BYTES, PARTS_IN_FLIGHT, SentBlob, StateBody};

/// Number of ticks without progress after which what is missing is asked for again.
const AGAIN_TICKS: usize = 6;

/// Number of ticks after which a disk without room is tried again.
const FULL_TICKS: usize = 20;

/// A state on its way to this node.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Message of the leader that offers it.
    pub(super) offer: Message,
    pub(super) position: Position,
    pub(super) attempt: Attempt,
    /// None: another thread has it, or all of it is written.
    receiving: Option<Box<Receiving>>,
    stage: Stage,
    /// Index of a record from which on no blob of the state is missing.
    pub(super) whole_from: u64,
    /// Blobs that the sender could not read.
    unreadable: Vec<BlobKey>,
    idle_ticks: usize,
    full_ticks: usize,
    asked: Vec<StateBody>,
}

#[derive(Debug)]
enum Stage {
    Content(Content),
    Blobs(Blobs),
    /// All of it is written, and is being synced.
    Finishing,
    Whole(Box<Received>),
}

/// Content of a snapshot.
#[derive(Debug, Default)]
struct Content {
    /// Offset of the next part.
    next: u64,
    /// Head of the state, with the first part.
    head: Option<StateHead>,
    parts: Vec<Bytes>,
    checksum: Option<u32>,
}

/// Blobs of a state.
#[derive(Debug)]
struct Blobs {
    /// Blobs that are needed, in the order of their keys, each with its length in bytes.
    needed: Vec<(BlobKey, u32)>,
    /// Number of those that were answered, and of those that were asked for.
    next: usize,
    asked: usize,
    /// Ends of the questions that are not answered.
    open: VecDeque<usize>,
    arrived: Vec<(BlobKey, u32, Option<Bytes>)>,
    bytes: usize,
}

impl Incoming {
    /// The state that this message offers; `number` is another for each in the life of a member.
    pub(super) fn new(offer: Message, position: Position, receiving: Receiving, number: u64) -> Incoming {
        let mut incoming = Incoming {
            offer,
            position,
            attempt: Attempt { receiving: number, round: 0 },
            receiving: Some(Box::new(receiving)),
            stage: Stage::Content(Content::default()),
            whole_from: 0,
            unreadable: Vec::new(),
            idle_ticks: 0,
            full_ticks: 0,
            asked: Vec::new(),
        };
        incoming.ask(true);
        incoming
    }

    /// Takes another offer: it replaces this one where it is for another state, and blobs that have come
    /// stay. The snapshot of another leader at the same position is the same state, in other bytes. False:
    /// all of another state is here, and nothing more can be added.
    pub(super) fn renew(&mut self, offer: Message, position: Position) -> bool {
        let is_other = self.position != position;
        if is_other && matches!(self.stage, Stage::Finishing | Stage::Whole(_)) {
            return false;
        }
        let is_half = matches!(self.stage, Stage::Content(_)) && offer.from != self.offer.from;
        (self.offer, self.position) = (offer, position);
        if is_other || is_half {
            self.begin_anew();
        }
        true
    }

    fn begin_anew(&mut self) {
        self.attempt.round += 1;
        self.stage = Stage::Content(Content::default());
        self.ask(true);
    }

    /// Takes the messages that are to be sent to the leader.
    pub(super) fn take_asked(&mut self) -> Vec<StateBody> {
        std::mem::take(&mut self.asked)
    }

    /// The state, when all of it is here.
    pub(super) fn whole(&self) -> Option<&Received> {
        if let Stage::Whole(received) = &self.stage { Some(received) } else { None }
    }

    /// Takes the keys of the blobs that the sender could not read.
    pub(super) fn take_unreadable(&mut self) -> Vec<BlobKey> {
        std::mem::take(&mut self.unreadable)
    }

    /// The state, when all of it is here, and the message that offers it.
    pub(super) fn into_whole(self) -> Option<(Message, Received)> {
        if let Stage::Whole(received) = self.stage { Some((self.offer, *received)) } else { None }
    }

    /// Lets a tick pass.
    pub(super) fn tick(&mut self) {
        self.full_ticks = self.full_ticks.saturating_sub(1);
        self.idle_ticks += 1;
        if self.idle_ticks >= AGAIN_TICKS {
            self.ask(true);
        }
    }

    /// Asks for what is missing, as far as there is room for it; again, if what was asked for is lost.
    fn ask(&mut self, is_again: bool) {
        let asked = self.asked.len();
        match &mut self.stage {
            Stage::Content(content) if content.has_room() => {
                self.asked.push(StateBody::AskContent { offset: content.next, is_again });
            }
            Stage::Blobs(blobs) if self.full_ticks == 0 && blobs.has_room() => {
                blobs.ask(is_again, &mut self.asked);
            }
            Stage::Content(_) | Stage::Blobs(_) | Stage::Finishing | Stage::Whole(_) => {}
        }
        if is_again {
            self.idle_ticks = 0;
            if self.asked.len() == asked {
                self.asked.push(StateBody::Busy);
            }
        }
    }

    /// Takes in a part of the snapshot's content.
    pub(super) fn content(&mut self, head: StateHead, offset: u64, bytes: Bytes, end: Option<u32>) {
        let Stage::Content(content) = &mut self.stage else { return };
        if offset != content.next || content.checksum.is_some() {
            return;
        }
        if offset == 0 {
            content.head = Some(head);
        }
        content.next += bytes.len() as u64;
        content.parts.push(bytes);
        content.checksum = end;
        self.idle_ticks = 0;
        self.ask(false);
    }

    /// Takes in answers for blobs.
    pub(super) fn blobs(&mut self, whole_from: u64, answers: Vec<(BlobKey, SentBlob)>) {
        let Stage::Blobs(blobs) = &mut self.stage else { return };
        for (key, blob) in answers {
            let Some((_, len)) = blobs.needed.get(blobs.next).filter(|needed| needed.0 == key) else {
                continue;
            };
            let len = *len;
            match blob {
                SentBlob::Whole(bytes) if bytes.len() == len as usize => blobs.arrive(key, len, Some(bytes)),
                SentBlob::Damaged => {
                    self.unreadable.push(key);
                    blobs.arrive(key, len, None);
                }
                SentBlob::Gone => self.whole_from = self.whole_from.max(whole_from),
                SentBlob::Whole(_) => return,
            }
            blobs.next += 1;
            self.idle_ticks = 0;
        }
        while blobs.open.pop_front_if(|end| *end <= blobs.next).is_some() {}
        self.ask(false);
    }

    /// Work with what has come, if no other is done. `given` is the last record that is here without the
    /// state.
    pub(super) fn next_work(&mut self, given: u64) -> Option<Work> {
        if self.full_ticks > 0 || self.receiving.is_none() {
            return None;
        }
        let arrived = match &mut self.stage {
            Stage::Content(content) if !content.parts.is_empty() => Arrived::Content {
                begin: content.head.take(),
                parts: std::mem::take(&mut content.parts),
                checksum: content.checksum,
                given,
            },
            Stage::Blobs(blobs) if !blobs.arrived.is_empty() => {
                blobs.bytes = 0;
                Arrived::Blobs(std::mem::take(&mut blobs.arrived))
            }
            Stage::Blobs(blobs) if blobs.next == blobs.needed.len() => {
                let receiving = self.receiving.take()?;
                self.stage = Stage::Finishing;
                return Some(Work(Task::Finish { attempt: self.attempt, receiving }));
            }
            Stage::Content(_) | Stage::Blobs(_) | Stage::Finishing | Stage::Whole(_) => return None,
        };
        let receiving = self.receiving.take()?;
        Some(Work(Task::Take { attempt: self.attempt, receiving, arrived }))
    }

    /// Takes in what was written. False: the disk has failed, or nothing can be made of the state.
    pub(super) fn taken(&mut self, attempt: Attempt, taken: Taken) -> bool {
        let Taken { receiving, is_full, rest, end } = taken;
        self.receiving = receiving;
        if attempt != self.attempt {
            self.ask(false);
            return self.receiving.is_some();
        }
        if is_full {
            self.full_ticks = FULL_TICKS;
        }
        match (&mut self.stage, end) {
            (Stage::Content(_), End::Restored(_)) if plant::is(Plant::BlobsLeftOut) => {
                (self.stage, self.whole_from) = (Stage::Blobs(Blobs::new(Vec::new())), 1 << 40);
            }
            (Stage::Content(_), End::Restored(needed)) => self.stage = Stage::Blobs(Blobs::new(needed)),
            (Stage::Content(_), End::Whole { .. } | End::Wrong) => return false,
            (Stage::Content(_), End::Open) if is_full => self.begin_anew(),
            (Stage::Blobs(blobs), _) => rest.iter().for_each(|rest| blobs.go_back(*rest)),
            (Stage::Content(_) | Stage::Finishing | Stage::Whole(_), _) => {}
        }
        self.idle_ticks = 0;
        self.ask(false);
        self.receiving.is_some()
    }

    /// Takes in the state, which is synced. False: the disk has failed.
    pub(super) fn finished(&mut self, received: Option<Box<Received>>) -> bool {
        let Some(received) = received else { return false };
        self.stage = Stage::Whole(received);
        true
    }
}

impl Content {
    /// True: it is not whole, and the parts that are not written leave room for others.
    fn has_room(&self) -> bool {
        self.checksum.is_none() && self.parts.len() < PARTS_IN_FLIGHT
    }
}

impl Blobs {
    fn new(needed: Vec<(BlobKey, u32)>) -> Blobs {
        Blobs { needed, next: 0, asked: 0, open: VecDeque::new(), arrived: Vec::new(), bytes: 0 }
    }

    /// True: those that are not written leave room for others.
    fn has_room(&self) -> bool {
        self.bytes < PARTS_IN_FLIGHT * PART_BYTES
    }

    fn arrive(&mut self, key: BlobKey, len: u32, bytes: Option<Bytes>) {
        self.bytes += len as usize;
        self.arrived.push((key, len, bytes));
    }

    /// Forgets what was answered from this blob on.
    fn go_back(&mut self, rest: BlobKey) {
        self.next = self.needed.partition_point(|(key, _)| *key < rest);
        (self.arrived, self.bytes) = (Vec::new(), 0);
        self.forget_asked();
    }

    fn forget_asked(&mut self) {
        self.asked = self.next;
        self.open.clear();
    }

    /// Asks for the next blobs, as many as may be on their way.
    fn ask(&mut self, is_again: bool, asked: &mut Vec<StateBody>) {
        if is_again {
            self.forget_asked();
        }
        while self.open.len() < PARTS_IN_FLIGHT && self.asked < self.needed.len() {
            let mut bytes = 0;
            let fits = |(_, len): &&(BlobKey, u32)| {
                let has_room = bytes < PART_BYTES;
                bytes += *len as usize;
                has_room
            };
            let next = self.needed[self.asked..].iter().take(BLOBS_MAX).take_while(fits);
            let keys: Vec<BlobKey> = next.map(|(key, _)| *key).collect();
            self.asked += keys.len();
            self.open.push_back(self.asked);
            asked.push(StateBody::AskBlobs { keys });
        }
    }
}
