//! States on their way to followers that need what the leader's log no longer has.

use std::collections::{BTreeMap, BTreeSet};

use sluice_journal::{Journal, StatePart, StateReader};

use super::Member;
use super::work::{Task, Work};
use crate::entry::{NodeId, Position};
use crate::members::Snapshot;
use crate::ready::{Refused, Role};
use crate::transfer::{BLOB_BYTES_MAX, PART_BYTES, PARTS_IN_FLIGHT, SentBlob, StateBody, StateMessage};
use crate::wire;

/// Number of ticks without a word of the follower after which a transfer has failed.
const SILENT_TICKS_MAX: usize = 40;

/// Transfers of a leader.
#[derive(Debug, Default)]
pub(super) struct Sending {
    /// Followers that need a state.
    lagging: BTreeSet<NodeId>,
    transfers: BTreeMap<NodeId, Transfer>,
    /// Followers that have got a state, and are to go on from the log behind it.
    following: BTreeSet<NodeId>,
}

/// A state on its way to a follower.
#[derive(Debug)]
struct Transfer {
    position: Position,
    /// None: a part is being read.
    reader: Option<Box<StateReader>>,
    /// Offset of the next part.
    next: u64,
    /// Offset before which the follower has everything.
    taken: u64,
    /// True: the last part was read.
    is_read: bool,
    /// Number of answers for blobs that are being read.
    answers: usize,
    silent_ticks: usize,
}

impl Transfer {
    fn new(position: Position, reader: StateReader) -> Transfer {
        Transfer {
            position,
            reader: Some(Box::new(reader)),
            next: 0,
            taken: 0,
            is_read: false,
            answers: 0,
            silent_ticks: 0,
        }
    }

    fn ask(&mut self, offset: u64, is_again: bool) {
        self.taken = offset;
        if is_again {
            (self.next, self.is_read) = (offset, false);
        }
    }

    /// The next part to read, as far as the follower may be sent more now.
    fn next_read(&mut self, to: NodeId) -> Option<Work> {
        let is_due = !self.is_read && self.next < self.taken + (PARTS_IN_FLIGHT * PART_BYTES) as u64;
        let reader = self.reader.take_if(|_| is_due)?;
        Some(Work(Task::Read { to, reader, offset: self.next }))
    }
}

impl Sending {
    /// True when no state is on its way, nor wanted.
    pub(super) fn is_idle(&self) -> bool {
        self.lagging.is_empty() && self.transfers.is_empty()
    }
}

/// The place and the members of a state; `None`: it has no members, as one of a node that was alone.
fn described(reader: &StateReader) -> Option<Snapshot> {
    let head = reader.head();
    let members = wire::decode_members(&head.label).ok()?;
    Some(Snapshot { position: Position { term: head.term, index: head.number }, members })
}

impl Member {
    /// Takes note of followers that need a state.
    pub(super) fn note_lagging(&mut self, lagging: Vec<NodeId>) {
        self.sending.lagging.extend(lagging);
    }

    /// Lets a tick pass for all transfers: gives up those of whom nothing is heard, and begins those for
    /// which there is a state now. Where there is none the owner is asked for one.
    pub(super) fn tick_sending(&mut self) {
        if self.replica.standing().role != Role::Leader {
            self.sending = Sending::default();
            return;
        }
        let mut silent = Vec::new();
        for (to, transfer) in &mut self.sending.transfers {
            transfer.silent_ticks += 1;
            silent.extend((transfer.silent_ticks > SILENT_TICKS_MAX).then_some(*to));
        }
        for to in silent {
            self.sending.transfers.remove(&to);
            self.replica.transferred(to, false);
        }
        // Those that were removed meanwhile need none.
        let members = self.replica.members();
        self.sending.lagging.retain(|node| members.contains(*node));
        for to in std::mem::take(&mut self.sending.lagging) {
            self.offer(to);
        }
    }

    /// Offers the newest state to a follower, or asks the owner for one that fits.
    fn offer(&mut self, to: NodeId) {
        let newest = self.journal.read_state().and_then(|reader| Some((described(&reader)?, reader)));
        let Some((snapshot, reader)) = newest else { return self.want_state(to) };
        match self.replica.send_snapshot(to, &snapshot) {
            Ok(()) => {
                self.sending.transfers.insert(to, Transfer::new(snapshot.position, reader));
            }
            Err(Refused::SnapshotUnfit { .. } | Refused::NotAMember { .. }) => self.want_state(to),
            // It is named again when it needs one.
            Err(_) => {}
        }
    }

