//! Three shards in one process, each over a member of one replicated log with a journal on disk. The log has
//! begun as that of one node.

mod damage;
mod room;
mod time;
mod waiting;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use sluice_engine::{Engine, Error};
use sluice_journal::{BlobRead, Commit, DiskJournal, FsDisk, Maintenance, Opened, Options, Writer};
use sluice_node::clock::{Clock, LogClock};
use sluice_node::mailbox::Mailbox;
use sluice_node::shard::recover::{knows, recover};
use sluice_node::shard::replicated::forgotten::Forgotten;
use sluice_node::shard::replicated::inbox::Inbox;
use sluice_node::shard::replicated::{self, Carrier, OWN_RECORDS, Replicated, work};
use sluice_node::shard::request::Request;
use sluice_node::shard::store::{Standing, Store};
use sluice_node::shard::{Parts, Shard, Step};
use sluice_replica::{
    BootId, Change, Config, Dropped, Envelope, Fetch, GROUP_BYTES, Members, Memory, NodeId, RECORD_BYTES_MAX,
    Rejected, Start, StateMessage, Work,
};

use crate::replicas::calls::{Answered, Client, Waiting};
use crate::rig::{KEY, SECOND_US, Time};
use room::SmallDisk;

const TICK_US: u64 = 50_000;

/// What a member has to send.
#[derive(Clone, Default)]
struct Outbox {
    envelopes: Arc<Mutex<Vec<Envelope>>>,
    fetches: Arc<Mutex<Vec<Fetch>>>,
    states: Arc<Mutex<Vec<StateMessage>>>,
    works: Arc<Mutex<Vec<Work>>>,
    /// Number of messages that were dropped for want of room.
    without_room: Arc<AtomicU64>,
}

impl Carrier for Outbox {
    fn send(&mut self, envelope: Envelope) {
        self.envelopes.lock().unwrap().push(envelope);
    }

    fn fetch(&mut self, fetch: Fetch) {
        self.fetches.lock().unwrap().push(fetch);
    }

    fn send_state(&mut self, message: StateMessage) {
        self.states.lock().unwrap().push(message);
    }

    fn work(&mut self, work: Work) {
        self.works.lock().unwrap().push(work);
    }

    fn members(&mut self, _members: &Members) {}

    fn dropped(&mut self, from: NodeId, why: Dropped) {
        match why {
            Dropped::Message(Rejected::Stale | Rejected::Installing) => {}
            Dropped::NoRoom => drop(self.without_room.fetch_add(1, Relaxed)),
            other => panic!("of {from:?}: {other:?}"),
        }
    }
}

struct Machine {
    shard: Shard<Replicated, Time>,
    mailbox: Mailbox<Request>,
    writer: Writer,
    maintenance: Maintenance,
    inbox: Arc<Inbox>,
    outbox: Outbox,
    /// True: nothing reaches it, and nothing that it says reaches others.
    is_cut_off: bool,
    /// True: its disk does not end what it has begun.
    is_hung: bool,
}

fn node(place: usize) -> NodeId {
    NodeId::new(place as u64 + 1).unwrap()
}

fn options(dir: &Path, commit: Commit) -> Options {
    Options {
        commit,
        segment_bytes: 16 << 10,
        cache_bytes: 1 << 20,
        reserve_bytes: room::RESERVE,
        low_water_bytes: 0,
        full_margin_bytes: room::MARGIN,
        knows: knows(),
        ..Options::new(dir)
    }
}

fn parts<S: Store>(
    engine: Engine,
    store: S,
    time: &Time,
    log_clock: LogClock,
) -> (Parts<S, Time>, Mailbox<Request>) {
    let mailbox = Mailbox::new(1 << 12);
    let parts = Parts {
        number: 0,
        engine,
        store,
        clock: time.clone(),
        log_clock,
        mailbox: mailbox.clone(),
        waiting_max: 100,
        events: Default::default(),
    };
    (parts, mailbox)
}

