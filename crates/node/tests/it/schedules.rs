//! Schedules on a node: they fire by themselves, through restarts, and catch up what was missed.

use std::time::{Duration, Instant};

use sluice_engine::Error;
use sluice_engine::command::SendItem;
use sluice_engine::id::NamespaceId;
use sluice_node::Node;
use sluice_node::schedule::{Missed, ScheduleSpec, When};

use crate::support::{memory, options, payloads, receive};
use crate::waits::{LONG_MS, soon, until};

const DEFAULT: NamespaceId = NamespaceId::DEFAULT;

fn every(every_ms: u64, missed: Missed) -> ScheduleSpec {
    ScheduleSpec { when: When::Every { every_ms }, missed }
}

fn cron(expression: &str, time_zone: &str) -> ScheduleSpec {
    let when = When::Cron { expression: expression.into(), time_zone: time_zone.into() };
    ScheduleSpec { when, missed: Missed::Once }
}

async fn put(node: &Node, name: &str, spec: &ScheduleSpec) -> Result<bool, Error> {
    let item = SendItem { payload: name.as_bytes(), ..SendItem::default() };
    node.schedule_put(DEFAULT, name, "work", spec, &item).await.map(|(_, created)| created)
}

#[tokio::test]
async fn an_interval_fires_by_itself() {
    let node = memory();
    let began = Instant::now();
    assert!(put(&node, "beat", &every(1_000, Missed::Once)).await.unwrap());
    assert!(!put(&node, "beat", &every(1_000, Missed::Once)).await.unwrap());
    let mut got = soon(receive(&node, "work", 1, LONG_MS)).await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(990), "{:?}", began.elapsed());
    let next = node.schedule_next(DEFAULT, "beat", 3).await.unwrap();
    assert_eq!(next[2] - next[0], 2_000_000);

    assert!(node.schedule_pause(DEFAULT, "beat", true).await.unwrap().view.next_at_us.is_none());
    assert!(node.schedule_next(DEFAULT, "beat", 3).await.unwrap().is_empty());
    got.extend(receive(&node, "work", 100, 0).await.unwrap());
    assert!(payloads(&got).iter().all(|payload| payload == b"beat"));
    let schedule = node.schedule(DEFAULT, "beat").await.unwrap();
    let last_id = got.last().map(|last| last.delivery.receipt.id);
    assert_eq!((schedule.view.fired, schedule.view.last_id), (got.len() as u64, last_id));
    // It would have fired before one that comes later and is as long.
    put(&node, "later", &every(1_000, Missed::Once)).await.unwrap();
    assert_eq!(payloads(&soon(receive(&node, "work", 1, LONG_MS)).await.unwrap()), [b"later"]);
    node.schedule_delete(DEFAULT, "later").await.unwrap();
    receive(&node, "work", 100, 0).await.unwrap();
    let (id, duplicate) = node.schedule_trigger(DEFAULT, "beat").await.unwrap();
    let got = receive(&node, "work", 1, 0).await.unwrap();
    assert_eq!((got[0].delivery.receipt.id, duplicate), (id, false));
    assert!(node.schedule_pause(DEFAULT, "beat", false).await.unwrap().view.next_at_us.is_some());
    node.schedule_delete(DEFAULT, "beat").await.unwrap();
    assert_eq!(node.schedule(DEFAULT, "beat").await.unwrap_err().code(), "schedule_not_found");
    node.shutdown(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test]
async fn what_a_stop_has_missed_is_caught_up_as_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::start(options(Some(folder.path()))).unwrap();
    let began = Instant::now();
    for (name, missed) in [("all", Missed::All), ("once", Missed::Once)] {
        put(&node, name, &every(1_000, missed)).await.unwrap();
    }
    node.shutdown(Duration::from_secs(5)).await.unwrap();
    // Time passes only when it does: three of each are missed, or more on a slow machine.
    tokio::time::sleep(Duration::from_millis(3_200)).await;
    let node = Node::start(options(Some(folder.path()))).unwrap();
    let fired = async |name: &str| node.schedule(DEFAULT, name).await.unwrap().view.fired;
    until(async || fired("all").await >= 3 && fired("once").await >= 1).await;
    let (once, all) = (fired("once").await, fired("all").await);
    assert!((once + 2..=began.elapsed().as_secs()).contains(&all), "{all} and {once}");
    let got = receive(&node, "work", 1_000, 0).await.unwrap();
    assert!(got.len() as u64 >= all + once);
    node.shutdown(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test]
async fn what_can_never_fire_is_refused() {
    let node = memory();
    for (spec, told) in [
        (cron("0 0 30 2 *", "UTC"), "never fires"),
        (cron("0 9 * * *", "Mars/Olympus"), "Mars/Olympus"),
        (cron("0 9 * *", "UTC"), "4 fields"),
        (every(999, Missed::Once), "999 is out of range"),
    ] {
        let error = put(&node, "no", &spec).await.unwrap_err();
        assert_eq!(error.code(), "invalid_argument");
        assert!(error.to_string().contains(told), "{error}");
    }
    assert!(node.schedules(DEFAULT, None, 10).await.unwrap().is_empty());
    put(&node, "yes", &cron("0 9 * * MON-FRI", "Europe/Berlin")).await.unwrap();
    let (schedule, blob) = node.schedule_message(DEFAULT, "yes").await.unwrap();
    assert_eq!((schedule.spec.unwrap(), &blob[2..]), (cron("0 9 * * MON-FRI", "Europe/Berlin"), &b"yes"[..]));
    node.shutdown(Duration::from_secs(5)).await.unwrap();
}
