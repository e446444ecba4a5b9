//! Whole copies of blobs that are damaged on this node's disk, from other members.
//!
//! The members are asked in turn, voters and learners, until one sends the blob: it goes into the journal,
//! from which it is read at once. It is lost when each of them has answered that it has no whole copy either;
//! when the members change, all of them are asked again.
//! One that does not answer, or has not applied the record yet, may have one: then nothing is decided, and
//! the question ends after [`TICKS_MAX`]. Whoever finds the damage again asks again.

use std::collections::{BTreeMap, BTreeSet};

use sluice_journal::{BlobKey, Journal};

use super::Member;
use super::work::{Task, Work};
use crate::entry::{NodeId, Position};
use crate::members::Members;
use crate::plant::{self, Plant};
use crate::transfer::{BLOB_BYTES_MAX, BLOBS_MAX, PART_BYTES, SentBlob, StateBody};

/// Number of ticks after which a member that has not answered is passed over.
const SILENT_TICKS_MAX: u32 = 6;

/// Number of ticks after which a question ends that was not answered by all members: 5 s.
const TICKS_MAX: u32 = 100;

/// Upper limit of questions; damage beyond is found again.
const QUESTIONS_MAX: usize = 4096;

/// Upper limit of answers that are being read for others.
const ANSWERS_MAX: usize = 8;

/// Counts of a member since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RepairCounts {
    /// Damaged blobs of which other members were asked for a copy.
    pub asked: u64,
    /// Damaged blobs of which a whole copy came.
    pub done: u64,
    /// Damaged blobs that all members have lost.
    pub lost: u64,
    /// Damaged blobs of which no copy came, and that a member may have that has not answered.
    pub unanswered: u64,
}

/// Damaged blobs, and answers to others about theirs.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    questions: BTreeMap<BlobKey, Question>,
    /// Lost blobs of which the owner has not heard.
    lost: Vec<BlobKey>,
    /// Members that were asked last.
    members: Members,
    /// Number of answers that are being read.
    answers: usize,
    counts: RepairCounts,
}

/// A damaged blob.
#[derive(Debug)]
struct Question {
    /// Length in bytes.
    len: u32,
    /// Members that have no whole copy.
    without: BTreeSet<NodeId>,
    /// Member that was asked last, and the ticks since then.
    asked: Option<(NodeId, u32)>,
    ticks: u32,
}

impl Question {
    /// The member to ask next: behind the one that was asked last.
    fn next_to_ask(&self, others: &[NodeId]) -> Option<NodeId> {
        let last = self.asked.and_then(|(last, _)| others.iter().position(|node| *node == last));
        let (before, behind) = others.split_at(last.map_or(0, |last| last + 1));
        behind.iter().chain(before).copied().find(|node| !self.without.contains(node))
    }

    fn is_due(&self) -> bool {
        self.asked.is_none_or(|(node, ticks)| ticks >= SILENT_TICKS_MAX || self.without.contains(&node))
    }
}

impl Repairs {
    /// True when nothing is asked.
    pub(super) fn is_idle(&self) -> bool {
        self.questions.is_empty()
    }

    pub(super) fn counts(&self) -> RepairCounts {
        self.counts
    }

    /// Takes the next blob that is lost.
    pub(super) fn next_lost(&mut self) -> Option<BlobKey> {
        self.lost.pop()
    }

    /// Lets a tick pass; the questions that end with it are not decided.
    fn tick(&mut self) {
        for question in self.questions.values_mut() {
            question.ticks += 1;
            let Some((node, ticks)) = &mut question.asked else { continue };
            *ticks += 1;
            if *ticks >= SILENT_TICKS_MAX && plant::is(Plant::SilenceIsLoss) {
                question.without.insert(*node);
            }
        }
        let before = self.questions.len();
        self.questions.retain(|_, question| question.ticks < TICKS_MAX);
        self.counts.unanswered += (before - self.questions.len()) as u64;
    }

    /// Questions to be asked now, by member, each with blobs that one answer has room for.
    fn ask(&mut self, others: &[NodeId]) -> Vec<(NodeId, Vec<BlobKey>)> {
        let mut asked: BTreeMap<NodeId, (usize, Vec<BlobKey>)> = BTreeMap::new();
        for (key, question) in self.questions.iter_mut().filter(|(_, question)| question.is_due()) {
            let Some(node) = question.next_to_ask(others) else { continue };
            let (bytes, keys) = asked.entry(node).or_default();
            if *bytes < PART_BYTES && keys.len() < BLOBS_MAX {
                *bytes += question.len as usize;
                keys.push(*key);
                question.asked = Some((node, 0));
            }
        }
        asked.into_iter().map(|(node, (_, keys))| (node, keys)).collect()
    }

    /// Begins to ask all of these members anew, if they are others than before: one that had no copy may have
    /// got it from a member that is gone.
    fn ask_of(&mut self, members: &Members) {
        if self.members != *members {
            self.members = members.clone();
            self.questions.values_mut().for_each(|question| question.without.clear());
        }
    }

    /// Notes that a member has no whole copy.
    fn without(&mut self, key: BlobKey, node: NodeId) {
        if let Some(question) = self.questions.get_mut(&key) {
            question.without.insert(node);
        }
    }

    /// Ends the questions of this node to which all other members have answered that they have no copy.
    fn decide(&mut self, members: &Members, id: NodeId) -> Vec<BlobKey> {
        let is_asked = |node: &NodeId| *node != id;
        let is_lost = |_: &BlobKey, question: &mut Question| {
            members.iter().filter(is_asked).all(|node| question.without.contains(&node))
        };
        let lost: Vec<BlobKey> = self.questions.extract_if(.., is_lost).map(|(key, _)| key).collect();
        self.counts.lost += lost.len() as u64;
        self.lost.extend(&lost);
        lost
    }
}

