//! A member of a replicated log: its journal fails or hangs, and keeps the members.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_journal::{
    Batch, Class, Commit, DiskJournal, Event, Journal, Maintenance, Opened, Options, SealedBatch, Writer,
};
use sluice_replica::{
    Body, Change, Config, Content, Entry, Envelope, Member, MemberEvent, Members, Message, NodeId,
    NotProposed, OwnRecords, Position, Refused, Role, Start,
};
use sluice_sim::disk::{Call, CallFailure, Crash, SimDisk};
use sluice_sim::rng::Rng;

/// Number of ticks of an election.
const ELECTION_TICKS: usize = 10;

fn node(number: u64) -> NodeId {
    NodeId::new(number).expect("not 0")
}

/// An entry without a batch, behind `previous`, from the leader of term 2.
fn append(previous: Position) -> Envelope {
    let position = Position { term: 2, index: previous.index + 1 };
    let entries = vec![Entry { position, content: Content::Begin }];
    let body = Body::Append { previous, commit: 1, entries };
    Envelope { message: Message { from: node(1), to: node(2), term: 2, body }, batches: Vec::new() }
}

/// Records of entries without a batch.
const OWN_RECORDS: OwnRecords =
    OwnRecords { write: |batch, held| batch.record(0).body(&[OWN, held].concat()), held };

const OWN: &[u8] = b"members: ";

fn held(body: &[u8]) -> Option<&[u8]> {
    body.strip_prefix(OWN)
}

fn config(id: u64) -> Config {
    Config { id: node(id), heartbeat_ticks: 2, election_ticks: ELECTION_TICKS }
}

fn open(disk: &SimDisk) -> Opened {
    let mut options = Options::new(PathBuf::from("/data"));
    (options.commit, options.reserve_bytes, options.identity) = (Commit::Told, 0, 7);
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
        let disk = SimDisk::new(Path::new("/"), 1 << 30, Rng::new(1));
        let Opened { mut journal, writer, maintenance, .. } = open(&disk);
        let first = SealedBatch::received(1, 1, 0, OWN_RECORDS.begin()).expect("one whole record");
        journal.append(1, first).expect("a journal that works");
        writer.step();
        journal.commit(1).expect("a batch of the tail");
        assert!(matches!(journal.poll(), Some(Event::Committed(_))));
        let members = Members::new((1..=voters).map(node).collect(), Vec::new(), voters).expect("voters");
        let start = Start::read(&journal, members, Vec::new(), OWN_RECORDS, u64::MAX).expect("a whole log");
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
    assert_eq!(acknowledged(&mut member), []);
}

#[test]
fn a_leader_whose_disk_hangs_leads_nobody_and_is_silent_until_its_write_is_done() {
    let mut rig = Rig::new(1, 1);
    for _ in 0..4 * ELECTION_TICKS {
        rig.member.tick();
        rig.write();
    }
    assert_eq!(rig.member.standing().role, Role::Leader);
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

#[test]
fn a_member_reads_the_members_back_from_its_journal() {
    let mut rig = Rig::new(1, 1);
    let lead = |rig: &mut Rig| {
        for _ in 0..4 * ELECTION_TICKS {
            rig.member.tick();
            rig.write();
        }
    };
    lead(&mut rig);
    rig.member.propose_members(Change::Add(node(2))).expect("a sole voter that leads");
    rig.writer.step();
    let mut events = std::iter::repeat_with(|| rig.member.poll()).take(9).flatten();
    let told = events.find_map(|event| match event {
        MemberEvent::Members(members) => Some(members),
        MemberEvent::Journal(_) | MemberEvent::Read(_) => None,
    });
    let grown = Members::new(vec![node(1)], vec![node(2)], 2).expect("a voter and a learner");
    assert_eq!(told.as_ref(), Some(&grown));
    rig.write();

    let Rig { disk, member, .. } = rig;
    drop(member);
    disk.crash(Crash::Power);
    let Opened { journal, mut replay, hard_state, .. } = open(&disk);
    while replay.next_batch().expect("a whole log").is_some() {}
    let first = Members::new(vec![node(1)], Vec::new(), 1).expect("a voter");
    let start = Start::read(&journal, first, hard_state, OWN_RECORDS, u64::MAX).expect("a whole log");
    let member = Member::new(&config(1), journal, start, 1).expect("a whole state");
    assert_eq!(*member.members(), grown);
}
