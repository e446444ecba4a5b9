//! A member of a replicated log whose journal fails.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_journal::{Batch, Commit, DiskJournal, Event, Journal, Opened, Options, SealedBatch};
use sluice_replica::{
    Body, Config, Entry, Envelope, Member, MemberEvent, Members, Message, NodeId, Position, Start,
};
use sluice_sim::disk::{Call, CallFailure, SimDisk};
use sluice_sim::rng::Rng;

fn node(number: u64) -> NodeId {
    NodeId::new(number).expect("not 0")
}

/// An entry without a batch, behind `previous`, from the leader of term 2.
fn append(previous: Position) -> Envelope {
    let position = Position { term: 2, index: previous.index + 1 };
    let entries = vec![Entry { position, batch: None }];
    let body = Body::Append { previous, commit: 1, entries };
    Envelope { message: Message { from: node(1), to: node(2), term: 2, body }, batches: Vec::new() }
}

#[test]
fn an_entry_that_a_failed_journal_refuses_is_not_acknowledged() {
    let disk = SimDisk::new(Path::new("/"), 1 << 30, Rng::new(1));
    let mut options = Options::new(PathBuf::from("/data"));
    (options.commit, options.reserve_bytes, options.identity) = (Commit::Told, 0, 7);
    let opened = DiskJournal::open(Arc::new(disk.for_next_process()), options).expect("an empty disk");
    let Opened { mut journal, writer, mut maintenance, .. } = opened;
    let mut begin = Batch::new();
    begin.record(0).body(b"begin");
    let (begin, _) = begin.take();
    let first = SealedBatch::received(1, 1, 0, begin.clone()).expect("one whole record");
    journal.append(1, first).expect("a journal that works");
    writer.step();
    journal.commit(1).expect("a batch of the tail");
    assert!(matches!(journal.poll(), Some(Event::Committed(_))));
    let members = Members::new(vec![node(1), node(2)], Vec::new(), 2).expect("two voters");
    let start = Start::read(&journal, members, Vec::new(), begin, u64::MAX).expect("a whole log");
    let config = Config { id: node(2), heartbeat_ticks: 2, election_ticks: 10 };
    let mut member = Member::new(&config, journal, start, 1).expect("a whole state");

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
