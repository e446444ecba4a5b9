//! Encryption at rest: nothing to be read, keys that are missing, exchanged, lost or replaced.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sluice_journal::*;

use crate::faulty::Faults;
use crate::rig::{BEHAVIOUR, Rig, copy_dir, encryption, files, key, options, plain, root, roots};

/// All files of a directory but the lock.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
    files(dir, "").into_iter().filter(|path| !path.ends_with("lock")).map(read).collect()
}

/// The files in which these words stand.
fn found(dir: &Path, words: &[u8]) -> Vec<PathBuf> {
    let holds = |bytes: &Vec<u8>| bytes.windows(words.len()).any(|window| window == words);
    contents(dir).into_iter().filter(|(_, bytes)| holds(bytes)).map(|(path, _)| path).collect()
}

/// Sends, settles most, seals, compacts, snapshots: every kind of file comes to be.
fn work(rig: &mut Rig, words: &[u8]) {
    for number in 0..300u32 {
        let blob = [words, &number.to_le_bytes(), &[7; 600]].concat();
        let body = [b"send ", words].concat();
        let index = rig.propose(&body, &[&blob, words], Class::Growing).unwrap();
        rig.commit();
        if number % 10 != 0 {
            rig.settle(key(index, 0));
            rig.settle(key(index, 1));
        }
        rig.commit();
        rig.maintenance.step(rig.now_us);
    }
    rig.settle_down();
    rig.snapshot();
    rig.settle_down();
}

fn given(keys: &[u8]) -> RootKeys {
    RootKeys::new(keys.iter().map(|number| root(*number)).collect())
}

fn with(dir: &Path, keys: &[u8]) -> Options {
    Options { encryption: encryption(given(keys)), ..options(dir) }
}

fn refused(options: Options) -> String {
    Rig::try_open(options).err().expect("refused").to_string()
}

/// It lies where the next batch begins, when both are written at once.
#[test]
fn an_empty_blob_at_the_end_of_a_batch_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::try_open(Options { cache_bytes: 0, ..options(dir.path()) }).unwrap();
    rig.send(&[b"first", b""]);
    rig.send(&[b"second"]);
    rig.commit();
    rig.read_all();
    drop(rig);
    Rig::open(dir.path()).read_all();
}

#[test]
fn nothing_that_was_written_can_be_read_in_any_file() {
    const WORDS: &[u8] = b"planted words that nobody may read";
    for (encrypted, settings) in [(true, options as fn(&Path) -> Options), (false, plain)] {
        let dir = tempfile::tempdir().unwrap();
        let mut rig = Rig::try_open(settings(dir.path())).unwrap();
        work(&mut rig, WORDS);
        for _ in 0..5 {
            rig.send(&[WORDS, &[7; 30_000]]);
            rig.commit();
            rig.settle_down();
        }
        for ending in [".log", ".table", ".blobs", ".snapshot"] {
            assert!(!files(dir.path(), ending).is_empty(), "{ending}");
        }
        let places = found(dir.path(), WORDS);
        assert_eq!(places.is_empty(), encrypted, "{places:?}");
        let mut stream = Vec::new();
        let mut backup = rig.backups.begin();
        while let Some(chunk) = backup.next_chunk().unwrap() {
            stream.extend_from_slice(&chunk);
        }
        assert_eq!(stream.windows(WORDS.len()).any(|window| window == WORDS), !encrypted);
        rig.read_all();
        drop(rig);
        let mut rig = Rig::try_open(settings(dir.path())).unwrap();
        rig.read_all();
        assert_eq!(found(dir.path(), WORDS).is_empty(), encrypted);
    }
}

