//! Refused acts, summed up where they are many, so that whoever is refused cannot fill the audit log: by
//! address for those who have not shown who they are, by identity for the others, of whom the first few are
//! taken down one by one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::identity::Caller;
use super::peer::Peer;

/// Over how long they are summed up, in milliseconds.
pub(super) const SUMMED_UP_MS: u64 = 600_000;
/// Refusals of an identity within that time that get entries of their own.
pub(super) const SINGLY_MAX: u64 = 20;
/// Addresses that are told apart within that time. With them, a year of refusals has fewer entries than the
/// log has room for.
const ADDRESSES_MAX: usize = 16;
/// Identities that are told apart within that time.
const IDENTITIES_MAX: usize = 1_000;

/// Refusals that have no entry yet.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<Sums>);

#[derive(Debug, Default)]
struct Sums {
    /// Time of the first of them, in milliseconds since the Unix epoch.
    began_ms: u64,
    /// `None`: all addresses beyond those that are told apart.
    addresses: HashMap<Option<IpAddr>, Sum>,
    /// `None`: all identities beyond those that are told apart.
    identities: HashMap<Option<Arc<str>>, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    acts: u64,
    summed_up: u64,
    /// The first that is summed up.
    first: Value,
}

impl Refusals {
    /// Counts a refused act. Its entry, if it is to be taken down by itself.
    pub(super) fn add(
        &self,
        peer: &Peer,
        caller: &Caller,
        now_ms: u64,
        entry: impl FnOnce() -> Value,
    ) -> Option<Value> {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sums.addresses.is_empty() && sums.identities.is_empty() {
            sums.began_ms = now_ms;
        }
        let (sum, singly_max) = match caller.identity() {
            None => (told_apart(&mut sums.addresses, peer.address(), ADDRESSES_MAX), 0),
            Some(by) => (told_apart(&mut sums.identities, Arc::clone(&by.name), IDENTITIES_MAX), SINGLY_MAX),
        };
        sum.acts += 1;
        if sum.acts <= singly_max {
            return Some(entry());
        }
        if sum.summed_up == 0 {
            sum.first = entry();
        }
        sum.summed_up += 1;
        None
    }

    /// The entries of sums whose time is over, or of all.
    pub(super) fn take(&self, now_ms: u64, all: bool) -> Vec<Value> {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all && now_ms < sums.began_ms.saturating_add(SUMMED_UP_MS) {
            return Vec::new();
        }
        let sums = std::mem::take(&mut *sums);
        let of_addresses = sums.addresses.into_iter().map(|(address, sum)| match address {
            Some(_) => sum,
            None => sum.of_others("address", "other addresses"),
        });
        let of_identities = sums.identities.into_iter().map(|(name, sum)| match name {
            Some(_) => sum,
            None => sum.of_others("who", "other identities"),
        });
        of_addresses
            .chain(of_identities)
            .filter(|sum| sum.summed_up > 0)
            .map(|sum| sum.entry(now_ms))
            .collect()
    }
}

/// The sum of one, or that of all beyond the `most` that are told apart.
fn told_apart<K: std::hash::Hash + Eq>(sums: &mut HashMap<Option<K>, Sum>, one: K, most: usize) -> &mut Sum {
    let one = Some(one);
    let one = if sums.len() < most || sums.contains_key(&one) { one } else { None };
    sums.entry(one).or_default()
}

impl Sum {
    fn of_others(mut self, field: &str, others: &str) -> Sum {
        self.first[field] = others.into();
        self
    }

    /// The entry of the first refusal, with the number of all and the time of the last.
    fn entry(self, now_ms: u64) -> Value {
        let mut entry = self.first;
        entry["count"] = json!(self.summed_up);
        entry["until_ms"] = json!(now_ms);
        entry
    }
}
