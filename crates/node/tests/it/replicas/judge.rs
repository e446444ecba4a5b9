//! What clients are told, held against the agreed log. It knows nothing of how a shard works:
//!
//! - what is answered ok is in the log, what is answered "not done" is not;
//! - ids, tokens and numbers of consumers are given once;
//! - what was acknowledged is not delivered again;
//! - no lease and no delay ends early;
//! - what is read is not older than what was answered before.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sluice_engine::blob::MessageBlob;
use sluice_engine::id::{ConsumerId, MessageId, Receipt};
use sluice_engine::outcome::Delivery;
use sluice_engine::{Engine, Error};
use sluice_journal::BlobRead;
use sluice_node::shard::channel::Handed;
use sluice_node::shard::request::Given;

use super::agreement::Entry;
use super::calls::{Answered, Call, LEASE_MS, PROBE, Waiting};

/// Part of a lease or delay that may be missing: clocks are slewed by 1/2000.
const SLEWED: u64 = 1_000;
/// Longest way of a delivery to a consumer, from its record on, in microseconds.
const ON_ITS_WAY_US: u64 = 6_000_000;

/// A delivery that a client has.
#[derive(Clone, Copy)]
pub struct Hold {
    pub receipt: Receipt,
    /// Time before which it does not go to others.
    pub until_us: u64,
}

/// Numbers of what has happened, to see that everything has.
#[derive(Clone, Debug, Default)]
pub struct Seen(pub BTreeMap<&'static str, u64>);

impl Seen {
    pub fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub fn add(&mut self, other: &Seen) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }
}

#[derive(Default)]
pub struct Judge {
    /// Payloads of sends, by their answers.
    sent: BTreeSet<String>,
    refused: BTreeSet<String>,
    unknown: BTreeSet<String>,
    /// Time before which a payload is not delivered.
    not_before: BTreeMap<String, u64>,
    pub ids: BTreeSet<MessageId>,
    tokens: HashSet<u64>,
    consumers: BTreeSet<ConsumerId>,
    pub holds: BTreeMap<MessageId, Hold>,
    /// Tokens with which messages were acked, by the answers.
    acked: BTreeMap<MessageId, u64>,
    not_acked: BTreeSet<MessageId>,
    /// Number of acks that were asked for.
    ack_tried: BTreeMap<MessageId, u32>,
    pub seen: Seen,
}

impl Judge {
    /// Number of sends that were answered.
    pub fn sends(&self) -> u64 {
        self.sent.len() as u64
    }

    /// Notes that a message is about to be acked.
    pub fn tries_ack(&mut self, id: MessageId) {
        *self.ack_tried.entry(id).or_default() += 1;
    }

    pub fn hears(&mut self, waiting: &Waiting, answer: Answered, now_us: u64) -> Result<(), String> {
        match (&waiting.call, answer) {
            (Call::Send { payload, delay_us, .. }, Answered::Sent(result)) => {
                self.not_before.insert(payload.clone(), waiting.begun_us + delay_us - delay_us / SLEWED);
                let to = match self.outcome("sent", &result)? {
                    Outcome::Done => &mut self.sent,
                    Outcome::NotDone => &mut self.refused,
                    Outcome::Unknown => &mut self.unknown,
                };
                to.insert(payload.clone());
                if let Ok(id) = result {
                    once(self.ids.insert(id), "an id")?;
                }
                Ok(())
            }
            (Call::Pull { queue, .. }, Answered::Given(result)) => {
                self.outcome("pulled", &result)?;
                let Ok(given) = result else { return Ok(()) };
                if given.is_empty() {
                    self.seen.note("empty");
                    if queue.starts_with(PROBE) {
                        return Err(format!("{queue} was told to be empty, after a send to it was answered"));
                    }
                }
                given.iter().try_for_each(|given| self.is_given(given, waiting.begun_us, LEASE_MS, now_us))
            }
            (Call::Ack { receipt, .. }, Answered::Settled(result)) => {
                let result = match result {
                    Err(Error::LeaseLost { .. } | Error::MessageNotFound { .. }) => {
                        self.seen.note("too late to ack");
                        return Ok(());
                    }
                    Err(Error::AlreadySettled { .. }) => Ok(()),
                    other => other,
                };
                match self.outcome("acked", &result)? {
                    Outcome::Done => drop(self.acked.insert(receipt.id, receipt.token)),
                    Outcome::NotDone => drop(self.not_acked.insert(receipt.id)),
                    Outcome::Unknown => {}
                }
                Ok(())
            }
            (Call::Attach { .. }, Answered::Attached(result)) => {
                self.outcome("attached", &result)?;
                result.map_or(Ok(()), |consumer| {
                    once(self.consumers.insert(consumer), "the number of a consumer")
                })
            }
            (Call::Count { at_least, .. }, Answered::Counted(result)) => {
                self.outcome("counted", &result)?;
                match result {
                    Ok(count) if count < *at_least => {
                        Err(format!("{count} sends were counted, after {at_least} were answered"))
                    }
                    _ => Ok(()),
                }
            }
            (Call::Await { id, .. }, Answered::Awaited(result)) => match result {
                Err(Error::MessageNotFound { .. }) if !self.ack_tried.contains_key(id) => {
                    Err(format!("{id} was not found, which nobody has acked"))
                }
                Err(Error::MessageNotFound { .. }) => Ok(()),
                result => self.outcome("awaited", &result).map(|_| ()),
            },
            _ => Err("an answer to another call".to_owned()),
        }
    }

