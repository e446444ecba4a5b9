//! Answers to clients, held against the log that all nodes applied. It knows nothing of how a shard works:
//!
//! - what is answered ok is in the log, what is answered "not done" is not;
//! - a message is there once, however often a send with its key is repeated;
//! - ids, tokens and numbers of consumers are given once;
//! - what was acknowledged is not delivered again;
//! - no lease and no delay ends early, and none before the time that was told where all have started anew;
//! - whoever holds a message can settle it until then;
//! - one client at a time holds a lock;
//! - a version of a document is one write, and later reads see it or a later one;
//! - a transaction over several namespaces is done in all of them or in none, as was answered;
//! - what is read is not older than what was answered before.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sluice_engine::blob::MessageBlob;
use sluice_engine::id::{ConsumerId, MessageId, Receipt};
use sluice_engine::outcome::Delivery;
use sluice_engine::{Engine, Error};
use sluice_journal::{BlobError, BlobRead};
use sluice_node::shard::channel::Handed;
use sluice_node::shard::request::Given;

use super::across::Across;
use super::agreeing::Agreeing;
use super::calls::{Answered, Call, Figures, Message, QUEUE, Waiting};
use super::damage::Awaited;
use super::documents::Documents;
use super::filling::is_full;
use super::holding::{Consumers, Hold, Lease};
use super::locks::Locking;
use super::promised::{End, Starts};
use crate::model::Checked;
use crate::world::Stats;

/// Length of a payload, in bytes.
const PAYLOAD_BYTES: usize = 9;

/// The payload with this number.
pub(super) fn payload(number: u64) -> String {
    format!("<{number:07}>")
}

/// Fate of the sends of a payload.
#[derive(Debug, Default)]
struct Fate {
    /// Id that was answered.
    id: Option<MessageId>,
    /// True: a send had no answer that says what became of it.
    is_unknown: bool,
    /// Delay, in microseconds, and its end.
    delay_us: u64,
    not_before: End,
}

#[derive(Debug, Default)]
pub(super) struct Judge {
    pub(super) starts: Starts,
    /// Sends by their payload.
    fates: BTreeMap<String, Fate>,
    /// Number of messages whose sends were answered.
    sends: u64,
    /// Messages without an answer that says what became of them; a send with the same key may be tried again.
    pub(super) again: Vec<Message>,
    /// Payload of each id that was answered or delivered.
    ids: BTreeMap<MessageId, String>,
    payloads: BTreeMap<String, MessageId>,
    tokens: HashSet<u64>,
    pub(super) consumers: Consumers,
    pub(super) holds: BTreeMap<MessageId, Hold>,
    /// Tokens with which messages were acked, by the answers.
    acked: BTreeMap<MessageId, u64>,
    not_acked: BTreeSet<MessageId>,
    /// Tokens of deliveries that were asked to be released.
    released: HashSet<u64>,
    /// Number of acks that were asked for.
    pub(super) ack_tried: BTreeMap<MessageId, u32>,
    /// Number of acks that were answered with success.
    pub(super) acks: u64,
    /// True: calls may be refused for want of room.
    may_be_full: bool,
    /// Payloads of which a copy is awaited.
    pub(super) awaited: Vec<Awaited>,
    pub(super) locking: Locking,
    pub(super) documents: Documents,
    pub(super) across: Across,
    pub(super) stats: Stats,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    NotDone,
    Unknown,
}

impl Judge {
    pub(super) fn new(may_be_full: bool, locking: Locking, documents: Documents, across: Across) -> Judge {
        Judge { may_be_full, locking, documents, across, ..Judge::default() }
    }

    /// Number of messages whose sends were answered.
    pub(super) fn sends(&self) -> u64 {
        self.sends
    }

