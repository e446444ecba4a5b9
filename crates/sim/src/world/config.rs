//! Configuration of a run, drawn from its seed: the server's options and the rates of faults.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sluice_engine::ReceiptKey;
use sluice_engine::limits::Limits;
use sluice_journal::{Durability, Encryption, Options, RootKeys, Space};

use sluice_node::api::EventOptions;
use sluice_node::clock::term_min;
use sluice_node::shard::recover::knows;

use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::resting;
use crate::rng::Rng;

/// Data directory on the simulated disk.
pub(super) const DIRECTORY: &str = "/data";
/// Size of a disk that is never full, in bytes.
pub(super) const ROOMY: usize = 1 << 30;

/// Length of a feed that drops nothing in a run, in events.
pub(super) const WINDOW_ROOMY: usize = 1_000_000;

/// Rates of each kind of fault per 10,000 steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trouble {
    pub(super) kill: u64,
    pub(super) power: u64,
    pub(super) failing_call: u64,
    pub(super) full_disk: u64,
    pub(super) pinch: u64,
    pub(super) flip: u64,
    pub(super) lose: u64,
    pub(super) orderly_stop: u64,
    pub(super) clock_jump: u64,
    /// Start of a newer server.
    pub(super) future: u64,
    /// Change of root keys, or a start with wrong ones.
    pub(super) keys: u64,
    /// Backups; not a fault, but scheduled like one.
    pub(super) backup: u64,
}

impl Trouble {
    pub(super) const NONE: Trouble = Trouble {
        kill: 0,
        power: 0,
        failing_call: 0,
        full_disk: 0,
        pinch: 0,
        flip: 0,
        lose: 0,
        orderly_stop: 0,
        clock_jump: 0,
        future: 0,
        keys: 0,
        backup: 0,
    };
}

/// Settings of a run.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) shards: u32,
    /// Options of each shard's journal, but for directory and identity.
    journal: Options,
    pub(super) limits: Limits,
    pub(super) waiting_max: usize,
    pub(super) mailbox: usize,
    pub(super) trouble: Trouble,
    /// True when clients mix all features, with narrow limits; such runs have no model.
    pub(super) mixes: bool,
    /// Settings of event feeds.
    pub(super) events: EventOptions,
    /// Rate of requests per 100 steps.
    pub(super) busy: u64,
}

impl Config {
    pub(super) fn draw(rng: &mut Rng) -> Config {
        let durability = rng.weighted(&[
            (6, Durability::Always),
            (2, Durability::Os),
            (2, Durability::Interval(Duration::from_millis(500))),
        ]);
        let shards = rng.weighted(&[(6, 1), (3, 2), (1, 3)]);
        let full = rng.chance(1, 4);
        let mut journal = Options::new(PathBuf::from(DIRECTORY));
        journal.durability = durability;
        journal.segment_bytes = *rng.pick(&[4 << 10, 8 << 10, 32 << 10]);
        journal.snapshot_log_bytes = *rng.pick(&[4 << 10, 16 << 10, 64 << 10]);
        journal.cache_bytes = *rng.pick(&[0, 4 << 10, 1 << 20]);
        journal.reserve_bytes = if full { 64 << 10 } else { 0 };
        journal.low_water_bytes = 32 << 10;
        journal.full_margin_bytes = 16 << 10;
        journal.scrub_bytes_per_s = *rng.pick(&[0, 64 << 10]);
        journal.identity = rng.bits() | 1;
        journal.knows = knows();
        // Both seeded by the identity, so that the other draws of a seed do not change.
        journal.rest_after = resting::draw(Rng::new(journal.identity));
        journal.encryption = super::encryption::draw(Rng::new(!journal.identity));
        let mixes = rng.chance(1, 2);
        let messages = if mixes {
            *rng.pick(&[40, 400, Limits::default().messages])
        } else {
            Limits::default().messages
        };
        let limits = Limits {
            messages,
            idempotency_window_ms: *rng.pick(&[2_000, 600_000]),
            receive_messages: *rng.pick(&[3, 1_000]),
            ..Limits::default()
        };
        let trouble = Trouble {
            kill: *rng.pick(&[0, 10, 40]),
            power: *rng.pick(&[0, 10, 40]),
            failing_call: *rng.pick(&[0, 0, 20]),
            full_disk: if full { 40 } else { 0 },
            pinch: *rng.pick(&[0, 0, 40]),
            flip: *rng.pick(&[0, 0, 0, 10]),
            lose: *rng.pick(&[0, 5]),
            orderly_stop: 5,
            clock_jump: 5,
            future: 2,
            keys: 5,
            backup: *rng.pick(&[0, 30]),
        };
        Config {
            shards,
            journal,
            limits,
            waiting_max: *rng.pick(&[2, 100]),
            mailbox: *rng.pick(&[4, 64]),
            trouble,
            mixes,
            events: EventOptions {
                window: *rng.pick(&[8, WINDOW_ROOMY]),
                keep: Duration::from_millis(*rng.pick(&[100, 60_000])),
                readers: 2,
            },
            busy: *rng.pick(&[20, 40, 60]),
        }
    }

