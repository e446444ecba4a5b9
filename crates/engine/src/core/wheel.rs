//! Timers: a hierarchical timing wheel (Varghese and Lauck 1987) of 7 levels with 64 buckets each, at 1 ms.
//!
//! A timer costs no memory of its own: the message (or what else is [`Timed`]) is linked into its bucket. An
//! entry lies on the level of the highest digit (base 64) in which its tick differs from the wheel's; so the
//! first non-empty level always holds what comes next. Taking from a bucket of level 0 fires, taking from a
//! higher one moves the entry down.

use crate::limits::TIMER_LATE_US_MAX;
use crate::store::list::{Linked, List, PLACE};
use crate::store::slab::Slab;
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

const LEVELS: usize = 7;
const DIGIT_BITS: u32 = 6;
const BUCKETS: usize = 1 << DIGIT_BITS;
const TICK_US: u64 = TIMER_LATE_US_MAX;
/// Cost of the firing of a timer, in moves down.
pub(crate) const FIRE_COST: usize = 4;
/// Ticks beyond the year 2109 are one.
const TICK_MAX: u64 = (1 << (DIGIT_BITS * LEVELS as u32)) - 1;

/// An item that may wait for a time.
pub(crate) trait Timed: Linked<PLACE> {
    /// When its time has come, in microseconds since the Unix epoch; it does not change while it is in a
    /// wheel.
    fn due_us(&self) -> u64;
    /// Where in the wheel it is.
    fn bucket(&self) -> u16;
    /// Notes where in the wheel it is.
    fn set_bucket(&mut self, bucket: u16);
}

/// Items of one slab by the time that they wait for.
#[derive(Debug)]
pub(crate) struct Wheel<T> {
    /// All earlier ticks are done.
    tick: u64,
    len: u32,
    occupied: [u64; LEVELS],
    buckets: Vec<List<T, PLACE>>,
}

impl<T> Default for Wheel<T> {
    fn default() -> Self {
        Wheel { tick: 0, len: 0, occupied: [0; LEVELS], buckets: vec![List::default(); LEVELS * BUCKETS] }
    }
}

impl<T: Timed> Wheel<T> {
    /// Timers set.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Sets a timer at the item's time; it fires up to 1 ms later, never earlier.
    #[inline]
    pub(crate) fn insert<const CHUNK: usize>(
        &mut self,
        items: &mut Slab<T, CHUNK>,
        slot: Slot<T>,
        now_us: u64,
    ) {
        if self.len == 0 {
            self.tick = self.tick.max((now_us / TICK_US).min(TICK_MAX));
        }
        self.len += 1;
        self.place(items, slot);
    }

    #[inline]
    fn place<const CHUNK: usize>(&mut self, items: &mut Slab<T, CHUNK>, slot: Slot<T>) {
        let item = items.get_mut(slot);
        let tick = tick_of(item).max(self.tick);
        let differing = (tick ^ self.tick) | (BUCKETS as u64 - 1);
        let level = differing.ilog2() / DIGIT_BITS;
        let digit = (tick >> (level * DIGIT_BITS)) as usize % BUCKETS;
        let bucket = level as usize * BUCKETS + digit;
        item.set_bucket(bucket as u16);
        self.buckets[bucket].push_back(items, slot);
        self.occupied[level as usize] |= 1 << digit;
    }

    /// Takes an item's timer out.
    #[inline]
    pub(crate) fn remove<const CHUNK: usize>(&mut self, items: &mut Slab<T, CHUNK>, slot: Slot<T>) {
        self.len -= 1;
        self.unlink(items, slot);
    }

    #[inline]
    fn unlink<const CHUNK: usize>(&mut self, items: &mut Slab<T, CHUNK>, slot: Slot<T>) {
        let bucket = usize::from(items.get(slot).bucket());
        self.buckets[bucket].unlink(items, slot);
        if self.buckets[bucket].is_empty() {
            self.occupied[bucket / BUCKETS] &= !(1 << (bucket % BUCKETS));
        }
    }

    /// When the wheel has to turn next, in microseconds; no timer fires before.
    pub(crate) fn next_us<const CHUNK: usize>(&self, items: &Slab<T, CHUNK>) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let (bucket, tick) = self.next_bucket()?;
        let List { head, tail } = self.buckets[bucket];
        // One that waits alone need not be moved down level by level; but a bucket which is being moved down
        // holds what is left of many.
        let alone = head == tail && tick > self.tick;
        let tick = if alone { tick_of(items.get(head)).max(tick) } else { tick };
        Some(tick * TICK_US)
    }

    /// The bucket that comes next, and its first tick. One that is being moved down comes before all others:
    /// it is the only one above level 0 that the wheel's tick lies in.
    fn next_bucket(&self) -> Option<(usize, u64)> {
        let first = self.occupied.iter().position(|&occupied| occupied != 0)?;
        let digit_at = |level: usize| (self.tick >> (level as u32 * DIGIT_BITS)) as usize % BUCKETS;
        let moving = (first.max(1)..LEVELS).find(|&level| self.occupied[level] >> digit_at(level) & 1 == 1);
        let level = moving.unwrap_or(first);
        let digit = moving.map_or(self.occupied[level].trailing_zeros(), |level| digit_at(level) as u32);
        let shift = level as u32 * DIGIT_BITS;
        let above = self.tick >> (shift + DIGIT_BITS) << (shift + DIGIT_BITS);
        Some((level * BUCKETS + digit as usize, above | u64::from(digit) << shift))
    }

    /// An item that comes before most others: of those that are far off, the one that was put in first.
    pub(crate) fn first(&self) -> Option<Slot<T>> {
        self.next_bucket().map(|(bucket, _)| self.buckets[bucket].head)
    }

    /// The next item whose time has come; it stays in the wheel until it is removed. Takes [`FIRE_COST`] for
    /// it off `budget`, and 1 for each item moved down; `None` when that is used up or nothing more is due.
    pub(crate) fn due<const CHUNK: usize>(
        &mut self,
        items: &mut Slab<T, CHUNK>,
        now_us: u64,
        budget: &mut usize,
    ) -> Option<Slot<T>> {
        let now_tick = (now_us / TICK_US).min(TICK_MAX);
        while *budget > 0 {
            let Some((bucket, tick)) = self.next_bucket().filter(|(_, tick)| *tick <= now_tick) else {
                self.tick = self.tick.max(now_tick);
                return None;
            };
            self.tick = self.tick.max(tick);
            let slot = self.buckets[bucket].head;
            if bucket < BUCKETS {
                *budget = budget.saturating_sub(FIRE_COST);
                return Some(slot);
            }
            *budget -= 1;
            self.unlink(items, slot);
            self.place(items, slot);
        }
        None
    }

    /// Items in all buckets, with the bucket.
    pub(crate) fn iter<'a, const CHUNK: usize>(
        &'a self,
        items: &'a Slab<T, CHUNK>,
    ) -> impl Iterator<Item = (usize, Slot<T>)> + 'a {
        self.buckets
            .iter()
            .enumerate()
            .flat_map(move |(bucket, list)| list.iter(items).map(move |slot| (bucket, slot)))
    }
}

