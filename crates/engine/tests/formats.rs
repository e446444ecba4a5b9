//! What is on disk: records and a snapshot of the present version are stored in
//! `tests/fixtures/all_records.txt` and stay readable, as do those of each older version that the program
//! knows (`all_records_VERSION.txt`), which is written as it was until a newer one is in force. Those of any
//! other version are refused.
//!
//! The fixture is a log and the snapshot that was taken after it, in lines: `record NOW_US INDEX BODY`, then
//! `snapshot BYTES` (hexadecimal), then `state` lines that tell what both must give. The log is that of
//! `golden/all_records.txt`. When a layout changes, raise its version (`record/table.rs`, `FORMAT`
//! in `wire.rs`, `BEHAVIOUR_VERSION`), and keep the fixture under the number of the former version unless the
//! program is to refuse it. Then, and when there are new records, write the fixture anew:
//!
//! ```sh
//! SLUICE_BLESS=1 cargo test -p sluice-engine --test formats
//! ```
//!
//! A fixture of the present version is read before it is replaced, so that no layout changes under its
//! version.

#![allow(clippy::unwrap_used)]

mod common;
#[allow(dead_code)]
mod script;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sluice_engine::command::{LockAcquire, Send, SendItem};
use sluice_engine::id::{NamespaceId, QueueId};
use sluice_engine::item::SendOptions;
use sluice_engine::limit::Cost;
use sluice_engine::locks::LockMode;
use sluice_engine::search::SearchKinds;
use sluice_engine::settings::QueuePatch;
use sluice_engine::{BEHAVIOUR_OLDEST, BEHAVIOUR_VERSION, Command, Engine, Error, Outcome, check_known};

use common::Driver;

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
/// Commands that give a record of each kind.
const ALL_RECORDS: &str = include_str!("golden/all_records.txt");
/// The kinds, as the first byte of a record's body tells them.
const KINDS: [u8; 59] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 20, 21, 28, 34, 40, 41, 42, 45, 46, 47, 48,
    50, 51, 52, 53, 54, 55, 56, 57, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77,
    78, 79, 80, 81, 82,
];
/// Behaviour versions before the newest, each with a log and a snapshot: under 11 snapshots do not tell the
/// version in force, under 12 they have no locks, documents and transactions, under 13 no costs, under 14 no
/// queue pushes, under 16 limits have no past rates, and under 17 no queue has an index of its messages.
const OF_OLDER_VERSIONS: [(u16, &str); 6] = [
    (11, include_str!("fixtures/all_records_11.txt")),
    (12, include_str!("fixtures/all_records_12.txt")),
    (13, include_str!("fixtures/all_records_13.txt")),
    (14, include_str!("fixtures/all_records_14.txt")),
    (16, include_str!("fixtures/all_records_16.txt")),
    (17, include_str!("fixtures/all_records_17.txt")),
];

const ACQUIRE: Command<'_> = Command::LockAcquire(LockAcquire {
    namespace: NAMESPACE,
    keys: &["k"],
    owner: "",
    mode: LockMode::Exclusive,
    ttl_ms: 1,
    wait_ms: 0,
    if_absent: false,
    request: [0; 2],
});

#[test]
fn the_fixture_is_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/all_records.txt");
    let stored = std::fs::read_to_string(path).unwrap();
    let bless = std::env::var_os("SLUICE_BLESS").is_some();
    if !(bless && is_of_another_version(&stored)) {
        read_both(&stored);
    }
    let now = if bless { written_now() } else { stored };
    read_both(&now);
    let kinds = records(&now).map(|(_, _, body)| body[0]).collect();
    assert_eq!(BTreeSet::from(KINDS), kinds, "SLUICE_BLESS=1 writes the fixture anew");
    if bless {
        std::fs::write(path, now).unwrap();
    }
}

/// The log and the snapshot give what the fixture tells.
fn read_both(text: &str) {
    let expected: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("state ")).collect();
    assert!(!expected.is_empty());
    let (replayed, restored) = (replay(text), restore(text).unwrap());
    assert_eq!(state(&replayed), expected, "the log");
    assert_eq!(state(&restored), expected, "the snapshot");
    assert_eq!(replayed.digest(), restored.digest());
    restored.recount().unwrap();
}

