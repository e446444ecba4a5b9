//! What an owner gets for its inputs: order of writes and messages, limits, refusals.
#![allow(clippy::unwrap_used)] // A test that fails says where.

use sluice_replica::{
    BATCH_BYTES_MAX, Body, Campaign, Change, Config, Content, Descriptor, Durable, Entry, GROUP_BYTES,
    IN_FLIGHT_BYTES, Members, Message, NodeId, Position, READS_MAX, Ready, Refused, Rejected, Replica, Role,
    Snapshot, StartError, UNCOMMITTED_BYTES_MAX,
};

fn node(id: u64) -> NodeId {
    NodeId::new(id).unwrap()
}

fn config(id: u64) -> Config {
    Config { id: node(id), heartbeat_ticks: 2, election_ticks: 10, quiet_ticks: 40 }
}

fn first(members: u64) -> Durable {
    Durable::first(Members::new((1..=members).map(node).collect(), Vec::new(), members).unwrap())
}

fn start(members: u64) -> Replica {
    Replica::new(&config(1), &first(members), 1).unwrap()
}

fn batch(bytes: u64) -> Descriptor {
    Descriptor { first_record: 1, records: 1, time_us: 0, bytes: bytes as u32, checksum: 0 }
}

fn from(id: u64, body: Body) -> Message {
    Message { from: node(id), to: node(1), term: 2, body }
}

/// Syncs all that there is to write, and returns the rest.
fn sync(replica: &mut Replica) -> Vec<Ready> {
    let mut all = Vec::new();
    while let Some(ready) = replica.ready() {
        ready.write.iter().for_each(|write| replica.persisted(write.number));
        all.push(ready);
    }
    all
}

fn campaign(replica: &mut Replica) {
    while replica.standing().role == Role::Follower {
        replica.tick();
    }
}

/// A leader of three whose first entry is committed.
fn leader() -> Replica {
    let mut replica = start(3);
    campaign(&mut replica);
    for is_try in [true, false] {
        sync(&mut replica);
        let body = Body::Vote { is_try, is_granted: true, commit: Position::default() };
        replica.step(&from(2, body)).unwrap();
    }
    sync(&mut replica);
    replica.step(&from(2, Body::Appended { index: 2, commit: 0 })).unwrap();
    sync(&mut replica);
    assert_eq!(replica.standing().role, Role::Leader);
    replica
}

/// Length of the batches that messages bring to a node, in bytes.
fn sent_bytes(ready: &[Ready], to: u64) -> u64 {
    let messages = ready.iter().flat_map(|ready| &ready.messages).filter(|message| message.to == node(to));
    messages
        .map(|message| match &message.body {
            Body::Append { entries, .. } => entries.iter().map(|entry| entry.bytes()).sum(),
            _ => 0,
        })
        .sum()
}

#[test]
fn one_member_leads_and_commits_alone() {
    let mut replica = start(1);
    campaign(&mut replica);
    assert_eq!(replica.standing().role, Role::Candidate, "its vote is not synced");
    let mut all = sync(&mut replica);
    let at = replica.propose(batch(10)).unwrap();
    all.extend(sync(&mut replica));
    let committed: Vec<_> = all.into_iter().flat_map(|ready| ready.committed).collect();
    assert_eq!(committed.last().map(|entry| entry.position), Some(at));
    assert_eq!(committed.iter().filter(|entry| entry.content == Content::Begin).count(), 1);
}

#[test]
fn a_follower_answers_when_its_disk_has_synced() {
    let mut replica = start(3);
    let previous = Position { term: 1, index: 1 };
    let append = Body::Append { previous, commit: 0, entries: Vec::new() };
    replica.step(&from(2, append)).unwrap();
    let first = replica.ready().unwrap();
    assert_eq!(first.messages, []);
    let write = first.write.unwrap();
    assert!(write.must_sync);
    replica.persisted(write.number);
    let answer = Body::Appended { index: 1, commit: 1 };
    assert_eq!(replica.ready().unwrap().messages.first().map(|message| &message.body), Some(&answer));
}

