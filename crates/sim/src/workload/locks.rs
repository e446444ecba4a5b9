//! Random operations on locks.

use std::collections::VecDeque;

use sluice_engine::command::{Command, LockAcquire};
use sluice_engine::id::{LockTicket, LockToken, NamespaceId};
use sluice_engine::locks::{LockGrant, LockMode};

use super::seen::Seen;
use super::{Generator, Lend, Op};
use crate::rng::Rng;

const KEYS: [&str; 4] = ["a", "b", "orders/1", "orders/2"];
/// Number of tokens, and of claims that have waited, that are kept in order to use them again, too late.
const KEPT_MAX: usize = 24;

/// An operation on a lock.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // The fields are those of the command of the same name.
pub enum LockOp {
    Acquire {
        namespace: NamespaceId,
        keys: Vec<&'static str>,
        mode: LockMode,
        ttl_ms: u32,
        wait_ms: u32,
        request: [u64; 2],
    },
    Renew {
        namespace: NamespaceId,
        token: LockToken,
        ttl_ms: u32,
    },
    Release {
        namespace: NamespaceId,
        token: LockToken,
    },
    Break {
        namespace: NamespaceId,
        key: &'static str,
    },
    Wait {
        ticket: LockTicket,
        wait_ms: u32,
    },
    Leave {
        claim: LockTicket,
        calls: u16,
    },
}

impl Lend for LockOp {
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>)) {
        f(&match self {
            LockOp::Acquire { namespace, keys, mode, ttl_ms, wait_ms, request } => {
                Command::LockAcquire(LockAcquire {
                    namespace: *namespace,
                    keys,
                    owner: "client",
                    mode: *mode,
                    ttl_ms: *ttl_ms,
                    wait_ms: *wait_ms,
                    if_absent: false,
                    request: *request,
                })
            }
            LockOp::Renew { namespace, token, ttl_ms } => {
                Command::LockRenew { namespace: *namespace, token: *token, ttl_ms: *ttl_ms }
            }
            LockOp::Release { namespace, token } => {
                Command::LockRelease { namespace: *namespace, token: *token }
            }
            LockOp::Break { namespace, key } => Command::LockBreak { namespace: *namespace, key },
            LockOp::Wait { ticket, wait_ms } => Command::LockWait { ticket: *ticket, wait_ms: *wait_ms },
            LockOp::Leave { claim, calls } => Command::LockLeave { claim: *claim, calls: *calls },
        });
    }
}

/// Grants and waiting claims of clients, as far as they were told.
#[derive(Debug)]
pub(super) struct LocksKnown {
    rng: Rng,
    granted: VecDeque<(NamespaceId, LockGrant)>,
    waiting: VecDeque<LockTicket>,
}

impl LocksKnown {
    pub(super) fn new(rng: Rng) -> LocksKnown {
        LocksKnown { rng, granted: VecDeque::new(), waiting: VecDeque::new() }
    }
}

impl Generator {
    /// Notes a grant.
    pub fn granted(&mut self, namespace: NamespaceId, grant: LockGrant) {
        if let Some(locks) = &mut self.locks {
            locks.granted.push_back((namespace, grant));
            if locks.granted.len() > KEPT_MAX {
                locks.granted.pop_front();
            }
        }
    }

    /// Notes a claim that waits.
    pub fn waits_for_lock(&mut self, ticket: LockTicket) {
        if let Some(locks) = &mut self.locks {
            locks.waiting.push_back(ticket);
            if locks.waiting.len() > KEPT_MAX {
                locks.waiting.pop_front();
            }
        }
    }

    /// A grant of a namespace that clients were told of.
    pub(super) fn grant_of(&self, namespace: NamespaceId) -> Option<LockGrant> {
        let granted = &self.locks.as_ref()?.granted;
        granted.iter().rev().find(|(of, _)| *of == namespace).map(|(_, grant)| *grant)
    }

    /// A token that clients were told of.
    pub(super) fn some_token(&self) -> Option<LockToken> {
        self.locks.as_ref().and_then(|locks| locks.granted.back()).map(|(_, grant)| grant.token)
    }

    /// Draws an operation on a lock, at times; by numbers of its own, so that the other draws of a seed do
    /// not change.
    pub(super) fn lock(&mut self, seen: &Seen<'_>) -> Option<Op> {
        let (shard, locks) = (self.shard, self.locks.as_mut()?);
        let rng = &mut locks.rng;
        if !rng.chance(1, 12) {
            return None;
        }
        let known = seen.namespaces(shard);
        let namespace = match shard == 0 && rng.chance(3, 4) {
            true => NamespaceId::DEFAULT,
            false if known.is_empty() => NamespaceId(77),
            false => *rng.pick(&known),
        };
        Some(Op::Lock(match rng.below(12) {
            6..9 if !locks.granted.is_empty() => {
                let (namespace, grant) = locks.granted[rng.index(locks.granted.len())];
                match rng.chance(1, 4) {
                    true => LockOp::Leave { claim: grant.claim(), calls: *rng.pick(&[1, grant.calls, 2]) },
                    false => LockOp::Release { namespace, token: grant.token },
                }
            }
            9 if !locks.granted.is_empty() => {
                let (namespace, LockGrant { token, .. }) = locks.granted[rng.index(locks.granted.len())];
                LockOp::Renew { namespace, token, ttl_ms: *rng.pick(&[0, 0, 20, 5_000]) }
            }
            10 if !locks.waiting.is_empty() => {
                let ticket = locks.waiting[rng.index(locks.waiting.len())];
                match rng.chance(1, 2) {
                    true => LockOp::Leave { claim: ticket, calls: *rng.pick(&[1, 1, 2]) },
                    false => LockOp::Wait { ticket, wait_ms: *rng.pick(&[1, 10, 20_000]) },
                }
            }
            11 => LockOp::Break { namespace, key: KEYS[rng.index(KEYS.len())] },
            _ => acquire(rng, namespace),
        }))
    }
}

fn acquire(rng: &mut Rng, namespace: NamespaceId) -> LockOp {
    let first = rng.index(KEYS.len());
    let count = rng.weighted(&[(4, 1), (2, 2), (1, KEYS.len())]);
    let keys: Vec<&str> = KEYS.iter().cycle().skip(first).take(count).copied().collect();
    let mode = rng.weighted(&[
        (3, LockMode::Exclusive),
        (2, LockMode::Shared),
        (1, LockMode::Counting { holders: 2 }),
        (1, LockMode::Counting { holders: 3 }),
    ]);
    // The same request is made for the same locks in the same way.
    let request = match rng.below(4) {
        0 => [1 + first as u64, count as u64 * 10 + u64::from(mode == LockMode::Exclusive)],
        _ => [0; 2],
    };
    let mode = if request == [0; 2] || mode == LockMode::Exclusive { mode } else { LockMode::Shared };
    let ttl_ms = *rng.pick(&[1, 50, 2_000, 60_000]);
    LockOp::Acquire { namespace, keys, mode, ttl_ms, wait_ms: *rng.pick(&[0, 5, 500, 30_000]), request }
}
