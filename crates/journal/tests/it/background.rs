//! Background work: it does not hold up the log, wakes only when something is due, and frees room first.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use sluice_journal::*;

use crate::faulty::Faults;
use crate::rig::{Rig, files, key, options};

#[test]
fn the_log_goes_on_while_a_manifest_is_being_synced() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let settings = Options { durability: Durability::Os, ..options(dir.path()) };
    let mut rig = Rig::try_open_on(disk, settings).unwrap();
    rig.send(&[&[1; 10_000]]);
    rig.commit();
    rig.settle_down();
    // Enough for the next segment, whose making wakes maintenance, and a good part of the one after.
    rig.send(&[&[2; 60_000]]);
    rig.commit();
    let gate = faults.close_gate();
    std::thread::scope(|threads| {
        let Rig { journal, writer, maintenance, now_us, .. } = &mut rig;
        threads.spawn(|| while maintenance.step(*now_us) {});
        while !faults.at_gate.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (done, is_done) = std::sync::mpsc::channel();
        threads.spawn(move || {
            let mut batch = Batch::new();
            let mut record = batch.record(1);
            record.body(b"send");
            record.blob(&[&[3; 50_000]]);
            drop(record);
            journal.propose(&mut batch, 2_000_000, Class::Growing).unwrap();
            writer.step();
            let _ = done.send(matches!(journal.poll(), Some(Event::Committed(_))));
        });
        let went_on = is_done.recv_timeout(Duration::from_secs(60));
        drop(gate);
        assert_eq!(went_on, Ok(true), "the shard waited for maintenance");
    });
    assert_eq!(rig.journal.status().late_segments, 0);
}

/// As in a node with durability `os`: the shard's thread writes, maintenance runs beside it. Neither may wait
/// for what the other holds.
#[test]
fn writing_and_maintenance_never_wait_for_each_other_in_a_circle() {
    const BATCHES: u32 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let settings = Options { durability: Durability::Os, segment_bytes: 16 << 10, ..options(dir.path()) };
    let Rig { mut journal, writer, mut maintenance, .. } = Rig::try_open(settings).unwrap();
    let stopper = writer.clone();
    std::thread::spawn(move || {
        let mut now_us = 0;
        while maintenance.wait(Some(Duration::ZERO)) {
            now_us += 100;
            maintenance.step(now_us);
        }
    });
    let (told, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for at in 0..BATCHES {
            let mut batch = Batch::new();
            batch.record(0).body(&[7; 200]);
            journal.propose(&mut batch, 1_000_000 + u64::from(at), Class::Growing).unwrap();
            writer.step();
            while journal.poll().is_some() {}
        }
        let _ = told.send(());
    });
    let ended = done.recv_timeout(Duration::from_secs(60));
    stopper.stop();
    assert_eq!(ended, Ok(()), "the two threads wait for each other");
}

#[test]
fn the_next_segment_is_ready_in_time() {
    for durability in [Durability::Always, Durability::Os] {
        let dir = tempfile::tempdir().unwrap();
        let mut rig = Rig::try_open(Options { durability, ..options(dir.path()) }).unwrap();
        for _ in 0..500 {
            rig.send(&[&[1; 5_000]]);
            rig.commit();
            rig.now_us += 1_000;
            rig.maintenance.step(rig.now_us);
        }
        let status = rig.journal.status();
        assert!(status.segments > 20, "{status:?}");
        assert_eq!(status.late_segments, 0, "{durability:?}");
    }
}

#[test]
fn an_idle_journal_sleeps() {
    let interval = Durability::Interval(Duration::from_millis(50));
    for durability in [Durability::Always, interval, Durability::Os] {
        let dir = tempfile::tempdir().unwrap();
        let mut rig = Rig::try_open(Options { durability, ..options(dir.path()) }).unwrap();
        for _ in 0..100 {
            let index = rig.send(&[&[1; 5_000]]);
            rig.settle(key(index, 0));
            rig.commit();
        }
        rig.settle_down();
        rig.snapshot();
        let (mut wakes, end_us) = (0, rig.now_us + 600_000_000);
        while rig.now_us < end_us {
            rig.now_us += rig.maintenance.idle_us(rig.now_us).unwrap().max(1);
            while rig.maintenance.step(rig.now_us) {}
            rig.poll();
            wakes += 1;
        }
        assert!(wakes < 70, "{wakes} in ten minutes, with {durability:?}");
    }
}

