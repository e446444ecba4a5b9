//! One shard, step by step, in a time of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sluice_engine::command::{Content, Progress, ReportItem, Send, SendItem, SettleItem, Settlement};
use sluice_engine::id::NamespaceId;
use sluice_engine::item::{Chain, SendOptions, Step as ChainStep, Steps};
use sluice_engine::settings::QueuePatch;
use sluice_engine::{BlobRef, Command, Error};
use sluice_journal::BlobKey;
use sluice_node::clock::Clock;
use sluice_node::shard::channel::{DetachedBy, News};
use sluice_node::shard::request::{Given, Proposal, Read, ReplyTo, Request, ShardView};

use crate::rig::{KEY, Rig, SECOND_US};

#[test]
fn a_disk_without_room_for_a_tick_is_not_asked_in_a_loop() {
    let mut rig = Rig::new(16);
    let jobs = rig.send(1);
    let mut reply = rig.pull(1, 0);
    rig.settle_down();
    assert_eq!(reply.try_recv().unwrap().unwrap().len(), 1);
    rig.full.store(true, Relaxed);
    let steps = rig.pass(10 * SECOND_US);
    assert!((10..500).contains(&steps), "{steps} steps in ten seconds");
    assert_eq!(rig.shard.engine().ready_count(jobs), 0);
    rig.full.store(false, Relaxed);
    rig.pass(SECOND_US);
    assert_eq!(rig.shard.engine().ready_count(jobs), 1, "the lease has ended");
}

#[test]
fn on_a_full_disk_settlements_take_effect_without_their_texts() {
    let mut rig = Rig::new(16);
    let jobs = rig.send(4);
    let mut reply = rig.pull(1, 0);
    rig.settle_down();
    let given = reply.try_recv().unwrap().unwrap();
    rig.full_for_growing.store(true, Relaxed);
    let result = Some(Content { content_type: "", bytes: b"nobody keeps it" });
    let settlements = [
        (Settlement::Nack { delay_ms: Some(0) }, "it failed", None),
        (Settlement::Reject, "it is bad", None),
        (Settlement::Ack, "", result),
        (Settlement::Release { delay_ms: 0 }, "not now", None),
    ];
    for (given, (settlement, error, result)) in given.iter().zip(settlements) {
        let items = [SettleItem { receipt: given.delivery.receipt, settlement, error, result, add_cost: 0 }];
        let answer = rig.answer(&Command::Settle { namespace: NamespaceId::DEFAULT, items: &items });
        assert!(answer.result.is_ok() && answer.results.iter().all(Result::is_ok), "{answer:?}");
    }
    let queue = rig.shard.engine().queue(jobs).unwrap();
    assert_eq!((queue.counters.nacked, queue.counters.rejected, queue.counters.acked), (1, 1, 1));
    assert_eq!(rig.shard.engine().ready_count(jobs), 2);
}

#[test]
fn on_a_full_disk_a_lease_is_extended_without_the_note_and_never_without_the_checkpoint() {
    let mut rig = Rig::new(16);
    rig.send(1);
    let mut reply = rig.pull(1, 0);
    rig.settle_down();
    let receipt = reply.try_recv().unwrap().unwrap()[0].delivery.receipt;
    rig.full_for_growing.store(true, Relaxed);
    let progress = Some(Progress { percent: 40, note: "two of five" });
    for (checkpoint, is_done) in [(None, true), (Some(&b"row 2"[..]), false)] {
        let items = [ReportItem { receipt, lease_ms: 60_000, progress, checkpoint, add_cost: 0 }];
        let answer = rig.answer(&Command::Report { namespace: NamespaceId::DEFAULT, items: &items });
        let done = answer.result.is_ok() && answer.results.iter().all(Result::is_ok);
        assert_eq!(done, is_done, "{answer:?}");
    }
}

#[test]
fn a_full_disk_refuses_a_result_that_is_asked_for() {
    let mut rig = Rig::new(16);
    let keep = QueuePatch { retain_done_ms: Some(60_000), ..QueuePatch::default() };
    rig.send(1);
    rig.answer(&set_jobs(keep)).result.unwrap();
    let mut reply = rig.pull(1, 0);
    rig.settle_down();
    let receipt = reply.try_recv().unwrap().unwrap()[0].delivery.receipt;
    rig.full_for_growing.store(true, Relaxed);
    let result = Some(Content { content_type: "", bytes: b"it is kept" });
    let items = [SettleItem { receipt, settlement: Settlement::Ack, error: "", result, add_cost: 0 }];
    let ack = Command::Settle { namespace: NamespaceId::DEFAULT, items: &items };
    assert!(matches!(rig.answer(&ack).result, Err(Error::DiskFull { .. })));
    rig.full_for_growing.store(false, Relaxed);
    assert!(rig.answer(&ack).result.is_ok());
}

