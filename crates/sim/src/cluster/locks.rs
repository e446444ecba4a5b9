//! Locks as the clients of a cluster know them: what they hold, and what they ask next.

use std::collections::{BTreeMap, HashSet};

use sluice_engine::id::LockToken;

use super::calls::{LockCall, Wanted};
use super::holding::Lease;
use crate::rng::Rng;

const SECOND_US: u64 = 1_000_000;
const KEYS: [&str; 2] = ["x", "y"];

/// A grant that a client was told of, and has not asked to release.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) token: LockToken,
    pub(super) wanted: Wanted,
    pub(super) lease: Lease,
}

/// Locks as clients know them, and as they were promised.
#[derive(Debug, Default)]
pub(super) struct Locking {
    /// Draws of its own, so that those of other clients do not change; `None`: no locks are used.
    rng: Option<Rng>,
    requests: u64,
    pub(super) held: BTreeMap<&'static str, Vec<Held>>,
    /// The largest token of each key that was answered, and the time of that.
    pub(super) latest: BTreeMap<&'static str, (u64, u64)>,
    /// Tokens that were asked to be released.
    pub(super) released: HashSet<LockToken>,
    /// Requests of which a caller has gone: a grant that it was to get goes back.
    pub(super) gone: HashSet<u64>,
    /// Time at which each request was made last.
    pub(super) asked: BTreeMap<u64, u64>,
    /// Requests whose outcome is not known.
    pub(super) again: Vec<Wanted>,
}

impl Locking {
    /// Clients of half of the seeds use locks.
    pub(super) fn new(seed: u64) -> Locking {
        let mut rng = Rng::new(!seed);
        Locking { rng: rng.chance(1, 2).then_some(rng), ..Locking::default() }
    }

    /// The next call; with it, how long it waits in microseconds.
    pub(super) fn draw(&mut self) -> Option<(LockCall, u64)> {
        let rng = self.rng.as_mut()?;
        if !rng.chance(1, 10) {
            return None;
        }
        let key = *rng.pick(&KEYS);
        let held = self.held.get(key).and_then(|held| held.last()).copied();
        let short_us = rng.below(4 * SECOND_US);
        let wait_us = rng.weighted(&[(2, 0), (3, short_us), (1, 45 * SECOND_US)]);
        let call = match (rng.below(8), held) {
            (0..3, Some(held)) => LockCall::Release(held.token),
            (3 | 4, Some(Held { token, wanted, .. })) => {
                LockCall::Renew { key, token, ttl_ms: wanted.ttl_ms }
            }
            (5, Some(held)) => LockCall::Acquire(held.wanted),
            (6, _) if !self.again.is_empty() => {
                LockCall::Acquire(self.again.swap_remove(rng.index(self.again.len())))
            }
            _ => {
                self.requests += 1;
                let ttl_ms = *rng.pick(&[1_000, 8_000, 25_000]);
                LockCall::Acquire(Wanted { key, request: self.requests, ttl_ms })
            }
        };
        Some((call, wait_us))
    }

    /// True when a caller that waits goes away.
    pub(super) fn goes(&mut self) -> bool {
        self.rng.as_mut().is_some_and(|rng| rng.chance(1, 400))
    }

    /// Notes that a caller has gone. One that makes a request again has no use for the answer to a former
    /// one: they all go back with the last.
    pub(super) fn has_gone(&mut self, call: LockCall) {
        if let LockCall::Acquire(Wanted { request, .. }) = call {
            self.gone.insert(request);
            self.held.values_mut().for_each(|held| held.retain(|held| held.wanted.request != request));
        }
    }

    pub(super) fn forget(&mut self, token: LockToken) {
        self.held.values_mut().for_each(|held| held.retain(|held| held.token != token));
    }
}
