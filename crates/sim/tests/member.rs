//! A member of a replicated log: its journal fails, hangs or loses what was not synced, and keeps the
//! members.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_journal::{
    Batch, Class, Commit, DiskJournal, Durability, Event, Journal, Maintenance, Opened, Options, SealedBatch,
    Writer,
};
use sluice_replica::{
    Body, BootId, Change, Config, Content, Dropped, Entry, Envelope, Member, MemberEvent, Members, Memory,
    Message, NodeId, NotProposed, OwnRecords, Position, Refused, Rejected, Role, Snapshot, Start, StartError,
};
use sluice_sim::disk::{Call, CallFailure, Crash, SimDisk};
use sluice_sim::rng::Rng;

/// Number of ticks of an election.
const ELECTION_TICKS: usize = 10;
/// Length of a segment of the log, in bytes.
const SEGMENT_BYTES: u64 = 4 << 10;

fn node(number: u64) -> NodeId {
    NodeId::new(number).expect("not 0")
}

/// An entry without a batch, behind `previous`, from the leader of term 2.
fn append(previous: Position) -> Envelope {
    let position = Position { term: 2, index: previous.index + 1 };
    let entries = vec![Entry { position, content: Content::Begin }];
    let body = Body::Append { previous, commit: 1, entries };
    Envelope::new(Message { from: node(1), to: node(2), term: 2, body }, Vec::new())
}

/// Records of entries without a batch.
const OWN_RECORDS: OwnRecords =
    OwnRecords { write: |batch, held| batch.record(0).body(&[OWN, held].concat()), held };

const OWN: &[u8] = b"members: ";

fn held(body: &[u8]) -> Option<&[u8]> {
    body.strip_prefix(OWN)
}

fn config(id: u64) -> Config {
    Config { id: node(id), heartbeat_ticks: 2, election_ticks: ELECTION_TICKS, quiet_ticks: 40 }
}

fn open(disk: &SimDisk) -> Opened {
    open_with(disk, Durability::Always)
}

fn open_with(disk: &SimDisk, durability: Durability) -> Opened {
    let mut options = Options { durability, ..Options::new(PathBuf::from("/data")) };
    (options.commit, options.reserve_bytes, options.identity) = (Commit::Told, 0, 7);
    options.segment_bytes = SEGMENT_BYTES;
    DiskJournal::open(Arc::new(disk.for_next_process()), options).expect("a disk without damage")
}

/// A member with its journal on a simulated disk.
struct Rig {
    disk: SimDisk,
    member: Member,
    writer: Writer,
    maintenance: Maintenance,
}

impl Rig {
    /// The member with number `id` of a log whose voters have the numbers up to `voters`.
    fn new(id: u64, voters: u64) -> Rig {
        Rig::with(Durability::Always, 1, id, voters)
    }

    fn with(durability: Durability, seed: u64, id: u64, voters: u64) -> Rig {
        let disk = SimDisk::new(Path::new("/"), 1 << 30, Rng::new(seed));
        let Opened { mut journal, writer, maintenance, .. } = open_with(&disk, durability);
        let first = SealedBatch::received(1, 1, 0, OWN_RECORDS.begin()).expect("one whole record");
        journal.append(1, first).expect("a journal that works");
        writer.step();
        journal.commit(1).expect("a batch of the tail");
        assert!(matches!(journal.poll(), Some(Event::Committed(_))));
        let members = Members::new((1..=voters).map(node).collect(), Vec::new(), voters).expect("voters");
        let start = Start::read(&journal, members, &[], OWN_RECORDS, u64::MAX).expect("a whole log");
        let member = Member::new(&config(id), journal, start, 1).expect("a whole state");
        Rig { disk, member, writer, maintenance }
    }

    /// Lets the writer write, and the member take note of it.
    fn write(&mut self) {
        self.writer.step();
        while self.member.poll().is_some() {}
    }
}

