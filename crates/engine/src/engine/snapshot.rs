//! Snapshots: the state as it was at one moment, given out in steps while the engine goes on.
//!
//! A snapshot is a row of frames (see [`crate::store::slab::frame`]), in any order but for the first and the last: the head
//! (what lies in no slab), the blocks of all slabs, the end with the number of frames. What can be derived is left out.

use crate::engine::Engine;
use crate::hash::{hash, mix};
use crate::queue::consequence::write_consequences;
use crate::queue::state::write_counters;
use crate::queue::work::Work;
use crate::record::write_limits;
use crate::store::slab::frame;
use crate::wire::{FORMAT, Put};

/// The first bytes of a head; the version of the format follows.
pub(crate) const MAGIC: &[u8; 7] = b"sluiceS";

/// Which part of the state a frame holds.
pub(crate) mod section {
    pub(crate) const HEAD: u8 = 0;
    pub(crate) const MESSAGES: u8 = 1;
    pub(crate) const EXTRAS: u8 = 2;
    pub(crate) const ENTRIES: u8 = 3;
    pub(crate) const QUEUES: u8 = 4;
    pub(crate) const NAMESPACES: u8 = 5;
    pub(crate) const TOKENS: u8 = 6;
    pub(crate) const IDEMPOTENCY: u8 = 7;
    pub(crate) const OPTIONS: u8 = 8;
    pub(crate) const ORDERING: u8 = 9;
    pub(crate) const SHARED_BLOBS: u8 = 19;
    pub(crate) const LANES: u8 = 10;
    pub(crate) const RESULTS: u8 = 20;
    pub(crate) const LIMITS: u8 = 11;
    pub(crate) const LIMIT_KEYS: u8 = 12;
    pub(crate) const KEY_LINES: u8 = 13;
    pub(crate) const CHANGED: u8 = 23;
    pub(crate) const UNIQUE: u8 = 15;
    pub(crate) const ORIGINS: u8 = 25;
    pub(crate) const SCHEDULES: u8 = 31;
    pub(crate) const FLOWS: u8 = 34;
    pub(crate) const PARENTS: u8 = 35;
    pub(crate) const EDGES: u8 = 36;
    pub(crate) const CHAINS: u8 = 37;
    pub(crate) const EXPIRY: u8 = 16;
    pub(crate) const DEFAULTS: u8 = 26;
    pub(crate) const CONSUMERS: u8 = 28;
    pub(crate) const HOLDS: u8 = 29;
    pub(crate) const STICKY: u8 = 30;
    pub(crate) const PENDING_SENDS: u8 = 38;
    pub(crate) const END: u8 = 255;
}

/// Does the same with each slab of an engine.
macro_rules! each_slab {
    ($engine:expr, $slab:ident, $section:ident => $do:expr) => {{
        use $crate::engine::snapshot::section;
        each_slab!(@one $slab, $section, $engine.messages, section::MESSAGES, $do);
        each_slab!(@one $slab, $section, $engine.extras.slots, section::EXTRAS, $do);
        each_slab!(@one $slab, $section, $engine.extras.entries, section::ENTRIES, $do);
        each_slab!(@one $slab, $section, $engine.queues, section::QUEUES, $do);
        each_slab!(@one $slab, $section, $engine.namespaces, section::NAMESPACES, $do);
        each_slab!(@one $slab, $section, $engine.tokens.settled, section::TOKENS, $do);
        each_slab!(@one $slab, $section, $engine.idempotency.slots, section::IDEMPOTENCY, $do);
        each_slab!(@one $slab, $section, $engine.extras.options, section::OPTIONS, $do);
        each_slab!(@one $slab, $section, $engine.ordering.slots, section::ORDERING, $do);
        each_slab!(@one $slab, $section, $engine.shared_blobs.slots, section::SHARED_BLOBS, $do);
        each_slab!(@one $slab, $section, $engine.lanes.slots, section::LANES, $do);
        each_slab!(@one $slab, $section, $engine.unique.slots, section::UNIQUE, $do);
        each_slab!(@one $slab, $section, $engine.expiry.slots, section::EXPIRY, $do);
        each_slab!(@one $slab, $section, $engine.extras.results, section::RESULTS, $do);
        each_slab!(@one $slab, $section, $engine.extras.changed, section::CHANGED, $do);
        each_slab!(@one $slab, $section, $engine.consumers.slots, section::CONSUMERS, $do);
        each_slab!(@one $slab, $section, $engine.consumers.holds, section::HOLDS, $do);
        each_slab!(@one $slab, $section, $engine.consumers.sticky.slots, section::STICKY, $do);
        each_slab!(@one $slab, $section, $engine.queue_limits.slots, section::LIMITS, $do);
        each_slab!(@one $slab, $section, $engine.queue_limits.keys.slots, section::LIMIT_KEYS, $do);
        each_slab!(@one $slab, $section, $engine.queue_limits.lines.slots, section::KEY_LINES, $do);
        each_slab!(@one $slab, $section, $engine.extras.origins, section::ORIGINS, $do);
        each_slab!(@one $slab, $section, $engine.schedules.slots, section::SCHEDULES, $do);
        each_slab!(@one $slab, $section, $engine.flows.slots, section::FLOWS, $do);
        each_slab!(@one $slab, $section, $engine.flows.parents, section::PARENTS, $do);
        each_slab!(@one $slab, $section, $engine.flows.edges, section::EDGES, $do);
        each_slab!(@one $slab, $section, $engine.flows.chains, section::CHAINS, $do);
        each_slab!(@one $slab, $section, $engine.queue_defaults, section::DEFAULTS, $do);
        each_slab!(@one $slab, $section, $engine.pending_sends, section::PENDING_SENDS, $do);
    }};
    (@one $slab:ident, $section:ident, $place:expr, $number:expr, $do:expr) => {{
        let $slab = &mut $place;
        #[allow(unused_variables)]
        let $section = $number;
        $do;
    }};
}
pub(crate) use each_slab;

