//! Locks: who holds a key together with whom, in which order those that wait are served, and that each of
//! them is told once what became of it.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::command::LockAcquire;
use sluice_engine::id::NamespaceId;
use sluice_engine::locks::{LockGrant, LockMode, LockTicket, LockToken};
use sluice_engine::outcome::{Outcome, Reply};
use sluice_engine::{Command, Error};

use super::Run;

const KEYS: [&str; 5] = ["a", "b", "c", "orders/1", "orders/2"];

#[derive(Clone, Debug)]
struct Claim {
    keys: BTreeSet<String>,
    mode: LockMode,
}

/// Everything that was told of locks.
#[derive(Default)]
pub(super) struct Locks {
    waiting: BTreeMap<LockTicket, Claim>,
    /// Grants with their ends.
    grants: BTreeMap<LockToken, (Claim, u64)>,
    /// Tokens of grants that have ended.
    ended: Vec<LockToken>,
    /// The latest end of a grant by its time.
    over_us: u64,
    latest: u64,
}

impl Locks {
    pub(super) fn follow(&mut self, now_us: u64, command: &Command<'_>, out: &Outcome) {
        let over = self.grants.iter().filter(|(_, (_, until_us))| *until_us <= now_us);
        let over: Vec<_> = over.map(|(token, (_, until_us))| (*token, *until_us)).collect();
        for (token, until_us) in over {
            self.over_us = self.over_us.max(until_us);
            self.end(token);
        }
        match command {
            Command::LockAcquire(acquire) => {
                // What was over ended before it was looked at.
                self.told(now_us, out);
                self.acquired(now_us, acquire, out);
                return;
            }
            Command::LockRenew { token, .. } => self.renewed(now_us, *token, out),
            Command::LockRelease { token, .. } if out.error.is_none() => self.end(*token),
            Command::LockRelease { token, .. } => {
                assert!(!self.grants.contains_key(token), "{token} is held, and cannot be released");
            }
            Command::LockBreak { key, .. } => {
                let broken = self.grants.iter().filter(|(_, (claim, _))| claim.keys.contains(*key));
                let broken: Vec<_> = broken.map(|(token, _)| *token).collect();
                assert_eq!(out.reply, Reply::LockBroken { holders: broken.len() as u32 });
                broken.into_iter().for_each(|token| self.end(token));
            }
            _ => {}
        }
        self.told(now_us, out);
    }

    fn told(&mut self, now_us: u64, out: &Outcome) {
        for notice in &out.locks {
            let Some(claim) = self.waiting.remove(&notice.ticket) else {
                panic!("{:?} is told of what did not wait", notice.ticket);
            };
            let Some(grant) = notice.grant else { continue };
            for (other, before) in self.waiting.range(..notice.ticket) {
                assert!(before.keys.is_disjoint(&claim.keys), "{:?} goes past {other:?}", notice.ticket);
            }
            self.granted(now_us, claim, grant);
        }
    }

    fn acquired(&mut self, now_us: u64, acquire: &LockAcquire<'_>, out: &Outcome) {
        let keys = acquire.keys.iter().map(|key| (*key).to_owned()).collect();
        let claim = Claim { keys, mode: acquire.mode };
        match out.reply {
            Reply::LockGranted { grant } if self.grants.contains_key(&grant.token) => {
                assert_ne!(acquire.request, [0; 2], "what no request names is not repeated");
                self.renewed(now_us, grant.token, out);
            }
            Reply::LockGranted { grant } => {
                let waiters = self.waiting.values().any(|waiter| !waiter.keys.is_disjoint(&claim.keys));
                assert!(!waiters, "{:?} goes past a line", grant.token);
                let is_alone = self.grants.values().all(|(other, _)| other.keys.is_disjoint(&claim.keys));
                assert!(is_alone || !acquire.if_absent, "{:?} joins others", grant.token);
                self.granted(now_us, claim, grant);
            }
            Reply::LockWaits { ticket, .. } => {
                let before = self.waiting.insert(ticket, claim);
                assert!(before.is_none() || acquire.request != [0; 2]);
            }
            _ => assert!(matches!(out.error, Some(Error::LockHeld { .. } | Error::NamespaceNotFound { .. }))),
        }
    }

    fn granted(&mut self, now_us: u64, claim: Claim, grant: LockGrant) {
        assert!(grant.token.number > self.latest && grant.until_us > now_us);
        self.latest = grant.token.number;
        assert!(self.has_room(&claim), "{claim:?} is granted beside {:?}", self.grants);
        self.grants.insert(grant.token, (claim, grant.until_us));
    }