impl Member {
    /// Counts of what was damaged here, and of what came of it.
    pub fn repair_counts(&self) -> RepairCounts {
        self.repairs.counts()
    }

    /// Other members that have not answered that they have no whole copy of a blob that is damaged here.
    pub fn may_have_copies(&self) -> BTreeSet<NodeId> {
        let others = self.in_force.iter().filter(|node| *node != self.id);
        let may_have = |node: &NodeId| {
            let mut questions = self.repairs.questions.values();
            questions.any(|question| !question.without.contains(node))
        };
        others.filter(may_have).collect()
    }

    /// Takes note of a damaged blob, and asks the others for a whole copy.
    pub(super) fn damaged(&mut self, key: BlobKey) {
        let Some(len) = self.journal.blob_len(key) else { return };
        let questions = &mut self.repairs.questions;
        if questions.contains_key(&key) || questions.len() >= QUESTIONS_MAX {
            return;
        }
        questions.insert(key, Question { len, without: BTreeSet::new(), asked: None, ticks: 0 });
        self.repairs.counts.asked += 1;
        self.wake();
        self.ask_for_copies();
    }

    /// Lets a tick pass for what is damaged.
    pub(super) fn tick_repairs(&mut self) {
        self.repairs.tick();
        self.ask_for_copies();
    }

    fn ask_for_copies(&mut self) {
        if self.repairs.questions.is_empty() {
            return;
        }
        let journal = &self.journal;
        self.repairs.questions.retain(|key, _| journal.blob_len(*key).is_some());
        let members = self.in_force.clone();
        self.repairs.ask_of(&members);
        for key in self.repairs.decide(&members, self.id) {
            self.journal.lose(key);
        }
        let leader = self.replica.standing().leader;
        let mut others: Vec<NodeId> = members.iter().filter(|node| *node != self.id).collect();
        // The leader first: it may be quiet, and ends that with the question, as this member has done.
        others.sort_by_key(|node| (Some(*node) != leader, *node));
        for (node, keys) in self.repairs.ask(&others) {
            self.tell(node, Position::default(), StateBody::AskCopies { keys });
        }
    }

    /// Answers a member who asks for copies of blobs, unless too many do.
    pub(super) fn answer_for_copies(&mut self, from: NodeId, keys: Vec<BlobKey>) {
        if self.repairs.answers >= ANSWERS_MAX {
            return;
        }
        let given = self.given_index();
        let has_applied = |key: &BlobKey| key.index <= given;
        let blobs: Vec<_> =
            keys.into_iter().filter(has_applied).map(|key| (key, self.journal.read(key))).collect();
        if !blobs.is_empty() {
            self.repairs.answers += 1;
            self.work.push(Work(Task::ReadCopies { to: from, blobs }));
        }
    }

    /// Sends copies that were read. What is damaged here as well is not asked for: two nodes without a copy
    /// would ask each other for ever.
    pub(super) fn copies_read(&mut self, to: NodeId, mut blobs: Vec<(BlobKey, SentBlob)>) {
        self.repairs.answers = self.repairs.answers.saturating_sub(1);
        let mut bytes = 0;
        blobs.retain(|(_, blob)| {
            bytes += blob.bytes();
            bytes <= PART_BYTES + BLOB_BYTES_MAX
        });
        if !blobs.is_empty() {
            self.tell(to, self.given, StateBody::Copies { blobs });
        }
    }

    /// Takes in copies of a member, or its word that it has none. `at` is how far it has applied the log: a
    /// blob that is gone there may be released by what this node has not applied.
    pub(super) fn take_copies(&mut self, from: NodeId, at: Position, blobs: Vec<(BlobKey, SentBlob)>) {
        for (key, blob) in blobs {
            let Some(question) = self.repairs.questions.get(&key) else { continue };
            match blob {
                SentBlob::Whole(bytes) if bytes.len() == question.len as usize => {
                    self.repairs.questions.remove(&key);
                    if self.journal.repair(key, &bytes) {
                        self.repairs.counts.done += 1;
                    }
                }
                SentBlob::Gone if at.index > self.given.index => {}
                SentBlob::Whole(_) | SentBlob::Gone | SentBlob::Damaged => self.repairs.without(key, from),
            }
        }
        self.ask_for_copies();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_had_no_copy_is_asked_again_when_another_member_is_gone() {
        let [one, two, three] = [1, 2, 3].map(|number| NodeId::new(number).unwrap());
        let members = |voters: &[NodeId]| Members::new(voters.to_vec(), Vec::new(), 3).unwrap();
        let (all, left) = (members(&[one, two, three]), members(&[one, two]));
        let (key, mut repairs) = (BlobKey { index: 7, item: 0 }, Repairs::default());
        let question = Question { len: 1, without: BTreeSet::new(), asked: None, ticks: 0 };
        repairs.questions.insert(key, question);
        repairs.ask_of(&all);
        repairs.without(key, two);
        assert_eq!(repairs.decide(&all, one), [], "the third may have it");
        // It may have given it to the second before it was removed.
        repairs.ask_of(&left);
        assert_eq!(repairs.decide(&left, one), []);
        repairs.without(key, two);
        repairs.ask_of(&left);
        assert_eq!(repairs.decide(&left, one), [key]);
    }
}