#[test]
fn a_full_disk_refuses_the_result_that_a_next_step_takes_and_leaves_out_others() {
    for (own_payload, is_done) in [(true, true), (false, false)] {
        let mut rig = Rig::new(16);
        let steps = Steps {
            steps: &[ChainStep { queue: "next", own_payload, item: SendItem::default() }],
            on_failure: None,
        };
        let options = SendOptions { chain: Chain::Given(&steps), ..SendOptions::default() };
        let items = [SendItem { options: Some(&options), ..SendItem::default() }];
        let namespace = NamespaceId::DEFAULT;
        let send = Send { namespace, queue: "jobs", idempotency_key: &[], request_digest: 0, items: &items };
        rig.answer(&Command::Send(send)).result.unwrap();
        let mut reply = rig.pull(1, 0);
        rig.settle_down();
        let receipt = reply.try_recv().unwrap().unwrap()[0].delivery.receipt;
        rig.full_for_growing.store(true, Relaxed);
        let result = Some(Content { content_type: "", bytes: b"a result" });
        let items = [SettleItem { receipt, settlement: Settlement::Ack, error: "", result, add_cost: 0 }];
        let ack = Command::Settle { namespace: NamespaceId::DEFAULT, items: &items };
        assert_eq!(rig.answer(&ack).result.is_ok(), is_done, "own payload: {own_payload}");
    }
}

#[test]
fn a_full_disk_lets_queues_be_paused_and_resumed() {
    let mut rig = Rig::new(16);
    rig.send(1);
    rig.full_for_growing.store(true, Relaxed);
    for paused in [true, false] {
        let patch = QueuePatch { paused: Some(paused), ..QueuePatch::default() };
        assert!(rig.answer(&set_jobs(patch)).result.is_ok());
    }
    let patch = QueuePatch { lease_ms: Some(7), ..QueuePatch::default() };
    assert!(matches!(rig.answer(&set_jobs(patch)).result, Err(Error::DiskFull { .. })));
}

fn set_jobs(patch: QueuePatch) -> Command<'static> {
    Command::QueueSet { namespace: NamespaceId::DEFAULT, queue: "jobs", patch, create: false }
}

#[test]
fn what_nobody_took_is_given_back_when_there_is_room_again() {
    let mut rig = Rig::new(16);
    let jobs = rig.send(3);
    let reply = rig.pull(1, 0);
    rig.shard.step();
    drop(reply);
    rig.full.store(true, Relaxed);
    let steps = rig.pass(SECOND_US / 2);
    assert!(steps < 50, "{steps} steps in half a second");
    assert_eq!(rig.shard.engine().ready_count(jobs), 0);
    rig.full.store(false, Relaxed);
    rig.pass(SECOND_US / 5);
    assert_eq!(rig.shard.engine().ready_count(jobs), 3, "before their leases have ended");
}

#[test]
fn a_cancellation_gets_in_when_the_mailbox_is_full_and_may_overtake_its_pull() {
    let mut rig = Rig::new(1);
    let first = rig.pull(1, 60 * SECOND_US);
    rig.settle_down();
    let second = rig.pull(2, 60 * SECOND_US);
    while rig.mailbox.push(Request::Cancel { ticket: 999 }).is_ok() {}
    for (ticket, reply) in [(1, first), (2, second)] {
        drop(reply);
        rig.mailbox.push_surely(Request::Cancel { ticket });
    }
    rig.settle_down();
    assert_eq!(rig.waiting(), 0);
}

#[test]
fn a_flood_of_looks_does_not_hold_up_the_next_batch() {
    let mut rig = Rig::new(1_024);
    let done = Arc::new(AtomicU64::new(0));
    for _ in 0..1_000 {
        let (done, time) = (done.clone(), rig.time.clone());
        let look = move |_: Result<&mut ShardView<'_>, Error>| {
            time.advance(200);
            done.fetch_add(1, Relaxed);
        };
        rig.mailbox.push(Request::Read(Read(Box::new(look)))).unwrap();
    }
    let before = rig.time.monotonic_us();
    rig.mailbox.push(Request::surely(&Command::Tick)).unwrap();
    rig.shard.step();
    assert_eq!(rig.shard.in_flight(), 1, "what came behind them is proposed");
    assert!(rig.time.monotonic_us() - before <= 1_000);
    rig.settle_down();
    assert_eq!(done.load(Relaxed), 1_000);
}

#[test]
fn looks_that_are_too_many_are_told_so() {
    let mut rig = Rig::new(10_000);
    let refused = Arc::new(AtomicU64::new(0));
    for _ in 0..10_000 {
        let (refused, time) = (refused.clone(), rig.time.clone());
        let look = move |looking: Result<&mut ShardView<'_>, Error>| {
            time.advance(200);
            refused.fetch_add(u64::from(matches!(looking, Err(Error::Overloaded { .. }))), Relaxed);
        };
        rig.mailbox.push(Request::Read(Read(Box::new(look)))).unwrap();
    }
    rig.settle_down();
    assert!((1..10_000).contains(&refused.load(Relaxed)));
}

