//! Snapshots: the state at one moment, written in steps while the engine goes on.
//!
//! A snapshot is a row of frames (see [`crate::store::slab::frame`]), in any order but for the first and the
//! last: the head (what lies in no slab), the blocks of all slabs, the end with the number of frames. What
//! can be derived is left out.

use crate::engine::Engine;
use crate::hash::{hash, mix};
use crate::store::slab::frame;
use crate::wire::{HeadPart, Put, WITHOUT_BEHAVIOUR, format_under};

/// The first bytes of a head; the version of the format follows.
pub(crate) const MAGIC: &[u8; 7] = b"sluiceS";

/// Numbers of the parts of the state that frames hold.
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
    pub(crate) const LOCK_CLAIMS: u8 = 39;
    pub(crate) const LOCK_PLACES: u8 = 40;
    pub(crate) const LOCKS: u8 = 41;
    pub(crate) const DOCUMENTS: u8 = 42;
    pub(crate) const DOCUMENT_FORMERS: u8 = 43;
    pub(crate) const DOCUMENT_ENDS: u8 = 44;
    pub(crate) const TRANSACTIONS: u8 = 45;
    pub(crate) const DOCUMENT_TERMS: u8 = 46;
    pub(crate) const UPLOADS: u8 = 47;
    pub(crate) const ATTACHMENTS: u8 = 48;
    pub(crate) const ATTACHMENT_SETS: u8 = 49;
    pub(crate) const EXTENTS: u8 = 50;
    pub(crate) const SEARCH_INDEXES: u8 = 51;
    pub(crate) const SEARCH_BLOCKS: u8 = 52;
    pub(crate) const END: u8 = 255;
}

