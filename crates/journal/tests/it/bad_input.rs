//! Each file of a data directory in each bad state: refused with place and advice, or proven harmless.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sluice_journal::*;

use crate::recovery::{believe_nothing_wrong, contents};
use crate::rig::{Rig, copy_dir, make_every_kind, options, plain};

/// What becomes of a file that had these bytes, and at an earlier time others; `None`: it is gone.
type Change = fn(&[u8], &[u8]) -> Option<Vec<u8>>;

const CHANGES: [(&str, Change); 9] = [
    ("missing", |_, _| None),
    ("empty", |_, _| Some(Vec::new())),
    ("cut by a byte", |bytes, _| Some(bytes[..bytes.len().saturating_sub(1)].to_vec())),
    ("cut by half", |bytes, _| Some(bytes[..bytes.len() / 2].to_vec())),
    ("its last byte zeroed", |bytes, _| Some(zeroed(bytes, used(bytes).saturating_sub(1)))),
    ("its last sector zeroed", |bytes, _| Some(zeroed(bytes, used(bytes).saturating_sub(512)))),
    ("its second half zeroed", |bytes, _| Some(zeroed(bytes, used(bytes) / 2))),
    ("all of it zeroed", |bytes, _| Some(zeroed(bytes, 0))),
    ("as it was before", |_, older| Some(older.to_vec())),
];

/// Parts of a file in each of which a bit is flipped.
const REGIONS: usize = 8;

/// Where the last byte ends that is not zero.
fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1)
}

fn zeroed(bytes: &[u8], from: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[from..].fill(0);
    bytes
}

#[test]
fn no_bad_file_is_believed() {
    change_each_file(plain, Durability::Os);
    change_each_file(options, Durability::Always);
}

#[test]
fn a_manifest_of_any_length_takes_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    make_every_kind(plain(dir.path()));
    let manifest = fs::OpenOptions::new().write(true).open(dir.path().join("manifest")).unwrap();
    manifest.set_len(1 << 50).or_else(|_| manifest.set_len(1 << 42)).unwrap();
    let error = Rig::try_open(plain(dir.path())).err().unwrap().to_string();
    assert!(error.contains("manifest") && error.contains("which no manifest reaches"), "{error}");
}

fn change_each_file(made: fn(&Path) -> Options, durability: Durability) {
    let (dir, older) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make_every_kind(made(dir.path()));
    copy_dir(dir.path(), older.path());
    let mut rig = Rig::try_open(Options { durability, ..made(dir.path()) }).unwrap();
    for text in [&b"one"[..], b"two"] {
        rig.send(&[text, &[5; 2000]]);
        rig.commit();
        rig.settle_down();
    }
    rig.writer.finish().unwrap();
    let live = rig.live.clone();
    drop(rig);
    let older = contents(older.path());
    for (name, bytes) in contents(dir.path()) {
        for (what, change) in CHANGES {
            let before = older.get(&name).unwrap_or(&bytes);
            try_with(dir.path(), &name, what, change(&bytes, before).as_deref(), &live);
        }
        for region in 0..REGIONS {
            let mut flipped = bytes.clone();
            let at = region * used(&bytes) / REGIONS;
            let Some(byte) = flipped.get_mut(at) else { continue };
            *byte ^= 0x10;
            try_with(dir.path(), &name, &format!("flipped at {at}"), Some(&flipped), &live);
        }
    }
}

/// Opens a copy of the directory in which one file has these bytes, or is not there.
fn try_with(dir: &Path, name: &Path, what: &str, bytes: Option<&[u8]>, live: &BTreeMap<BlobKey, Vec<u8>>) {
    let copy = tempfile::tempdir().unwrap();
    copy_dir(dir, copy.path());
    let path = copy.path().join(name);
    match bytes {
        Some(bytes) => fs::write(&path, bytes).unwrap(),
        None => fs::remove_file(&path).unwrap(),
    }
    believe_nothing_wrong(copy.path(), name, what, live);
}