/// Runs as a thread would: wakes only when something is due, or when woken.
fn run_until(rig: &mut Rig, end_us: u64) {
    while rig.now_us < end_us {
        let woken = rig.maintenance.wait(Some(Duration::ZERO)) && rig.maintenance.step(rig.now_us);
        if !woken {
            let idle_us = rig.maintenance.idle_us(rig.now_us).unwrap_or(u64::MAX);
            rig.now_us = rig.now_us.saturating_add(idle_us.max(1)).min(end_us);
            while rig.maintenance.step(rig.now_us) {}
        }
        rig.poll();
    }
}

#[test]
fn a_short_interval_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let durability = Durability::Interval(Duration::from_millis(10));
    let mut rig = Rig::try_open(Options { durability, ..options(dir.path()) }).unwrap();
    let start_us = rig.now_us;
    run_until(&mut rig, start_us + 1_000_000);
    for round in 0..50 {
        let before = rig.journal.status().fsyncs;
        rig.send(&[b"to be synced"]);
        rig.commit();
        let at_us = rig.now_us;
        run_until(&mut rig, at_us + 10_000);
        assert!(rig.journal.status().fsyncs > before, "round {round}");
    }
}

#[test]
fn an_idle_marker_and_dead_files_need_no_further_wake() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    for _ in 0..100 {
        let index = rig.send(&[&[1; 5_000]]);
        rig.settle(key(index, 0));
        rig.commit();
    }
    let at_us = rig.now_us;
    run_until(&mut rig, at_us + 300_000);
    let status = rig.journal.status();
    rig.snapshot();
    let at_us = rig.now_us;
    run_until(&mut rig, at_us + 2_000_000);
    let after = rig.journal.status();
    assert!(after.disk_bytes * 2 < status.disk_bytes, "{status:?} {after:?}");
}

#[test]
fn an_idle_marker_that_cannot_be_written_fails_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let settings = Options { durability: Durability::Always, ..options(dir.path()) };
    let mut rig = Rig::try_open_on(disk, settings).unwrap();
    rig.send(&[b"synced"]);
    rig.commit();
    faults.fail_write.store(true, Relaxed);
    for _ in 0..10 {
        rig.now_us += 10_000;
        rig.maintenance.step(rig.now_us);
    }
    let event = rig.journal.poll();
    assert!(matches!(&event, Some(Event::Failed(what)) if what.contains("planted")), "{event:?}");
}

#[test]
fn a_full_disk_is_freed_although_nothing_can_be_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let settings = Options {
        durability: Durability::Os,
        reserve_bytes: 0,
        full_margin_bytes: 4 << 10,
        scrub_bytes_per_s: 0,
        ..options(dir.path())
    };
    let mut rig = Rig::try_open_on(disk, settings).unwrap();
    for _ in 0..60 {
        rig.send(&[&[1; 2_000]]);
        rig.commit();
    }
    rig.settle_down();
    rig.snapshot();
    // A segment that is to be sealed, with a table longer than what will be left.
    for _ in 0..30 {
        let mut batch = Batch::new();
        let mut record = batch.record(1_000);
        record.body(b"send");
        for _ in 0..1_000 {
            record.blob(&[b"x"]);
        }
        drop(record);
        rig.journal.propose(&mut batch, 3_000_000, Class::Growing).unwrap();
        rig.commit();
    }
    let dead = files(dir.path(), ".log").remove(0);
    faults.free.store(2_000, Relaxed);
    for index in 1..=60 {
        rig.journal.release(key(index, 0));
    }
    for _ in 0..20 {
        rig.now_us += 60_000;
        rig.maintenance.step(rig.now_us);
        while rig.journal.poll().is_some() {}
    }
    assert!(!dead.exists(), "{:?}", rig.journal.status());
}

#[test]
fn the_low_water_mark_is_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let settings = Options { low_water_bytes: 1 << 30, ..options(dir.path()) };
    let mut rig = Rig::try_open_on(disk, settings).unwrap();
    rig.settle_down();
    assert_eq!(rig.maintenance.notices(), []);
    faults.free.store(1 << 29, Relaxed);
    for _ in 0..5 {
        rig.now_us += 11_000_000;
        rig.settle_down();
    }
    let low = Notice::LowWater { free_bytes: 1 << 29, low_water_bytes: 1 << 30 };
    assert_eq!(rig.maintenance.notices(), [low]);
    assert!(rig.journal.status().low);
    faults.free.store(1 << 40, Relaxed);
    rig.now_us += 11_000_000;
    rig.settle_down();
    assert!(matches!(rig.maintenance.notices()[..], [Notice::Room { .. }]));
}
