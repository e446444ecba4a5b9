//! Locks, as clients see them: who holds a key together with whom; in which order those that wait are served;
//! that each of them is told once what became of it, and not too early; that tokens only grow, and count
//! until their grants end.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::Error;
use sluice_engine::command::{Command, LockAcquire};
use sluice_engine::id::{LockTicket, LockToken, NamespaceId};
use sluice_engine::locks::{LockGrant, LockMode, LockNotice};
use sluice_engine::outcome::Reply;

use super::Record;
use crate::model::{Checked, ensure};

/// Locks of some keys, asked for or held.
#[derive(Clone, Debug)]
struct Claim {
    namespace: NamespaceId,
    keys: BTreeSet<String>,
    mode: LockMode,
    /// End of its wait or of its grant, in microseconds since the Unix epoch.
    until_us: u64,
    /// Number of times that it was asked for.
    calls: u16,
    /// True: its namespace was deleted, whose number may be given again.
    is_gone: bool,
}

impl Claim {
    fn meets(&self, other: &Claim) -> bool {
        let is_near = self.namespace == other.namespace && self.is_gone == other.is_gone;
        is_near && !self.keys.is_disjoint(&other.keys)
    }
}

/// Everything that was told of locks up to some record.
#[derive(Clone, Debug, Default)]
pub(super) struct Locks {
    waiting: BTreeMap<LockTicket, Claim>,
    granted: BTreeMap<LockToken, Claim>,
    latest: u64,
}

impl Locks {
    pub(super) fn follow(&mut self, record: &Record<'_>) -> Checked {
        let (outcome, now_us) = (record.outcome, record.now_us);
        self.granted.retain(|_, claim| claim.until_us > now_us);
        match record.command {
            Command::LockAcquire(acquire) => {
                // A request that does not wait any more leaves its line.
                if acquire.wait_ms == 0 && acquire.request != [0; 2] {
                    self.may_leave(&outcome.locks, now_us);
                }
                self.told(record)?;
                return self.acquired(record, acquire);
            }
            Command::LockRenew { token, .. } => self.renewed(*token, record)?,
            Command::LockRelease { token, .. } => {
                let held = self.granted.remove(token);
                ensure!(held.is_none() || outcome.error.is_none(), "{token} is held, and was not released");
            }
            Command::LockBreak { namespace, key } if outcome.error.is_none() => {
                let holders = self.granted.len();
                self.granted.retain(|_, claim| claim.namespace != *namespace || !claim.keys.contains(*key));
                let holders = (holders - self.granted.len()) as u32;
                ensure!(outcome.reply == Reply::LockBroken { holders }, "{key} had {holders} holders");
            }
            Command::LockWait { ticket, wait_ms } => {
                if let Some(claim) = self.waiting.get_mut(ticket) {
                    claim.until_us = now_us + u64::from(*wait_ms) * 1_000;
                }
            }
            Command::LockLeave { claim, calls } => {
                self.granted.retain(|token, held| token.number != claim.number || held.calls != *calls);
                if let Some(waiting) = self.waiting.get_mut(claim).filter(|waiting| waiting.calls == *calls) {
                    waiting.until_us = now_us;
                }
            }
            Command::NamespaceDelete { namespace, .. } if outcome.error.is_none() => {
                self.granted.retain(|_, claim| claim.namespace != *namespace);
                let here = self.waiting.values_mut().filter(|claim| claim.namespace == *namespace);
                here.for_each(|claim| claim.is_gone = true);
            }
            Command::Tick => {
                self.told(record)?;
                return self.nobody_waits_in_vain(record);
            }
            _ => {}
        }
        self.told(record)
    }

    /// True if a token holds a key.
    pub(super) fn hold(&self, token: LockToken, namespace: NamespaceId, key: &str, now_us: u64) -> bool {
        let held = self.granted.get(&token);
        held.is_some_and(|held| {
            held.until_us > now_us && held.namespace == namespace && held.keys.contains(key)
        })
    }

    /// Checks that claims that wait have time left, and that something keeps those from going on which are
    /// first. Timers fire up to a millisecond late, and slices of work that are left come first.
    fn nobody_waits_in_vain(&self, record: &Record<'_>) -> Checked {
        if record.engine.next_deadline().is_some_and(|due_us| due_us <= record.now_us + 1_000) {
            return Ok(());
        }
        for (ticket, claim) in &self.waiting {
            ensure!(claim.until_us + 1_000 > record.now_us, "{ticket:?} waits beyond {}", claim.until_us);
            let is_first = self.waiting.range(..*ticket).all(|(_, other)| !other.meets(claim));
            ensure!(!is_first || !self.has_room(claim), "{ticket:?} waits in vain");
        }
        Ok(())
    }

    fn has_room(&self, claim: &Claim) -> bool {
        claim.keys.iter().all(|key| {
            let here = self.granted.values().filter(|other| other.namespace == claim.namespace);
            let holders: Vec<LockMode> =
                here.filter(|other| other.keys.contains(key)).map(|other| other.mode).collect();
            have_room(&holders, claim.mode)
        })
    }

