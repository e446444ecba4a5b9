//! Callers that wait for locks: they are served, told when their time is over, and leave nothing behind when
//! they go.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use sluice_engine::command::LockAcquire;
use sluice_engine::locks::{LockGrant, LockMode, LockView};
use sluice_engine::{Command, Error, NamespaceId};
use sluice_node::clock::Clock as _;
use sluice_node::shard::Step;
use sluice_node::shard::request::{Acquiring, Granted, Request};
use tokio::sync::oneshot;

use crate::rig::{Rig, SECOND_US, START_US};

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;

pub type Reply = oneshot::Receiver<Result<Granted, Error>>;

pub fn acquire(rig: &mut Rig, ticket: u64, ttl_ms: u32, wait_s: u64) -> Reply {
    let acquire = LockAcquire {
        namespace: NAMESPACE,
        keys: &["k"],
        owner: "o",
        mode: LockMode::Exclusive,
        ttl_ms,
        wait_ms: 0,
        if_absent: false,
        request: [0, ticket],
    };
    let (reply, receiver) = oneshot::channel();
    let acquiring = Acquiring::new(ticket, acquire, Duration::from_secs(wait_s), reply);
    rig.mailbox.push(Request::Acquire(Box::new(acquiring))).unwrap();
    rig.settle_down();
    receiver
}

fn granted(reply: &mut Reply) -> LockGrant {
    reply.try_recv().unwrap().unwrap().grant
}

fn release(rig: &mut Rig, grant: LockGrant) {
    let answer = rig.answer(&Command::LockRelease { namespace: NAMESPACE, token: grant.token });
    assert!(answer.result.is_ok(), "{answer:?}");
}

fn view(rig: &Rig) -> Option<LockView> {
    rig.shard.engine().lock(NAMESPACE, "k", 10)
}

fn counts(rig: &Rig) -> (u32, u32) {
    view(rig).map_or((0, 0), |view| (view.holder_count, view.waiter_count))
}

#[test]
fn those_that_wait_are_served_in_turn_and_have_their_whole_time() {
    let mut rig = Rig::new(16);
    let first = granted(&mut acquire(&mut rig, 1, 5_000, 0));
    let [mut short, mut long] = [(2, 5_000), (3, 60_000)].map(|(at, ttl)| acquire(&mut rig, at, ttl, 20));
    assert_eq!(counts(&rig), (1, 2));
    assert!(short.try_recv().is_err() && long.try_recv().is_err());
    rig.time.advance(SECOND_US);
    release(&mut rig, first);
    let second = granted(&mut short);
    assert!(second.token.number > first.token.number && long.try_recv().is_err());
    assert_eq!(second.until_us, START_US + rig.time.monotonic_us() + 5 * SECOND_US);
    release(&mut rig, second);
    assert_eq!(granted(&mut long).until_us, START_US + rig.time.monotonic_us() + 60 * SECOND_US);
    assert_eq!(counts(&rig), (1, 0));
}

#[test]
fn a_wait_ends_at_its_time_and_not_before() {
    let mut rig = Rig::new(16);
    granted(&mut acquire(&mut rig, 1, 1_800_000, 0));
    let (mut short, mut long) = (acquire(&mut rig, 2, 1_000, 2), acquire(&mut rig, 3, 1_000, 100));
    rig.pass(SECOND_US);
    assert!(short.try_recv().is_err());
    rig.pass(2 * SECOND_US);
    let Err(Error::LockHeld { key, owner, waiting }) = short.try_recv().unwrap() else { panic!() };
    assert_eq!((key.as_str(), owner.as_str(), waiting), ("k", "o", 1));
    rig.pass(96 * SECOND_US);
    assert!(long.try_recv().is_err(), "longer than a claim waits by itself");
    rig.pass(2 * SECOND_US);
    assert!(matches!(long.try_recv().unwrap(), Err(Error::LockHeld { .. })));
    assert_eq!(counts(&rig), (1, 0));
}