    fn want_state(&mut self, to: NodeId) {
        self.sending.lagging.insert(to);
        if !self.journal.snapshot_running() {
            self.journal.request_snapshot();
        }
    }

    /// Answers a follower who asks for a part of a state.
    pub(super) fn answer(&mut self, message: StateMessage) {
        let StateMessage { from, state, body, .. } = message;
        let transfer = self.sending.transfers.get_mut(&from);
        let Some(transfer) = transfer.filter(|transfer| transfer.position == state) else { return };
        transfer.silent_ticks = 0;
        match body {
            StateBody::AskContent { offset, is_again } => {
                transfer.ask(offset, is_again);
                self.work.extend(transfer.next_read(from));
            }
            StateBody::AskBlobs { keys } if transfer.answers < PARTS_IN_FLIGHT => {
                transfer.answers += 1;
                let blobs = keys.into_iter().map(|key| (key, self.journal.read(key))).collect();
                // What this node was sent without goes on to the follower in the same way.
                let whole_from = self.given_index().max(self.journal.whole_from());
                self.work.push(Work(Task::ReadBlobs { to: from, state, whole_from, blobs }));
            }
            StateBody::AskBlobs { .. } | StateBody::Busy => {}
            StateBody::Content { .. }
            | StateBody::Blobs { .. }
            | StateBody::AskCopies { .. }
            | StateBody::Copies { .. } => {}
        }
    }

    /// Sends a part that was read, and reads the next one.
    pub(super) fn part_read(
        &mut self,
        to: NodeId,
        reader: Box<StateReader>,
        offset: u64,
        part: Option<StatePart>,
    ) {
        let head = reader.head();
        let position = Position { term: head.term, index: head.number };
        let transfer = self.sending.transfers.get_mut(&to);
        let Some(transfer) = transfer.filter(|transfer| transfer.position == position) else { return };
        transfer.reader = Some(reader);
        // What could not be read is asked for again.
        let Some(StatePart { bytes, end }) = part else { return };
        let is_next = offset == transfer.next;
        if is_next {
            transfer.next += bytes.len() as u64;
            transfer.is_read = end.is_some();
        }
        self.work.extend(transfer.next_read(to));
        if is_next {
            self.tell(to, position, StateBody::Content { head, offset, bytes: bytes.into(), end });
        }
    }

    /// Sends blobs that were read, as many as one message has room for.
    pub(super) fn blobs_read(
        &mut self,
        to: NodeId,
        state: Position,
        whole_from: u64,
        mut blobs: Vec<(sluice_journal::BlobKey, SentBlob)>,
    ) {
        if let Some(transfer) = self.sending.transfers.get_mut(&to) {
            transfer.answers = transfer.answers.saturating_sub(1);
        }
        for (key, _) in blobs.iter().filter(|(_, blob)| *blob == SentBlob::Damaged) {
            self.damaged(*key);
        }
        let mut bytes = 0;
        let mut fits = |(_, blob): &(_, SentBlob)| {
            bytes += blob.bytes();
            bytes <= PART_BYTES + BLOB_BYTES_MAX
        };
        let count = blobs.iter().take_while(|blob| fits(blob)).count();
        blobs.truncate(count);
        if count > 0 {
            self.tell(to, state, StateBody::Blobs { whole_from, blobs });
        }
    }

    /// Takes note of how far a follower has come.
    pub(super) fn note_acknowledged(&mut self, from: NodeId, index: u64) {
        if self.sending.transfers.get(&from).is_some_and(|transfer| transfer.position.index <= index) {
            self.sending.transfers.remove(&from);
            self.sending.following.insert(from);
            self.counts.sent += 1;
        }
    }

    /// Index of the first entry that followers with a state on its way will need; `None`: there are none.
    /// `before`: those from there on are kept in any case.
    pub(super) fn held_from(&mut self, before: u64) -> Option<u64> {
        let Sending { transfers, following, .. } = &mut self.sending;
        let replica = &self.replica;
        following.retain(|node| replica.matched(*node).is_some_and(|index| index < before));
        let next = following.iter().filter_map(|node| replica.matched(*node));
        transfers.values().map(|transfer| transfer.position.index).chain(next).min()
    }
}