    /// Notes what a call may change from now on.
    pub(super) fn is_asked(&mut self, waiting: &Waiting) {
        match &waiting.call {
            Call::Send(message, _) => {
                let delay_us = message.delay_ms * 1_000;
                let not_before = End::after(waiting.begun_us, delay_us);
                let fate = Fate { delay_us, not_before, ..Fate::default() };
                self.fates.entry(message.payload.clone()).or_insert(fate);
            }
            Call::Ack(receipt, _) => *self.ack_tried.entry(receipt.id).or_default() += 1,
            Call::Release(receipt, _) => {
                self.released.insert(receipt.token);
                self.holds.remove(&receipt.id);
            }
            Call::Extend(receipt, _) => {
                if let Some(hold) = self.held_with(receipt) {
                    hold.may_be_extended(waiting.begun_us);
                }
            }
            Call::Pull { .. }
            | Call::Attach { .. }
            | Call::Resume { .. }
            | Call::Count { .. }
            | Call::Await(..)
            | Call::Write(..)
            | Call::Read(..)
            | Call::Record(..)
            | Call::LookUp(..) => {}
            Call::Acquire { call, .. } | Call::Lock(call, _) => self.is_lock_asked(call, waiting.begun_us),
        }
    }

    /// A call whose node is gone has no answer.
    pub(super) fn hears_nothing(&mut self, call: Call) {
        self.stats.unknown += 1;
        match call {
            Call::Send(message, _) => {
                self.fates.entry(message.payload.clone()).or_default().is_unknown = true;
                self.may_repeat(message);
            }
            Call::Acquire { call, .. } => self.hears_nothing_of_lock(call),
            Call::Record(asker, _) => self.across.told(asker, Some(Err(Error::OutcomeUnknown {}.into()))),
            _ => {}
        }
    }

    fn may_repeat(&mut self, message: Message) {
        if message.has_key {
            self.again.push(message);
        }
    }

    /// Takes in an answer; `agreeing` is the time in which its node applied batches.
    pub(super) fn hears(
        &mut self,
        waiting: Waiting,
        answer: Answered,
        agreeing: Agreeing,
        now_us: u64,
    ) -> Checked {
        let (begun_us, wait_us) = (waiting.begun_us, waiting.wait_us);
        match (waiting.call, answer) {
            (Call::Send(message, _), Answered::Sent(result)) => self.is_sent(message, result),
            (Call::Pull { queue, .. }, Answered::Given(result)) => {
                self.outcome(&result)?;
                let Ok(given) = result else { return Ok(()) };
                // A wait ends with its leader. A delay ends by a record, which waits for a majority: where
                // there was none for a while, the first ones to be applied are older than its end.
                let waited = now_us >= begun_us + wait_us;
                let is_soon = now_us < begun_us + wait_us + wait_us / 2;
                let is_there = wait_us == 0 || (is_soon && agreeing.lasts(wait_us / 2, now_us));
                if given.is_empty() && queue != QUEUE && waited && is_there {
                    return Err(format!("{queue} was told to be empty, after a send to it was answered"));
                }
                given.iter().try_for_each(|given| {
                    let lease = Lease::asked(begun_us, given.delivery.lease_until_us);
                    self.is_given(given, lease, None, now_us)
                })
            }
            (Call::Ack(receipt, _), Answered::Settled(result)) => self.is_acked(receipt, result, now_us),
            (Call::Release(..), Answered::Settled(result)) => self.settled(&result).map(drop),
            (Call::Extend(receipt, _), Answered::Settled(result)) => {
                if self.settled(&result)? == Outcome::Done && result.is_err() {
                    return self.is_lost(&receipt, 0, now_us);
                }
                if let Some(hold) = self.held_with(&receipt).filter(|_| result.is_ok()) {
                    let until = hold.lease.until.max(Lease::asked(begun_us, 0).until);
                    hold.lease = Lease { until, told_us: 0 };
                }
                Ok(())
            }
            (Call::Attach { worker, .. }, Answered::Attached(result)) => {
                self.outcome(&result)?;
                result.map_or(Ok(()), |consumer| {
                    let is_new = self.consumers.add(consumer, worker.grace_ms, begun_us);
                    once(is_new, "the number of a consumer")
                })
            }
            (Call::Resume { consumer, receipts, .. }, Answered::Resumed(result)) => {
                self.is_resumed(consumer, &receipts, result, begun_us, now_us)
            }
            (Call::Count { at_least, .. }, Answered::Counted(result)) => {
                self.outcome(&result)?;
                result.map_or(Ok(()), |figures| is_recent(&figures, at_least))
            }
            (Call::Await(id, _), Answered::Awaited(result)) => match result {
                Err(Error::MessageNotFound { .. }) if !self.ack_tried.contains_key(&id) => {
                    Err(format!("{id} was not found, which nobody has acked"))
                }
                Err(Error::MessageNotFound { .. }) => Ok(()),
                result => self.outcome(&result).map(drop),
            },
            (Call::Acquire { call, .. } | Call::Lock(call, _), Answered::Locked(result)) => {
                self.hears_of_lock(call, result, (begun_us, wait_us), now_us)
            }
            (Call::Write(call, _) | Call::Read(call, _), Answered::Document(result)) => {
                self.hears_of_document(call, result, begun_us, now_us)
            }
            (call, answer) => self.across.hears(&call, answer),
        }
    }