/// Lets one node begin a log, with as many messages.
fn begin_alone(dir: &Path, time: &Time, messages: usize) {
    let opened = DiskJournal::open(Arc::new(FsDisk), options(dir, Commit::Own)).unwrap();
    let Opened { mut journal, writer, snapshot, replay, report, .. } = opened;
    let engine = recover(snapshot, replay, &mut journal).unwrap();
    let log_clock = LogClock::start(time, report.last_time_us, true).unwrap();
    let (parts, mailbox) = parts(engine, journal, time, log_clock);
    let mut shard = Shard::new(parts);
    let limits = shard.engine().limits().clone();
    shard.begin(&limits, report.term, KEY);
    let client = Client { mailbox: &mailbox, now_us: 0, ticket: 1 };
    (0..messages).for_each(|message| drop(client.send("jobs", format!("<{message:07}>"), 0)));
    while shard.step() != Step::Idle || writer.step() {}
    writer.finish().unwrap();
    assert_eq!(shard.engine().totals().sent, messages as u64);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

impl Machine {
    fn open(disk: &SmallDisk, dir: &Path, time: &Time, id: NodeId, kept_bytes: u64) -> Machine {
        let opened = DiskJournal::open(Arc::new(disk.clone()), options(dir, Commit::Told)).unwrap();
        let Opened { mut journal, writer, maintenance, snapshot, replay, hard_state, report, .. } = opened;
        let engine = recover(snapshot, replay, &mut journal).unwrap();
        let (inbox, outbox) = (Arc::new(Inbox::new(Arc::new(|| {}))), Outbox::default());
        let of_store = replicated::Parts {
            // Members never rest: nobody tells them here of the silence of others.
            config: Config { id, heartbeat_ticks: 2, election_ticks: 10, quiet_ticks: usize::MAX },
            memory: Memory {
                boot: BootId([1; 16]),
                syncs_first: true,
                is_whole: report.end_known,
                has_failed: false,
            },
            forgotten: Forgotten::default(),
            seed: id.get(),
            kept_bytes,
            transfer_bytes: 1 << 30,
            inbox: Arc::clone(&inbox),
            carrier: Box::new(outbox.clone()),
        };
        let members = Members::new((0..3).map(node).collect(), Vec::new(), 3).unwrap();
        let start = Start::read(&journal, members, &hard_state, OWN_RECORDS, kept_bytes).unwrap();
        let store = Replicated::new(journal, writer.clone(), start, of_store).unwrap();
        let (parts, mailbox) = parts(engine, store, time, LogClock::follow(time, report.last_time_us));
        let shard = Shard::new(parts);
        Machine { shard, mailbox, writer, maintenance, inbox, outbox, is_cut_off: false, is_hung: false }
    }

    /// True when there was anything to do.
    fn work(&mut self) -> bool {
        let mut worked = !self.is_hung && self.writer.step();
        while self.shard.step() != Step::Idle {
            worked = true;
        }
        for fetch in std::mem::take(&mut *self.outbox.fetches.lock().unwrap()) {
            self.inbox.fetched(fetch.read());
            worked = true;
        }
        for given in std::mem::take(&mut *self.outbox.works.lock().unwrap()) {
            work::run(given, &self.inbox);
            worked = true;
        }
        worked
    }

    fn leads(&mut self) -> bool {
        matches!(self.shard.store().standing(), Standing::Leader { .. })
    }
}

struct Trio {
    dir: tempfile::TempDir,
    time: Time,
    kept_bytes: u64,
    /// Numbers of the machines.
    ids: [NodeId; 3],
    disks: Vec<SmallDisk>,
    machines: Vec<Machine>,
}

impl Trio {
    fn new(kept_bytes: u64) -> Trio {
        let (dir, time) = (tempfile::tempdir().unwrap(), Time::default());
        let first = dir.path().join("0");
        begin_alone(&first, &time, 3);
        (1..3).for_each(|place| copy(&first, &dir.path().join(place.to_string())));
        let ids = [0, 1, 2].map(node);
        let disks = (0..3).map(|_| SmallDisk::default()).collect();
        let mut trio = Trio { dir, time, kept_bytes, ids, disks, machines: Vec::new() };
        trio.machines = (0..3).map(|place| trio.open(place)).collect();
        trio
    }

    fn open(&self, place: usize) -> Machine {
        let dir = self.dir.path().join(place.to_string());
        Machine::open(&self.disks[place], &dir, &self.time, self.ids[place], self.kept_bytes)
    }

    /// The machine with this number; `None`: none has it any more.
    fn machine(&self, id: NodeId) -> Option<&Machine> {
        self.machines.get(self.ids.iter().position(|other| *other == id)?)
    }

    /// Works and delivers until nobody has anything to do.
    fn settle_down(&mut self) {
        for _ in 0..10_000 {
            let mut worked = false;
            for machine in &mut self.machines {
                worked |= machine.work();
            }
            for from in 0..3 {
                for envelope in std::mem::take(&mut *self.machines[from].outbox.envelopes.lock().unwrap()) {
                    worked = true;
                    let to = self.machine(envelope.message.to);
                    let to = to.filter(|to| !to.is_cut_off && !self.machines[from].is_cut_off);
                    to.iter().for_each(|to| to.inbox.envelope(envelope.clone()));
                }
                for message in std::mem::take(&mut *self.machines[from].outbox.states.lock().unwrap()) {
                    worked = true;
                    let to = self.machine(message.to);
                    let to = to.filter(|to| !to.is_cut_off && !self.machines[from].is_cut_off);
                    to.iter().for_each(|to| to.inbox.state(message.clone()));
                }
            }
            if !worked {
                return;
            }
        }
        panic!("they spin");
    }

    fn pass(&mut self, us: u64) {
        for _ in 0..us / TICK_US {
            self.time.advance(TICK_US);
            for machine in &mut self.machines {
                machine.inbox.tick();
                machine.maintenance.step(self.time.monotonic_us());
            }
            self.settle_down();
        }
    }

    /// The node that leads, after one was elected.
    fn leader(&mut self) -> usize {
        self.pass(3 * SECOND_US);
        let leads = |place: &usize| self.machines[*place].leads() && !self.machines[*place].is_cut_off;
        (0..3).find(leads).expect("a leader")
    }

    fn client(&self, place: usize) -> Client<'_> {
        let now_us = self.time.monotonic_us();
        Client { mailbox: &self.machines[place].mailbox, now_us, ticket: 1 }
    }

    fn answer(&mut self, mut call: Waiting) -> Answered {
        self.settle_down();
        call.answer().unwrap().expect("an answer")
    }

    fn send(&mut self, place: usize, count: usize) {
        for number in 0..count {
            let call = self.client(place).send("jobs", format!("<{number:07}>"), 0);
            let answer = self.answer(call);
            assert!(matches!(answer, Answered::Sent(Ok(_))));
        }
    }

    /// Sends messages, three at a time, and settles them.
    fn send_and_ack(&mut self, place: usize, times: usize) {
        for _ in 0..times {
            self.send(place, 3);
            let call = self.client(place).pull("jobs", 0);
            let Answered::Given(Ok(given)) = self.answer(call) else { panic!("it leads") };
            for given in given {
                let call = self.client(place).ack(given.delivery.receipt);
                assert!(matches!(self.answer(call), Answered::Settled(Ok(()))));
            }
        }
    }

    fn check_equal(&mut self) {
        self.pass(SECOND_US);
        let of =
            |machine: &Machine| (machine.shard.engine().applied_index(), machine.shard.engine().digest());
        let states: Vec<_> = self.machines.iter().map(of).collect();
        assert!(states.iter().all(|state| *state == states[0]), "{states:?}");
    }

    /// Ends a node, and starts it again.
    fn restart(&mut self, place: usize) {
        drop(self.machines.remove(place));
        let machine = self.open(place);
        self.machines.insert(place, machine);
    }

    /// Lets the leader change the members.
    fn change(&mut self, leader: usize, change: Change) {
        self.machines[leader].shard.store().member().propose_members(change).unwrap();
        self.pass(5 * SECOND_US);
    }

    /// Takes a snapshot on a node, and waits until it is in place.
    fn snapshot(&mut self, place: usize) {
        let journal = self.machines[place].shard.store().member().journal_mut();
        let before = journal.status().snapshots;
        journal.request_snapshot();
        self.pass(SECOND_US);
        assert_eq!(self.machines[place].shard.store().status().snapshots, before + 1);
    }
}

