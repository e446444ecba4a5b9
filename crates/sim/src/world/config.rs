//! What a seed decides before the first step: how the server is set up, and how much goes wrong.

use std::path::PathBuf;
use std::time::Duration;

use sluice_engine::limits::Limits;
use sluice_journal::{Durability, Options};

use crate::rng::Rng;

/// Where the journal lies on the simulated disk.
pub(super) const DIRECTORY: &str = "/data/shard-000";
/// Bytes of a disk that is never full.
pub(super) const ROOMY: usize = 1 << 30;

/// How likely each kind of trouble is, in each 10,000 steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trouble {
    pub(super) kill: u64,
    pub(super) power: u64,
    pub(super) failing_call: u64,
    pub(super) full_disk: u64,
    pub(super) flip: u64,
    pub(super) orderly_stop: u64,
    pub(super) clock_jump: u64,
}

impl Trouble {
    pub(super) const NONE: Trouble =
        Trouble { kill: 0, power: 0, failing_call: 0, full_disk: 0, flip: 0, orderly_stop: 0, clock_jump: 0 };
}

/// The set-up of one run.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) journal: Options,
    pub(super) limits: Limits,
    pub(super) waiting_max: usize,
    pub(super) mailbox: usize,
    pub(super) trouble: Trouble,
    /// Clients ask so often, in each 100 steps.
    pub(super) busy: u64,
}

impl Config {
    pub(super) fn draw(rng: &mut Rng) -> Config {
        let durability = rng.weighted(&[
            (6, Durability::Always),
            (2, Durability::Os),
            (2, Durability::Interval(Duration::from_millis(500))),
        ]);
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
        let limits = Limits {
            idempotency_window_ms: *rng.pick(&[2_000, 600_000]),
            receive_messages: *rng.pick(&[3, 1_000]),
            ..Limits::default()
        };
        let trouble = Trouble {
            kill: *rng.pick(&[0, 10, 40]),
            power: *rng.pick(&[0, 10, 40]),
            failing_call: *rng.pick(&[0, 0, 20]),
            full_disk: if full { 40 } else { 0 },
            flip: *rng.pick(&[0, 0, 0, 10]),
            orderly_stop: 5,
            clock_jump: 5,
        };
        Config {
            journal,
            limits,
            waiting_max: *rng.pick(&[2, 100]),
            mailbox: *rng.pick(&[4, 64]),
            trouble,
            busy: *rng.pick(&[20, 40, 60]),
        }
    }

    /// Whether a reply means that the disk has it.
    pub(super) fn always(&self) -> bool {
        self.journal.durability == Durability::Always
    }
}
