//! Blobs that are no longer in the cache: read together with their neighbours, and each as it would be by
//! itself.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use sluice_alloc_count::{Mode, counts, set_mode};
use sluice_journal::*;

use crate::faulty::Faults;
use crate::rig::{Rig, files, key, options, plain};

/// Of which an eighth is for what is read ahead.
const CACHE_BYTES: u64 = 4 << 20;
/// As many as a delivery brings.
const GROUP: usize = 64;

type Settings = fn(&Path) -> Options;
const BOTH: [Settings; 2] = [options, plain];

/// With long segments, so that little is done besides.
fn with(settings: Settings, dir: &Path) -> Options {
    Options { cache_bytes: CACHE_BYTES, segment_bytes: 8 << 20, ..settings(dir) }
}

/// A record with so many small blobs, no two alike.
fn send_many(rig: &mut Rig, count: u32) -> Vec<BlobKey> {
    let next = rig.journal.next_index();
    let blobs: Vec<Vec<u8>> =
        (0..count).map(|item| format!("{next} {item} ").into_bytes().repeat(12)).collect();
    let pieces: Vec<&[u8]> = blobs.iter().map(Vec::as_slice).collect();
    let index = rig.send(&pieces);
    (0..count).map(|item| key(index, item)).collect()
}

/// Enough in batches of all sizes that nothing of it is in the cache any more; what lies in it still comes
/// after.
fn backlog(rig: &mut Rig) -> Vec<BlobKey> {
    let mut keys = Vec::new();
    for round in 0..40u32 {
        for count in [1, 3, 40, 500] {
            keys.extend(send_many(rig, count));
            if round % 3 == 0 {
                rig.commit();
            }
        }
        rig.commit();
    }
    for _ in 0..140 {
        rig.send(&[&vec![1; 30_000]]);
    }
    rig.commit();
    keys
}

fn places(rig: &mut Rig, keys: &[BlobKey]) -> Vec<BlobRead> {
    keys.iter().map(|key| rig.journal.read(*key)).collect()
}

/// As a server reads them.
fn read(mut blobs: Vec<BlobRead>) -> Vec<Option<Bytes>> {
    if !take_ahead(&mut blobs) {
        read_together(&mut blobs);
    }
    let read = |blob| match blob {
        BlobRead::Cached(bytes) => Some(bytes),
        BlobRead::OnDisk(location) => match location.read() {
            Ok(bytes) => Some(bytes),
            Err(BlobError::Damaged(_)) => None,
            Err(BlobError::Io(error)) => panic!("{error}"),
        },
        BlobRead::Missing => panic!("a live blob is missing"),
    };
    blobs.into_iter().map(read).collect()
}

/// Reads these in groups; which of them are damaged. The others are what was sent.
fn read_groups(rig: &mut Rig, keys: &[BlobKey]) -> Vec<BlobKey> {
    let mut damaged = Vec::new();
    for group in keys.chunks(GROUP) {
        let found = read(places(rig, group));
        for (key, found) in group.iter().zip(found) {
            match found {
                Some(bytes) => assert_eq!(bytes, rig.live[key], "{key:?}"),
                None => damaged.push(*key),
            }
        }
        assert!(rig.journal.status().cache_bytes <= CACHE_BYTES);
    }
    damaged
}

/// Numbers below `count` in an order that jumps about.
fn jumbled(count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |at| at * 7_919 % count)
}

#[test]
fn a_backlog_that_is_read_in_order_is_read_from_the_disk_in_large_pieces() {
    for settings in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let (faults, disk) = Faults::new();
        let mut rig = Rig::try_open_on(disk, with(settings, dir.path())).unwrap();
        let keys = backlog(&mut rig);
        let bytes: usize = keys.iter().map(|key| rig.live[key].len()).sum();
        let before = faults.reads.load(Relaxed);
        assert_eq!(read_groups(&mut rig, &keys), []);
        let reads = faults.reads.load(Relaxed) - before;
        assert!(reads < bytes as u64 / (32 << 10), "{reads} reads for {bytes} bytes");
        assert!(rig.journal.status().cache_misses > 20_000, "the backlog was read from the disk");
    }
}