impl<T: Timed> HeadPart for Wheel<T> {
    fn write_head(&self, out: &mut Vec<u8>) {
        out.u64(self.tick);
        out.u32(self.len);
        for list in &self.buckets {
            list.write(out);
        }
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let mut wheel = Wheel { tick: reader.u64()?, len: reader.u32()?, ..Wheel::default() };
        for bucket in 0..LEVELS * BUCKETS {
            let list = List::read(reader)?;
            if !list.is_empty() {
                wheel.occupied[bucket / BUCKETS] |= 1 << (bucket % BUCKETS);
            }
            wheel.buckets[bucket] = list;
        }
        Some(wheel)
    }
}

/// The first tick at which an item's time has come.
fn tick_of(item: &impl Timed) -> u64 {
    item.due_us().div_ceil(TICK_US).min(TICK_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use crate::store::list::Link;
    use crate::store::slab::PlainItem;

    type Alarms = Slab<Alarm, 64>;

    /// An item that waits for a time.
    #[derive(Debug)]
    struct Alarm {
        due_us: u64,
        link: Link<Alarm>,
        bucket: u16,
        next_vacant: Option<Slot<Alarm>>,
    }

    impl PlainItem for Alarm {
        const BLOCK: usize = 1;

        fn vacant(next: Slot<Alarm>) -> Self {
            Alarm { due_us: 0, link: Link::UNLINKED, bucket: 0, next_vacant: Some(next) }
        }

        fn next_vacant(&self) -> Option<Slot<Alarm>> {
            self.next_vacant
        }

        fn write_used(&self, out: &mut Vec<u8>) {
            out.u64(self.due_us);
        }

        fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
            Some(Alarm { due_us: reader.u64()?, link: Link::UNLINKED, bucket: 0, next_vacant: None })
        }
    }

    impl Linked<PLACE> for Alarm {
        fn link(&self) -> Link<Alarm> {
            self.link
        }

        fn link_mut(&mut self) -> &mut Link<Alarm> {
            &mut self.link
        }
    }

    impl Timed for Alarm {
        fn due_us(&self) -> u64 {
            self.due_us
        }

        fn bucket(&self) -> u16 {
            self.bucket
        }

        fn set_bucket(&mut self, bucket: u16) {
            self.bucket = bucket;
        }
    }

    fn alarm(alarms: &mut Alarms, due_us: u64) -> Slot<Alarm> {
        alarms.insert(Alarm { due_us, link: Link::UNLINKED, bucket: 0, next_vacant: None })
    }

    #[test]
    fn fires_in_order_never_early_and_at_most_a_tick_late() {
        let (mut wheel, mut alarms) = (Wheel::default(), Alarms::default());
        let start = 1_700_000_000_000_000u64;
        let mut waiting = 0;
        for n in 0..3_000u64 {
            let reach = 1u64 << (mix(n) % 48);
            let slot = alarm(&mut alarms, start + 1 + mix(n + 9_999) % reach);
            wheel.insert(&mut alarms, slot, start);
            waiting += 1;
        }
        while let Some(now) = wheel.next_us(&alarms) {
            let mut budget = 7;
            while let Some(slot) = wheel.due(&mut alarms, now, &mut budget) {
                wheel.remove(&mut alarms, slot);
                let due = alarms.get(slot).due_us;
                assert!(due <= now && now < due + TICK_US, "due {due}, fired {now}");
                waiting -= 1;
            }
        }
        assert_eq!((waiting, wheel.len()), (0, 0));
    }

    #[test]
    fn removed_timers_do_not_fire() {
        let (mut wheel, mut alarms) = (Wheel::default(), Alarms::default());
        let slots: Vec<_> = (0..100).map(|n| alarm(&mut alarms, 5_000 - n % 3)).collect();
        for &slot in &slots {
            wheel.insert(&mut alarms, slot, 0);
        }
        for &slot in slots.iter().step_by(2) {
            wheel.remove(&mut alarms, slot);
        }
        let mut fired = Vec::new();
        let mut budget = usize::MAX;
        while let Some(slot) = wheel.due(&mut alarms, 10_000, &mut budget) {
            wheel.remove(&mut alarms, slot);
            fired.push(slot);
        }
        assert_eq!(fired, slots.iter().copied().skip(1).step_by(2).collect::<Vec<_>>());
        assert_eq!(wheel.next_us(&alarms), None);
    }
}
