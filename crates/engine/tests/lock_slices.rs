//! Many claims that end, are granted or are swept at once do not stall anybody: each apply handles a slice,
//! and the next is due at once; also in an engine that is restored between two slices.

#![allow(clippy::unwrap_used)]

mod common;

use common::Driver;
use sluice_engine::command::LockAcquire;
use sluice_engine::id::{LockTicket, LockToken, NamespaceId};
use sluice_engine::limits::LOCK_KEYS_MAX;
use sluice_engine::locks::LockMode;
use sluice_engine::outcome::Reply;
use sluice_engine::settings::Quotas;
use sluice_engine::{BEHAVIOUR_VERSION, Command, Engine, ReceiptKey};

const START_US: u64 = 1_700_000_000_000_000;
/// Most places of claims that one record may end or grant, and those of one claim more.
const SLICE: usize = 256 + LOCK_KEYS_MAX;

fn driver() -> Driver {
    let mut driver = Driver::new();
    driver.apply(START_US, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    driver.apply(START_US, &Command::ReceiptKey(ReceiptKey([7; 16])));
    driver
}

/// Asks for locks for a minute, waiting for ten seconds.
fn acquire(driver: &mut Driver, namespace: NamespaceId, keys: &[&str], mode: LockMode) -> Reply {
    let (ttl_ms, wait_ms) = (60_000, 10_000);
    let acquire =
        LockAcquire { namespace, keys, owner: "", mode, ttl_ms, wait_ms, if_absent: false, request: [0; 2] };
    driver.apply(START_US, &Command::LockAcquire(acquire));
    assert_eq!(driver.out.error, None);
    driver.out.reply
}

fn held(reply: Reply) -> LockToken {
    let Reply::LockGranted { grant } = reply else { panic!("{reply:?}") };
    grant.token
}

fn waiting(reply: Reply) -> LockTicket {
    let Reply::LockWaits { ticket, .. } = reply else { panic!("{reply:?}") };
    ticket
}

fn restart(driver: &mut Driver) {
    let mut bytes = Vec::new();
    driver.engine.snapshot_begin();
    while !driver.engine.snapshot_step(1_000, &mut bytes) {}
    let mut piece = Some(bytes);
    driver.engine = Engine::restore(&mut || piece.take()).unwrap();
}

/// Ticks until nothing is due, by engines that are restored each time; `each` sees what came of each tick,
/// and the first is what came of the record before.
fn tick_all(driver: &mut Driver, now_us: u64, mut each: impl FnMut(&Driver)) -> usize {
    each(driver);
    let mut ticks = 0;
    while driver.engine.next_deadline().is_some_and(|due_us| due_us <= now_us) {
        restart(driver);
        driver.apply(now_us, &Command::Tick);
        driver.engine.recount().unwrap();
        each(driver);
        ticks += 1;
    }
    ticks
}

#[test]
fn readers_behind_a_writer_are_granted_in_slices_and_in_order() {
    let mut driver = driver();
    let token = held(acquire(&mut driver, NamespaceId::DEFAULT, &["k"], LockMode::Exclusive));
    let mut line = Vec::new();
    for _ in 0..900 {
        line.push(waiting(acquire(&mut driver, NamespaceId::DEFAULT, &["k"], LockMode::Shared)));
    }
    driver.apply(START_US, &Command::LockRelease { namespace: NamespaceId::DEFAULT, token });
    let mut granted = Vec::new();
    let ticks = tick_all(&mut driver, START_US, |driver| {
        assert!(driver.out.locks.len() <= SLICE, "{} at once", driver.out.locks.len());
        granted.extend(driver.out.locks.iter().filter(|told| told.grant.is_some()).map(|told| told.ticket));
    });
    assert!(granted == line && ticks >= 3, "{} of {} in {ticks} ticks", granted.len(), line.len());
}

#[test]
fn claims_of_many_keys_end_in_slices_of_their_places() {
    let mut driver = driver();
    let names: Vec<String> = (0..LOCK_KEYS_MAX).map(|number| format!("k{number}")).collect();
    let keys: Vec<&str> = names.iter().map(String::as_str).collect();
    held(acquire(&mut driver, NamespaceId::DEFAULT, &keys, LockMode::Exclusive));
    for _ in 0..100 {
        waiting(acquire(&mut driver, NamespaceId::DEFAULT, &keys, LockMode::Exclusive));
    }
    let mut ended = 0;
    let now_us = START_US + 11_000_000;
    driver.apply(now_us, &Command::Tick);
    tick_all(&mut driver, now_us, |driver| {
        let count = driver.out.locks.len();
        assert!(count * LOCK_KEYS_MAX <= SLICE, "{count} claims at once");
        ended += count;
    });
    assert_eq!(ended, 100);
}

#[test]
fn a_deleted_namespace_is_gone_when_all_of_its_claims_are() {
    let mut driver = driver();
    let (name, quotas) = ("shop", Quotas::default());
    let create = Command::NamespaceCreate { number: None, name, shard: 0, quotas };
    driver.apply(START_US, &create);
    let Reply::Namespace { namespace } = driver.out.reply else { panic!("{:?}", driver.out) };
    for number in 0..700 {
        let key = format!("k{number}");
        held(acquire(&mut driver, namespace, &[&key], LockMode::Exclusive));
        waiting(acquire(&mut driver, namespace, &[&key], LockMode::Exclusive));
    }
    driver.apply(START_US, &Command::NamespaceDelete { namespace, force: false });
    assert!(driver.engine.namespace(namespace).is_none());
    // The number is free again only when nothing is left of it.
    let again = Command::NamespaceCreate { number: Some(namespace), name: "again", shard: 0, quotas };
    let mut told = 0;
    let ticks = tick_all(&mut driver, START_US, |driver| {
        assert!(driver.out.locks.iter().all(|told| told.grant.is_none()));
        told += driver.out.locks.len();
    });
    assert!(told == 700 && ticks >= 4, "{told} in {ticks} ticks");
    driver.apply(START_US, &again);
    assert_eq!((driver.out.error.clone(), driver.engine.next_deadline()), (None, None));
}

#[test]
fn changes_are_told_while_somebody_watches() {
    let mut driver = driver();
    let default = NamespaceId::DEFAULT;
    let changed = |driver: &Driver| {
        let mut keys: Vec<&str> = driver.out.changed_locks.iter().map(|(_, key)| key.as_str()).collect();
        assert!(driver.out.changed_locks.iter().all(|(namespace, _)| *namespace == default));
        keys.sort_unstable();
        keys.dedup();
        keys.join(" ")
    };
    let unwatched = held(acquire(&mut driver, default, &["a"], LockMode::Exclusive));
    assert_eq!(changed(&driver), "");
    driver.engine.watch_locks(true);
    waiting(acquire(&mut driver, default, &["a", "b"], LockMode::Exclusive));
    assert_eq!(changed(&driver), "a b");
    let release = |token| Command::LockRelease { namespace: default, token };
    driver.apply(START_US, &Command::LockRenew { namespace: default, token: unwatched, ttl_ms: 0 });
    assert_eq!(changed(&driver), "");
    driver.apply(START_US, &release(unwatched));
    assert_eq!(changed(&driver), "a b", "one is released, and the next in line has both");
    driver.apply(START_US, &Command::LockBreak { namespace: default, key: "b" });
    assert_eq!(changed(&driver), "a b");
    held(acquire(&mut driver, default, &["c"], LockMode::Shared));
    assert_eq!(changed(&driver), "c");
    driver.apply(START_US + 60_000_000, &Command::Tick);
    assert_eq!(changed(&driver), "c", "its time is over");
    driver.engine.watch_locks(false);
    held(acquire(&mut driver, default, &["c"], LockMode::Shared));
    assert_eq!(changed(&driver), "");
}