#[test]
fn without_its_key_a_directory_does_not_open_and_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    work(&mut rig, b"words");
    let mut stream = Vec::new();
    let mut backup = rig.backups.begin();
    while let Some(chunk) = backup.next_chunk().unwrap() {
        stream.extend_from_slice(&chunk);
    }
    drop(rig);
    let before = contents(dir.path());
    let needed = root(1).id();
    for (settings, other) in [
        (plain(dir.path()), "not given".to_owned()),
        (with(dir.path(), &[2]), format!("not the one that is given ({})", root(2).id())),
        (with(dir.path(), &[2, 3]), format!("{}, {}", root(2).id(), root(3).id())),
    ] {
        let error = refused(settings);
        assert!(error.contains(&needed.to_string()) && error.contains(&other), "{error}");
        assert_eq!(contents(dir.path()), before);
    }
    let error = check(Arc::new(FsDisk), dir.path(), &given(&[9])).unwrap_err();
    assert!(matches!(error, OpenError::Key { needed: found, .. } if found == needed), "{error}");
    assert_eq!(keys_needed(&FsDisk, dir.path()).unwrap(), [needed]);
    let target = dir.path().join("restored");
    let error = restore(&mut &stream[..], &target, &given(&[9])).unwrap_err();
    assert!(error.to_string().contains(&needed.to_string()) && !target.exists(), "{error}");
    let error = refused(with(dir.path(), &[]));
    assert!(error.contains("no root key is given"), "{error}");
    // Any of those that are given opens what it has wrapped; the first is for what is new.
    let mut rig = Rig::try_open(with(dir.path(), &[2, 1])).unwrap();
    rig.read_all();
    assert_eq!(rig.keyring.status().current, Some(root(2).id()));
}

#[test]
fn a_plain_directory_opens_and_what_is_new_is_encrypted() {
    const OLD: &[u8] = b"words from before encryption";
    const NEW: &[u8] = b"words under a key";
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::try_open(plain(dir.path())).unwrap();
    work(&mut rig, OLD);
    rig.send(&[OLD]);
    rig.commit();
    let live = rig.live.clone();
    drop(rig);
    assert!(!found(dir.path(), OLD).is_empty() && !dir.path().join("keyring").exists());
    let mut rig = Rig::open(dir.path());
    assert_eq!(rig.live, live);
    rig.read_all();
    assert!(!found(dir.path(), OLD).is_empty(), "what is sealed stays as it is");
    work(&mut rig, NEW);
    assert!(found(dir.path(), NEW).is_empty());
    let status = rig.keyring.status();
    assert!(status.uses[&None].files > 0 && status.uses[&Some(root(1).id())].files > 0, "{status:?}");
    let live = rig.live.clone();
    drop(rig);
    assert_eq!(check(Arc::new(FsDisk), dir.path(), &roots()).unwrap().problems, []);

    // And back: what is new is plain, what was encrypted is read.
    let off = Encryption::only_read(roots());
    let mut rig = Rig::try_open(Options { encryption: off.clone(), ..plain(dir.path()) }).unwrap();
    assert_eq!(rig.live, live);
    work(&mut rig, OLD);
    rig.read_all();
    assert_eq!(rig.keyring.status().current, None);
    assert!(rig.keyring.replace(given(&[2])).unwrap_err().contains("not encrypted"));
    let live = rig.live.clone();
    drop(rig);
    for settings in [Options { encryption: off, ..plain(dir.path()) }, options(dir.path())] {
        let mut rig = Rig::try_open(settings).unwrap();
        assert_eq!(rig.live, live);
        rig.read_all();
    }
}

#[test]
fn a_keyring_that_is_lost_old_or_another_ones_is_damage() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (dir, identity) in [(&dir, 7), (&other, 8)] {
        let mut rig = Rig::try_open(Options { identity, ..options(dir.path()) }).unwrap();
        rig.send(&[b"blob"]);
        rig.commit();
    }
    let old = fs::read(dir.path().join("keyring")).unwrap();
    drop(Rig::open(dir.path()));
    drop(Rig::open(other.path()));
    let path = dir.path().join("keyring");
    let right = fs::read(&path).unwrap();
    let others = fs::read(other.path().join("keyring")).unwrap();
    for (bytes, why) in [(None, "missing"), (Some(old), "older"), (Some(others), "another journal's")] {
        match bytes {
            None => fs::remove_file(&path).unwrap(),
            Some(bytes) => fs::write(&path, bytes).unwrap(),
        }
        let before = contents(dir.path());
        let error = refused(options(dir.path()));
        assert!(error.contains(why) && error.contains("keyring"), "{error}");
        assert!(keys_needed(&FsDisk, dir.path()).is_err());
        assert_eq!(contents(dir.path()), before);
    }
    fs::write(&path, right).unwrap();
    Rig::open(dir.path()).read_all();
}