#[test]
fn a_leader_sends_before_its_disk_has_synced_and_applies_after() {
    let mut replica = leader();
    let first = replica.propose(batch(10)).unwrap();
    let second = replica.propose(batch(20)).unwrap();
    let ready = replica.ready().unwrap();
    assert_eq!(sent_bytes(std::slice::from_ref(&ready), 2), 30);
    let write = ready.write.unwrap();
    let written: Vec<Position> = write.append.unwrap().entries.iter().map(|entry| entry.position).collect();
    assert_eq!(written, [first, second]);

    for follower in [2, 3] {
        replica.step(&from(follower, Body::Appended { index: second.index, commit: 1 })).unwrap();
    }
    assert!(sync_nothing(&mut replica).iter().all(|ready| ready.committed.is_empty()));
    replica.persisted(write.number);
    let applied: Vec<Position> =
        replica.ready().unwrap().committed.iter().map(|entry| entry.position).collect();
    assert_eq!(applied, [first, second]);
}

/// Takes what there is to do and syncs nothing.
fn sync_nothing(replica: &mut Replica) -> Vec<Ready> {
    std::iter::from_fn(|| replica.ready()).collect()
}

#[test]
fn bytes_in_flight_and_uncommitted_are_limited() {
    let mut replica = leader();
    assert_eq!(
        replica.propose(batch(BATCH_BYTES_MAX + 1)),
        Err(Refused::BatchTooLarge { bytes: (28 << 20) + 1 })
    );
    let proposals = UNCOMMITTED_BYTES_MAX / GROUP_BYTES;
    for _ in 0..proposals {
        replica.propose(batch(GROUP_BYTES)).unwrap();
    }
    let full = Refused::TooMuchUncommitted { bytes: UNCOMMITTED_BYTES_MAX };
    assert_eq!(replica.propose(batch(1)), Err(full));

    let mut acknowledged = 2;
    let mut flying = sent_bytes(&sync(&mut replica), 2);
    while acknowledged < 2 + proposals {
        assert!(flying > 0 && flying <= IN_FLIGHT_BYTES, "{flying} bytes in flight");
        acknowledged += 1;
        flying -= GROUP_BYTES;
        replica.step(&from(2, Body::Appended { index: acknowledged, commit: 1 })).unwrap();
        flying += sent_bytes(&sync(&mut replica), 2);
    }
    assert_eq!(flying, 0);
    replica.propose(batch(1)).unwrap();
}

#[test]
fn the_largest_batches_go_one_at_a_time() {
    let mut replica = leader();
    for _ in 0..2 {
        replica.propose(batch(BATCH_BYTES_MAX)).unwrap();
    }
    assert_eq!(sent_bytes(&sync(&mut replica), 2), BATCH_BYTES_MAX);
    replica.step(&from(2, Body::Appended { index: 3, commit: 1 })).unwrap();
    assert_eq!(sent_bytes(&sync(&mut replica), 2), BATCH_BYTES_MAX);
}

#[test]
fn a_read_waits_for_a_majority() {
    let mut replica = leader();
    let id = replica.read_index().unwrap();
    assert!(sync(&mut replica).iter().all(|ready| ready.reads.is_empty()));
    replica.step(&from(3, Body::HeartbeatSeen { commit: 0, read: Some(id) })).unwrap();
    let reads: Vec<_> = sync(&mut replica).into_iter().flat_map(|ready| ready.reads).collect();
    assert_eq!(reads.iter().map(|read| (read.id, read.index)).collect::<Vec<_>>(), [(id, 2)]);

    for _ in 0..READS_MAX {
        replica.read_index().unwrap();
    }
    assert_eq!(replica.read_index(), Err(Refused::TooManyReads));
}

#[test]
fn only_a_leader_takes_requests() {
    let mut follower = start(3);
    follower.step(&from(2, Body::Heartbeat { commit: 0, read: None })).unwrap();
    let refused = Refused::NotLeader { leader: Some(node(2)) };
    assert_eq!(follower.propose(batch(1)), Err(refused));
    assert_eq!(follower.read_index(), Err(refused));
    assert_eq!(follower.transfer_leader(node(3)), Err(refused));

    let mut replica = leader();
    assert_eq!(replica.transfer_leader(node(1)), Err(Refused::NotAVoter { node: node(1) }));
    assert_eq!(replica.transfer_leader(node(9)), Err(Refused::NotAVoter { node: node(9) }));
    replica.transfer_leader(node(2)).unwrap();
    let sent: Vec<_> = sync(&mut replica).into_iter().flat_map(|ready| ready.messages).collect();
    assert!(sent.iter().any(|message| message.body == Body::TimeoutNow));
    assert_eq!(replica.propose(batch(1)), Err(Refused::Transferring));
}