#[test]
fn a_thousand_damaged_blobs_are_one_search() {
    let mut rig = Rig::new(16);
    let mut blobs: Vec<BlobRef> = Vec::new();
    for _ in 0..30 {
        rig.send(1_000);
        let taken = rig.shard.engine().applied_index();
        blobs.extend((0..1_000).map(|item| BlobRef { index: taken, item, len: 0 }));
    }
    let keys = blobs.iter().step_by(30).map(|blob| BlobKey { index: blob.index, item: blob.item });
    rig.shard.store().damaged.extend(keys);
    let steps = rig.settle_down();
    assert!(steps < 40, "{steps} steps for 15 looks at 2,000 messages each");
    let held = rig.shard.engine().totals().states[sluice_engine::query::State::Held as usize];
    assert_eq!(held, 1_000);
}

#[test]
fn a_damaged_blob_that_is_nobodys_is_forgotten() {
    let mut rig = Rig::new(16);
    rig.send(10);
    rig.shard.store().damaged.push(BlobKey { index: 12_345, item: 6 });
    assert!(rig.settle_down() < 10);
    assert_eq!(rig.shard.idle_us(), None);
}

#[test]
fn much_to_apply_does_not_hold_up_the_next_batch() {
    let mut rig = Rig::new(1_024);
    rig.send(10_000);
    let mut replies: Vec<_> = (0..1_000).map(|ticket| rig.pull(ticket, 0)).collect();
    rig.settle_down();
    let settlement = Settlement::Ack;
    for reply in &mut replies {
        let given = reply.try_recv().unwrap().unwrap();
        let item = |given: &Given| SettleItem {
            receipt: given.delivery.receipt,
            settlement,
            error: "",
            result: None,
            add_cost: 0,
        };
        let items: Vec<_> = given.iter().map(item).collect();
        let command = Command::Settle { namespace: NamespaceId::DEFAULT, items: &items };
        rig.mailbox.push(Request::Propose(Proposal::new(&command, ReplyTo::Nobody))).unwrap();
    }
    rig.shard.store().release_us = 5;
    rig.shard.step();
    assert_eq!(rig.shard.in_flight(), 1_000);
    let mut steps = 0;
    while rig.shard.in_flight() > 0 {
        steps += 1;
        let (before, in_flight) = (rig.time.monotonic_us(), rig.shard.in_flight());
        rig.shard.step();
        assert!(rig.time.monotonic_us() - before < 3_000 && rig.shard.in_flight() < in_flight);
    }
    assert!((20..60).contains(&steps), "{steps} steps for 50 ms of work");
    assert_eq!((rig.shard.engine().totals().acked, rig.shard.engine().message_count()), (10_000, 0));
}

#[test]
fn a_jump_of_the_wall_clock_neither_fires_schedules_nor_holds_them_up() {
    let mut rig = Rig::new(16);
    rig.schedule();
    rig.pass(10 * SECOND_US);
    let hour = 3_600 * SECOND_US as i64;
    for (jump, fired) in [(hour, 20), (-2 * hour, 30), (hour / 2, 40)] {
        rig.time.jump(jump);
        rig.pass(10 * SECOND_US);
        assert_eq!(rig.fired(), fired, "after a jump of {jump} us");
    }
}

#[test]
fn firings_that_a_full_disk_refused_come_when_there_is_room_and_once_each() {
    let mut rig = Rig::new(16);
    rig.schedule();
    rig.full.store(true, Relaxed);
    let steps = rig.pass(60 * SECOND_US);
    assert!(steps < 3_000, "{steps} steps in a minute");
    assert_eq!(rig.fired(), 0);
    rig.full.store(false, Relaxed);
    rig.pass(SECOND_US / 2);
    assert_eq!(rig.fired(), 60);
    rig.pass(SECOND_US);
    assert_eq!(rig.fired(), 61);
}

#[test]
fn of_firings_that_a_full_disk_refused_for_long_the_latest_thousand_come() {
    let mut rig = Rig::new(16);
    rig.schedule();
    rig.full.store(true, Relaxed);
    rig.pass(2_500 * SECOND_US);
    rig.full.store(false, Relaxed);
    rig.pass(SECOND_US / 2);
    assert_eq!(rig.fired(), 1_000);
}

#[test]
fn an_epoch_is_not_below_the_journals_count_of_openings() {
    let mut rig = Rig::new(10);
    let limits = rig.shard.engine().limits().clone();
    for (term, epoch) in [(2, 2), (2, 3), (9, 9), (0, 10)] {
        assert_eq!(rig.shard.begin(&limits, term, KEY), epoch);
        rig.settle_down();
        assert_eq!(rig.shard.engine().epoch(), epoch);
    }
}

#[test]
fn a_reader_that_does_not_read_is_detached_before_its_leases_end() {
    let mut rig = Rig::new(16);
    let stuck = rig.attach();
    rig.send(1);
    let mut again = rig.pull(1, 9 * SECOND_US);
    rig.pass(SECOND_US * 3 / 4 - 1_000);
    assert!(again.try_recv().is_err(), "it may still come to read it");
    rig.pass(2_000);
    let again = again.try_recv().unwrap().unwrap();
    assert_eq!((again[0].delivery.attempt, again[0].delivery.deliveries), (1, 2));
    assert!(matches!(stuck.take(1, 1), Some(News::Detached(DetachedBy::Stalled))));
}
