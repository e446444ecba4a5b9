//! A disk that fills up.

use std::sync::atomic::Ordering::Relaxed;

use sluice_journal::*;

use crate::faulty::Faults;
use crate::rig::{Rig, copy_dir, key, options, roots};

fn full(refused: Result<u64, Refused>) -> bool {
    matches!(refused, Err(Refused::Full { .. }))
}

#[test]
fn draining_goes_on_when_growing_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    faults.free.store(1 << 20, Relaxed);
    let settings = Options { durability: Durability::Os, ..options(dir.path()) };
    let mut rig = Rig::try_open_on(disk, settings).unwrap();
    assert_eq!(rig.journal.status().reserve_bytes, 64 << 10);
    let mut keys = Vec::new();
    loop {
        match rig.propose(b"send", &[&[3; 2000]], Class::Growing) {
            Ok(index) => keys.push(key(index, 0)),
            Err(Refused::Full { .. }) => break,
            Err(other) => panic!("{other:?}"),
        }
        rig.commit();
        rig.now_us += 10_000;
        rig.maintenance.step(rig.now_us);
    }
    assert!(keys.len() > 200, "{}", keys.len());
    assert!(rig.journal.status().full);
    assert!(faults.free.load(Relaxed) > 0, "refused before the disk is really full");
    for key in keys {
        rig.settle(key);
        rig.commit();
        rig.maintenance.step(rig.now_us);
        rig.poll();
    }
    rig.snapshot();
    rig.settle_down();
    let status = rig.journal.status();
    assert!(!status.full, "{status:?}");
    assert_eq!(status.reserve_bytes, 64 << 10);
    rig.send(&[b"again"]);
    rig.commit();
    rig.read_all();
}

#[test]
fn a_refusal_tells_of_less_room_than_it_takes() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    faults.free.store(1 << 20, Relaxed);
    let settings = Options { durability: Durability::Os, ..options(dir.path()) };
    let mut rig = Rig::try_open_on(disk, settings).unwrap();
    // Nobody looks at the disk between the first and the last.
    loop {
        match rig.propose(b"send", &[&[3; 2000]], Class::Growing) {
            Ok(_) => rig.commit(),
            Err(Refused::Full { free_bytes, needed_bytes }) => {
                assert!(free_bytes < needed_bytes, "{free_bytes} free, {needed_bytes} needed");
                break;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_disk_filled_by_others_holds_replies_back_until_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let settings = Options { durability: Durability::Os, ..options(dir.path()) };
    let mut rig = Rig::try_open_on(disk, settings).unwrap();
    rig.send(&[b"before"]);
    rig.commit();
    faults.free.store(0, Relaxed);
    rig.send(&[&[1; 100 << 10]]);
    rig.send(&[b"behind"]);
    rig.commit();
    assert_eq!(rig.applied, 1, "neither committed nor failed");
    assert!(full(rig.propose(b"send", &[b"more"], Class::Growing)));
    rig.settle_down();
    assert_eq!(rig.applied, 1);
    faults.free.store(1 << 30, Relaxed);
    rig.settle_down();
    assert_eq!(rig.applied, 3);
    rig.send(&[b"after"]);
    rig.commit();
    rig.read_all();
    let live = rig.live.clone();
    drop(rig);
    assert_eq!(Rig::open(dir.path()).live, live);
}

#[test]
fn a_disk_tells_for_which_batches_it_has_room() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let mut rig = Rig::try_open_on(disk, options(dir.path())).unwrap();
    let mut with = |free_bytes| {
        faults.free.store(free_bytes, Relaxed);
        rig.now_us += 20_000_000;
        rig.maintenance.step(rig.now_us);
        rig.journal.disk_room()
    };
    // Reserve and margin take 64 KiB each.
    assert_eq!(with(1 << 30), DiskRoom::Growing);
    assert_eq!(with(64 << 10), DiskRoom::Copies);
    assert_eq!(with(0), DiskRoom::Copies, "the reserve is given up");
    assert_eq!(with(40 << 10), DiskRoom::Draining, "half of the reserve is for draining batches alone");
    assert_eq!(with(16 << 10), DiskRoom::None, "what is on its way has a place");
    assert_eq!(with(1 << 30), DiskRoom::Growing);
}

/// Two journals share a room: one fills the disk, the other has less room by that, and both are drained with
/// the help of one reserve.
#[test]
fn journals_that_share_a_disk_share_their_room_and_one_reserve() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    faults.free.store(1 << 20, Relaxed);
    let space = Space::new(disk.clone(), dir.path(), 64 << 10, 64 << 10);
    let open = |name: &str| {
        let settings = Options {
            durability: Durability::Os,
            space: Some(space.clone()),
            // The nonces on this disk are watched by the numbers of segments, which both have.
            encryption: Encryption::default(),
            ..options(&dir.path().join(name))
        };
        Rig::try_open_on(disk.clone(), settings).unwrap()
    };
    let (mut first, mut second) = (open("first"), open("second"));
    assert_eq!([&first, &second].map(|rig| rig.journal.status().reserve_bytes), [64 << 10; 2]);
    assert!(dir.path().join("reserve").exists() && !dir.path().join("first/reserve").exists());

    let kept = second.send(&[b"kept"]);
    second.commit();
    // Nobody looks at the disk while one of them fills it.
    let mut keys = Vec::new();
    while let Ok(index) = first.propose(b"send", &[&[3; 2000]], Class::Growing) {
        keys.push(key(index, 0));
        first.commit();
    }
    assert!(keys.len() > 200, "{}", keys.len());
    assert!(full(second.propose(b"send", &[b"more"], Class::Growing)), "its room is the same");
    // Others take what is left: the room of the reserve is all that there is.
    faults.free.store(0, Relaxed);
    first.now_us += 10_000_000;
    first.maintenance.step(first.now_us);
    assert_eq!(second.journal.status().reserve_bytes, 0, "it was given up for both");
    second.settle(key(kept, 0));
    second.commit();
    assert!(second.live.is_empty());
    for key in keys {
        first.settle(key);
        first.commit();
    }
    assert!(first.live.is_empty());
}