#[test]
fn an_entry_that_a_failed_journal_refuses_is_not_acknowledged() {
    let Rig { disk, mut member, writer, mut maintenance } = Rig::new(2, 2);

    let acknowledged = |member: &mut Member| -> Vec<u64> {
        let sent = member.take_envelopes().into_iter();
        sent.filter_map(|it| match it.message.body {
            Body::Appended { index, .. } => Some(index),
            _ => None,
        })
        .collect()
    };
    member.step(append(Position { term: 1, index: 1 })).expect("the leader's entry");
    writer.step();
    while member.poll().is_some() {}
    assert_eq!(acknowledged(&mut member), [2]);

    disk.fail_call(Call::Write, 0, CallFailure::Io);
    (1..100).for_each(|second| {
        maintenance.step(second * 1_000_000);
    });
    member.step(append(Position { term: 2, index: 2 })).expect("the leader's entry");
    writer.step();
    let events: Vec<MemberEvent> = std::iter::from_fn(|| member.poll()).collect();
    let failed = events.iter().any(|event| matches!(event, MemberEvent::Journal(Event::Failed(_))));
    assert!(failed, "{events:?}");
    assert!(acknowledged(&mut member).is_empty());
}

#[test]
fn a_leader_whose_disk_hangs_leads_nobody_and_is_silent_until_its_write_is_done() {
    let mut rig = Rig::new(1, 1);
    lead(&mut rig);
    let propose = |member: &mut Member| {
        let mut batch = Batch::new();
        batch.record(0).body(b"work");
        member.propose(&mut batch, 1, Class::Growing)
    };
    propose(&mut rig.member).expect("it leads");
    (0..2 * ELECTION_TICKS).for_each(|_| rig.member.tick());
    assert_eq!(rig.member.standing().role, Role::Leader, "that took no longer than it may");
    rig.member.tick();
    let standing = rig.member.standing();
    assert_eq!((standing.role, standing.leader), (Role::Follower, None));
    let refused = propose(&mut rig.member).expect_err("it does not lead");
    assert_eq!(refused, NotProposed::Replica(Refused::NotLeader { leader: None }));
    assert!(rig.member.read_index().is_err() && rig.member.take_envelopes().is_empty());

    rig.write();
    assert_eq!(rig.member.standing().role, Role::Leader);
    propose(&mut rig.member).expect("it leads again");
}

/// Lets a sole voter lead.
fn lead(rig: &mut Rig) {
    for _ in 0..4 * ELECTION_TICKS {
        rig.member.tick();
        rig.write();
    }
    assert_eq!(rig.member.standing().role, Role::Leader);
}

fn members(voters: &[u64], learners: &[u64], highest: u64) -> Members {
    let [voters, learners] = [voters, learners].map(|ids| ids.iter().copied().map(node).collect());
    Members::new(voters, learners, highest).expect("the members are right")
}

/// Opens the journal of a member that has ended, as the node with this number.
fn start_again(disk: &SimDisk, id: u64) -> Result<Member, StartError> {
    start_in(disk, id, 1).map(|(member, _)| member)
}

/// Does so in a boot of its machine, where what is written is acknowledged before it is synced.
fn start_in(disk: &SimDisk, id: u64, boot: u8) -> Result<(Member, Writer), StartError> {
    let Opened { mut journal, writer, mut replay, hard_state, report, .. } = open(disk);
    while replay.next_batch().expect("a whole log").is_some() {}
    journal.set_live([]).expect("no blobs");
    let others = members(&[1, 8, 9], &[], 9);
    let start = Start::read(&journal, others, &hard_state, OWN_RECORDS, 0).expect("a whole log");
    let memory = Memory {
        boot: BootId([boot; 16]),
        syncs_first: false,
        is_whole: report.end_known,
        has_failed: false,
    };
    let member = Member::new(&config(id), journal, start.remembering(memory), 1)?;
    writer.step();
    Ok((member, writer))
}

#[test]
fn a_member_reads_the_members_back_from_its_journal() {
    let mut rig = Rig::new(1, 1);
    lead(&mut rig);
    rig.member.propose_members(Change::Add(node(2))).expect("a sole voter that leads");
    rig.writer.step();
    let mut events = std::iter::repeat_with(|| rig.member.poll()).take(9).flatten();
    let told = events.find_map(|event| match event {
        MemberEvent::Members(members) => Some(members),
        MemberEvent::Journal(_) | MemberEvent::Read(_) => None,
    });
    assert_eq!(told, Some(members(&[1], &[2], 2)));
    rig.write();
    let Rig { disk, member, .. } = rig;
    drop(member);
    disk.crash(Crash::Power);
    let member = start_again(&disk, 1).expect("a whole state");
    assert_eq!(*member.members(), members(&[1], &[2], 2));
}