    fn renewed(&mut self, now_us: u64, token: LockToken, out: &Outcome) {
        match (self.grants.get_mut(&token), out.reply) {
            (Some((_, until_us)), Reply::LockGranted { grant }) => {
                assert!(grant.token == token && grant.until_us > now_us);
                *until_us = grant.until_us;
            }
            (None, Reply::None) => assert!(matches!(out.error, Some(Error::LockLost { .. }))),
            (held, reply) => panic!("{token}: {held:?}, {reply:?}"),
        }
    }

    fn has_room(&self, claim: &Claim) -> bool {
        claim.keys.iter().all(|key| {
            let holders = self.grants.values().filter(|(other, _)| other.keys.contains(key));
            let modes: Vec<LockMode> = holders.map(|(other, _)| other.mode).collect();
            match claim.mode {
                LockMode::Exclusive => modes.is_empty(),
                LockMode::Shared => modes.iter().all(|mode| *mode == LockMode::Shared),
                LockMode::Counting { holders } => {
                    let count = |mode: &LockMode| matches!(mode, LockMode::Counting { .. });
                    modes.iter().all(count) && modes.len() < usize::from(holders)
                }
            }
        })
    }

    fn end(&mut self, token: LockToken) {
        if self.grants.remove(&token).is_some() {
            self.ended.push(token);
        }
    }

    /// Checks, when nothing is due, that nobody waits who could go on. Timers fire up to 1 ms late.
    pub(super) fn check(&self, now_us: u64) {
        if now_us < self.over_us + 1_000 {
            return;
        }
        for (ticket, claim) in &self.waiting {
            let mut before = self.waiting.range(..*ticket);
            let is_first = before.all(|(_, other)| other.keys.is_disjoint(&claim.keys));
            assert!(!is_first || !self.has_room(claim), "{ticket:?} waits in vain");
        }
    }
}

impl Run {
    pub(super) fn lock(&mut self) {
        let namespace = NamespaceId::DEFAULT;
        match self.numbers.below(12) {
            0..=5 => self.acquire(),
            6 | 7 => {
                let Some(token) = self.some_token() else { return };
                self.apply(&Command::LockRelease { namespace, token });
            }
            8 | 9 => {
                let (Some(token), ttl_ms) = (self.some_token(), self.numbers.pick(&[0, 1, 5_000])) else {
                    return;
                };
                self.apply(&Command::LockRenew { namespace, token, ttl_ms });
            }
            10 => {
                let waiting: Vec<LockTicket> = self.locks.waiting.keys().copied().collect();
                let (wait_ms, calls) = (self.numbers.pick(&[1, 30_000]), self.numbers.pick(&[1, 1, 2]));
                if !waiting.is_empty() {
                    let claim = self.numbers.pick(&waiting);
                    let leave = Command::LockLeave { claim, calls };
                    let wait = Command::LockWait { ticket: claim, wait_ms };
                    let command = if self.numbers.one_in(2) { &leave } else { &wait };
                    self.apply(command);
                }
            }
            _ => {
                let key = self.numbers.pick(&KEYS);
                self.apply(&Command::LockBreak { namespace, key });
            }
        }
    }

    fn acquire(&mut self) {
        let count = self.numbers.pick(&[1, 1, 1, 2, 3]);
        let mut keys: Vec<&str> = (0..count).map(|_| self.numbers.pick(&KEYS)).collect();
        keys.sort_unstable();
        keys.dedup();
        let holders = self.numbers.pick(&[1, 2, 3]);
        let mode = self.numbers.pick(&[
            LockMode::Exclusive,
            LockMode::Exclusive,
            LockMode::Shared,
            LockMode::Counting { holders },
        ]);
        // A repeat is the same in all but how long it waits and holds.
        let request = if self.numbers.one_in(2) {
            let of = format!("{keys:?} {mode:?}");
            [1, of.bytes().fold(self.numbers.below(2), |sum, byte| sum.wrapping_mul(31) + u64::from(byte))]
        } else {
            [0; 2]
        };
        let (ttl_ms, wait_ms) =
            (self.numbers.pick(&[1, 100, 30_000]), self.numbers.pick(&[0, 1, 30_000, 30_000]));
        let if_absent = wait_ms == 0 && self.numbers.one_in(2);
        let (namespace, keys, owner) = (NamespaceId::DEFAULT, &keys, "o");
        let acquire = LockAcquire { namespace, keys, owner, mode, ttl_ms, wait_ms, if_absent, request };
        self.apply(&Command::LockAcquire(acquire));
    }

    /// A token that was given; of one in four, the grant has ended.
    pub(super) fn some_token(&mut self) -> Option<LockToken> {
        let held: Vec<LockToken> = self.locks.grants.keys().copied().collect();
        let from = if self.numbers.one_in(4) { &self.locks.ended } else { &held };
        if from.is_empty() { None } else { Some(self.numbers.pick(from)) }
    }
}