    /// Deliveries of an attached consumer, which came not long ago.
    pub fn is_handed(&mut self, handed: &[Handed], now_us: u64) -> Result<(), String> {
        for handed in handed {
            self.seen.note("handed");
            match handed {
                Handed::Given(given) => {
                    self.is_given(given, now_us.saturating_sub(ON_ITS_WAY_US), 2 * LEASE_MS, now_us)?;
                }
                Handed::Bare(delivery) => self.is_delivered(delivery, 0, now_us)?,
            }
        }
        Ok(())
    }

    fn is_given(&mut self, given: &Given, begun_us: u64, lease_ms: u64, now_us: u64) -> Result<(), String> {
        self.seen.note("delivered");
        let BlobRead::Cached(bytes) = &given.blob else { return Err("a payload is missing".to_owned()) };
        let payload = MessageBlob::parse(bytes).ok_or("a payload cannot be read")?.payload.to_vec();
        let payload = String::from_utf8(payload).map_err(|error| error.to_string())?;
        if self.not_before.get(&payload).is_some_and(|not_before| now_us < *not_before) {
            return Err(format!("{payload} was delivered before the end of its delay"));
        }
        let lease_us = lease_ms * 1_000;
        self.is_delivered(&given.delivery, begun_us + lease_us - lease_us / SLEWED, now_us)
    }

    fn is_delivered(&mut self, delivery: &Delivery, until_us: u64, now_us: u64) -> Result<(), String> {
        let receipt = delivery.receipt;
        let id = receipt.id;
        once(self.tokens.insert(receipt.token), "a token")?;
        if self.acked.get(&id).is_some_and(|token| *token < receipt.token) {
            return Err(format!("{id} was delivered again after its ack was answered"));
        }
        if let Some(held) = self.holds.get(&id) {
            if held.receipt.token > receipt.token {
                return Ok(());
            }
            if now_us < held.until_us {
                let early_ms = (held.until_us - now_us) / 1_000;
                return Err(format!("{id} was delivered again {early_ms} ms before the end of its lease"));
            }
            self.seen.note("delivered again");
        }
        self.holds.insert(id, Hold { receipt, until_us });
        Ok(())
    }

    fn outcome<T>(&mut self, what: &'static str, result: &Result<T, Error>) -> Result<Outcome, String> {
        let (note, outcome) = match result {
            Ok(_) => (what, Outcome::Done),
            Err(Error::NotLeader { .. }) => ("not_leader", Outcome::NotDone),
            Err(Error::NoLeader {}) => ("no_leader", Outcome::NotDone),
            Err(Error::OutcomeUnknown {}) => ("outcome_unknown", Outcome::Unknown),
            Err(other) => return Err(format!("{what}: {other}")),
        };
        self.seen.note(note);
        Ok(outcome)
    }

    /// Compares what was told with the agreed log, and with the state that it gives.
    pub fn looks_back(&self, log: &[Entry], engine: &Engine) -> Result<(), String> {
        let bytes: Vec<u8> = log.iter().flat_map(|entry| entry.bytes.to_vec()).collect();
        let is_there: BTreeSet<String> = payloads(&bytes).into_iter().collect();
        if let Some(lost) = self.sent.iter().find(|payload| !is_there.contains(*payload)) {
            return Err(format!("{lost} was answered and is not in the log"));
        }
        if let Some(found) = self.refused.iter().find(|payload| is_there.contains(*payload)) {
            return Err(format!("{found} was told not to be done and is in the log"));
        }
        for id in self.acked.keys() {
            if engine.message(*id).is_ok() {
                return Err(format!("{id} is still there after its ack was answered"));
            }
        }
        for id in &self.not_acked {
            let only = self.ack_tried.get(id) == Some(&1);
            if only && engine.message(*id).is_err() {
                return Err(format!("{id} is gone, whose ack was told not to be done"));
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    NotDone,
    Unknown,
}

fn once(is_new: bool, what: &str) -> Result<(), String> {
    if is_new { Ok(()) } else { Err(format!("{what} was given twice")) }
}

/// Payloads of the test's messages, which are `<` seven digits `>`.
fn payloads(bytes: &[u8]) -> Vec<String> {
    let is_payload = |window: &&[u8]| {
        window[0] == b'<' && window[8] == b'>' && window[1..8].iter().all(u8::is_ascii_digit)
    };
    bytes.windows(9).filter(is_payload).map(|window| String::from_utf8_lossy(window).into_owned()).collect()
}
