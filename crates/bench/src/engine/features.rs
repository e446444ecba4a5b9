//! Cost of optional features: the next message beside many that are blocked, many fair keys, many that are
//! delayed, and the bytes that each feature adds to a message's index.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use sluice_alloc_count::{Mode, set_mode};
use sluice_engine::command::{Command, Deliver, SendItem};
use sluice_engine::item::{Chain, DependsOn, SendOptions, Step, Steps};
use sluice_engine::limit::LimitRules;
use sluice_engine::query::State;

use crate::report::Report;
use crate::table::{Table, figure};
use sluice_bench_rows::rig::{QUEUES, Rig, usual_message};
use sluice_bench_rows::stats::{Samples, per, percentile};

const QUEUE: &str = QUEUES[0];
/// Messages of one send when a queue is filled.
const FILL: u64 = 1_000;
/// Messages that are taken in one timed stretch; as many are sent behind it.
const STRETCH: u64 = 500;
const STRETCHES: u64 = 200;
/// The delay of messages that all become due in the same second.
const DELAY_MS: u64 = 60_000;

/// Sends messages that differ by their options, in batches; `options` gets a key of their own for each.
fn fill(
    rig: &mut Rig,
    messages: std::ops::Range<u64>,
    item: &SendItem<'_>,
    options: impl Fn(&str) -> Option<SendOptions<'_>>,
) {
    for from in messages.clone().step_by(FILL as usize) {
        let keys: Vec<String> = (from..messages.end.min(from + FILL)).map(|n| format!("key-{n}")).collect();
        let options: Vec<_> = keys.iter().map(|key| options(key)).collect();
        let items: Vec<_> =
            options.iter().map(|options| SendItem { options: options.as_ref(), ..item.clone() }).collect();
        rig.send(QUEUE, &items);
    }
}

/// Time of receive + ack; `refill` makes up for what a stretch has taken.
fn receive_ack_ns(rig: &mut Rig, mut refill: impl FnMut(&mut Rig)) -> f64 {
    let stretch = |_| {
        let start = Instant::now();
        for _ in 0..STRETCH {
            rig.receive_and_ack(QUEUE);
        }
        let ns = per(start.elapsed().as_nanos() as f64, STRETCH);
        refill(rig);
        ns
    };
    (0..STRETCHES).map(stretch).collect::<Samples>().median()
}

/// The next message when so many are blocked, half by an ordering key and half by a limit key, against none.
pub(super) fn blocked(blocked: u64, report: &mut Report) {
    let measure = |blocked: u64| {
        let mut rig = Rig::new();
        rig.follow_limit(QUEUE, LimitRules { in_flight_per_key: Some(1), ..LimitRules::default() });
        let ordered = SendOptions { ordering_key: b"one", ..SendOptions::default() };
        let limited = SendOptions { limit_key: b"one", ..SendOptions::default() };
        for options in [ordered, limited] {
            fill(&mut rig, 0..blocked / 2, &usual_message(), |_| Some(options));
            rig.receive(&[(QUEUE, 0)], 1, "");
        }
        let is_blocked = rig.engine().totals().states[State::Blocked as usize];
        rig.fill(QUEUE, 10_000);
        let ns = receive_ack_ns(&mut rig, |rig| rig.fill(QUEUE, STRETCH));
        (ns, is_blocked, rig.failures())
    };
    let (none_ns, _, _) = measure(0);
    let (many_ns, is_blocked, failures) = measure(blocked);
    report.check_equal("blocked messages", (blocked / 2).saturating_sub(1) * 2, is_blocked);
    report.check_equal("refused commands beside blocked messages", 0, failures);
    tell_ratio(
        report,
        "blocked",
        "the next message, ns, with so many blocked",
        [0, blocked],
        [none_ns, many_ns],
    );
}

/// The next message of so many fair keys, against one.
pub(super) fn fair(keys: u64, report: &mut Report) {
    let measure = |one: bool| {
        let mut rig = Rig::new();
        let mut sent = 0;
        let mut refill = |rig: &mut Rig, count: u64| {
            fill(rig, sent..sent + count, &usual_message(), |own| {
                Some(of_fair_key(if one { b"one" } else { own.as_bytes() }))
            });
            sent += count;
        };
        refill(&mut rig, keys);
        let ns = receive_ack_ns(&mut rig, |rig| refill(rig, STRETCH));
        (ns, rig.failures())
    };
    let ((one_ns, _), (many_ns, failures)) = (measure(true), measure(false));
    report.check_equal("refused commands with many fair keys", 0, failures);
    tell_ratio(report, "fair", "the next message, ns, with so many fair keys", [1, keys], [one_ns, many_ns]);
}

fn of_fair_key(key: &[u8]) -> SendOptions<'_> {
    SendOptions { fair_key: key, ..SendOptions::default() }
}

fn tell_ratio(report: &mut Report, name: &str, title: &str, counts: [u64; 2], ns: [f64; 2]) {
    let mut table = Table::new(&["keys or messages", "receive+ack ns"]);
    for (count, ns) in counts.iter().zip(ns) {
        table.row(vec![figure(*count as f64), figure(ns)]);
        report.row(&format!("{name}_{count}"), json!({ "receive_ack_ns": ns }));
    }
    report.table(title, table);
    report.figure(&format!("{name}_ratio"), ns[1] / ns[0].max(1e-9));
}

