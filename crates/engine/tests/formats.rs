//! Every format of records and snapshots that was ever written stays readable: each has a fixture in `tests/fixtures`.
//!
//! A fixture is a log and the snapshot that was taken after it, in lines: `record NOW_US INDEX BODY`, then `snapshot BYTES`
//! (hexadecimal), then `state` lines that tell what both must give. The log is that of `golden/all_records.txt`. For a new
//! format, run the ignored test `write_fixture` once with `SLUICE_FIXTURE=NAME`, and commit the new file beside the older ones.

#![allow(clippy::unwrap_used)]

mod common;
#[allow(dead_code)]
mod script;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sluice_engine::id::{NamespaceId, QueueId};
use sluice_engine::{Engine, Outcome};

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
/// Commands that give a record of each kind.
const ALL_RECORDS: &str = include_str!("golden/all_records.txt");
/// The kinds, as the first byte of a record's body tells them.
const KINDS: [u8; 33] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 21, 28, 34, 40, 41, 42, 45, 46, 47, 48, 50,
    51, 52, 53, 54, 55,
];

#[test]
fn every_format_ever_written_is_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let expected: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("state ")).collect();
        assert!(!expected.is_empty());
        let (replayed, restored) = (replay(&text), restore(&text));
        assert_eq!(state(&replayed), expected, "the log of {}", file.display());
        assert_eq!(state(&restored), expected, "the snapshot of {}", file.display());
        assert_eq!(replayed.digest(), restored.digest(), "{}", file.display());
        restored.recount().unwrap();
    }
}

fn replay(text: &str) -> Engine {
    let (mut engine, mut out) = (Engine::new(), Outcome::default());
    for line in text.lines().filter_map(|line| line.strip_prefix("record ")) {
        let words: Vec<&str> = line.split(' ').collect();
        engine.apply(words[0].parse().unwrap(), words[1].parse().unwrap(), &unhex(words[2]), &mut out);
    }
    engine
}

fn restore(text: &str) -> Engine {
    let bytes = text.lines().find_map(|line| line.strip_prefix("snapshot ")).unwrap();
    let mut piece = Some(unhex(bytes));
    Engine::restore(&mut || piece.take()).unwrap()
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
#[ignore = "writes the fixture of the present format; run once when it changes"]
fn write_fixture() {
    let (_, mut driver) = script::play(ALL_RECORDS);
    let mut text = String::new();
    for record in &driver.log {
        writeln!(text, "record {} {} {}", record.now_us, record.index, hex(&record.body)).unwrap();
    }
    let mut bytes = Vec::new();
    driver.engine.snapshot_begin();
    while !driver.engine.snapshot_step(1 << 20, &mut bytes) {}
    writeln!(text, "snapshot {}", hex(&bytes)).unwrap();
    for line in state(&driver.engine) {
        writeln!(text, "state {line}").unwrap();
    }
    let name = std::env::var("SLUICE_FIXTURE").expect("SLUICE_FIXTURE names the new file");
    std::fs::write(format!("{}/tests/fixtures/{name}.txt", env!("CARGO_MANIFEST_DIR")), text).unwrap();
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

fn unhex(text: &str) -> Vec<u8> {
    data_encoding::HEXLOWER.decode(text.as_bytes()).unwrap()
}
