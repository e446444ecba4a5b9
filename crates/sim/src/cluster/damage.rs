//! Damage to payloads on the disk of one node, of which the others have whole copies: whoever reads them gets
//! what was sent, and nothing is lost.

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
    /// Flips a bit of a blob that is not in the memory of the node whose disk is bad.
    pub(super) fn damage(&mut self) -> Checked {
        if self.loses_machines() {
            return Ok(());
        }
        let owner = &mut self.nodes[self.bad_disk];
        let Some(server) = &mut owner.server else { return Ok(()) };
        let live: Vec<BlobKey> = server
            .shard
            .engine()
            .live_blobs()
            .map(|blob| BlobKey { index: blob.index, item: blob.item })
            .collect();
        if live.is_empty() {
            return Ok(());
        }
        let key = *self.rng.pick(&live);
        let BlobRead::OnDisk(location) = server.shard.store().read(key) else { return Ok(()) };
        if location.is_empty() {
            return Ok(());
        }
        let (path, first) = location.place();
        let damaged = owner.disk.flip(path, first as usize + self.rng.index(location.len()));
        owner.harmed.is_harmed |= damaged.is_some();
        owner.harmed.damages.extend(damaged);
        self.trace(|| format!("  {key:?} is damaged"));
        Ok(())
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