#[test]
fn a_log_of_one_node_goes_on_as_that_of_three() {
    let mut trio = Trio::new(1 << 30);
    let leader = trio.leader();
    trio.send(leader, 10);
    let call = trio.client(leader).count(13);
    assert!(matches!(trio.answer(call), Answered::Counted(Ok(13))));
    let follower = (leader + 1) % 3;
    let call = trio.client(follower).count(0);
    let Answered::Counted(Err(error)) = trio.answer(call) else { panic!("a follower has answered") };
    assert_eq!(error, Error::NotLeader { leader: node(leader).get() });
    trio.check_equal();
    // All of them come back with what they had.
    (0..3).for_each(|place| trio.restart(place));
    let leader = trio.leader();
    let call = trio.client(leader).count(13);
    assert!(matches!(trio.answer(call), Answered::Counted(Ok(13))));
    trio.check_equal();
}

#[test]
fn a_leader_that_is_cut_off_answers_nothing_from_its_state() {
    let mut trio = Trio::new(1 << 30);
    let old = trio.leader();
    trio.machines[old].is_cut_off = true;
    let mut count = trio.client(old).count(0);
    let mut send = trio.client(old).send("jobs", "<0000001>".to_owned(), 0);
    let new = trio.leader();
    assert_ne!(old, new);
    trio.send(new, 1);
    assert!(count.answer().unwrap().is_none());
    trio.machines[old].is_cut_off = false;
    trio.pass(SECOND_US);
    let named = Error::NotLeader { leader: node(new).get() };
    assert!(matches!(count.answer().unwrap(), Some(Answered::Counted(Err(error))) if error == named));
    let Some(Answered::Sent(Err(error))) = send.answer().unwrap() else { panic!("it was overwritten") };
    assert!(error == named || error == Error::NoLeader {}, "{error:?}");
    trio.check_equal();
}

