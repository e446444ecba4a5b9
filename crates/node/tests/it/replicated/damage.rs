//! What a node does without, since it is damaged or was given up, keeps neither it nor others from going on.

use std::os::unix::fs::FileExt;

use sluice_journal::BlobKey;
use sluice_replica::Change;

use super::{Trio, node, one_far_behind};
use crate::rig::SECOND_US;

#[test]
fn a_node_that_goes_on_without_a_payload_gives_its_state_to_a_new_one() {
    let mut trio = Trio::new(16 << 10);
    let (leader, lost) = one_far_behind(&mut trio);
    // The last message that was sent has none, as if the node had not got it before `cluster recover`.
    let member = trio.machines[leader].shard.store().member();
    let index = member.given_index();
    let journal = member.journal_mut();
    let key = BlobKey { index, item: 0 };
    assert!(journal.holds(key));
    sluice_journal::Journal::release(journal, key);
    journal.go_on_without_blobs().unwrap();
    std::fs::remove_dir_all(trio.dir.path().join(lost.to_string())).unwrap();
    let old = std::mem::replace(&mut trio.ids[lost], node(3));
    trio.restart(lost);
    let new = trio.ids[lost];
    trio.change(leader, Change::Replace { old, new });
    trio.check_equal();
    // It starts again, though what releases the message has not come.
    trio.send(leader, 200);
    trio.restart(lost);
    trio.check_equal();
}

#[test]
fn a_node_starts_without_a_damaged_log_before_its_snapshot() {
    let mut trio = Trio::new(1 << 30);
    let leader = trio.leader();
    let away = (leader + 1) % 3;
    trio.machines[away].is_cut_off = true;
    let member = trio.machines[leader].shard.store().member();
    let (at, _) = member.journal().before_last(0, u64::MAX);
    for _ in 0..3 {
        trio.send(leader, 150);
        trio.snapshot(leader);
    }
    assert!(at < trio.machines[leader].shard.store().member().journal().before_last(0, u64::MAX).0);
    let dir = trio.dir.path().join(leader.to_string());
    let mut segments: Vec<_> = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
    segments.retain(|path| path.extension().is_some_and(|kind| kind == "log"));
    segments.sort();
    let file = std::fs::File::options().write(true).open(&segments[0]).unwrap();
    file.write_all_at(&[0xff; 64], 200).unwrap();
    trio.restart(leader);
    trio.machines[away].is_cut_off = false;
    trio.pass(5 * SECOND_US);
    let leader = trio.leader();
    trio.send(leader, 1);
    trio.check_equal();
}