/// A snapshot that runs.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The head's frame, until it is given out.
    head: Vec<u8>,
}

impl Engine {
    /// Begins a snapshot of the state as it is now. One that runs is given up.
    pub fn snapshot_begin(&mut self) {
        let mut head = Vec::new();
        frame(section::HEAD, 0, &mut head, |out| self.write_head(out));
        self.snapshot = Some(Snapshot { head });
        each_slab!(self, slab, number => slab.snapshot_begin(number));
    }

    /// Appends pieces of the running snapshot to `out`: all blocks that were changed since the last step, then others until
    /// about `budget_bytes` are appended. True when the snapshot is complete, or none runs. Call it often: what changes
    /// between two steps is kept twice.
    pub fn snapshot_step(&mut self, budget_bytes: usize, out: &mut Vec<u8>) -> bool {
        let Some(snapshot) = &mut self.snapshot else { return true };
        let until_len = out.len() + budget_bytes.max(1);
        out.append(&mut snapshot.head);
        let mut complete = true;
        each_slab!(self, slab, number => complete &= slab.snapshot_step(until_len, out));
        if complete {
            self.snapshot = None;
            frame(section::END, 0, out, |_| {});
        }
        complete
    }

    /// Gives up the running snapshot.
    pub fn snapshot_abort(&mut self) {
        self.snapshot = None;
        each_slab!(self, slab, number => slab.snapshot_abort());
    }

    /// A digest of the whole state: equal for engines which applied the same log, or were restored from one another.
    pub fn digest(&self) -> u64 {
        let mut bytes = Vec::new();
        self.write_head(&mut bytes);
        let mut digest = hash(0, &bytes);
        macro_rules! add {
            ($slab:expr) => {
                for block in 0..$slab.blocks() {
                    bytes.clear();
                    $slab.write_block(block, &mut bytes);
                    digest = mix(digest ^ hash(u64::from(block), &bytes));
                }
            };
        }
        add!(self.messages);
        add!(self.extras.slots);
        add!(self.extras.entries);
        add!(self.queues);
        add!(self.namespaces);
        add!(self.tokens.settled);
        add!(self.idempotency.slots);
        add!(self.extras.options);
        add!(self.ordering.slots);
        add!(self.shared_blobs.slots);
        add!(self.lanes.slots);
        add!(self.unique.slots);
        add!(self.expiry.slots);
        add!(self.extras.results);
        add!(self.extras.changed);
        add!(self.consumers.slots);
        add!(self.consumers.holds);
        add!(self.consumers.sticky.slots);
        add!(self.queue_limits.slots);
        add!(self.queue_limits.keys.slots);
        add!(self.queue_limits.lines.slots);
        add!(self.extras.origins);
        add!(self.schedules.slots);
        add!(self.flows.slots);
        add!(self.flows.parents);
        add!(self.flows.edges);
        add!(self.flows.chains);
        add!(self.queue_defaults);
        add!(self.pending_sends);
        digest
    }

    fn write_head(&self, out: &mut Vec<u8>) {
        out.raw(MAGIC);
        out.u8(FORMAT);
        out.u64(self.applied_index);
        out.u64(self.now_us);
        out.u64(self.epoch);
        out.raw(&self.receipt_key.0);
        out.u32(self.next_queue);
        out.u32(self.next_namespace);
        write_limits(out, &self.limits);
        write_counters(out, &self.totals);
        self.wheel.write(out);
        out.u32(self.work.len() as u32);
        for work in &self.work {
            let (kind, slot) = match work {
                Work::Queue(slot) => (0, slot),
                Work::Namespace(slot) => (1, slot),
                Work::Limit(slot) => (3, slot),
                Work::LimitLines(slot) => (5, slot),
                Work::Deliver(slot) => (17, slot),
                Work::Consumer(slot) => (18, slot),
            };
            out.u8(kind);
            out.u32(*slot);
        }
        write_consequences(&self.consequences, out);
        self.messages.write_head(out);
        self.extras.slots.write_head(out);
        self.extras.entries.write_head(out);
        self.queues.write_head(out);
        self.namespaces.write_head(out);
        self.tokens.write_head(out);
        self.idempotency.write_head(out);
        self.extras.options.write_head(out);
        self.ordering.slots.write_head(out);
        self.ordering.idle.write(out);
        self.shared_blobs.slots.write_head(out);
        self.lanes.slots.write_head(out);
        self.lanes.idle.write(out);
        self.unique.wheel.write(out);
        self.unique.slots.write_head(out);
        self.unique.idle.write(out);
        self.expiry.wheel.write(out);
        self.expiry.slots.write_head(out);
        self.extras.results.write_head(out);
        self.extras.changed.write_head(out);
        out.u64(self.consumers.given);
        out.u64(self.consumers.served);
        self.consumers.slots.write_head(out);
        self.consumers.holds.write_head(out);
        self.consumers.sticky.slots.write_head(out);
        self.consumers.sticky.used.write(out);
        self.queue_limits.slots.write_head(out);
        self.queue_limits.keys.slots.write_head(out);
        self.queue_limits.lines.slots.write_head(out);
        self.queue_limits.lines.idle.write(out);
        self.extras.origins.write_head(out);
        self.schedules.slots.write_head(out);
        out.u64(self.schedules.last_number);
        self.flows.slots.write_head(out);
        self.flows.parents.write_head(out);
        self.flows.edges.write_head(out);
        self.flows.chains.write_head(out);
        self.queue_defaults.write_head(out);
        self.pending_sends.write_head(out);
    }
}