#[test]
fn a_member_keeps_no_members_of_a_log_that_may_be_lost() {
    for seed in 0..20 {
        let mut rig = Rig::with(Durability::Os, seed, 1, 1);
        lead(&mut rig);
        rig.member.propose_members(Change::Add(node(2))).expect("a sole voter that leads");
        (0..3).for_each(|_| rig.write());
        let Rig { disk, member, .. } = rig;
        let (added, next) = (members(&[1], &[2], 2), member.journal().next_index());
        assert_eq!(*member.members(), added);
        drop(member);
        disk.crash(Crash::Power);
        let member = start_again(&disk, 1).expect("a whole state");
        assert_eq!((member.members(), member.journal().next_index()), (&added, next), "seed {seed}");
    }
}

#[test]
fn a_member_reads_the_members_back_when_the_log_of_their_changes_is_gone() {
    let mut rig = Rig::new(1, 1);
    rig.member.journal_mut().set_live([]).expect("no blobs");
    lead(&mut rig);
    rig.member.propose_members(Change::Add(node(2))).expect("a sole voter that leads");
    rig.write();
    for _ in 0..3 {
        work(&mut rig);
        snapshot(&mut rig, 0);
    }
    assert!(log_before(&rig) > 5, "the log is kept");
    // This one is not in the snapshot yet.
    rig.member.propose_members(Change::Add(node(3))).expect("a sole voter that leads");
    rig.write();
    rig.write();
    let Rig { disk, member, .. } = rig;
    drop(member);
    disk.crash(Crash::Power);
    let member = start_again(&disk, 1).expect("a whole state");
    assert_eq!(*member.members(), members(&[1], &[2, 3], 3));
}

/// Takes a snapshot that lets go of the log but for its last `kept` bytes.
fn snapshot(rig: &mut Rig, kept: u64) {
    let index = rig.member.given_index();
    rig.member.begin_snapshot(kept, kept);
    rig.member.journal_mut().snapshot_begin(index, 1, 1);
    rig.member.journal_mut().snapshot_finish();
    maintain(rig);
}

/// Gives maintenance some seconds.
fn maintain(rig: &mut Rig) {
    (1..20).for_each(|second| {
        rig.maintenance.step(second * 1_000_000);
    });
    rig.write();
}

/// Number of the batch before those that can be read back.
fn log_before(rig: &Rig) -> u64 {
    rig.member.journal().before_last(u64::MAX, u64::MAX).0
}

#[test]
fn a_quiet_member_lets_go_of_the_log_that_all_have() {
    let mut rig = Rig::new(1, 1);
    rig.member.journal_mut().set_live([]).expect("no blobs");
    lead(&mut rig);
    work(&mut rig);
    snapshot(&mut rig, u64::MAX);
    maintain(&mut rig);
    assert_eq!(log_before(&rig), 0, "for who may be behind");
    while !rig.member.is_quiet() {
        rig.member.tick();
        rig.write();
    }
    rig.member.tick();
    maintain(&mut rig);
    assert!(log_before(&rig) > 5);
    work(&mut rig);
    assert!(!rig.member.is_quiet());
}

/// Lets a leader fill some segments of the log.
fn work(rig: &mut Rig) {
    for _ in 0..3 * SEGMENT_BYTES / 1_000 {
        let mut batch = Batch::new();
        batch.record(0).body(&[7; 1_000]);
        rig.member.propose(&mut batch, 1, Class::Growing).expect("it leads");
        rig.write();
    }
}

#[test]
fn a_copy_of_a_disk_starts_as_a_node_that_is_new_and_as_no_other() {
    let mut rig = Rig::new(1, 1);
    lead(&mut rig);
    let Rig { disk, member, .. } = rig;
    drop(member);
    disk.crash(Crash::Power);
    let started = |id| start_again(&disk, id).map(|member| member.members().clone());
    assert_eq!(started(1), Ok(members(&[1], &[], 1)));
    // It has been given all numbers up to its own.
    assert_eq!(started(2), Ok(members(&[1], &[], 1)));
    disk.crash(Crash::Kill);
    assert_eq!(started(1), Err(StartError::Forgetful { node: node(1) }));
}