/// Nothing was written or refused while room was short.
#[test]
fn room_that_came_back_in_an_idle_time_is_seen_before_a_send_asks() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let settings = Options { durability: Durability::Os, ..options(dir.path()) };
    let margin = settings.full_margin_bytes;
    let mut rig = Rig::try_open_on(disk, settings).unwrap();
    rig.settle_down();
    faults.free.store(margin, Relaxed);
    rig.now_us += 20_000_000;
    rig.maintenance.step(rig.now_us);
    faults.free.store(1 << 30, Relaxed);
    rig.now_us += 200_000;
    rig.maintenance.step(rig.now_us);
    assert!(rig.propose(b"send", &[b"x"], Class::Growing).is_ok());
}

/// All messages fit into the segment that grows, which no snapshot and no compaction lets go.
#[test]
fn what_is_dead_in_the_segment_that_grows_makes_room() {
    for durability in [Durability::Always, Durability::Os] {
        let dir = tempfile::tempdir().unwrap();
        let (faults, disk) = Faults::new();
        faults.free.store(2 << 20, Relaxed);
        let settings = Options {
            durability,
            segment_bytes: 32 << 20,
            snapshot_log_bytes: 32 << 20,
            cache_bytes: 0,
            ..options(dir.path())
        };
        let mut rig = Rig::try_open_on(disk.clone(), settings.clone()).unwrap();
        let mut keys = Vec::new();
        let (free_bytes, needed_bytes) = loop {
            match rig.propose(b"send", &[&[3; 20_000]], Class::Growing) {
                Ok(index) => keys.push(key(index, 0)),
                Err(Refused::Full { free_bytes, needed_bytes }) => break (free_bytes, needed_bytes),
                Err(other) => panic!("{other:?}"),
            }
            rig.commit();
            rig.now_us += 10_000;
            rig.maintenance.step(rig.now_us);
        };
        assert!(needed_bytes > free_bytes && needed_bytes < 1 << 20, "{needed_bytes}, {free_bytes} free");
        for key in keys {
            rig.settle(key);
            rig.commit();
        }
        rig.settle_down();
        assert!(rig.journal.wants_snapshot(), "{durability:?}: {:?}", rig.journal.status());
        rig.snapshot();
        let status = rig.journal.status();
        assert!(!status.full && status.disk_free_bytes > 3 << 19, "{durability:?}: {status:?}");
        rig.send(&[&[4; 20_000]]);
        rig.commit();
        drop(rig);
        Rig::try_open_on(disk, settings).unwrap().read_all();
    }
}