#[test]
fn any_order_and_many_readers_at_once_find_what_was_sent() {
    for settings in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let mut rig = Rig::try_open(with(settings, dir.path())).unwrap();
        let keys = backlog(&mut rig);
        let random: Vec<BlobKey> = jumbled(keys.len()).map(|at| keys[at]).take(2_000).collect();
        assert_eq!(read_groups(&mut rig, &random), []);
        let backwards: Vec<BlobKey> = keys.iter().rev().copied().take(2_000).collect();
        assert_eq!(read_groups(&mut rig, &backwards), []);
        // Each takes every eighth group, as the consumers of a queue do; two more read every ninth blob, as
        // of another queue.
        let readers = (0..10usize).map(|reader| -> Vec<BlobKey> {
            let own =
                |(at, _): &(usize, &BlobKey)| if reader < 8 { at / GROUP % 8 == reader } else { at % 9 == 0 };
            keys.iter().enumerate().filter(own).map(|(_, key)| *key).collect()
        });
        let work: Vec<_> = readers.map(|keys| (places(&mut rig, &keys), keys)).collect();
        let live = &rig.live;
        std::thread::scope(|scope| {
            for (places, keys) in work {
                scope.spawn(move || {
                    for (group, keys) in places.chunks(GROUP).zip(keys.chunks(GROUP)) {
                        let group = group.iter().map(|blob| match blob {
                            BlobRead::OnDisk(location) => BlobRead::OnDisk(location.clone()),
                            other => panic!("{other:?}"),
                        });
                        for (found, key) in read(group.collect()).into_iter().zip(keys) {
                            assert_eq!(found.unwrap(), live[key], "{key:?}");
                        }
                    }
                });
            }
        });
        assert!(rig.journal.status().cache_bytes <= CACHE_BYTES);
    }
}

#[test]
fn damage_is_found_where_it_is_and_nowhere_else() {
    for settings in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let mut rig = Rig::try_open(with(settings, dir.path())).unwrap();
        let keys = backlog(&mut rig);
        let path = &files(dir.path(), ".log")[0];
        let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
        for at in (10_000..2_000_000).step_by(97_001) {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 0x20], at).unwrap();
        }
        let alone: Vec<BlobKey> = keys
            .iter()
            .filter(|key| match rig.journal.read(**key) {
                BlobRead::OnDisk(location) => location.read().is_err(),
                other => panic!("{other:?}"),
            })
            .copied()
            .collect();
        assert!(alone.len() > 5 && alone.len() < keys.len() / 2, "{} of {}", alone.len(), keys.len());
        assert_eq!(read_groups(&mut rig, &keys), alone);
        // What was read ahead has it no better the second time, in whatever order.
        let backwards: Vec<BlobKey> = keys.iter().rev().copied().collect();
        let mut found = read_groups(&mut rig, &backwards);
        found.reverse();
        assert_eq!(found, alone);
    }
}

#[test]
fn a_sector_that_cannot_be_read_costs_what_lies_in_it_and_few_failing_reads() {
    for settings in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let (faults, disk) = Faults::new();
        let mut rig = Rig::try_open_on(disk, with(settings, dir.path())).unwrap();
        let keys = backlog(&mut rig);
        faults.bad_sector.store(2_060 * 512, Relaxed);
        let is_lost =
            |blob: &BlobRead| matches!(blob, BlobRead::OnDisk(location) if location.read().is_err());
        let lost = places(&mut rig, &keys).iter().filter(|blob| is_lost(blob)).count();
        assert!((1..200).contains(&lost), "{lost}");
        let count = || (faults.failed_reads.load(Relaxed), faults.reads.load(Relaxed));
        // All that one large receive brings; the second one knows of the sector.
        for expected in [2, 0] {
            let (mut found, before) = (0, count());
            for group in keys.chunks(4_000) {
                let mut blobs = places(&mut rig, group);
                read_together(&mut blobs);
                for (blob, key) in blobs.into_iter().zip(group) {
                    let bytes = match blob {
                        BlobRead::Cached(bytes) => Some(bytes),
                        BlobRead::OnDisk(location) => location.read().ok(),
                        BlobRead::Missing => panic!("{key:?} is missing"),
                    };
                    assert!(bytes.as_ref().is_none_or(|bytes| *bytes == rig.live[key]), "{key:?}");
                    found += usize::from(bytes.is_some());
                }
            }
            assert_eq!(found, keys.len() - lost);
            let failed = count().0 - before.0 - lost as u64;
            assert!(failed <= expected, "{failed} reads ahead failed, {lost} blobs are lost");
            let reads = count().1 - before.1;
            assert!(reads < 4_000, "{reads} reads for {} blobs", keys.len());
        }
    }
}

#[test]
fn a_blob_is_read_where_it_was_found_and_where_compaction_has_put_it() {
    for settings in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let mut rig =
            Rig::try_open(Options { segment_bytes: 128 << 10, ..with(settings, dir.path()) }).unwrap();
        let keys = backlog(&mut rig);
        rig.settle_down();
        let (kept, gone): (Vec<_>, Vec<_>) =
            keys.iter().enumerate().partition::<Vec<_>, _>(|(at, _)| at % 10 == 0);
        let kept: Vec<BlobKey> = kept.into_iter().map(|(_, key)| *key).collect();
        let before = places(&mut rig, &kept);
        // So that spans of the old files are in memory when the bytes move.
        assert_eq!(read_groups(&mut rig, &kept), []);
        for (number, (_, key)) in gone.into_iter().enumerate() {
            rig.settle(*key);
            if number % 500 == 0 {
                rig.commit();
            }
        }
        rig.commit();
        rig.settle_down();
        rig.snapshot();
        rig.settle_down();
        assert!(rig.journal.status().compacted_bytes > 100_000, "{:?}", rig.journal.status());
        for (key, found) in kept.iter().zip(read(before)) {
            assert_eq!(found.unwrap(), rig.live[key], "{key:?}");
        }
        assert_eq!(read_groups(&mut rig, &kept), []);
        assert!(!files(dir.path(), ".blobs").is_empty());
    }
}