#[test]
fn a_member_whose_machine_lost_power_is_silent_until_it_has_another_number() {
    let mut rig = Rig::new(1, 3);
    rig.write();
    let Rig { disk, member, .. } = rig;
    drop(member);
    let forgets = |id, boot| {
        disk.crash(Crash::Power);
        start_in(&disk, id, boot).expect("a whole state").0.has_forgotten()
    };
    assert!(!forgets(1, 1), "so far it has synced before it acknowledged");
    assert!(!forgets(1, 1), "what is written outlives the process");
    let (member, writer) = start_in(&disk, 1, 1).expect("a whole state");
    writer.finish().expect("a disk that works");
    drop(member);
    assert!(!forgets(1, 2), "it was stopped in order");
    assert!(forgets(1, 3));

    disk.crash(Crash::Power);
    let (mut member, writer) = start_in(&disk, 1, 3).expect("a whole state");
    (0..9 * ELECTION_TICKS).for_each(|_| member.tick());
    while member.poll().is_some() {}
    assert!(member.take_envelopes().is_empty());
    assert_eq!((member.standing().role, member.standing().term), (Role::Follower, 1));
    let entry = append(Position { term: 1, index: 1 });
    let to_us = Message { from: node(2), to: node(1), ..entry.message };
    assert_eq!(member.step(Envelope::new(to_us, Vec::new())), Err(Dropped::Mute));
    writer.finish().expect("a disk that works");
    drop(member);
    assert!(forgets(1, 3), "an orderly stop brings nothing back");
    assert!(!forgets(9, 3));
}

#[test]
fn a_sole_member_has_promised_nothing_to_anybody_and_leads_with_what_it_has() {
    let mut rig = Rig::new(1, 1);
    rig.write();
    let Rig { disk, member, .. } = rig;
    drop(member);
    for boot in 1..3 {
        disk.crash(Crash::Power);
        let (mut member, writer) = start_in(&disk, 1, boot).expect("a whole state");
        for _ in 0..4 * ELECTION_TICKS {
            member.tick();
            writer.step();
            while member.poll().is_some() {}
        }
        assert_eq!((member.has_forgotten(), member.standing().role), (false, Role::Leader));
    }
}

#[test]
fn a_member_that_has_less_than_its_leader_knows_of_has_forgotten_it() {
    let mut rig = Rig::new(2, 2);
    let heartbeat = |commit| {
        let body = Body::Heartbeat { commit, read: None };
        Envelope::new(Message { from: node(1), to: node(2), term: 2, body }, Vec::new())
    };
    rig.member.step(heartbeat(1)).expect("it has the first entry");
    assert!(!rig.member.has_forgotten());
    let beyond = Dropped::Message(Rejected::CommitBeyondLog { commit: 2, last: 1 });
    assert_eq!(rig.member.step(heartbeat(2)), Err(beyond));
    assert!(rig.member.has_forgotten());
    assert_eq!(rig.member.step(heartbeat(1)), Err(Dropped::Mute));
    rig.write();
    let Rig { disk, member, .. } = rig;
    drop(member);
    disk.crash(Crash::Power);
    assert!(start_again(&disk, 2).expect("a whole state").has_forgotten());
}

#[test]
fn a_follower_says_nothing_about_a_state_of_a_former_term_until_the_leader_offers_it_again() {
    let mut rig = Rig::new(2, 3);
    let from_leader =
        |term, body| Envelope::new(Message { from: node(1), to: node(2), term, body }, Vec::new());
    let offer = |rig: &mut Rig, term| {
        let (position, members) = (Position { term: 1, index: 5 }, members(&[1, 2, 3], &[], 3));
        let body = Body::Snapshot(Snapshot { position, members });
        rig.member.step(from_leader(term, body)).expect("a message of a leader");
    };
    let asks = |rig: &mut Rig, term| {
        rig.member.take_state_messages();
        let heartbeat = from_leader(term, Body::Heartbeat { commit: 1, read: None });
        rig.member.step(heartbeat).expect("a message of a leader");
        rig.write();
        (1..ELECTION_TICKS).for_each(|_| rig.member.tick());
        !rig.member.take_state_messages().is_empty()
    };
    offer(&mut rig, 2);
    assert!(asks(&mut rig, 2));
    assert!(!asks(&mut rig, 3), "the same node leads again, and may have the same state on its way");
    offer(&mut rig, 2);
    assert!(!asks(&mut rig, 3), "that offer was late");
    offer(&mut rig, 3);
    assert!(asks(&mut rig, 3));
}