#[test]
fn the_reserve_serves_a_start_on_a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let mut rig = Rig::try_open_on(disk.clone(), options(dir.path())).unwrap();
    let index = rig.send(&[b"kept"]);
    rig.commit();
    drop(rig);
    faults.free.store(0, Relaxed);
    let mut rig = Rig::try_open_on(disk, options(dir.path())).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(rig.live[&key(index, 0)], b"kept");
    rig.settle(key(index, 0));
    rig.commit();
    assert!(rig.live.is_empty(), "what is there can be drained");
}

#[test]
fn low_water_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let settings = Options { low_water_bytes: 1 << 30, ..options(dir.path()) };
    let mut rig = Rig::try_open_on(disk, settings).unwrap();
    assert!(!rig.journal.status().low);
    faults.free.store(1 << 29, Relaxed);
    // Without any writing it is looked at now and then.
    rig.now_us += 10_000_000;
    rig.settle_down();
    let status = rig.journal.status();
    assert!(status.low && !status.full);
}

/// One batch is synced while the next one, already encoded, waits for room: the sector in which the first one
/// ends is not to be written again.
#[test]
fn what_is_synced_shares_no_sector_with_what_waits_for_room() {
    for durability in [Durability::Always, Durability::Os] {
        let dir = tempfile::tempdir().unwrap();
        let (faults, disk) = Faults::new();
        let settings = Options {
            durability,
            segment_bytes: 32 << 20,
            reserve_bytes: 0,
            full_margin_bytes: 0,
            scrub_bytes_per_s: 0,
            ..options(dir.path())
        };
        let mut rig = Rig::try_open_on(disk.clone(), settings.clone()).unwrap();
        // The large one does not fit into the same write; the third makes a whole batch of what fails.
        rig.send(&[b"small"]);
        rig.send(&[&vec![7; 9 << 20]]);
        rig.send(&[b"after"]);
        faults.free.store(1 << 20, Relaxed);
        rig.commit();
        assert_eq!(rig.applied, 1, "the large one waits");
        rig.writer.sync().unwrap();
        assert_eq!(rig.applied, 1);
        // Whoever is killed now must start again: no segment is shorter than it was made.
        let killed = tempfile::tempdir().unwrap();
        copy_dir(dir.path(), killed.path());
        let killed = Options { dir: killed.path().to_owned(), ..settings.clone() };
        assert_eq!(Rig::try_open(killed).unwrap_or_else(|error| panic!("{error}")).applied, 1);
        faults.free.store(1 << 40, Relaxed);
        rig.now_us += 1_000_000;
        rig.settle_down();
        assert_eq!(rig.applied, 3, "{durability:?}");
        assert_eq!(faults.shared_sectors.load(Relaxed), 0, "{durability:?}");
        let live = rig.live.clone();
        drop(rig);
        assert_eq!(check(disk.clone(), dir.path(), &roots()).unwrap().problems, []);
        let mut rig = Rig::try_open_on(disk, settings).unwrap();
        assert!(rig.report.cut.is_none(), "{:?}", rig.report.cut);
        assert_eq!(rig.live, live);
        rig.read_all();
    }
}