#[test]
fn who_goes_leaves_nothing_behind() {
    let mut rig = Rig::new(16);
    let first = granted(&mut acquire(&mut rig, 1, 1_800_000, 0));
    // In the line.
    drop(acquire(&mut rig, 2, 1_000, 100));
    rig.mailbox.push_surely(Request::Cancel { ticket: 2 });
    rig.settle_down();
    assert_eq!(counts(&rig), (1, 0));
    // Before its claim is made, and while it is.
    for is_made in [false, true] {
        rig.held.store(is_made, Relaxed);
        let reply = acquire(&mut rig, 3, 1_000, 100);
        drop(reply);
        rig.mailbox.push_surely(Request::Cancel { ticket: 3 });
        rig.held.store(false, Relaxed);
        rig.settle_down();
        assert_eq!(counts(&rig), (1, 0), "{is_made}");
    }
    // In the moment of the grant: its leaving is in the log behind the release.
    for ttl_ms in [1_000, 60_000] {
        let reply = acquire(&mut rig, 4, ttl_ms, 100);
        let holder = view(&rig).unwrap().holders[0].number;
        rig.held.store(true, Relaxed);
        let release = Command::LockBreak { namespace: NAMESPACE, key: "k" };
        rig.mailbox.push_surely(Request::surely(&release));
        rig.settle_down();
        drop(reply);
        rig.mailbox.push_surely(Request::Cancel { ticket: 4 });
        rig.settle_down();
        rig.held.store(false, Relaxed);
        rig.settle_down();
        assert_eq!(counts(&rig), (0, 0));
        let next = granted(&mut acquire(&mut rig, 5, 1_000_000, 0));
        assert!(next.token.number > holder);
    }
    assert!(view(&rig).unwrap().holders[0].number > first.token.number);
}

#[test]
fn a_claim_whose_node_is_gone_is_found_by_who_asks_again() {
    let mut rig = Rig::new(16);
    let first = granted(&mut acquire(&mut rig, 1, 1_800_000, 0));
    let mut former = acquire(&mut rig, 2, 5_000, 20);
    let _behind = acquire(&mut rig, 3, 5_000, 20);
    let mut again = acquire(&mut rig, 2, 5_000, 20);
    assert!(matches!(former.try_recv().unwrap(), Err(Error::OutcomeUnknown {})));
    assert_eq!(counts(&rig), (1, 2));
    release(&mut rig, first);
    let grant = granted(&mut again);
    let told_again = granted(&mut acquire(&mut rig, 2, 5_000, 0));
    assert_eq!(told_again.token, grant.token, "what was lost is told again");
}

#[test]
fn a_stop_answers_those_that_wait_and_keeps_their_places() {
    let mut rig = Rig::new(16);
    let mut holder = acquire(&mut rig, 1, 1_800_000, 0);
    let mut waiting = acquire(&mut rig, 2, 5_000, 20);
    rig.mailbox.push_surely(Request::Stop);
    while rig.shard.step() != Step::Stopped {}
    assert!(granted(&mut holder).until_us > 0);
    assert_eq!(waiting.try_recv().unwrap().unwrap_err(), Error::OutcomeUnknown {});
    assert_eq!(counts(&rig), (1, 1));
}

#[test]
fn who_goes_takes_nothing_from_who_has_made_the_same_request_again() {
    let mut rig = Rig::new(16);
    for ttl_ms in [5_000, 60_000] {
        let first = granted(&mut acquire(&mut rig, 1, 1_800_000, 0));
        // The former caller goes when its claim is granted already, and before it has the answer.
        rig.held.store(true, Relaxed);
        let former = acquire(&mut rig, 2, ttl_ms, 20);
        rig.held.store(false, Relaxed);
        rig.settle_down();
        rig.held.store(true, Relaxed);
        rig.mailbox.push_surely(Request::surely(&Command::LockBreak { namespace: NAMESPACE, key: "k" }));
        rig.settle_down();
        let mut again = acquire(&mut rig, 2, ttl_ms, 20);
        drop(former);
        rig.mailbox.push_surely(Request::Cancel { ticket: 2 });
        rig.held.store(false, Relaxed);
        rig.settle_down();
        let grant = granted(&mut again);
        rig.pass(SECOND_US);
        assert!(grant.token.number > first.token.number);
        assert_eq!(view(&rig).unwrap().holders[0].number, grant.token.number);
        release(&mut rig, grant);
    }
}

#[test]
fn the_claim_of_a_caller_who_may_ask_again_stays_in_its_line() {
    let mut rig = Rig::new(16);
    let first = granted(&mut acquire(&mut rig, 1, 1_800_000, 0));
    drop(acquire(&mut rig, 2, 5_000, 20));
    rig.mailbox.push_surely(Request::Forget { ticket: 2 });
    let _behind = acquire(&mut rig, 3, 5_000, 20);
    assert_eq!(counts(&rig), (1, 2));
    let mut again = acquire(&mut rig, 2, 5_000, 20);
    release(&mut rig, first);
    assert!(granted(&mut again).until_us > 0);
}