    /// Settings of a run with so many shards in which nothing goes wrong by chance.
    pub(super) fn calm(shards: u32, rng: &mut Rng) -> Config {
        let mut config = Config { shards, trouble: Trouble::NONE, mixes: true, ..Config::draw(rng) };
        config.journal.durability = Durability::Always;
        config.mailbox = 64;
        config
    }

    /// Room on the disk, shared by the shards of the next process.
    pub(super) fn space(&self, disk: &SimDisk) -> Arc<Space> {
        let Options { dir, reserve_bytes, full_margin_bytes, .. } = &self.journal;
        Space::new(Arc::new(disk.for_next_process()), dir, *reserve_bytes, *full_margin_bytes)
    }

    /// The draws about locks, documents, transactions, indexes and attachments on a shard: by the identity,
    /// so that the other draws of a seed do not change.
    pub(super) fn other_draws(&self, shard: u32) -> [Rng; 5] {
        let seed = self.journal.identity.rotate_left(shard + 1);
        [seed, !seed, seed.swap_bytes(), !seed.swap_bytes(), seed.rotate_left(32)].map(Rng::new)
    }

    /// The draws about transactions over several namespaces; `None`: the run has none. In these runs nothing
    /// takes from a shard what was acknowledged, and from another not.
    pub(super) fn across(&self) -> Option<Rng> {
        let mut rng = Rng::new(self.journal.identity.reverse_bits());
        let keeps_all = self.always() && self.trouble.flip == 0;
        (self.mixes && keeps_all && rng.chance(2, 3)).then_some(rng)
    }

    /// Settings of a shard's journal, which shares this room with others (`None`: with none).
    pub(super) fn journal(&self, shard: u32, clock: &SimClock, space: Option<Arc<Space>>) -> Options {
        Options {
            dir: shard_dir(shard),
            space,
            identity: self.journal.identity ^ u64::from(shard) << 1,
            term_min: term_min(clock),
            ..self.journal.clone()
        }
    }

    /// Receipt key for a log that has none; the same in all runs, since no client guesses receipts here.
    pub(super) fn receipt_key(&self) -> ReceiptKey {
        ReceiptKey([7; 16])
    }

    /// Encryption settings.
    pub(super) fn encryption(&self) -> Encryption {
        self.journal.encryption.clone()
    }

    /// Sets the root keys that the operator holds from now on.
    pub(super) fn set_roots(&mut self, roots: RootKeys) {
        self.journal.encryption.roots = roots;
    }

    /// True with durability `always`.
    pub(super) fn always(&self) -> bool {
        self.journal.durability == Durability::Always
    }
}

/// Directory of a shard on the simulated disk.
pub(super) fn shard_dir(shard: u32) -> PathBuf {
    Path::new(DIRECTORY).join(format!("shard-{shard:03}"))
}
