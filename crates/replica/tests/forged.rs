//! Messages that no honest node sends are refused, and never stop the process.
#![allow(clippy::unwrap_used)] // A test that fails says where.

use sluice_replica::{
    Body, Campaign, Change, Config, Content, Descriptor, Durable, Entry, HardState, Members, Message, NodeId,
    PROTOCOL_NEWEST, Position, ReadId, Rejected, Replica, Role, Snapshot, StartError, wire,
};

fn node(id: u64) -> NodeId {
    NodeId::new(id).unwrap()
}

fn entry(term: u64, index: u64) -> Entry {
    let batch = Descriptor { first_record: index, records: 1, time_us: 0, bytes: 10, checksum: 0 };
    Entry { position: Position { term, index }, content: Content::Batch(batch) }
}

fn config() -> Config {
    Config { id: node(1), heartbeat_ticks: 2, election_ticks: 10, quiet_ticks: 40 }
}

fn members(voters: &[u64]) -> Members {
    Members::new(voters.iter().copied().map(node).collect(), Vec::new(), 3).unwrap()
}

/// A follower in term 4 with four entries behind its base, of which two are committed.
fn durable() -> Durable {
    let hard_state = HardState { term: 4, vote: None, commit: 3 };
    let entries = [1, 2, 3, 3].into_iter().zip(2..).map(|(term, index)| entry(term, index)).collect();
    Durable { hard_state, entries, ..Durable::first(members(&[1, 2, 3])) }
}

fn follower() -> Replica {
    Replica::new(&config(), &durable(), 1).unwrap()
}

fn message(term: u64, body: Body) -> Message {
    Message { from: node(2), to: node(1), term, body }
}

fn sync(replica: &mut Replica) -> Vec<Message> {
    let mut messages = Vec::new();
    while let Some(ready) = replica.ready() {
        messages.extend(ready.messages);
        ready.write.iter().for_each(|write| replica.persisted(write.number));
    }
    messages
}

/// A leader of term 5 whose followers have acknowledged nothing.
fn leader() -> Replica {
    let mut replica = follower();
    while replica.standing().role == Role::Follower {
        replica.tick();
    }
    for is_try in [true, false] {
        sync(&mut replica);
        let body = Body::Vote { is_try, is_granted: true, commit: Position::default() };
        replica.step(&message(5, body)).unwrap();
    }
    sync(&mut replica);
    assert_eq!(replica.standing().role, Role::Leader);
    replica
}

#[test]
fn a_follower_refuses_what_contradicts_its_state() {
    let at = |term, index| Position { term, index };
    let append = |previous, entries| Body::Append { previous, commit: 3, entries };
    let ask = |last, commit| Body::AskVote { campaign: Campaign::Election, last, commit };
    let state = |position, voters| Body::Snapshot(Snapshot { position, members: members(voters) });
    let cases = [
        (0, Body::TimeoutNow, Rejected::Term { term: 0 }),
        (u64::MAX, Body::TimeoutNow, Rejected::Term { term: u64::MAX }),
        (5, Body::TimeoutNow, Rejected::Term { term: 5 }),
        (4, Body::Heartbeat { commit: 6, read: None }, Rejected::CommitBeyondLog { commit: 6, last: 5 }),
        (4, append(at(3, 5), vec![entry(4, 7)]), Rejected::Entry(at(4, 7))),
        (4, append(at(3, 5), vec![entry(2, 6)]), Rejected::Entry(at(2, 6))),
        (4, append(at(3, 5), vec![entry(5, 6)]), Rejected::Term { term: 5 }),
        (4, append(at(0, 5), vec![]), Rejected::Term { term: 0 }),
        (4, append(at(3, u64::MAX), vec![]), Rejected::Index { index: u64::MAX }),
        (4, append(at(0, 0), vec![]), Rejected::Index { index: 0 }),
        (4, state(at(5, 5), &[1, 2]), Rejected::Term { term: 5 }),
        (4, state(at(0, 0), &[1, 2]), Rejected::Index { index: 0 }),
        (4, state(at(3, 3), &[1, 2]), Rejected::Index { index: 3 }),
        (4, state(at(4, 9), &[2, 3]), Rejected::NotInSnapshot),
        (5, ask(at(5, 5), at(1, 1)), Rejected::Term { term: 5 }),
        (5, ask(at(3, 5), at(3, 6)), Rejected::Index { index: 6 }),
    ];
    for (term, body, reason) in cases {
        let message = message(term, body);
        assert_eq!(follower().step(&message), Err(reason), "{message:?}");
    }
}