#[test]
fn only_what_is_applied_is_forgotten() {
    let mut replica = leader();
    replica.compact(2);
    assert_eq!(sent_to_a_silent_follower(&mut replica), Some(1));
    replica.applied(2);
    replica.compact(9);
    assert_eq!(sent_to_a_silent_follower(&mut replica), None);
}

#[test]
fn a_follower_that_needs_what_is_forgotten_gets_a_state() {
    let mut replica = leader();
    let old = replica.snapshot().unwrap();
    replica.applied(2);
    replica.compact(2);
    replica.step(&from(3, Body::HeartbeatSeen { commit: 0, read: None })).unwrap();
    let lagging: Vec<NodeId> = sync(&mut replica).into_iter().flat_map(|ready| ready.lagging).collect();
    assert_eq!(lagging, [node(3)]);

    let snapshot = replica.snapshot().unwrap();
    assert_eq!(replica.send_snapshot(node(3), &old), Err(Refused::SnapshotUnfit { index: 1 }));
    assert_eq!(replica.send_snapshot(node(2), &snapshot), Err(Refused::NotLagging { node: node(2) }));
    assert_eq!(replica.send_snapshot(node(9), &snapshot), Err(Refused::NotAMember { node: node(9) }));
    replica.send_snapshot(node(3), &snapshot).unwrap();
    let sent: Vec<Body> =
        sync(&mut replica).into_iter().flat_map(|ready| ready.messages).map(|message| message.body).collect();
    assert_eq!(sent, [Body::Snapshot(snapshot.clone())]);
    assert_eq!(replica.send_snapshot(node(3), &snapshot), Err(Refused::NotLagging { node: node(3) }));

    replica.transferred(node(3), false);
    replica.step(&from(3, Body::HeartbeatSeen { commit: 0, read: None })).unwrap();
    let lagging: Vec<NodeId> = sync(&mut replica).into_iter().flat_map(|ready| ready.lagging).collect();
    assert_eq!(lagging, [node(3)]);

    // A state with all of the log is enough, though no entry follows.
    let is_caught_up = |replica: &Replica| replica.followers().iter().all(|follower| follower.is_caught_up);
    replica.send_snapshot(node(3), &snapshot).unwrap();
    assert!(!is_caught_up(&replica));
    replica.step(&from(3, Body::Appended { index: 2, commit: 2 })).unwrap();
    assert!(is_caught_up(&replica));
}

#[test]
fn a_follower_that_has_said_nothing_is_not_taken_for_one_that_needs_a_state() {
    let mut replica = leader();
    let third = |replica: &Replica| replica.followers().into_iter().find(|it| it.node == node(3)).unwrap();
    assert_eq!((third(&replica).needs_state, third(&replica).is_known), (false, false));
    replica.step(&from(3, Body::HeartbeatSeen { commit: 0, read: None })).unwrap();
    assert!(third(&replica).is_heard && !third(&replica).is_fit_to_lead());

    replica.applied(2);
    replica.compact(2);
    assert!(third(&replica).needs_state);
    let snapshot = replica.snapshot().unwrap();
    replica.send_snapshot(node(3), &snapshot).unwrap();
    assert!(third(&replica).needs_state, "it is on its way");
    replica.step(&from(3, Body::Appended { index: 2, commit: 2 })).unwrap();
    assert_eq!((third(&replica).needs_state, third(&replica).is_known), (false, true));
    assert!(third(&replica).is_fit_to_lead());
}

#[test]
fn nothing_is_taken_or_acknowledged_while_a_state_is_installed() {
    let mut replica = start(3);
    let members = replica.snapshot().unwrap().members;
    let snapshot = Snapshot { position: Position { term: 1, index: 9 }, members };
    replica.step(&from(2, Body::Snapshot(snapshot.clone()))).unwrap();
    let ready = replica.ready().unwrap();
    let write = ready.write.unwrap();
    assert_eq!((write.install.as_ref(), write.must_sync, ready.messages), (Some(&snapshot), true, vec![]));

    let heartbeat = from(2, Body::Heartbeat { commit: 9, read: None });
    assert_eq!(replica.step(&heartbeat), Err(Rejected::Installing));
    (0..100).for_each(|_| replica.tick());
    assert_eq!((replica.ready(), replica.snapshot()), (None, None));

    replica.persisted(write.number);
    let answer = Body::Appended { index: 9, commit: 0 };
    assert_eq!(replica.ready().unwrap().messages.first().map(|message| &message.body), Some(&answer));
    assert_eq!(replica.snapshot(), Some(snapshot));
    replica.step(&heartbeat).unwrap();
}

