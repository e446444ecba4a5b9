//! Damage to payloads on the disk of one node, of which the others have whole copies: whoever reads them gets
//! what was sent, and nothing is lost.
//!
//! A machine that loses power, or that is removed, may take the last whole copy with it. So one that has it
//! does neither, and of a payload that others have lost nothing is damaged. Where the disk is encrypted, a
//! bit spoils all payloads of its chunk.

use std::collections::BTreeSet;

use sluice_engine::id::MessageId;
use sluice_journal::{BlobCopy, BlobKey, BlobLocation, BlobRead, Journal};

use super::{ClusterWorld, SECOND_US};
use crate::disk::{Damaged, SimDisk};
use crate::model::Checked;

/// Time after which who has found a payload damaged waits no longer, in microseconds.
const WAIT_US: u64 = 6 * SECOND_US;

/// Damage to a node's disk.
#[derive(Debug, Default)]
pub(super) struct Harmed {
    /// Damage that is undone when the process ends: what a start makes of it is told elsewhere.
    damages: Vec<Damaged>,
    /// True once there was any.
    pub(super) is_harmed: bool,
}

impl Harmed {
    /// Undoes damage where it is still there, when the process ends.
    pub(super) fn mend(&mut self, disk: &SimDisk) {
        std::mem::take(&mut self.damages).iter().rev().for_each(|damaged| disk.mend(damaged));
    }
}

/// Payload that was found damaged, of which a copy is awaited.
#[derive(Debug)]
pub(super) struct Awaited {
    pub(super) location: BlobLocation,
    pub(super) id: MessageId,
    pub(super) since_us: u64,
}

impl ClusterWorld {
    /// Flips a bit of a blob that is not in the memory of the node whose disk is bad, unless that spoils a
    /// payload of which there is no other copy.
    pub(super) fn damage(&mut self) -> Checked {
        if self.loses_machines() {
            return Ok(());
        }
        let owner = &mut self.nodes[self.bad_disk];
        let Some(server) = &mut owner.server else { return Ok(()) };
        let live: Vec<BlobKey> = server.live_blobs().collect();
        if live.is_empty() {
            return Ok(());
        }
        let key = *self.rng.pick(&live);
        let BlobRead::OnDisk(location) = server.shard.store().read(key) else { return Ok(()) };
        if location.is_empty() || !self.has_copy_besides(self.bad_disk, key) {
            return Ok(());
        }
        let (path, first) = location.place();
        let owner = &mut self.nodes[self.bad_disk];
        let Some(damaged) = owner.disk.flip(path, first as usize + self.rng.index(location.len())) else {
            return Ok(());
        };
        let spoiled = owner.spoiled(path, &live);
        if !spoiled.iter().all(|key| self.has_copy_besides(self.bad_disk, *key)) {
            self.nodes[self.bad_disk].disk.mend(&damaged);
            return Ok(());
        }
        let harmed = &mut self.nodes[self.bad_disk].harmed;
        harmed.is_harmed = true;
        harmed.damages.push(damaged);
        self.trace(|| format!("  {spoiled:?} are damaged, for {key:?}"));
        self.damaged.extend(spoiled);
        Ok(())
    }

    /// True: without this node there is a whole copy of each payload that was ever damaged, and is needed.
    pub(super) fn has_copies_besides(&mut self, node: usize) -> bool {
        let last = self.checker.last();
        let mut newest = self.nodes.iter().filter(|node| node.applied == last);
        if let Some(server) = newest.find_map(|node| node.server.as_ref()) {
            let live: BTreeSet<BlobKey> = server.live_blobs().collect();
            self.damaged.retain(|key| live.contains(key));
        }
        let damaged = self.damaged.clone();
        damaged.iter().all(|key| self.has_copy_besides(node, *key))
    }

    /// True: another node that is to stay and has lost no power has a whole copy.
    fn has_copy_besides(&mut self, node: usize, key: BlobKey) -> bool {
        let others: Vec<usize> = self.present().filter(|place| *place != node).collect();
        others.into_iter().any(|place| {
            let other = &mut self.nodes[place];
            !other.has_lost_power && other.has_whole(key)
        })
    }

    /// Looks for the copies that are awaited.
    pub(super) fn look_for_copies(&mut self) -> Checked {
        for awaited in std::mem::take(&mut self.judge.awaited) {
            match awaited.location.copy() {
                BlobCopy::Whole(bytes) => {
                    self.judge.has_payload(&bytes, awaited.id)?;
                    self.stats.repairs += 1;
                }
                BlobCopy::Lost => {
                    return Err(format!("{} is told to be lost, and is damaged on one disk", awaited.id));
                }
                BlobCopy::Awaited if awaited.since_us + WAIT_US < self.now_us => {}
                BlobCopy::Awaited => self.judge.awaited.push(awaited),
            }
        }
        Ok(())
    }
}