/// Does the same with each slab of an engine, in the order of a snapshot. It destructures engine, core and
/// modules without `..`: a field that is new has to be named here, as a slab or as none.
macro_rules! each_slab {
    ([$($mut:tt)?] $engine:expr, $slab:ident, $section:ident => $do:expr) => {{
        use $crate::core::Core;
        use $crate::engine::snapshot::section;
        use $crate::queue::QueueModule;
        use $crate::lock::LockModule;
        use $crate::document::DocumentModule;
        let Engine { core, queue, locks, documents, transactions, two_phase: _, snapshot: _ } = $engine;
        let DocumentModule {
            documents,
            formers,
            ends,
            indexes,
            attachments,
            // Written into the head, or derived.
            swept: _,
            latest: _,
            pins: _,
            order: _,
            order_of_changes: _,
        } = documents;
        let LockModule {
            claims,
            places,
            locks,
            // Written into the head, or derived.
            woken: _,
            swept: _,
            pins: _,
            order: _,
            changed: _, // volatile: set by the node
        } = locks;
        let Core {
            namespaces,
            tokens,
            shared_blobs,
            // Written into the head, or derived, or volatile: see `each_part`.
            applied_index: _,
            now_us: _,
            epoch: _,
            behaviour: _,
            receipt_key: _,
            limits: _,
            next_namespace: _,
            namespace_numbers: _,
            namespace_names: _,
            last_namespace: _,
            watched: _,
        } = core;
        let QueueModule {
            messages,
            extras,
            ordering,
            lanes,
            queue_limits,
            unique,
            schedules,
            flows,
            expiry,
            consumers,
            queues,
            queue_defaults,
            idempotency,
            pending_sends,
            search,
            // Written into the head, or derived, or volatile: see `each_part`.
            totals: _,
            pins: _,
            next_queue: _,
            wheel: _,
            consequences: _,
            backlog: _,
            spent: _,
            work: _,
            indexes: _,
            queue_names: _,
            queue_numbers: _,
            last_queue: _,
            redrives: _,
            pushes: _,
            weighted: _,
        } = queue;
        each_slab!(@one [$($mut)?] $slab, $section, *messages, section::MESSAGES, $do);
        each_slab!(@one [$($mut)?] $slab, $section, extras.slots, section::EXTRAS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, extras.entries, section::ENTRIES, $do);
        each_slab!(@one [$($mut)?] $slab, $section, *queues, section::QUEUES, $do);
        each_slab!(@one [$($mut)?] $slab, $section, *namespaces, section::NAMESPACES, $do);
        each_slab!(@one [$($mut)?] $slab, $section, tokens.settled, section::TOKENS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, idempotency.slots, section::IDEMPOTENCY, $do);
        each_slab!(@one [$($mut)?] $slab, $section, extras.options, section::OPTIONS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, ordering.slots, section::ORDERING, $do);
        each_slab!(@one [$($mut)?] $slab, $section, shared_blobs.slots, section::SHARED_BLOBS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, lanes.slots, section::LANES, $do);
        each_slab!(@one [$($mut)?] $slab, $section, unique.slots, section::UNIQUE, $do);
        each_slab!(@one [$($mut)?] $slab, $section, expiry.slots, section::EXPIRY, $do);
        each_slab!(@one [$($mut)?] $slab, $section, extras.results, section::RESULTS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, extras.changed, section::CHANGED, $do);
        each_slab!(@one [$($mut)?] $slab, $section, consumers.slots, section::CONSUMERS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, consumers.holds, section::HOLDS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, consumers.sticky.slots, section::STICKY, $do);
        each_slab!(@one [$($mut)?] $slab, $section, queue_limits.slots, section::LIMITS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, queue_limits.keys.slots, section::LIMIT_KEYS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, queue_limits.lines.slots, section::KEY_LINES, $do);
        each_slab!(@one [$($mut)?] $slab, $section, extras.origins, section::ORIGINS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, schedules.slots, section::SCHEDULES, $do);
        each_slab!(@one [$($mut)?] $slab, $section, flows.slots, section::FLOWS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, flows.parents, section::PARENTS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, flows.edges, section::EDGES, $do);
        each_slab!(@one [$($mut)?] $slab, $section, flows.chains, section::CHAINS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, *queue_defaults, section::DEFAULTS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, *pending_sends, section::PENDING_SENDS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, claims.slots, section::LOCK_CLAIMS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, *places, section::LOCK_PLACES, $do);
        each_slab!(@one [$($mut)?] $slab, $section, locks.slots, section::LOCKS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, documents.slots, section::DOCUMENTS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, *formers, section::DOCUMENT_FORMERS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, ends.slots, section::DOCUMENT_ENDS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, indexes.entries, section::DOCUMENT_TERMS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, attachments.uploads, section::UPLOADS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, attachments.slots, section::ATTACHMENTS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, attachments.sets, section::ATTACHMENT_SETS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, attachments.extents, section::EXTENTS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, transactions.slots, section::TRANSACTIONS, $do);
        each_slab!(@one [$($mut)?] $slab, $section, search.indexes, section::SEARCH_INDEXES, $do);
        each_slab!(@one [$($mut)?] $slab, $section, search.blocks, section::SEARCH_BLOCKS, $do);
    }};
    (@one [$($mut:tt)?] $slab:ident, $section:ident, $place:expr, $number:expr, $do:expr) => {{
        let $slab = &$($mut)? $place;
        #[allow(unused_variables)]
        let $section = $number;
        $do;
    }};
}
pub(super) use each_slab;

