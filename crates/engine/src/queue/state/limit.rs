//! State of limits: messages in flight and deliveries used up, overall.

use std::collections::BTreeSet;

use crate::core::namespace::NamespaceSlot;
use crate::limit::{LIMIT_CHANGES_MAX, LimitRules, Pace, Rate};
use crate::queue::state::limit_key::{KeyLines, LimitKeys};
use crate::queue::state::{LimitKeySlot, LimitSlot, QueueSlot};
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// Bit in the last byte of a limit's layout: past rates follow.
const HAS_PAST: u8 = 2;
const _: () = assert!(LIMIT_CHANGES_MAX <= u8::MAX as usize);

/// A rate per key that is not in force any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PastRate {
    rate: Option<Rate>,
    /// When it came into force.
    since_us: u64,
}

impl PastRate {
    /// Reads the past rates of a limit, of which there is one at least.
    fn read_all(reader: &mut Reader<'_>) -> Option<Vec<PastRate>> {
        let count = usize::from(reader.u8()?);
        if !(1..=LIMIT_CHANGES_MAX).contains(&count) {
            return None;
        }
        let one = |_| Some(PastRate { rate: Rate::read(reader)?, since_us: reader.u64()? });
        (0..count).map(one).collect()
    }
}

/// A limit of a namespace, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    /// Slot of its namespace.
    pub(crate) namespace: NamespaceSlot,
    pub(crate) name: Box<str>,
    rules: LimitRules,
    /// Pace of the overall rate. Derived.
    pub(crate) pace: Option<Pace>,
    /// Pace of the rate per key. Derived.
    pub(crate) pace_per_key: Option<Pace>,
    /// Counts changes of the rules that its keys have to follow.
    pub(crate) version: u32,
    changed_at_us: u64,
    /// Rates per key before the latest changes, oldest first: at most [`LIMIT_CHANGES_MAX`]. The last was in
    /// force before this version, the one before it before the version before. They are kept until a look
    /// through all keys is done.
    pub(crate) past: Vec<PastRate>,
    /// Leased messages of its queues.
    pub(crate) in_flight: u64,
    /// Theoretical arrival time of the next delivery under the overall rate.
    pub(crate) arrival_ns: u64,
    /// When its queues are to be woken; 0: not by time.
    pub(crate) timer_us: u64,
    /// The first of the keys that a running look through all keys has not seen; `NIL`: none runs.
    pub(crate) cursor: LimitKeySlot,
    /// Keys that belong to it.
    pub(crate) keys: u32,
    pub(crate) deleted: bool,
    /// Slots of the queues that name it, in order. Derived.
    pub(crate) queues: Vec<QueueSlot>,
    /// True if it is listed among the consequences, and whether a place was freed.
    pub(crate) touched: bool,
    pub(crate) freed: bool,
    next_vacant: Option<LimitSlot>,
}

impl Limit {
    pub(crate) fn new(namespace: NamespaceSlot, name: &str) -> Limit {
        Limit { namespace, name: name.into(), next_vacant: None, ..Limit::vacant(Slot::NIL) }
    }

    /// Its rules.
    pub(crate) fn rules(&self) -> &LimitRules {
        &self.rules
    }

    fn set_rules(&mut self, rules: LimitRules) {
        self.rules = rules;
        self.pace = rules.rate.map(Pace::from);
        self.pace_per_key = rules.rate_per_key.map(Pace::from);
    }

    /// Sets other rules from `now_us` on. `spent_stays`: what was spent overall stays so, and what its keys
    /// have spent when they follow; else the arrival times stay.
    pub(crate) fn change_rules(&mut self, rules: LimitRules, now_us: u64, spent_stays: bool) {
        let (pace_before, rate_before) = (self.pace, self.rules.rate_per_key);
        self.set_rules(rules);
        if spent_stays {
            self.arrival_ns = take_over(pace_before, self.pace, self.arrival_ns, now_us);
            if self.keys > 0 && (rate_before.is_some() || rules.rate_per_key.is_some()) {
                self.version = self.version.wrapping_add(1);
                self.past.push(PastRate { rate: rate_before, since_us: self.changed_at_us });
            }
        } else {
            self.version = self.version.wrapping_add(1);
            self.arrival_ns = self.pace.map_or(self.arrival_ns, |pace| pace.forgive(self.arrival_ns, now_us));
        }
        self.changed_at_us = now_us;
    }

    /// The arrival time under the rate per key in force, for what it was under the rules of a version.
    #[inline]
    pub(crate) fn arrival_of_key(&self, arrival_ns: u64, version: u32) -> u64 {
        if version == self.version { arrival_ns } else { self.arrival_of_past(arrival_ns, version) }
    }

    #[inline(never)]
    fn arrival_of_past(&self, mut arrival_ns: u64, version: u32) -> u64 {
        let changes = self.version.wrapping_sub(version) as usize;
        let past = self.past.iter().rev().take(changes).rev();
        let followed = past.len() == changes;
        let past = past.map(|past| (past.rate.map(Pace::from), past.since_us));
        let mut rates = past.chain(std::iter::once((self.pace_per_key, self.changed_at_us)));
        let Some((mut before, since_us)) = rates.next() else { return arrival_ns };
        if !followed && let Some(pace) = before {
            // It stems from before what was spent stayed so.
            arrival_ns = pace.forgive(arrival_ns, since_us);
        }
        for (pace, since_us) in rates {
            arrival_ns = take_over(before, pace, arrival_ns, since_us);
            before = pace;
        }
        arrival_ns
    }