#[test]
fn a_leader_whose_disk_hangs_for_a_second_hands_over() {
    let mut trio = Trio::new(1 << 30);
    let old = trio.leader();
    trio.machines[old].is_hung = true;
    drop(trio.client(old).send("jobs", "<0000001>".to_owned(), 0));
    trio.pass(SECOND_US + 2 * TICK_US);
    assert!(!trio.machines[old].leads());
    let new = (0..3).find(|place| trio.machines[*place].leads()).expect("another leads by now");
    trio.send(new, 1);
    trio.machines[old].is_hung = false;
    trio.check_equal();
    assert_eq!(trio.leader(), new);
}

#[test]
fn a_follower_gets_what_it_missed_from_the_log_that_is_kept() {
    let mut trio = Trio::new(1 << 30);
    let leader = trio.leader();
    let behind = (leader + 1) % 3;
    trio.machines[behind].is_cut_off = true;
    for _ in 0..3 {
        trio.send(leader, 150);
        trio.snapshot(leader);
    }
    // The leader begins again with a snapshot, and still has the log before it.
    trio.restart(leader);
    let leader = trio.leader();
    trio.machines[behind].is_cut_off = false;
    trio.send(leader, 1);
    trio.check_equal();
}

#[test]
fn a_leader_forgets_what_followers_have_and_its_snapshot_covers() {
    let mut trio = Trio::new(16 << 10);
    let leader = trio.leader();
    let behind = |trio: &mut Trio| {
        trio.machines[leader].shard.store().member().journal().before_last(u64::MAX, u64::MAX).0
    };
    for _ in 0..3 {
        assert_eq!(behind(&mut trio), 0);
        trio.send_and_ack(leader, 50);
    }
    trio.snapshot(leader);
    trio.pass(SECOND_US);
    assert!(behind(&mut trio) > 0);
    trio.restart(leader);
    let leader = trio.leader();
    trio.send(leader, 1);
    trio.check_equal();
}

/// Lets the leader forget what the follower needs, and returns both.
fn one_far_behind(trio: &mut Trio) -> (usize, usize) {
    let leader = trio.leader();
    let behind = (leader + 1) % 3;
    trio.machines[behind].is_cut_off = true;
    for _ in 0..3 {
        trio.send_and_ack(leader, 50);
        trio.send(leader, 5);
        trio.snapshot(leader);
    }
    let first = trio.machines[leader].shard.store().member().journal().before_last(u64::MAX, u64::MAX).0;
    assert!(first > trio.machines[behind].shard.engine().applied_index());
    (leader, behind)
}