fn is_of_another_version(text: &str) -> bool {
    let refused = records(text).find_map(|(_, _, body)| check_known(&body).err());
    let refused = refused.or_else(|| restore(text).err().map(|error| error.to_string()));
    refused
        .is_some_and(|why| why.contains("this program knows only") || why.contains("this program reads only"))
}

/// Time, index and body of each record.
fn records(text: &str) -> impl Iterator<Item = (u64, u64, Vec<u8>)> {
    text.lines().filter_map(|line| line.strip_prefix("record ")).map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words[0].parse().unwrap(), words[1].parse().unwrap(), unhex(words[2]))
    })
}

fn replay(text: &str) -> Engine {
    let (mut engine, mut out) = (Engine::new(), Outcome::default());
    for (now_us, index, body) in records(text) {
        check_known(&body).unwrap();
        engine.apply(now_us, index, &body, &mut out);
    }
    engine
}

fn restore(text: &str) -> Result<Engine, Error> {
    let mut piece = Some(unhex(line(text, "snapshot ")));
    Engine::restore(&mut || piece.take())
}

/// The rest of the line that begins with `head`.
fn line<'a>(text: &'a str, head: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(head)).unwrap()
}

/// What can be seen of an engine, one line a thing.
fn state(engine: &Engine) -> Vec<String> {
    let totals = engine.totals();
    let mut lines = vec![format!(
        "index {} time {} epoch {} messages {} sent {} died {} expired {}",
        engine.applied_index(),
        engine.time_us(),
        engine.epoch(),
        engine.message_count(),
        totals.sent,
        totals.died,
        totals.expired
    )];
    for queue in engine.queues(NAMESPACE, "", None, 100) {
        let settings = &queue.settings;
        lines.push(format!(
            "queue {} lease {} attempts {}",
            queue.name, settings.lease_ms, settings.max_attempts
        ));
        lines.extend(messages(engine, queue.id));
    }
    for consumer in engine.consumers(NAMESPACE, None, 100) {
        let (state, credit, in_flight) = (consumer.state.name(), consumer.credit, consumer.in_flight);
        lines.push(format!(
            "consumer {} {state} {:?} holds {in_flight} of {credit}",
            consumer.id.0, consumer.queues
        ));
    }
    for schedule in engine.schedules(NAMESPACE, None, 100) {
        let (queue, next, paused) = (&schedule.queue, schedule.next_at_us, schedule.paused);
        lines.push(format!("schedule {} to {queue} next {next:?} paused {paused}", schedule.name));
    }
    for document in engine.documents_after(NAMESPACE, "", None, 100) {
        let versions = engine.document_versions(NAMESPACE, &document.key);
        let versions = versions.iter().map(|view| (view.version.version, view.content_bytes));
        lines.push(format!("document {} {:?}", document.key, versions.collect::<Vec<_>>()));
    }
    for lock in engine.locks_after(NAMESPACE, "", None, 100) {
        lines.push(format!(
            "lock {} held by {} waited for by {}",
            lock.key, lock.holder_count, lock.waiter_count
        ));
    }
    for limit in engine.limits_of(NAMESPACE, None, 100) {
        let (in_flight, waiting) = (limit.in_flight, limit.waiting);
        lines.push(format!(
            "limit {} of {:?} in flight {in_flight} waiting {waiting}",
            limit.name, limit.queues
        ));
    }
    lines
}

fn messages(engine: &Engine, queue: QueueId) -> Vec<String> {
    let page = engine.messages(queue, None, None, 100);
    let view = |id| engine.message(id).unwrap();
    page.items
        .iter()
        .map(|listed| view(listed.id))
        .map(|view| {
            let (state, attempts) = (view.state.name(), view.attempts);
            format!(
                "message {} {state} attempts {attempts} priority {} deadline {:?} reason {:?} history {} blob {:?}",
                view.id,
                view.priority,
                view.deadline_us,
                view.reason,
                view.history.len(),
                view.blob
            )
        })
        .collect()
}

#[test]
fn a_record_of_each_kind_is_there() {
    let (_, driver) = script::play(ALL_RECORDS);
    let there: BTreeSet<u8> = driver.log.iter().map(|record| record.body[0]).collect();
    assert_eq!(there, BTreeSet::from(KINDS));
}

