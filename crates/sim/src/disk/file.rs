//! The contents of one file: what processes read, and what a power loss would leave of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::rng::Rng;

/// Bytes that a disk writes at once; a write may still be torn inside a sector.
pub(super) const SECTOR: usize = 512;

/// Effect of a power loss on the sectors that were not synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Writeback {
    /// None was written.
    Nothing,
    /// All were written.
    Everything,
    /// Each by itself is lost, written or torn.
    Mixed,
}

/// One file.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    /// Contents as processes read and write them: the page cache.
    pub(super) cache: Vec<u8>,
    /// Contents that survive a power loss.
    platter: Vec<u8>,
    /// Sectors written since the last successful sync.
    dirty: BTreeSet<usize>,
    /// Sectors whose write-back failed: readable, clean for the system, and not on the platter.
    lost: BTreeSet<usize>,
    /// Bytes of disk space that the file takes; beyond them it is a hole.
    allocated: usize,
    /// Bytes damaged and not written since, by their offset.
    damage: BTreeMap<usize, Damage>,
}

/// A damaged byte.
#[derive(Clone, Copy, Debug)]
struct Damage {
    /// The value that was written.
    was: u8,
    /// True when the platter has the damaged value, too.
    on_platter: bool,
}

impl File {
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        let overwritten: Vec<usize> = self.damage.range(at..end).map(|(at, _)| *at).collect();
        for at in overwritten {
            self.mend(at);
        }
        if self.cache.len() < end {
            self.cache.resize(end, 0);
        }
        self.cache[at..end].copy_from_slice(bytes);
        self.allocated = self.allocated.max(end.next_multiple_of(SECTOR));
        if !bytes.is_empty() {
            for sector in at / SECTOR..=(end - 1) / SECTOR {
                self.dirty.insert(sector);
                self.lost.remove(&sector);
            }
        }
    }

    /// Cuts the file, or grows it with zeros; like any change of size, durable only after a sync.
    pub(super) fn set_len(&mut self, len: usize) {
        let before = self.cache.len();
        self.damage.split_off(&len);
        if len < before && !len.is_multiple_of(SECTOR) {
            self.dirty.insert(len / SECTOR);
        }
        self.cache.resize(len, 0);
        self.allocated = self.allocated.min(len.next_multiple_of(SECTOR));
        let keep = len.div_ceil(SECTOR);
        self.dirty.retain(|&sector| sector < keep);
        self.lost.retain(|&sector| sector < keep);
    }

    /// Takes disk space for the first `len` bytes, and makes the file that long.
    pub(super) fn allocate(&mut self, len: usize) {
        if self.cache.len() < len {
            self.set_len(len);
        }
        self.allocated = self.allocated.max(len.next_multiple_of(SECTOR));
    }

    /// Room that the file takes on the disk.
    pub(super) fn allocated(&self) -> usize {
        self.allocated
    }

    pub(super) fn sync(&mut self) {
        self.platter.resize(self.cache.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            self.put_on_platter(self.range(sector));
        }
        // The undamaged bytes would be durable now, those of a cut end too.
        for (_, damage) in self.damage.iter_mut().filter(|(at, _)| !self.lost.contains(&(**at / SECTOR))) {
            damage.on_platter = true;
        }
    }

    /// Fails a sync: some sectors are written, the others are marked clean all the same.
    pub(super) fn fail_sync(&mut self, rng: &mut Rng) {
        for sector in std::mem::take(&mut self.dirty) {
            if rng.chance(1, 2) {
                self.lost.insert(sector);
            } else if self.platter.len() >= self.range(sector).end {
                self.put_on_platter(self.range(sector));
            } else {
                self.lost.insert(sector);
            }
        }
    }

    /// True when a sync has failed, and what it did not write is still read from the cache.
    pub(super) fn may_lose(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Drops pages whose write-back has failed, as a system may: from now on the old contents are read.
    pub(super) fn evict_lost(&mut self) {
        for sector in std::mem::take(&mut self.lost) {
            let range = self.range(sector);
            let old = self.platter.get(range.clone()).map_or(vec![0; range.len()], <[u8]>::to_vec);
            self.cache[range.clone()].copy_from_slice(&old);
            self.damage.retain(|at, damage| damage.on_platter || !range.contains(at));
        }
    }

    /// Damages a byte in the cache, and on the platter where that has the same value.
    pub(super) fn damage(&mut self, at: usize, by: u8) {
        let Some(byte) = self.cache.get_mut(at) else { return };
        let was = std::mem::replace(byte, by);
        let on_platter = self.platter.get(at) == Some(&was);
        if on_platter {
            self.platter[at] = by;
        }
        self.damage.entry(at).or_insert(Damage { was, on_platter });
    }

    /// Cuts off the end, in the cache and on the platter.
    pub(super) fn cut_off(&mut self, from: usize) {
        for at in from..self.cache.len() {
            self.damage(at, 0);
        }
        self.cache.truncate(from);
        self.platter.truncate(from);
        let keep = from.div_ceil(SECTOR);
        self.dirty.retain(|&sector| sector < keep);
        self.lost.retain(|&sector| sector < keep);
    }

    /// Undoes damage, unless the byte was written since.
    pub(super) fn mend(&mut self, at: usize) {
        let Some(damage) = self.damage.remove(&at) else { return };
        if self.cache.len() <= at {
            self.cache.resize(at + 1, 0);
        }
        if damage.on_platter && self.platter.len() <= at {
            self.platter.resize(at + 1, 0);
        }
        if let Some(byte) = self.cache.get_mut(at) {
            *byte = damage.was;
        }
        if let Some(byte) = self.platter.get_mut(at).filter(|_| damage.on_platter) {
            *byte = damage.was;
        }
    }

    pub(super) fn lose_power(&mut self, writeback: Writeback, rng: &mut Rng) {
        let grown = self.grown_to(writeback, rng);
        self.platter.resize(grown, 0);
        for sector in std::mem::take(&mut self.dirty) {
            let range = self.range(sector);
            let range = range.start.min(grown)..range.end.min(grown);
            if !range.is_empty() {
                self.write_back(range, writeback, rng);
            }
        }
        self.lost.clear();
        self.allocated = self.platter.len().next_multiple_of(SECTOR);
        self.cache.clone_from(&self.platter);
        self.damage.retain(|_, damage| damage.on_platter);
    }

    /// The size after a power loss: the old one, the new one, or one in between.
    fn grown_to(&self, writeback: Writeback, rng: &mut Rng) -> usize {
        let (old, new) = (self.platter.len(), self.cache.len());
        match writeback {
            Writeback::Nothing => old,
            Writeback::Everything => new,
            Writeback::Mixed => match rng.below(3) {
                0 => old,
                1 => new,
                _ => rng.between(old.min(new) as u64, old.max(new) as u64) as usize,
            },
        }
    }

    fn write_back(&mut self, range: Range<usize>, writeback: Writeback, rng: &mut Rng) {
        let range = match writeback {
            Writeback::Nothing => return,
            Writeback::Everything => range,
            Writeback::Mixed => match rng.below(8) {
                0..=2 => return,
                3..=5 => range,
                6 => range.start..range.start + rng.index(range.len()),
                _ => range.start + rng.index(range.len())..range.end,
            },
        };
        let end = range.end.min(self.cache.len());
        if range.start < end {
            self.put_on_platter(range.start..end);
        }
    }

    fn put_on_platter(&mut self, range: Range<usize>) {
        self.platter[range.clone()].copy_from_slice(&self.cache[range.clone()]);
        for (_, damage) in self.damage.range_mut(range) {
            damage.on_platter = true;
        }
    }

    fn range(&self, sector: usize) -> Range<usize> {
        let start = (sector * SECTOR).min(self.cache.len());
        start..((sector + 1) * SECTOR).min(self.cache.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_loss_takes_what_was_not_synced_and_nothing_else() {
        let mut file = File::default();
        file.write(0, b"synced");
        file.sync();
        file.write(6, b" and not");
        file.lose_power(Writeback::Nothing, &mut Rng::new(0));
        assert_eq!(file.cache, b"synced");
    }

    #[test]
    fn a_failed_sync_leaves_pages_that_read_well_and_are_lost_after_a_later_good_sync() {
        let mut rng = Rng::new(0);
        let mut file = File::default();
        for sector in 0..64 {
            file.write(sector * SECTOR, &[7; SECTOR]);
        }
        file.fail_sync(&mut rng);
        assert!(file.cache.iter().all(|&byte| byte == 7), "readable");
        file.sync();
        file.lose_power(Writeback::Everything, &mut rng);
        assert!(file.cache.contains(&0), "but lost");
    }

    #[test]
    fn damage_is_mended_but_not_what_was_written_over_it() {
        let mut file = File::default();
        file.write(0, &[0, 0]);
        file.sync();
        file.damage(0, 128);
        file.damage(1, 128);
        assert_eq!(file.cache, [128, 128]);
        file.write(0, &[128]);
        file.mend(0);
        file.mend(1);
        assert_eq!(file.cache, [128, 0]);
        file.lose_power(Writeback::Nothing, &mut Rng::new(0));
        assert_eq!(file.cache, [0, 0], "the platter is mended, too");
    }

    #[test]
    fn an_end_that_was_cut_off_comes_back_but_not_what_was_written_since() {
        let mut file = File::default();
        file.write(0, &[1; 1000]);
        file.sync();
        file.cut_off(600);
        assert_eq!((file.cache.len(), file.platter.len()), (600, 600));
        file.write(700, &[2; 100]);
        file.sync();
        assert_eq!(file.cache[650], 0, "a hole");
        (600..1000).for_each(|at| file.mend(at));
        let whole = [&[1; 700][..], &[2; 100], &[1; 200]].concat();
        assert_eq!(file.cache, whole);
        file.lose_power(Writeback::Nothing, &mut Rng::new(0));
        assert_eq!(file.cache, whole);
    }

    #[test]
    fn a_mixed_power_loss_reorders_and_tears() {
        let mut rng = Rng::new(3);
        let mut file = File::default();
        file.set_len(64 * SECTOR);
        file.sync();
        file.write(0, &[9; 64 * SECTOR]);
        file.lose_power(Writeback::Mixed, &mut rng);
        let sectors: Vec<_> = file.cache.chunks(SECTOR).collect();
        assert!(sectors.iter().any(|s| s.contains(&9) && s.contains(&0)), "a torn sector");
        let first_lost = sectors.iter().position(|s| !s.contains(&9)).expect("some are lost");
        assert!(sectors[first_lost..].iter().any(|s| !s.contains(&0)), "a later one survived an earlier one");
    }
}