#[test]
fn a_newer_keyring_than_the_manifest_tells_of_is_right() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    rig.send(&[b"before"]);
    rig.commit();
    drop(rig);
    // A start, or a change of the root key, was cut short between keyring and manifest.
    for replaced in [false, true] {
        let (cut, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        copy_dir(dir.path(), cut.path());
        copy_dir(dir.path(), after.path());
        let rig = Rig::open(after.path());
        if replaced {
            rig.keyring.replace(given(&[2, 1])).unwrap();
        }
        fs::copy(after.path().join("keyring"), cut.path().join("keyring")).unwrap();
        let mut rig = Rig::try_open(with(cut.path(), &[2, 1])).unwrap();
        assert_eq!(rig.live[&key(1, 0)], b"before");
        rig.send(&[b"after"]);
        rig.commit();
        rig.read_all();
        drop(rig);
        Rig::try_open(with(cut.path(), &[2, 1])).unwrap().read_all();
    }
}

#[test]
fn after_a_change_of_the_root_key_all_that_is_written_is_under_the_new_one() {
    for durability in [Durability::Always, Durability::Os] {
        let dir = tempfile::tempdir().unwrap();
        let mut rig = Rig::try_open(Options { durability, ..options(dir.path()) }).unwrap();
        work(&mut rig, b"before");
        // So much that segments are made ahead.
        rig.send(&[&[1; 50_000]]);
        rig.commit();
        rig.settle_down();
        let old = rig.journal.next_index();
        let names = files(dir.path(), "");
        let error = rig.keyring.replace(given(&[2])).unwrap_err();
        assert!(error.contains(&root(1).id().to_string()), "{error}");
        rig.keyring.replace(given(&[2, 1])).unwrap();
        assert_eq!(rig.keyring.status().current, Some(root(2).id()));
        work(&mut rig, b"after");
        let status = rig.keyring.status();
        assert!(status.uses[&Some(root(2).id())].files > 1, "{status:?}");
        for path in files(dir.path(), ".log").into_iter().filter(|path| !names.contains(path)) {
            let bytes = fs::read(&path).unwrap();
            let first = bytes.get(24..32).map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
            assert!(first == 0 || first >= old, "{path:?} begins with record {first}, from before {old}");
        }
        rig.read_all();
        let live = rig.live.clone();
        drop(rig);
        let mut rig = Rig::try_open(Options { durability, ..with(dir.path(), &[2, 1]) }).unwrap();
        assert_eq!(rig.live, live);
        // What stays is copied by compaction; what does not goes. Then the old key is needed no more.
        for blob in live.keys() {
            rig.settle(*blob);
        }
        rig.commit();
        rig.snapshot();
        rig.settle_down();
        assert_eq!(rig.keyring.status().uses.keys().collect::<Vec<_>>(), [&Some(root(2).id())]);
        drop(rig);
        assert_eq!(Rig::try_open(with(dir.path(), &[2])).unwrap().live.len(), 0);
    }
}

#[test]
fn root_keys_change_while_others_write() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Options { durability: Durability::Os, segment_bytes: 16 << 10, ..options(dir.path()) };
    let Rig { mut journal, writer, mut maintenance, keyring, .. } = Rig::try_open(settings).unwrap();
    let stopper = writer.clone();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut now_us = 0;
            while maintenance.wait(Some(std::time::Duration::ZERO)) {
                now_us += 100;
                maintenance.step(now_us);
            }
        });
        let writing = threads.spawn(move || {
            for at in 0..5_000u64 {
                let mut batch = Batch::new();
                batch.record(0).body(&[7; 300]);
                journal.propose(&mut batch, 1_000_000 + at, Class::Growing).unwrap();
                writer.step();
                while let Some(event) = journal.poll() {
                    assert!(matches!(event, Event::Committed(_)), "{event:?}");
                }
            }
        });
        for round in 2..40 {
            let keys: Vec<u8> = (1..=round).rev().collect();
            keyring.replace(given(&keys)).unwrap();
        }
        writing.join().unwrap();
        stopper.stop();
    });
    drop((keyring, maintenance, stopper));
    let all: Vec<u8> = (1..40).rev().collect();
    let rig = Rig::try_open(with(dir.path(), &all)).unwrap();
    assert_eq!((rig.applied, rig.behaviour), (5_000, None));
}

