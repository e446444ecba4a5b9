//! What a node does without, since it is damaged or was given up, keeps neither it nor others from going on.

use sluice_journal::BlobKey;
use sluice_replica::Change;

use super::{Trio, node, one_far_behind};

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