#[test]
fn an_older_version_stays_in_force_and_is_written_until_it_is_raised() {
    let mut out = Outcome::default();
    let options = SendOptions { cost: Cost(2), ..SendOptions::default() };
    let items = [SendItem { options: Some(&options), ..SendItem::default() }];
    let (queue, idempotency_key) = ("jobs", &b""[..]);
    let costly = Command::Send(Send {
        namespace: NAMESPACE,
        queue,
        idempotency_key,
        request_digest: 0,
        items: &items,
    });
    let patch = QueuePatch { push_rate: Some(0), ..QueuePatch::default() };
    let pushing = Command::QueueSet { namespace: NAMESPACE, queue, patch, create: true };
    let patch = QueuePatch { search_index: Some(SearchKinds::default()), ..QueuePatch::default() };
    let indexed = Command::QueueSet { namespace: NAMESPACE, queue, patch, create: true };
    for (version, text) in OF_OLDER_VERSIONS {
        // What version 17 applies in another way than 16 is in `limit_rates.rs`.
        let unknown = match version {
            ..13 => &ACQUIRE,
            13 => &costly,
            14 => &pushing,
            _ => &indexed,
        };
        read_both(text);
        for mut engine in [replay(text), restore(text).unwrap()] {
            assert_eq!(engine.behaviour(), version);
            assert_eq!(snapshot_line(&mut engine), line(text, "snapshot "));
            let mut apply = |engine: &mut Engine, command: &Command<'_>| {
                let index = engine.applied_index() + 1;
                engine.apply(engine.time_us(), index, &body(command), &mut out);
                (engine.behaviour(), out.error.is_some())
            };
            let newest = BEHAVIOUR_VERSION;
            assert_eq!(apply(&mut engine, unknown), (version, true), "a later version brings it");
            assert_eq!(apply(&mut engine, &Command::Raise { behaviour: newest }), (newest, false));
            let restored = restore(&format!("snapshot {}", snapshot_line(&mut engine))).unwrap();
            assert_eq!((restored.behaviour(), restored.digest()), (newest, engine.digest()));
            let number = engine.next_epoch();
            assert_eq!(apply(&mut engine, &Command::Epoch { number, behaviour: version }), (newest, false));
            assert_eq!(apply(&mut engine, &Command::Raise { behaviour: version }), (newest, false));
            assert_eq!(apply(&mut engine, &Command::Raise { behaviour: newest + 1 }), (newest, true));
            assert_eq!(apply(&mut engine, unknown), (newest, false));
        }
    }
}

#[test]
fn other_behaviour_versions_are_refused() {
    let (older, newer) = (BEHAVIOUR_OLDEST - 1, BEHAVIOUR_VERSION + 1);
    for (behaviour, writer) in [(older, "an older version"), (newer, "a newer version")] {
        let told = format!(
            "the log follows behaviour version {behaviour}, \
             this program knows only versions {BEHAVIOUR_OLDEST} to {BEHAVIOUR_VERSION}: \
             it was written by {writer}"
        );
        let mut driver = Driver::new();
        driver.apply(0, &Command::Epoch { number: 1, behaviour });
        assert_eq!(driver.out.error, Some(Error::Internal { reason: told.clone() }));
        assert_eq!(driver.engine.epoch(), 0, "it has not begun");
        assert_eq!(check_known(&driver.log[0].body), Err(told));
    }
}

fn written_now() -> String {
    let (_, mut driver) = script::play(ALL_RECORDS);
    let mut text = String::new();
    for record in &driver.log {
        writeln!(text, "record {} {} {}", record.now_us, record.index, hex(&record.body)).unwrap();
    }
    writeln!(text, "snapshot {}", snapshot_line(&mut driver.engine)).unwrap();
    for line in state(&driver.engine) {
        writeln!(text, "state {line}").unwrap();
    }
    text
}

fn snapshot_line(engine: &mut Engine) -> String {
    let mut bytes = Vec::new();
    engine.snapshot_begin();
    while !engine.snapshot_step(1 << 20, &mut bytes) {}
    hex(&bytes)
}

fn body(command: &Command<'_>) -> Vec<u8> {
    let mut driver = Driver::new();
    driver.apply(0, command);
    driver.log.swap_remove(0).body
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

fn unhex(text: &str) -> Vec<u8> {
    data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap()
}