    fn is_sent(&mut self, message: Message, result: Result<MessageId, Error>) -> Checked {
        let outcome = self.outcome(&result)?;
        let fate = self.fates.entry(message.payload.clone()).or_default();
        fate.is_unknown |= outcome == Outcome::Unknown;
        match result {
            Err(_) => self.may_repeat(message),
            Ok(id) => {
                self.sends += u64::from(fate.id.is_none());
                fate.id = Some(id);
                self.has_id(&message.payload, id)?;
            }
        }
        Ok(())
    }

    /// A message and its id belong to each other for ever.
    fn has_id(&mut self, payload: &str, id: MessageId) -> Checked {
        let first = self.payloads.entry(payload.to_owned()).or_insert(id);
        if *first != id {
            return Err(format!("{payload} is there as {first} and as {id}"));
        }
        let first = self.ids.entry(id).or_insert_with(|| payload.to_owned());
        if first != payload {
            return Err(format!("{id} was given to {first} and to {payload}"));
        }
        Ok(())
    }

    fn is_acked(&mut self, receipt: Receipt, result: Result<(), Error>, now_us: u64) -> Checked {
        let result = match result {
            // It may have come back by its release.
            Err(Error::AlreadySettled { .. }) if !self.released.contains(&receipt.token) => Ok(()),
            other => other,
        };
        match self.settled(&result)? {
            Outcome::Done if result.is_ok() => {
                self.acks += 1;
                self.acked.insert(receipt.id, receipt.token);
            }
            Outcome::NotDone => drop(self.not_acked.insert(receipt.id)),
            Outcome::Done => return self.is_lost(&receipt, 1, now_us),
            Outcome::Unknown => {}
        }
        Ok(())
    }

    /// Deliveries of an attached consumer.
    pub(super) fn is_handed(&mut self, consumer: ConsumerId, handed: &[Handed], now_us: u64) -> Checked {
        handed.iter().try_for_each(|handed| {
            let lease = self.consumers.give(consumer, handed.delivery())?;
            match handed {
                Handed::Given(given) => self.is_given(given, lease, Some(consumer), now_us),
                Handed::Bare(delivery) => self.is_delivered(delivery, lease, Some(consumer), now_us),
            }
        })
    }

    fn is_given(&mut self, given: &Given, lease: Lease, holder: Option<ConsumerId>, now_us: u64) -> Checked {
        let bytes = match &given.blob {
            BlobRead::Cached(bytes) => bytes.clone(),
            BlobRead::Missing => return Err("a payload is missing".to_owned()),
            BlobRead::OnDisk(location) => match location.read() {
                Ok(bytes) => bytes,
                Err(BlobError::Damaged(_)) if location.seek_copy() => {
                    let (location, id) = (location.clone(), given.delivery.receipt.id);
                    self.awaited.push(Awaited { location, id, since_us: now_us });
                    return self.is_delivered(&given.delivery, lease, holder, now_us);
                }
                // The disk fails at this moment.
                Err(BlobError::Io(_)) => {
                    return self.is_delivered(&given.delivery, lease, holder, now_us);
                }
                Err(error) => return Err(format!("a payload cannot be read: {error:?}")),
            },
        };
        let payload = self.has_payload(&bytes, given.delivery.receipt.id)?;
        let early_us = self.fates.get(&payload).map_or(0, |fate| {
            let told_us = given.delivery.sent_at_us + fate.delay_us;
            self.starts.early_us(fate.not_before, told_us, now_us)
        });
        if early_us > 0 {
            return Err(format!("{payload} was delivered {early_us} us before the end of its delay"));
        }
        self.is_delivered(&given.delivery, lease, holder, now_us)
    }

