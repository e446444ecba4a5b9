//! Disks that are full, of one member or of several.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sluice_engine::Error;
use sluice_engine::id::Receipt;
use sluice_journal::disk::{DirLock, Disk, File, LockError, OpenMode};
use sluice_journal::{DiskJournal, FsDisk};

use super::{SECOND_US, TICK_US, Trio};
use crate::replicas::calls::Answered;

/// Reserve of each journal, in bytes.
pub const RESERVE: u64 = 256 << 10;
/// Margin of each journal, in bytes.
pub const MARGIN: u64 = 64 << 10;
/// Length of a message, in bytes.
const MESSAGE: usize = 8 << 10;

/// A disk that tells of less free space than there is, once its size is set.
#[derive(Clone, Default, Debug)]
pub struct SmallDisk(Arc<AtomicU64>);

impl SmallDisk {
    /// Lets files grow by so many bytes from now on; `None`: without limit.
    fn leave(&self, dir: &Path, bytes: Option<u64>) {
        self.0.store(bytes.map_or(0, |bytes| used(dir) + bytes), Relaxed);
    }
}

fn used(dir: &Path) -> u64 {
    std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

impl Disk for SmallDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        FsDisk.create_dir(dir)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        FsDisk.open(path, mode)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        FsDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        FsDisk.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        FsDisk.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        FsDisk.sync_dir(dir)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        match self.0.load(Relaxed) {
            0 => Ok(1 << 40),
            size => Ok(size.saturating_sub(used(dir))),
        }
    }

    fn lock(&self, dir: &Path) -> Result<Box<dyn DirLock>, LockError> {
        FsDisk.lock(dir)
    }

    fn is_locked(&self, dir: &Path) -> io::Result<bool> {
        FsDisk.is_locked(dir)
    }
}

impl Trio {
    /// Leaves a node so many bytes of its disk, which is full with less than reserve and margin.
    fn leave(&mut self, place: usize, bytes: Option<u64>) {
        self.disks[place].leave(&self.dir.path().join(place.to_string()), bytes);
        // An idle journal looks at its disk each ten seconds.
        self.pass(11 * SECOND_US);
    }

    /// Leaves nodes nothing of their disks, not even what their reserves take.
    fn spend(&mut self, places: &[usize]) {
        places.iter().for_each(|place| self.disks[*place].0.store(1, Relaxed));
        self.pass(11 * SECOND_US);
    }

    /// Sends large messages, and lets time pass; the first error, if there is one.
    fn fill(&mut self, place: usize, messages: usize) -> Result<(), Error> {
        for number in 0..messages {
            let call = self.client(place).send("jobs", format!("{number:MESSAGE$}"), 0);
            let Answered::Sent(sent) = self.answer(call) else { panic!("the answer to a send") };
            sent?;
            self.pass(TICK_US);
        }
        Ok(())
    }

    fn take_three(&mut self, place: usize) -> Vec<Receipt> {
        let call = self.client(place).pull("jobs", 0);
        let Answered::Given(Ok(given)) = self.answer(call) else { panic!("it leads") };
        given.iter().map(|given| given.delivery.receipt).collect()
    }

    /// Takes and settles so many messages, three at a time.
    fn drain(&mut self, place: usize, messages: usize) {
        for _ in 0..messages / 3 {
            let receipts = self.take_three(place);
            assert_eq!(receipts.len(), 3);
            for receipt in receipts {
                let call = self.client(place).ack(receipt);
                assert!(matches!(self.answer(call), Answered::Settled(Ok(()))));
                self.pass(TICK_US);
            }
        }
    }

    fn journal(&mut self, place: usize) -> &DiskJournal {
        self.machines[place].shard.store().member().journal()
    }

    /// Room that is left for what frees space, in bytes.
    fn spare(&mut self, place: usize) -> u64 {
        let status = self.journal(place).status();
        status.disk_free_bytes + status.reserve_bytes
    }
}

#[test]
fn a_full_follower_is_done_without_and_keeps_half_of_its_reserve() {
    let mut trio = Trio::new(1 << 30);
    let leader = trio.leader();
    let full = (leader + 1) % 3;
    trio.leave(full, Some(MARGIN / 2));
    trio.fill(leader, 100).unwrap();
    assert!(
        trio.machines[leader].shard.engine().applied_index()
            > trio.machines[full].shard.engine().applied_index()
    );
    assert!(trio.spare(full) > RESERVE / 2, "{:?}", trio.journal(full).status());
    assert_eq!(trio.machines[full].outbox.without_room.load(Relaxed), 0, "nothing is sent to be dropped");
    trio.drain(leader, 30);
    trio.leave(full, None);
    trio.check_equal();
    assert_eq!(trio.leader(), leader);
}