    fn may_leave(&mut self, notices: &[LockNotice], now_us: u64) {
        for notice in notices.iter().filter(|notice| notice.grant.is_none()) {
            if let Some(claim) = self.waiting.get_mut(&notice.ticket) {
                claim.until_us = claim.until_us.min(now_us);
            }
        }
    }

    fn told(&mut self, record: &Record<'_>) -> Checked {
        for LockNotice { ticket, grant } in &record.outcome.locks {
            let Some(claim) = self.waiting.remove(ticket) else {
                return Err(format!("{ticket:?} is told of, and does not wait"));
            };
            let is_deleted = claim.is_gone;
            match grant {
                Some(grant) => {
                    ensure!(!is_deleted, "{ticket:?} is granted in a namespace that is gone");
                    let before = self.waiting.range(..*ticket).find(|(_, other)| other.meets(&claim));
                    ensure!(before.is_none(), "{ticket:?} goes past {before:?}");
                    self.is_granted(record.now_us, claim, *grant)?;
                }
                None => ensure!(
                    is_deleted || claim.until_us <= record.now_us,
                    "{ticket:?} has waited to the end before {}",
                    claim.until_us
                ),
            }
        }
        Ok(())
    }

    fn acquired(&mut self, record: &Record<'_>, acquire: &LockAcquire<'_>) -> Checked {
        let keys = acquire.keys.iter().map(|key| (*key).to_owned()).collect();
        let (namespace, mode, now_us) = (acquire.namespace, acquire.mode, record.now_us);
        let until = |ms: u32| now_us + u64::from(ms) * 1_000;
        let claim =
            Claim { namespace, keys, mode, until_us: until(acquire.wait_ms), calls: 1, is_gone: false };
        match record.outcome.reply {
            Reply::LockGranted { grant } if self.granted.contains_key(&grant.token) => {
                ensure!(acquire.request != [0; 2], "{} is given to another", grant.token);
                if let Some(held) = self.granted.get_mut(&grant.token) {
                    held.calls += 1;
                }
                self.renewed(grant.token, record)
            }
            Reply::LockGranted { grant } => {
                let before = self.waiting.values().find(|other| other.meets(&claim));
                ensure!(before.is_none(), "{} goes past {before:?}", grant.token);
                ensure!(grant.until_us == until(acquire.ttl_ms), "{grant:?} does not last as asked for");
                self.is_granted(now_us, claim, grant)
            }
            Reply::LockWaits { ticket, calls } => {
                let former = self.waiting.remove(&ticket);
                ensure!(former.is_none() || acquire.request != [0; 2], "{ticket:?} is given to another");
                let times = former.map_or(1, |former| former.calls + 1);
                ensure!(calls == times, "{ticket:?} was asked for {times} times, not {calls}");
                self.waiting.insert(ticket, Claim { calls, ..claim });
                Ok(())
            }
            _ => match &record.outcome.error {
                Some(Error::LockHeld { .. }) => {
                    let meets = |other: &Claim| other.meets(&claim);
                    // Timers fire up to a millisecond late.
                    let taken = self.waiting.values().any(meets) || self.granted.values().any(meets);
                    let is_late = record.engine.lock(namespace, acquire.keys[0], 1).is_some();
                    ensure!(taken || is_late || acquire.keys.len() > 1, "{claim:?} is refused, and free");
                    ensure!(acquire.wait_ms == 0, "{claim:?} would wait");
                    Ok(())
                }
                Some(Error::NamespaceNotFound { .. }) => Ok(()),
                other => Err(format!("{claim:?} got {other:?}")),
            },
        }
    }

    fn is_granted(&mut self, now_us: u64, claim: Claim, grant: LockGrant) -> Checked {
        ensure!(grant.token.number > self.latest, "{grant:?} is not above {}", self.latest);
        ensure!(grant.until_us > now_us, "{grant:?} is over at {now_us}");
        self.latest = grant.token.number;
        ensure!(self.has_room(&claim), "{claim:?} is granted beside {:?}", self.granted);
        self.granted.insert(grant.token, Claim { until_us: grant.until_us, ..claim });
        Ok(())
    }

    fn renewed(&mut self, token: LockToken, record: &Record<'_>) -> Checked {
        match (self.granted.get_mut(&token), record.outcome.reply) {
            (Some(claim), Reply::LockGranted { grant }) => {
                ensure!(grant.token == token && grant.until_us > record.now_us, "{token} became {grant:?}");
                claim.until_us = grant.until_us;
                Ok(())
            }
            (None, Reply::None) => Ok(()),
            (held, reply) => Err(format!("{token} of {held:?} was renewed with {reply:?}")),
        }
    }
}

fn have_room(holders: &[LockMode], mode: LockMode) -> bool {
    match mode {
        LockMode::Exclusive => holders.is_empty(),
        LockMode::Shared => holders.iter().all(|other| *other == LockMode::Shared),
        LockMode::Counting { holders: most } => {
            let count = |other: &LockMode| matches!(other, LockMode::Counting { .. });
            holders.iter().all(count) && holders.len() < usize::from(most)
        }
    }
}