#[test]
fn a_keyring_that_finds_no_room_is_no_end() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, disk) = Faults::new();
    let mut rig = Rig::try_open_on(disk.clone(), options(dir.path())).unwrap();
    rig.send(&[b"before"]);
    rig.commit();
    faults.free.store(100, Relaxed);
    assert!(rig.keyring.replace(given(&[2, 1])).is_err());
    assert_eq!(rig.keyring.status().current, Some(root(1).id()));
    faults.free.store(1 << 40, Relaxed);
    rig.now_us += 10_000_000;
    work(&mut rig, b"with the old key");
    rig.keyring.replace(given(&[2, 1])).unwrap();
    work(&mut rig, b"with the new key");
    rig.read_all();
    let live = rig.live.clone();
    drop(rig);
    assert_eq!(Rig::try_open_on(disk, with(dir.path(), &[2, 1])).unwrap().live, live);
}

#[test]
fn no_key_is_used_by_two_starts() {
    let dir = tempfile::tempdir().unwrap();
    let (_, disk) = Faults::new();
    for round in 0..5u8 {
        // The disk remembers each nonce of each segment, and compares.
        let mut rig = Rig::try_open_on(disk.clone(), options(dir.path())).unwrap();
        rig.send(&[&[round; 30_000]]);
        rig.send(&[&[round; 100]]);
        rig.commit();
        rig.read_all();
    }
    let before = fs::read(dir.path().join("keyring")).unwrap();
    let copy = tempfile::tempdir().unwrap();
    copy_dir(dir.path(), copy.path());
    drop(Rig::open(dir.path()));
    drop(Rig::open(copy.path()));
    let (one, two) =
        (fs::read(dir.path().join("keyring")).unwrap(), fs::read(copy.path().join("keyring")).unwrap());
    assert!(one != two && one != before, "a copied directory goes on with other keys");
    assert_eq!(Rig::open(dir.path()).behaviour.unwrap_or(BEHAVIOUR), BEHAVIOUR);
}

#[test]
fn damage_of_one_blob_leaves_the_rest_and_compaction_keeps_it_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let mut rig = Rig::open(dir.path());
    for number in 0..40u8 {
        rig.send(&[&[number; 3_000]]);
        rig.commit();
        rig.maintenance.step(0);
    }
    rig.settle_down();
    let path = files(dir.path(), ".log").remove(0);
    let mut bytes = fs::read(&path).unwrap();
    let second = bytes.windows(4).enumerate().filter(|(_, window)| *window == b"SLB1").nth(1).unwrap().0;
    bytes[second + 1_000] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let damaged = |rig: &mut Rig| {
        let keys: Vec<BlobKey> = rig.live.keys().copied().collect();
        let unread = |key: &BlobKey| match rig.journal.read(*key) {
            BlobRead::OnDisk(location) => matches!(location.read(), Err(BlobError::Damaged(_))),
            _ => false,
        };
        keys.into_iter().filter(unread).collect::<Vec<_>>()
    };
    assert_eq!(damaged(&mut rig), [key(2, 0)]);
    for index in 3..=38 {
        rig.settle(key(index, 0));
    }
    rig.commit();
    rig.snapshot();
    rig.settle_down();
    assert!(rig.journal.status().compacted_bytes > 0 && !path.exists());
    assert_eq!(damaged(&mut rig), [key(2, 0)]);
    drop(rig);
    let problems = check(Arc::new(FsDisk), dir.path(), &roots()).unwrap().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
}