#[test]
fn where_a_majority_is_full_sends_are_refused_and_settling_goes_on() {
    let mut trio = Trio::new(1 << 30);
    let leader = trio.leader();
    trio.fill(leader, 120).unwrap();
    for place in [leader + 1, leader + 2] {
        trio.leave(place % 3, Some(MARGIN / 2));
    }
    let refused = trio.fill(leader, 1);
    assert!(matches!(refused, Err(Error::DiskFull { free_bytes: 0, .. })), "{refused:?}");
    trio.drain(leader, 117);
    assert_eq!(trio.leader(), leader);
    trio.leave((leader + 1) % 3, None);
    trio.fill(leader, 1).unwrap();
    trio.leave((leader + 2) % 3, None);
    trio.check_equal();
}

#[test]
fn a_full_leader_hands_over_to_a_member_that_has_room() {
    let mut trio = Trio::new(1 << 30);
    let old = trio.leader();
    trio.fill(old, 10).unwrap();
    trio.leave((old + 1) % 3, Some(MARGIN / 2));
    trio.leave(old, Some(MARGIN / 2));
    let new = trio.leader();
    assert_eq!(new, (old + 2) % 3);
    let refused = trio.fill(new, 1);
    assert!(matches!(refused, Err(Error::DiskFull { .. })), "two of three are full: {refused:?}");
    trio.leave((old + 1) % 3, None);
    trio.fill(new, 10).unwrap();
    trio.drain(new, 9);
    assert_eq!(trio.leader(), new);
    trio.leave(old, None);
    trio.check_equal();
}

#[test]
fn where_all_are_full_the_leader_leads_on_and_settling_makes_room() {
    let mut trio = Trio::new(0);
    let leader = trio.leader();
    trio.fill(leader, 120).unwrap();
    (0..3).for_each(|place| trio.leave(place, Some(MARGIN / 2)));
    let leader = trio.leader();
    assert!(matches!(trio.fill(leader, 1), Err(Error::DiskFull { .. })));
    trio.drain(leader, 120);
    trio.pass(10 * SECOND_US);
    let leader = trio.leader();
    trio.fill(leader, 1).unwrap();
    trio.check_equal();
}

#[test]
fn once_the_reserves_of_a_majority_are_spent_settling_is_refused_until_there_is_room() {
    let mut trio = Trio::new(1 << 30);
    let leader = trio.leader();
    trio.fill(leader, 12).unwrap();
    let receipts = trio.take_three(leader);
    let (one, other) = ((leader + 1) % 3, (leader + 2) % 3);
    trio.spend(&[one, other]);
    let call = trio.client(leader).ack(receipts[0]);
    let Answered::Settled(refused) = trio.answer(call) else { panic!("the answer to an ack") };
    assert!(matches!(refused, Err(Error::DiskFull { free_bytes: 0, .. })), "{refused:?}");
    let refused = trio.fill(leader, 1);
    assert!(matches!(refused, Err(Error::DiskFull { free_bytes: 0, .. })), "{refused:?}");
    assert_eq!(trio.leader(), leader);
    trio.leave(one, None);
    trio.drain(leader, 12);
    trio.fill(leader, 1).unwrap();
    trio.leave(other, None);
    trio.check_equal();
}

#[test]
fn a_leader_whose_reserve_is_spent_hands_over_to_a_member_that_has_one() {
    let mut trio = Trio::new(1 << 30);
    let old = trio.leader();
    trio.fill(old, 12).unwrap();
    for place in [old + 1, old + 2, old] {
        trio.leave(place % 3, Some(MARGIN / 2));
    }
    assert_eq!(trio.leader(), old, "no other has more room");
    trio.spend(&[old]);
    let new = trio.leader();
    assert_ne!(new, old);
    trio.drain(new, 12);
    (0..3).for_each(|place| trio.leave(place, None));
    trio.check_equal();
}

#[test]
fn a_full_follower_takes_a_state_with_half_of_its_reserve() {
    let mut trio = Trio::new(0);
    let leader = trio.leader();
    let behind = (leader + 1) % 3;
    trio.machines[behind].is_cut_off = true;
    trio.fill(leader, 60).unwrap();
    trio.drain(leader, 60);
    trio.snapshot(leader);
    trio.leave(behind, Some(MARGIN / 2));
    trio.machines[behind].is_cut_off = false;
    trio.pass(10 * SECOND_US);
    assert_eq!(trio.machines[behind].shard.store().member().state_counts().received, 1);
    trio.check_equal();
}