    /// Compares the bytes of a message with what was sent; its payload.
    pub(super) fn has_payload(&mut self, bytes: &[u8], id: MessageId) -> Result<String, String> {
        let payload = MessageBlob::parse(bytes).ok_or("a payload cannot be parsed")?.payload.to_vec();
        let payload = String::from_utf8(payload).map_err(|error| error.to_string())?;
        self.has_id(&payload, id)?;
        Ok(payload)
    }

    fn is_delivered(
        &mut self,
        delivery: &Delivery,
        lease: Lease,
        holder: Option<ConsumerId>,
        now_us: u64,
    ) -> Checked {
        self.stats.delivered += 1;
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
            let early_us = self.consumers.early_us(held, &self.starts, now_us);
            if early_us > 0 {
                return Err(format!("{id} was delivered again {early_us} us before the end of its lease"));
            }
        }
        self.holds.insert(id, Hold::new(receipt, lease, holder));
        Ok(())
    }

    /// The outcome of a call about a delivery, which may have ended before.
    pub(super) fn settled(&mut self, result: &Result<(), Error>) -> Result<Outcome, String> {
        match result {
            Err(Error::LeaseLost { .. } | Error::MessageNotFound { .. } | Error::AlreadySettled { .. }) => {
                Ok(Outcome::Done)
            }
            other => self.outcome(other),
        }
    }

    pub(super) fn outcome<T>(&mut self, result: &Result<T, Error>) -> Result<Outcome, String> {
        let (count, outcome) = match result {
            Ok(_) => (&mut self.stats.answers, Outcome::Done),
            Err(Error::NotLeader { .. } | Error::NoLeader {}) => (&mut self.stats.unled, Outcome::NotDone),
            Err(Error::OutcomeUnknown {}) => (&mut self.stats.unknown, Outcome::Unknown),
            refused if self.may_be_full && is_full(refused) => (&mut self.stats.full, Outcome::NotDone),
            Err(other) => return Err(format!("a call was refused: {other}")),
        };
        *count += 1;
        Ok(outcome)
    }

    /// Compares what was told with the bytes of the log, and with the state that it gives.
    pub(super) fn look_back<'a>(
        &self,
        log: impl Iterator<Item = &'a bytes::Bytes>,
        engine: &Engine,
    ) -> Checked {
        let in_log: BTreeSet<String> = log.flat_map(|bytes| payloads(bytes)).collect();
        for (payload, fate) in &self.fates {
            if fate.id.is_some() && !in_log.contains(payload) {
                return Err(format!("{payload} was answered and is not in the log"));
            }
            if fate.id.is_none() && !fate.is_unknown && in_log.contains(payload) {
                return Err(format!("{payload} was told not to be done and is in the log"));
            }
            let lost = fate.id.filter(|id| !self.ack_tried.contains_key(id) && engine.message(*id).is_err());
            if let Some(id) = lost {
                return Err(format!("{id} was answered, nobody has acked it, and it is gone"));
            }
        }
        if let Some(id) = self.acked.keys().find(|id| engine.message(**id).is_ok()) {
            return Err(format!("{id} is still there after its ack was answered"));
        }
        let gone = |id: &&MessageId| self.ack_tried.get(id) == Some(&1) && engine.message(**id).is_err();
        if let Some(id) = self.not_acked.iter().find(gone) {
            return Err(format!("{id} is gone, whose ack was told not to be done"));
        }
        Ok(())
    }
}

fn is_recent(figures: &Figures, at_least: u64) -> Checked {
    let Figures { sent, counted, listed } = figures;
    if *sent < at_least {
        return Err(format!("{sent} sends were counted, after {at_least} were answered"));
    }
    if counted != listed {
        return Err(format!("{counted} messages are counted, and {listed} are listed"));
    }
    Ok(())
}

fn once(is_new: bool, what: &str) -> Checked {
    if is_new { Ok(()) } else { Err(format!("{what} was given twice")) }
}

/// The payloads that stand in these bytes.
fn payloads(bytes: &[u8]) -> Vec<String> {
    let is_payload = |window: &&[u8]| {
        let (first, last) = (window[0], window[PAYLOAD_BYTES - 1]);
        first == b'<' && last == b'>' && window[1..PAYLOAD_BYTES - 1].iter().all(u8::is_ascii_digit)
    };
    let found = bytes.windows(PAYLOAD_BYTES).filter(is_payload);
    found.map(|window| String::from_utf8_lossy(window).into_owned()).collect()
}