#[test]
fn strangers_and_messages_of_others_are_refused() {
    let heartbeat = message(4, Body::Heartbeat { commit: 0, read: None });
    let forged = Message { from: node(1), ..heartbeat.clone() };
    assert_eq!(follower().step(&forged), Err(Rejected::UnknownSender { from: node(1) }));
    // A leader may be newer than the members that are known; who answers is one of them.
    let newer = Message { from: node(4), ..heartbeat.clone() };
    assert_eq!(follower().step(&newer), Ok(()));
    let answer = Message { from: node(4), ..message(4, Body::Appended { index: 5, commit: 0 }) };
    assert_eq!(follower().step(&answer), Err(Rejected::UnknownSender { from: node(4) }));
    let lost = Message { to: node(3), ..heartbeat.clone() };
    assert_eq!(follower().step(&lost), Err(Rejected::NotForUs { to: node(3) }));
    let mut replica = follower();
    replica.step(&heartbeat).unwrap();
    let second = Message { from: node(3), ..heartbeat };
    assert_eq!(replica.step(&second), Err(Rejected::SecondLeader { from: node(3) }));
}

#[test]
fn a_leader_refuses_acknowledgements_beyond_its_log_and_stale_refusals() {
    let mut replica = leader();
    let beyond = message(5, Body::Appended { index: 7, commit: 0 });
    assert_eq!(replica.step(&beyond), Err(Rejected::IndexBeyondLog { index: 7, last: 6 }));
    replica.step(&message(5, Body::Appended { index: 6, commit: 3 })).unwrap();
    let hint = Position { term: 3, index: 4 };
    let stale = message(5, Body::AppendRefused { previous: 5, hint, commit: 3 });
    assert_eq!(replica.step(&stale), Err(Rejected::Stale));
}

#[test]
fn a_vote_does_not_make_a_leader_before_its_own_vote_is_synced() {
    let mut replica = follower();
    while replica.standing().role == Role::Follower {
        replica.tick();
    }
    sync(&mut replica);
    let vote = |is_try| Body::Vote { is_try, is_granted: true, commit: Position::default() };
    replica.step(&message(5, vote(true))).unwrap();
    assert_eq!(replica.step(&message(5, vote(false))), Err(Rejected::Stale));
}

#[test]
fn a_state_that_contradicts_itself_does_not_start() {
    let start = |change: fn(&mut Durable)| {
        let mut durable = durable();
        change(&mut durable);
        Replica::new(&config(), &durable, 1).err()
    };
    assert_eq!(
        start(|state| state.hard_state.term = 2),
        Some(StartError::Entry(Position { term: 3, index: 5 }))
    );
    assert_eq!(
        start(|state| state.entries[0] = entry(2, 3)),
        Some(StartError::Entry(Position { term: 2, index: 3 }))
    );
    let outside = |applied, base| Some(StartError::AppliedOutsideLog { applied, base, last: 5 });
    assert_eq!(start(|state| state.applied = 6), outside(6, 1));
    assert_eq!(start(|state| state.base = Snapshot::default()), Some(StartError::Members));
    assert_eq!(start(|state| state.base.members = Members::default()), Some(StartError::Members));
    assert_eq!(
        start(|state| {
            state.entries.drain(..1);
            (state.base.position, state.applied) = (Position { term: 1, index: 2 }, 1);
        }),
        outside(1, 2)
    );
    assert_eq!(start(|state| state.hard_state.commit = 9), None);
}

struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Mostly a number that could be right, now and then one that cannot.
    fn number(&mut self) -> u64 {
        if self.below(40) == 0 { u64::MAX - self.below(3) } else { self.below(9) }
    }

    fn position(&mut self) -> Position {
        Position { term: self.number(), index: self.number() }
    }

    fn message(&mut self, near_term: u64) -> Message {
        let read = (self.below(2) == 0).then(|| ReadId(self.number()));
        let campaign = [Campaign::Try, Campaign::Election, Campaign::Transfer][self.below(3) as usize];
        let previous = self.position();
        let entries = (1..=self.below(4)).map(|step| {
            let made =
                entry(previous.term.saturating_add(self.below(2)), previous.index.saturating_add(step));
            let change = [Change::Add(node(4)), Change::Remove(node(1)), Change::Demote(node(2))];
            match self.below(8) {
                0 => Entry { content: Content::Members(change[self.below(3) as usize]), ..made },
                _ => made,
            }
        });
        let entries: Vec<Entry> = entries.collect();
        let body = match self.below(10) {
            0 | 1 => Body::Append { previous, commit: self.number(), entries },
            2 => Body::Appended { index: self.number(), commit: self.number() },
            3 => {
                Body::AppendRefused { previous: self.number(), hint: self.position(), commit: self.number() }
            }
            4 => Body::Heartbeat { commit: self.number(), read },
            5 => Body::HeartbeatSeen { commit: self.number(), read },
            6 => Body::AskVote { campaign, last: self.position(), commit: self.position() },
            7 => {
                let (is_try, is_granted) = (self.below(2) == 0, self.below(4) > 0);
                Body::Vote { is_try, is_granted, commit: self.position() }
            }
            8 => Body::TimeoutNow,
            _ => Body::Snapshot(Snapshot { position: previous, members: members(&[1, 2]) }),
        };
        let term = if self.below(20) == 0 { self.number() } else { near_term + self.below(3) - 1 };
        Message { from: node(1 + self.below(4)), to: node(1), term, body }
    }
}

#[test]
fn noise_never_stops_a_replica() {
    let (mut taken, mut refused, mut led) = (0, 0, 0);
    for seed in 0..4_000 {
        let mut noise = Noise(seed);
        let mut replica = if noise.below(2) == 0 { leader() } else { follower() };
        for _ in 0..60 {
            let message = noise.message(replica.standing().term);
            let mut bytes = Vec::new();
            wire::encode(&message, PROTOCOL_NEWEST, &mut bytes);
            match replica.step(&message) {
                Ok(()) => taken += 1,
                Err(_) => refused += 1,
            }
            match noise.below(8) {
                0 => (0..noise.below(25)).for_each(|_| replica.tick()),
                1 => drop(replica.propose(entry(0, 0).batch().unwrap())),
                2 => drop(replica.read_index()),
                3 => drop(replica.transfer_leader(node(2))),
                4 => {
                    replica.applied(noise.below(9));
                    replica.compact(noise.below(9));
                }
                5 => {
                    let (old, new) = (node(1 + noise.below(3)), node(4 + noise.below(4)));
                    let changes = [Change::Add(new), Change::Remove(old), Change::Replace { old, new }];
                    let _ = replica.propose_members(changes[noise.below(3) as usize]);
                }
                _ => {}
            }
            if noise.below(2) == 0 {
                sync(&mut replica);
            }
            assert_eq!(replica.audit(), Ok(()), "{message:?}");
            led += u32::from(replica.standing().role == Role::Leader);
        }
    }
    assert!(taken > 10_000 && refused > 10_000 && led > 1_000, "{taken} {refused} {led}");
}