#[test]
fn what_is_committed_later_is_not_hidden_by_what_was_read_before() {
    for settings in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let mut rig = Rig::try_open(Options { cache_bytes: 1 << 20, ..with(settings, dir.path()) }).unwrap();
        // A batch that is larger than the cache never comes to be in it.
        let mut before: Vec<BlobKey> = Vec::new();
        for _ in 0..3 {
            let keys = send_many(&mut rig, 12_000);
            rig.commit();
            let around: Vec<BlobKey> =
                before.iter().rev().take(20).rev().chain(keys.iter().take(500)).copied().collect();
            let last: Vec<BlobKey> = keys.iter().rev().take(30).rev().copied().collect();
            for keys in [around, last] {
                let mut blobs = places(&mut rig, &keys);
                assert!(blobs.iter().all(|blob| matches!(blob, BlobRead::OnDisk(_))));
                read_together(&mut blobs);
                for (key, blob) in keys.iter().zip(blobs) {
                    let BlobRead::Cached(bytes) = blob else { panic!("{key:?} was not read: {blob:?}") };
                    assert_eq!(bytes, rig.live[key], "{key:?}");
                }
            }
            before = keys;
        }
    }
}

#[test]
fn large_blobs_are_read_by_themselves_among_small_ones() {
    for settings in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let mut rig = Rig::try_open(with(settings, dir.path())).unwrap();
        let mut keys = Vec::new();
        for number in 0..60u8 {
            let sizes = [100, 70_000, 0, 9_000, 33_000];
            let blobs: Vec<Vec<u8>> = sizes.iter().map(|size| vec![number; *size]).collect();
            let pieces: Vec<&[u8]> = blobs.iter().map(Vec::as_slice).collect();
            let index = rig.send(&pieces);
            rig.commit();
            keys.extend((0..5).map(|item| key(index, item)));
        }
        let keys = &keys[..50];
        let mut blobs = places(&mut rig, keys);
        read_together(&mut blobs);
        for (at, blob) in blobs.iter().enumerate() {
            assert_eq!(matches!(blob, BlobRead::OnDisk(_)), [1, 4].contains(&(at % 5)), "{at}: {blob:?}");
        }
        assert_eq!(read_groups(&mut rig, keys), []);
    }
}

#[test]
fn many_blobs_far_from_each_other_take_no_more_memory_than_there_is_for_spans() {
    const BUDGET_BYTES: i64 = 128 << 10;
    for settings in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let cache_bytes = 8 * BUDGET_BYTES as u64;
        let mut rig = Rig::try_open(Options { cache_bytes, ..with(settings, dir.path()) }).unwrap();
        let mut keys = Vec::new();
        for number in 0..1_000u32 {
            keys.push(key(rig.send(&[&number.to_le_bytes().repeat(30)]), 0));
            rig.commit();
            rig.send(&[&vec![1; 17_000]]);
            rig.commit();
        }
        set_mode(Mode::Count);
        let before = counts();
        let mut misses = 0;
        for key in &keys {
            let mut blob = [rig.journal.read(*key)];
            misses += u32::from(matches!(blob, [BlobRead::OnDisk(_)]));
            read_together(&mut blob);
            assert!(matches!(blob, [BlobRead::Cached(_)]), "{key:?}: {blob:?}");
        }
        let held = counts().since(&before).held_bytes;
        assert!(misses > 900, "{misses} were read from the disk");
        // An eighth for what the allocator rounds up.
        assert!(held <= BUDGET_BYTES + BUDGET_BYTES / 8, "{held} bytes are held");
    }
}

#[test]
fn what_is_taken_from_memory_takes_no_room_for_what_is_not() {
    for settings in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let mut rig = Rig::try_open(with(settings, dir.path())).unwrap();
        let keys = backlog(&mut rig);
        read_together(&mut places(&mut rig, &keys[..1]));
        let wanted: Vec<BlobKey> = keys[..1].iter().chain(&keys[5_000..9_000]).copied().collect();
        let mut blobs = places(&mut rig, &wanted);
        set_mode(Mode::Count);
        let before = counts();
        assert!(!take_ahead(&mut blobs));
        let held = counts().since(&before).held_bytes;
        assert!(matches!(blobs[..2], [BlobRead::Cached(_), BlobRead::OnDisk(_)]), "{:?}", &blobs[..2]);
        assert!(held < 16 << 10, "{held} bytes are held");
    }
}