/// Index behind which a follower that has acknowledged nothing is sent entries; `None`: it is sent none.
fn sent_to_a_silent_follower(replica: &mut Replica) -> Option<u64> {
    replica.step(&from(3, Body::HeartbeatSeen { commit: 0, read: None })).unwrap();
    let mut sent = sync(replica).into_iter().flat_map(|ready| ready.messages);
    sent.find_map(|message| match message.body {
        Body::Append { previous, .. } if message.to == node(3) => Some(previous.index),
        _ => None,
    })
}

#[test]
fn a_follower_whose_leader_is_lost_votes_at_once_and_campaigns_in_turn() {
    let heartbeat =
        || Message { from: node(2), to: node(1), term: 2, body: Body::Heartbeat { commit: 1, read: None } };
    let ask = || {
        let (last, commit) = (Position { term: 1, index: 1 }, Position::default());
        Message {
            from: node(3),
            to: node(1),
            term: 3,
            body: Body::AskVote { campaign: Campaign::Try, last, commit },
        }
    };
    let mut replica = start(3);
    replica.step(&heartbeat()).unwrap();
    sync(&mut replica);
    // A node that is not the leader.
    replica.lost(node(3));
    replica.step(&ask()).unwrap();
    assert!(sync(&mut replica).iter().all(|ready| ready.messages.is_empty()));

    replica.lost(node(2));
    replica.step(&ask()).unwrap();
    let answers: Vec<_> = sync(&mut replica).into_iter().flat_map(|ready| ready.messages).collect();
    assert!(
        matches!(answers[..], [Message { body: Body::Vote { is_granted: true, .. }, .. }]),
        "{answers:?}"
    );
    replica.tick();
    assert_eq!(replica.standing().role, Role::Candidate);

    // It lives: the follower waits as long as ever for its next word.
    replica.step(&heartbeat()).unwrap();
    replica.lost(node(2));
    replica.step(&heartbeat()).unwrap();
    (0..9).for_each(|_| replica.tick());
    assert_eq!(replica.standing().role, Role::Follower);
}

#[test]
fn numbers_that_another_cluster_gave_in_the_log_of_a_backup_are_free() {
    let position = Position { term: 1, index: 2 };
    let entries = vec![Entry { position, content: Content::Members(Change::Add(node(7))) }];
    let durable = |changed| Durable { entries: entries.clone(), changed, applied: 2, ..first(3) };
    let renewed = |changed| {
        let durable = Durable { has_forgotten: true, ..durable(changed) };
        Replica::new(&config(4), &durable, 1).map(drop)
    };
    assert_eq!(renewed(2), Ok(()), "the members hold all changes up to there");
    assert_eq!(renewed(1), Err(StartError::Forgetful { node: node(4) }));
}

#[test]
fn a_state_of_another_cluster_whose_backup_this_one_began_with_is_not_sent() {
    // A leader that is alone, and that began with the backup of a cluster of three at index 3.
    let entry = |index| Entry { position: Position { term: 1, index }, content: Content::Begin };
    let others = Members::new((1..=3).map(node).collect(), Vec::new(), 3).unwrap();
    let entries = vec![entry(2), entry(3)];
    let mut replica =
        Replica::new(&config(1), &Durable { entries, changed: 3, applied: 3, ..first(1) }, 1).unwrap();
    campaign(&mut replica);
    sync(&mut replica);
    replica.applied(4);
    replica.propose_members(Change::Add(node(2))).unwrap();
    sync(&mut replica);
    replica.applied(5);
    // A new node has nothing.
    let refused = Body::AppendRefused { previous: 4, hint: Position::default(), commit: 0 };
    replica.step(&from(2, refused)).unwrap();
    sync(&mut replica);

    for index in [2, 3] {
        let of_three = Snapshot { position: Position { term: 1, index }, members: others.clone() };
        assert_eq!(replica.send_snapshot(node(2), &of_three), Err(Refused::SnapshotUnfit { index }));
    }
    let snapshot = replica.snapshot().unwrap();
    assert_eq!((snapshot.position.index, snapshot.members.voters()), (5, &[node(1)][..]));
    replica.send_snapshot(node(2), &snapshot).unwrap();
}