/// Does the same with each part of an engine's head, in the order of a snapshot. It destructures engine, core
/// and modules without `..`: a field that is new has to be named here, as a part or with why it is none.
macro_rules! each_part {
    ($engine:expr, $format:expr, $part:ident => $do:expr) => {{
        use $crate::core::Core;
        use $crate::queue::QueueModule;
        use $crate::queue::state::extras::AllExtras;
        use $crate::queue::state::search::AllSearch;
        let Engine { core, queue, locks, documents, transactions, two_phase, snapshot: _ } = $engine;
        let Core {
            applied_index,
            now_us,
            epoch,
            behaviour: _, // before the parts: the format depends on it
            receipt_key,
            limits,
            namespaces,
            next_namespace,
            namespace_numbers: _, // derived
            namespace_names: _,   // derived
            last_namespace: _,    // volatile: a first guess
            tokens,
            shared_blobs,
            watched: _, // volatile: set by the node
        } = core;
        let QueueModule {
            totals,
            messages,
            extras,
            ordering,
            lanes,
            queue_limits,
            unique,
            schedules,
            flows,
            expiry,
            consumers,
            queues,
            next_queue,
            queue_defaults,
            idempotency,
            wheel,
            consequences,
            backlog: _, // volatile: of one record
            spent: _,   // volatile: of one record
            pending_sends,
            pins,
            search,
            work,
            indexes: _,       // derived
            queue_names: _,   // derived
            queue_numbers: _, // derived
            last_queue: _,    // volatile: a first guess
            redrives: _,      // derived
            pushes: _,      // derived
            weighted: _,      // volatile: scratch
        } = queue;
        let AllExtras { slots, entries, options, results, changed, origins } = extras;
        let AllSearch { indexes: search_indexes, blocks: search_blocks, postings: _ } = search; // derived
        each_part!(@each $part => $do;
            applied_index now_us epoch receipt_key next_queue next_namespace limits totals wheel work
            consequences messages slots entries queues namespaces tokens idempotency options ordering
            shared_blobs lanes unique expiry results changed consumers queue_limits origins schedules flows
            queue_defaults pending_sends
        );
        if $format >= $crate::wire::FORMAT_WITH_LOCKS {
            each_part!(@each $part => $do; locks documents transactions pins two_phase);
        }
        if $format >= $crate::wire::FORMAT_WITH_SEARCH {
            each_part!(@each $part => $do; search_indexes search_blocks);
        }
    }};
    (@each $part:ident => $do:expr; $($place:ident)*) => {
        $({
            let $part = $place;
            $do;
        })*
    };
}
pub(super) use each_part;

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
        each_slab!([mut] self, slab, number => slab.snapshot_begin(number));
    }

    /// Appends pieces of the running snapshot to `out`: all blocks that were changed since the last step,
    /// then others until about `budget_bytes` are appended. True when the snapshot is complete, or none runs.
    /// Call it often: what changes between two steps is kept twice.
    pub fn snapshot_step(&mut self, budget_bytes: usize, out: &mut Vec<u8>) -> bool {
        let Some(snapshot) = &mut self.snapshot else { return true };
        let until_len = out.len() + budget_bytes.max(1);
        out.append(&mut snapshot.head);
        let mut complete = true;
        each_slab!([mut] self, slab, number => complete &= slab.snapshot_step(until_len, out));
        if complete {
            self.snapshot = None;
            frame(section::END, 0, out, |_| {});
        }
        complete
    }

    /// Gives up the running snapshot.
    pub fn snapshot_abort(&mut self) {
        self.snapshot = None;
        each_slab!([mut] self, slab, number => slab.snapshot_abort());
    }

    /// A digest of the whole state: equal for engines which applied the same log, or were restored from one
    /// another.
    pub fn digest(&self) -> u64 {
        let mut bytes = Vec::new();
        self.write_head(&mut bytes);
        let mut digest = hash(0, &bytes);
        each_slab!([] self, slab, number => for block in 0..slab.blocks() {
            bytes.clear();
            slab.write_block(block, &mut bytes);
            digest = mix(digest ^ hash(u64::from(block), &bytes));
        });
        digest
    }

    fn write_head(&self, out: &mut Vec<u8>) {
        let (format, behaviour) = (format_under(self.core.behaviour), self.core.behaviour);
        out.raw(MAGIC);
        out.u8(format);
        if format != WITHOUT_BEHAVIOUR.0 {
            out.u16(behaviour);
        }
        each_part!(self, format, part => part.write_head(out));
    }
}
