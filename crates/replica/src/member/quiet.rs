//! Quiet members: where nothing is new for a while, ticks and heartbeats rest.
//!
//! A leader whose log is idle offers with its heartbeats to be quiet. A follower that has all of the log,
//! committed and synced, is quiet from then on, and says so; the leader is when all others are. While it is
//! quiet a member does nothing at a tick but at a slow one: then a leader sends one heartbeat, so that the
//! others keep its time, and a follower that has heard of no leader for some of them ends its quiet.
//!
//! Members are quiet where all of them have the whole log. So nobody needs what is before the newest snapshot
//! of each, and it lets that go.
//!
//! Anything else ends it: a proposal, a read, any other message, and a doubt about another node or its loss,
//! which the owner tells for all shards at once ([`Member::doubt`], [`Member::lost`]). What is promised
//! never depends on quiet, only how soon the loss of a leader is noticed.

use std::collections::BTreeSet;

use sluice_journal::DiskRoom;

use super::Member;
use crate::entry::NodeId;
use crate::message::{Body, Message};
use crate::plant::{self, Plant};
use crate::ready::Role;

/// Number of slow ticks without a word of the leader after which a follower ends its quiet.
const UNHEARD_TICKS_MAX: usize = 3;

/// Rest of an idle member.
#[derive(Debug)]
pub(super) struct Quiet {
    /// Number of ticks without anything new after which a leader offers to be quiet.
    after: usize,
    /// Number of ticks since something was new.
    idle: usize,
    /// Index of the last entry, at the last tick.
    last: u64,
    /// Members that are quiet, as far as the leader has heard.
    others: BTreeSet<NodeId>,
    is_quiet: bool,
    /// Number of slow ticks since a follower has heard of the leader.
    unheard: usize,
    /// Number of the batch up to which the log was forgotten, since all members had it.
    forgotten: u64,
}

impl Quiet {
    pub(super) fn new(after: usize) -> Quiet {
        let others = BTreeSet::new();
        Quiet { after, idle: 0, last: 0, others, is_quiet: false, unheard: 0, forgotten: 0 }
    }

    /// True for a member that is quiet, and for a leader that offers to be.
    pub(super) fn is_told(&self) -> bool {
        self.is_quiet || self.idle >= self.after
    }

    fn end(&mut self) {
        (self.idle, self.is_quiet) = (0, false);
        self.others.clear();
    }

    /// Lets a tick pass for a leader.
    fn tick(&mut self, is_idle: bool, last: u64) {
        if is_idle && std::mem::replace(&mut self.last, last) == last {
            self.idle += 1;
        } else {
            self.end();
        }
    }
}

impl Member {
    /// True: ticks may be slow, and are to be until this is false.
    pub fn is_quiet(&self) -> bool {
        self.quiet.is_quiet
    }

    /// Takes in a doubt about a node: nothing comes from it although the connection stands, or a connection
    /// has begun, and its process may be another one, or have another number.
    pub fn doubt(&mut self) {
        if !plant::is(Plant::StayQuiet) {
            self.wake();
        }
    }

    /// Ends the quiet.
    pub(super) fn wake(&mut self) {
        if self.quiet.is_quiet {
            self.replica.wake();
        }
        self.quiet.end();
    }

    /// Lets a slow tick pass.
    pub(super) fn tick_quietly(&mut self) {
        self.forget_had();
        self.quiet.unheard += 1;
        if self.replica.standing().role == Role::Leader {
            self.replica.ping();
            self.settle(Vec::new());
        } else if self.quiet.unheard > UNHEARD_TICKS_MAX {
            self.wake();
        }
    }

    /// Forgets the log before the newest snapshot, since all members have it.
    fn forget_had(&mut self) {
        let Some(number) = self.journal.snapshot_number() else { return };
        if std::mem::replace(&mut self.quiet.forgotten, number) < number {
            self.forget_before(number);
        }
    }

    /// Lets a tick pass: a leader looks whether something is new.
    pub(super) fn tick_idle(&mut self) {
        if self.replica.standing().role == Role::Leader {
            let is_idle = self.is_idle() && self.sending.is_idle();
            self.quiet.tick(is_idle, self.replica.last_index());
            self.rest();
        } else {
            self.quiet.end();
        }
    }

    /// Takes in a message, before the replica does; `is_told` says whether its sender is quiet or offers to
    /// be.
    pub(super) fn hear_quiet(&mut self, message: &Message, is_told: bool) {
        let is_rest = matches!(
            message.body,
            Body::Heartbeat { read: None, .. } | Body::HeartbeatSeen { read: None, .. }
        );
        let is_known = is_rest && message.term == self.replica.standing().term;
        if !is_known || !is_told && self.quiet.is_quiet {
            self.wake();
        }
    }

    /// Takes in a message that the replica has taken.
    pub(super) fn heard_quiet(&mut self, message: &Message, is_told: bool) {
        match message.body {
            Body::Heartbeat { read: None, .. } => {
                self.quiet.unheard = 0;
                self.quiet.is_quiet = is_told && self.is_idle();
            }
            Body::HeartbeatSeen { .. } if is_told => {
                self.quiet.others.insert(message.from);
                self.rest();
            }
            Body::HeartbeatSeen { .. } => {
                self.quiet.others.remove(&message.from);
            }
            Body::Heartbeat { read: Some(_), .. }
            | Body::Append { .. }
            | Body::Appended { .. }
            | Body::AppendRefused { .. }
            | Body::AskVote { .. }
            | Body::Vote { .. }
            | Body::TimeoutNow
            | Body::Snapshot(_) => {}
        }
    }

    /// Lets a leader be quiet that offers to be, once all others are.
    fn rest(&mut self) {
        let leads = self.replica.standing().role == Role::Leader;
        let mut members = self.replica.members().iter();
        let are_others_quiet = members.all(|member| member == self.id || self.quiet.others.contains(&member));
        self.quiet.is_quiet = leads && self.quiet.idle >= self.quiet.after && are_others_quiet;
    }

    /// True where this member has nothing to write, to apply, to send or to report.
    fn is_idle(&self) -> bool {
        self.replica.is_idle()
            && self.unsynced.is_empty()
            && self.reads.is_empty()
            && self.incoming.is_none()
            && self.repairs.is_idle()
            && self.given.index == self.replica.last_index()
            && self.journal.disk_room() == DiskRoom::Growing
    }
}