/// So many delayed messages: what each takes, and what it costs that they become due in the same second.
pub(super) fn delayed(messages: u64, report: &mut Report) {
    set_mode(Mode::Count);
    let mut rig = Rig::new();
    rig.watch_memory();
    let item = usual_message();
    for from in (0..messages).step_by(FILL as usize) {
        let count = FILL.min(messages - from);
        let at = |n: u64| Deliver::AfterMs(DELAY_MS + (from + n) % 1_000);
        let items: Vec<_> = (0..count).map(|n| SendItem { deliver: at(n), ..item.clone() }).collect();
        rig.send(QUEUE, &items);
    }
    let bytes = per(rig.engine_held_bytes() as f64, messages);
    set_mode(Mode::Off);
    let waiting = |rig: &Rig| rig.engine().totals().states[State::Delayed as usize];
    report.check_equal("delayed messages", messages, waiting(&rig));
    rig.set_now_us(rig.now_us() + (DELAY_MS + 1_000) * 1_000);
    let mut slices = Vec::new();
    while waiting(&rig) > 0 && slices.len() as u64 <= messages {
        let start = Instant::now();
        rig.run_at_same_time(&Command::Tick);
        slices.push(start.elapsed());
    }
    report.check_equal("delayed messages that became ready", 0, waiting(&rig));
    slices.sort_unstable();
    let total: Duration = slices.iter().sum();
    let due_ns = per(total.as_nanos() as f64, messages);
    let worst_us = percentile(&slices, 100.0).as_secs_f64() * 1e6;
    let mut table = Table::new(&["delayed", "index B/message", "due ns/message", "worst slice µs"]);
    table.row(vec![figure(messages as f64), figure(bytes), figure(due_ns), figure(worst_us)]);
    report.table("delayed messages that become due in the same second", table);
    report.row("delayed", json!({ "messages": messages, "worst_slice_us": worst_us }));
    report.figure("delayed_bytes", bytes);
    report.figure("due_ns", due_ns);
}

/// Bytes that each feature adds to the index, per message: with one key that all share, and with a key of its
/// own
/// for each.
pub(super) fn index_bytes(messages: u64, report: &mut Report) {
    let bytes = |options: &dyn for<'k> Fn(&'k [u8]) -> Option<SendOptions<'k>>, own: bool| {
        set_mode(Mode::Count);
        let mut rig = Rig::new();
        rig.follow_limit(QUEUE, LimitRules { in_flight_per_key: Some(1_000_000), ..LimitRules::default() });
        rig.watch_memory();
        fill(&mut rig, 0..messages, &usual_message(), |key| {
            options(if own { key.as_bytes() } else { b"one" })
        });
        let bytes = per(rig.engine_held_bytes() as f64, messages);
        set_mode(Mode::Off);
        report_failures(&rig);
        bytes
    };
    let plain = bytes(&|_| None, false);
    type Feature = (&'static str, for<'k> fn(&'k [u8]) -> SendOptions<'k>);
    let features: [Feature; 4] = [
        ("ordering_key", |key| SendOptions { ordering_key: key, ..SendOptions::default() }),
        ("fair_key", of_fair_key),
        ("limit_key", |key| SendOptions { limit_key: key, ..SendOptions::default() }),
        ("all_keys", |key| SendOptions {
            ordering_key: key,
            fair_key: key,
            limit_key: key,
            ..SendOptions::default()
        }),
    ];
    let mut table = Table::new(&["feature", "shared key: B/message", "own key: B/message"]);
    let mut row = Map::from_iter([("plain".to_owned(), json!(plain))]);
    for (name, options) in features {
        let [shared, own] = [false, true].map(|own| bytes(&|key| Some(options(key)), own) - plain);
        table.row(vec![name.to_owned(), figure(shared), figure(own)]);
        row.insert(name.to_owned(), json!({ "shared": shared, "own": own }));
    }
    type Relation = (&'static str, for<'k> fn(&'k [u8]) -> Option<SendOptions<'k>>);
    let relations: [Relation; 2] = [("parent", after_first_of_its_send), ("chain", |_| Some(two_steps()))];
    for (name, options) in relations {
        let added = bytes(&options, true) - plain;
        table.row(vec![name.to_owned(), "-".to_owned(), figure(added)]);
        row.insert(name.to_owned(), json!({ "own": added }));
    }
    report.table("what a feature adds to a message's index", table);
    report.row("feature_bytes", Value::Object(row));
}

/// All but the first message of each send wait for that one.
fn after_first_of_its_send(key: &[u8]) -> Option<SendOptions<'_>> {
    let number =
        key.strip_prefix(b"key-").and_then(|number| std::str::from_utf8(number).ok()?.parse::<u64>().ok());
    let first = number.is_none_or(|number| number.is_multiple_of(FILL));
    let depends_on = DependsOn { places: &[[0; 4]], ..DependsOn::default() };
    (!first).then_some(SendOptions { depends_on: Some(depends_on), ..SendOptions::default() })
}

/// Each message carries two steps, which get the result of the one before.
fn two_steps() -> SendOptions<'static> {
    static STEPS: LazyLock<[Step<'static>; 2]> = LazyLock::new(|| {
        [QUEUE, QUEUES[1]].map(|queue| Step { queue, own_payload: false, item: SendItem::default() })
    });
    static CHAIN: LazyLock<Steps<'static>> = LazyLock::new(|| Steps { steps: &*STEPS, on_failure: None });
    SendOptions { chain: Chain::Given(&CHAIN), ..SendOptions::default() }
}

fn report_failures(rig: &Rig) {
    assert_eq!(rig.failures(), 0, "a fill was refused");
}