    /// True if its queues may begin any message now.
    #[inline]
    pub(crate) fn has_room(&self, now_us: u64) -> bool {
        self.rules.in_flight.is_none_or(|most| u64::from(most) > self.in_flight)
            && self.pace.is_none_or(|pace| pace.allows_after(0, self.arrival_ns, now_us))
    }

    /// Deliveries that it allows its queues now.
    pub(crate) fn room(&self, now_us: u64) -> u64 {
        let places =
            self.rules.in_flight.map_or(u64::MAX, |most| u64::from(most).saturating_sub(self.in_flight));
        let rate = self.pace.map_or(u64::MAX, |pace| pace.allowed(self.arrival_ns, now_us));
        places.min(rate)
    }
}

/// The arrival time when one pace follows another at `now_us`; without a pace nothing is remembered.
fn take_over(before: Option<Pace>, pace: Option<Pace>, arrival_ns: u64, now_us: u64) -> u64 {
    match (before, pace) {
        (Some(before), Some(pace)) => pace.take_over(before, arrival_ns, now_us),
        _ => 0,
    }
}

impl PlainItem for Limit {
    const BLOCK: usize = 8;

    fn vacant(next: LimitSlot) -> Self {
        Limit {
            namespace: Slot::NIL,
            name: Box::default(),
            rules: LimitRules::default(),
            pace: None,
            pace_per_key: None,
            version: 0,
            changed_at_us: 0,
            past: Vec::new(),
            in_flight: 0,
            arrival_ns: 0,
            timer_us: 0,
            cursor: Slot::NIL,
            keys: 0,
            deleted: false,
            queues: Vec::new(),
            touched: false,
            freed: false,
            next_vacant: Some(next),
        }
    }

    fn next_vacant(&self) -> Option<LimitSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.namespace.write(out);
        out.name(&self.name);
        self.rules.write(out);
        out.u32(self.version);
        out.u64(self.changed_at_us);
        out.u64(self.in_flight);
        out.u64(self.arrival_ns);
        out.u64(self.timer_us);
        self.cursor.write(out);
        out.u32(self.keys);
        out.bool(self.deleted);
        out.bool(self.touched);
        // Before behaviour version 17 there are no past rates, and this is what it was.
        out.u8(u8::from(self.freed) | if self.past.is_empty() { 0 } else { HAS_PAST });
        if !self.past.is_empty() {
            out.u8(self.past.len() as u8);
        }
        for PastRate { rate, since_us } in &self.past {
            Rate::write(*rate, out);
            out.u64(*since_us);
        }
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let namespace = Slot::read(reader)?;
        let mut limit = Limit::new(namespace, reader.name()?);
        limit.set_rules(LimitRules::read(reader)?);
        limit.version = reader.u32()?;
        limit.changed_at_us = reader.u64()?;
        limit.in_flight = reader.u64()?;
        limit.arrival_ns = reader.u64()?;
        limit.timer_us = reader.u64()?;
        limit.cursor = Slot::read(reader)?;
        limit.keys = reader.u32()?;
        limit.deleted = reader.bool()?;
        limit.touched = reader.bool()?;
        let flags = reader.u8()?;
        limit.freed = flags & 1 != 0;
        if flags & HAS_PAST != 0 {
            limit.past = PastRate::read_all(reader)?;
        }
        (flags <= 1 | HAS_PAST).then_some(limit)
    }
}

/// A limit or limit key that has a timer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Timed {
    Limit(LimitSlot),
    Key(LimitKeySlot),
}

/// The limits of all namespaces, and what hangs on them.
#[derive(Debug, Default)]
pub(crate) struct AllLimits {
    pub(crate) slots: Slab<Limit, 64>,
    pub(crate) keys: LimitKeys,
    pub(crate) lines: KeyLines,
    /// Times of limits and keys, in order. Derived.
    pub(crate) timers: BTreeSet<(u64, Timed)>,
}

impl HeadPart for AllLimits {
    fn write_head(&self, out: &mut Vec<u8>) {
        let AllLimits { slots, keys, lines, timers: _ } = self;
        slots.write_head(out);
        keys.write_head(out);
        lines.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let slots = Slab::read_head(reader)?;
        let keys = LimitKeys::read_head(reader)?;
        let lines = KeyLines::read_head(reader)?;
        Some(AllLimits { slots, keys, lines, ..AllLimits::default() })
    }
}

impl AllLimits {
    /// Sets the time of a limit or key anew; 0: none.
    #[inline]
    pub(crate) fn set_timer(&mut self, timed: Timed, time_us: u64) {
        let known_us = match timed {
            Timed::Limit(slot) => self.slots.get(slot).timer_us,
            Timed::Key(slot) => self.keys.slots.get(slot).timer_us,
        };
        if known_us != time_us {
            self.change_timer(timed, time_us);
        }
    }

    #[inline(never)]
    fn change_timer(&mut self, timed: Timed, time_us: u64) {
        let place = match timed {
            Timed::Limit(slot) => &mut self.slots.get_mut(slot).timer_us,
            Timed::Key(slot) => &mut self.keys.slots.get_mut(slot).timer_us,
        };
        let before = std::mem::replace(place, time_us);
        if before != 0 {
            self.timers.remove(&(before, timed));
        }
        if time_us != 0 {
            self.timers.insert((time_us, timed));
        }
    }

    /// Derives times and indexes after all slots were read.
    pub(crate) fn rebuild(&mut self) {
        let limits = self.slots.iter().map(|(slot, limit)| (limit.timer_us, Timed::Limit(slot)));
        let keys = self.keys.slots.iter().map(|(slot, key)| (key.timer_us, Timed::Key(slot)));
        self.timers = limits.chain(keys).filter(|(time_us, _)| *time_us != 0).collect();
        self.keys.rebuild();
        self.lines.rebuild();
    }
}
