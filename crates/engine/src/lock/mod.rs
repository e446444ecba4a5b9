//! The module of locks: keys that are held for a time, under a fencing token.
//!
//! - `state`: what is kept, and its layout in a snapshot; `record`: the layouts of commands in the log.
//! - Rooms: `acquire`; `holding` renew, release and break; `waiting` the lines of those that wait, and who
//!   is next; `namespaces` deletion. `check` is what is refused whatever the state is.
//! - For others: `view` reads, `recount`.
//!
//! Decided here:
//!
//! - Who waits holds nothing. A claim is granted when it is the first in the line of each of its keys and all
//!   of them have room. All lines have one order, that of coming, so there is always one that can go on.
//! - Nobody goes past a line: a reader that comes behind a waiting writer waits too.
//! - A grant from a line ends after [`LOCK_TAKE_MS`](crate::limits::LOCK_TAKE_MS), unless it is renewed:
//!   whoever waited may be gone.
//! - Whether a grant is over is a question of the time, not of whether its timer has fired.

pub(crate) mod acquire;
pub(crate) mod check;
pub(crate) mod holding;
pub(crate) mod namespaces;
pub(crate) mod pins;
pub(crate) mod record;
pub(crate) mod recount;
pub(crate) mod state;
pub(crate) mod view;
pub(crate) mod waiting;

use std::collections::VecDeque;

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::id::NamespaceId;
use crate::lock::pins::Pins;
use crate::lock::state::LockSlot;
use crate::lock::state::claim::Claims;
use crate::lock::state::lock::{Lock, Locks};
use crate::lock::state::place::Places;
use crate::outcome::Outcome;
use crate::store::key::Key;
use crate::store::key_order::KeyOrder;
use crate::store::slab::Slab;
use crate::store::slot;
use crate::wire::{HeadPart, Reader};

/// The behaviour version since which there are locks.
pub(crate) const LOCKS_SINCE: u16 = 13;

/// Places of claims that one record ends or grants, and a claim more at most; the rest is left to ticks.
const SLICE_PLACES: usize = 256;

/// The state of the module.
#[derive(Debug, Default)]
pub(crate) struct LockModule {
    pub(crate) claims: Claims,
    pub(crate) places: Places,
    pub(crate) locks: Locks,
    /// Locks of which the next ones in line may be granted, or which may be free, in turn.
    pub(crate) woken: VecDeque<LockSlot>,
    /// Deleted namespaces whose claims are still to be ended.
    pub(crate) swept: VecDeque<NamespaceSlot>,
    pub(crate) pins: Pins,
    /// Locks in the order of their keys. Derived.
    pub(crate) order: KeyOrder<Lock>,
    /// Keys whose holders or line the current record has changed; `None`: nobody watches. Volatile: set by
    /// the node.
    pub(crate) changed: Option<Vec<(NamespaceSlot, Key)>>,
}

impl HeadPart for LockModule {
    fn write_head(&self, out: &mut Vec<u8>) {
        let LockModule { claims, places, locks, woken, swept, pins, order: _, changed: _ } = self;
        claims.write_head(out);
        places.write_head(out);
        locks.write_head(out);
        slot::write_all(woken, out);
        slot::write_all(swept, out);
        pins.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        Some(LockModule {
            claims: Claims::read_head(reader)?,
            places: Slab::read_head(reader)?,
            locks: Locks::read_head(reader)?,
            woken: slot::read_all(reader)?,
            swept: slot::read_all(reader)?,
            pins: Pins::read_head(reader)?,
            order: KeyOrder::default(),
            changed: None,
        })
    }
}

impl LockModule {
    /// Ends what is over, grants what may go on, and ends claims of deleted namespaces, a slice at a time.
    pub(crate) fn tick(&mut self, core: &mut Core, out: &mut Outcome) {
        let mut budget = SLICE_PLACES;
        self.end_due(&mut budget, core, out);
        self.sweep(&mut budget, core, out);
        self.grant_woken(&mut budget, core, out);
    }

    /// Time at which a `Tick` is due, in microseconds; a time that is past while a slice is left.
    pub(crate) fn next_deadline(&self, core: &Core) -> Option<u64> {
        if !self.woken.is_empty() || !self.swept.is_empty() {
            return Some(core.now_us);
        }
        self.claims.wheel.next_us(&self.claims.slots)
    }

    /// Derives what a snapshot leaves out, after all slots were read.
    pub(crate) fn rebuild(&mut self, core: &mut Core) {
        self.order.cover(core.namespaces.slots());
        self.claims.rebuild();
        self.locks.rebuild();
        let slots: Vec<LockSlot> = self.locks.slots.iter().map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.order.insert(slot, &self.locks.slots));
        self.swept.iter().for_each(|slot| core.begin_sweep(*slot));
    }

    /// Has changes told from now on, or not any more.
    pub(crate) fn watch(&mut self, watch: bool) {
        if self.changed.is_some() != watch {
            self.changed = watch.then(Vec::new);
        }
    }

    /// Notes that the holders or the line of a lock change.
    fn note_change(&mut self, lock: LockSlot) {
        if let Some(changed) = &mut self.changed {
            let lock = self.locks.slots.get(lock);
            changed.push((lock.namespace, lock.key.clone()));
        }
    }

    /// Tells which locks the record has changed.
    pub(crate) fn tell_changes(&mut self, core: &Core, out: &mut Outcome) {
        let Some(changed) = &mut self.changed else { return };
        out.changed_locks.extend(changed.drain(..).map(|(namespace, key)| {
            let namespace = NamespaceId(core.namespaces.get(namespace).number);
            (namespace, String::from_utf8_lossy(&key).into_owned())
        }));
    }

    /// Makes room for what new namespaces will hold.
    pub(crate) fn cover_namespaces(&mut self, core: &Core) {
        self.order.cover(core.namespaces.slots());
    }
}