/// Lets this node lead, and reads all messages there: those that were sent while it was away too.
fn check_payloads(trio: &mut Trio, place: usize) {
    let id = trio.ids[place];
    trio.machines.iter().for_each(|machine| machine.inbox.transfer_leader(id));
    assert_eq!(trio.leader(), place);
    let mut read = 0;
    loop {
        let call = trio.client(place).pull("jobs", 0);
        let Answered::Given(Ok(given)) = trio.answer(call) else { panic!("it leads") };
        if given.is_empty() {
            break;
        }
        read += given.len();
        given.into_iter().for_each(|given| check_payload(given.blob));
    }
    assert!(read >= 15, "{read}");
}

fn check_payload(blob: BlobRead) {
    let bytes = match blob {
        BlobRead::Cached(bytes) => bytes,
        BlobRead::OnDisk(location) => location.read().unwrap(),
        BlobRead::Missing => panic!("a message has no payload"),
    };
    assert!(bytes.windows(9).any(|part| part.starts_with(b"<00") && part.ends_with(b">")), "{bytes:?}");
}

#[test]
fn a_follower_gets_a_state_when_what_it_missed_is_gone_and_can_lead_then() {
    let mut trio = Trio::new(16 << 10);
    let (leader, behind) = one_far_behind(&mut trio);
    trio.machines[behind].is_cut_off = false;
    trio.pass(5 * SECOND_US);
    trio.send(leader, 1);
    trio.check_equal();
    trio.restart(behind);
    trio.check_equal();
    check_payloads(&mut trio, behind);
}

#[test]
fn a_node_that_begins_with_nothing_gets_all_of_it_and_can_lead_then() {
    let mut trio = Trio::new(16 << 10);
    let (leader, lost) = one_far_behind(&mut trio);
    std::fs::remove_dir_all(trio.dir.path().join(lost.to_string())).unwrap();
    let old = std::mem::replace(&mut trio.ids[lost], node(3));
    trio.restart(lost);
    let new = trio.ids[lost];
    trio.change(leader, Change::Replace { old, new });
    trio.send(leader, 1);
    trio.check_equal();
    trio.change(leader, Change::Promote(new));
    check_payloads(&mut trio, lost);
    trio.check_equal();
}

#[test]
fn a_caller_whose_record_a_state_may_cover_hears_that_its_outcome_is_unknown() {
    let mut trio = Trio::new(0);
    let old = trio.leader();
    trio.machines[old].is_cut_off = true;
    let mut send = trio.client(old).send("jobs", "<0000001>".to_owned(), 0);
    let new = trio.leader();
    let known = trio.machines[old].shard.store().member().journal().next_number();
    while trio.machines[new].shard.store().member().journal().before_last(0, u64::MAX).0 <= known {
        trio.send(new, 3);
    }
    trio.snapshot(new);
    assert!(send.answer().unwrap().is_none(), "it waits for its outcome");
    trio.machines[old].is_cut_off = false;
    trio.pass(2 * SECOND_US);
    let Some(Answered::Sent(Err(error))) = send.answer().unwrap() else { panic!("nobody knows it") };
    assert_eq!(error, Error::OutcomeUnknown {});
    trio.check_equal();
}

#[test]
fn large_records_are_agreed_on_and_larger_ones_are_refused_for_good() {
    let mut trio = Trio::new(1 << 30);
    let leader = trio.leader();
    let behind = (leader + 1) % 3;
    trio.machines[behind].is_cut_off = true;
    let large = |bytes: u64| "p".repeat(bytes as usize - 1_000);
    for bytes in [GROUP_BYTES + 1, RECORD_BYTES_MAX] {
        // Both are in one batch.
        let calls = [GROUP_BYTES, bytes].map(|bytes| trio.client(leader).send("large", large(bytes), 0));
        for call in calls {
            let answer = trio.answer(call);
            assert!(matches!(answer, Answered::Sent(Ok(_))));
        }
    }
    let call = trio.client(leader).send("large", large(RECORD_BYTES_MAX + 2_000), 0);
    let Answered::Sent(Err(error)) = trio.answer(call) else { panic!("it is too large") };
    assert!(matches!(error, Error::BatchTooLarge { limit: RECORD_BYTES_MAX, .. }), "{error:?}");
    // They are read back for the one that comes later.
    trio.machines[behind].is_cut_off = false;
    trio.check_equal();
}
