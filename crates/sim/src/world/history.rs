//! The proposed log, kept in memory, and its witnesses: a second engine, the model, and the lives of
//! messages, to which each committed record is applied. Where recovery may lose an end of the log and has,
//! the witnesses replay the log from its beginning.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use sluice_engine::blob::MessageBlob;
use sluice_engine::id::{BlobRef, MessageId, Receipt};
use sluice_engine::limits::Limits;
use sluice_engine::outcome::{Delivery, Reply};
use sluice_engine::transactions::OperationDone;
use sluice_engine::{Engine, Error, Outcome};
use sluice_journal::{Batch, Committed, Records};
use sluice_node::Duplicates;
use sluice_node::shard::request::Answer;
use sluice_record::write_record;

use super::event_log::EventLog;
use super::prepared::Prepared;
use crate::lives::Lives;
use crate::model::{Checked, Model};
use crate::workload::{Op, Seen, SentBlob, decode};

/// One record.
#[derive(Clone, Debug)]
struct Entry {
    time_us: u64,
    record: Bytes,
    op: Op,
    /// Tags of the requests that the record may come from: several where their records are equal.
    tags: Vec<u64>,
}

impl Entry {
    /// Applies this record to witnesses.
    fn follow(&self, index: u64, witnesses: &mut Witnesses) -> Checked {
        let Witnesses { engine, model, lives, prepared, outcome } = witnesses;
        let Some(record) = Records::new(&self.record).next() else {
            return Err(format!("record {index} cannot be read"));
        };
        if let Some(model) = model {
            self.op.with(|command| model.look(command, engine));
        }
        engine.apply(self.time_us, index, record.body, outcome);
        let done = prepared.done(&self.op, outcome);
        let reply = outcome.reply;
        if done.is_some() && matches!(reply, Reply::Finished { .. }) {
            outcome.reply = Reply::Committed { duplicate: false };
        }
        let followed = done
            .as_ref()
            .unwrap_or(&self.op)
            .with(|command| {
                lives.follow(self.time_us, index, command, outcome, engine)?;
                match model {
                    Some(model) => model.apply(self.time_us, index, command, outcome, engine),
                    None => Ok(()),
                }
            })
            .map_err(|rule| format!("record {index} ({:?}): {rule}", self.op));
        outcome.reply = reply;
        followed
    }
}

/// State that is led along the log: a second engine, the model, and the lives of messages.
#[derive(Debug)]
pub(super) struct Witnesses {
    pub(super) engine: Engine,
    /// `None` in runs that mix all features: there the model would have to repeat every rule of the engine.
    model: Option<Model>,
    lives: Lives,
    prepared: Prepared,
    outcome: Outcome,
}

impl Witnesses {
    /// State before the first record.
    fn new(models: bool) -> Witnesses {
        let mut engine = Engine::new();
        engine.watch_events(true);
        let model = models.then(Model::new);
        let (lives, prepared, outcome) = (Lives::new(), Prepared::default(), Outcome::default());
        Witnesses { engine, model, lives, prepared, outcome }
    }

    /// Compares the shard's state, after the same record, with that of the witnesses.
    pub(super) fn compare(&self, engine: &Engine) -> Checked {
        self.lives.compare(engine)?;
        match &self.model {
            Some(model) => model.compare(engine),
            None => {
                engine.recount().map_err(|wrong| format!("counters are not what a recount gives: {wrong}"))
            }
        }
    }

    /// Blobs in the log that messages and schedules refer to, each with its owner.
    pub(super) fn blobs(&self) -> Vec<(String, BlobRef)> {
        match &self.model {
            Some(model) => model.blobs().map(|(holder, blob)| (format!("{holder:?}"), blob)).collect(),
            None => Seen(&self.engine).blobs(),
        }
    }
}

/// Expected answer to a request.
#[derive(Clone, Debug)]
pub(super) struct Due {
    /// Tags of the requests of which one is to be answered so.
    tags: Vec<u64>,
    pub(super) index: u64,
    pub(super) error: Option<Error>,
    pub(super) reply: Reply,
    pub(super) results: Vec<Result<(), Error>>,
    pub(super) duplicates: Option<Duplicates>,
    pub(super) operations: Vec<OperationDone>,
    pub(super) refused_at: Option<u32>,
}

impl Due {
    pub(super) fn result(&self) -> Result<Reply, Error> {
        self.error.clone().map_or(Ok(self.reply), Err)
    }

    /// True when this answer was expected.
    pub(super) fn is(&self, answer: &Answer) -> bool {
        let same_results = answer.results == self.results
            || (answer.results.is_empty() && self.results.iter().all(Result::is_ok));
        answer.result == self.result()
            && same_results
            && answer.duplicates.as_deref() == self.duplicates.as_ref()
            && answer.operations.as_deref().map_or(&[][..], |it| &it.done) == self.operations
            && answer.operations.as_deref().and_then(|it| it.refused_at) == self.refused_at
    }
}

/// The log of one shard with its witnesses; see the module.
#[derive(Debug)]
pub(super) struct History {
    /// Index of the first entry.
    base: u64,
    entries: Vec<Entry>,
    /// Records that clients have requested, until they are answered.
    asked: VecDeque<(u64, Bytes, Op)>,
    witnesses: Witnesses,
    /// True with a model among the witnesses.
    models: bool,
    /// Events that watchers must get.
    told: EventLog,
    /// Index of the next record to be applied to the witnesses.
    applied: u64,
    limits: Limits,
    /// Expected answers to requests, in the order of the log.
    due: Vec<Due>,
    /// Deliveries in the log that were not handed out yet: index of the record, and the delivery.
    handed: BTreeMap<Receipt, (u64, Delivery)>,
}

impl History {
    pub(super) fn new(limits: Limits, models: bool) -> History {
        History {
            base: 0,
            entries: Vec::new(),
            asked: VecDeque::new(),
            witnesses: Witnesses::new(models),
            models,
            told: EventLog::default(),
            applied: 0,
            limits,
            due: Vec::new(),
            handed: BTreeMap::new(),
        }
    }

    /// The shard as clients see it.
    pub(super) fn seen(&self) -> Seen<'_> {
        Seen(&self.witnesses.engine)
    }

    pub(super) fn told(&self) -> &EventLog {
        &self.told
    }

    pub(super) fn witnesses(&self) -> &Witnesses {
        &self.witnesses
    }

    pub(super) fn witness(&self) -> &Engine {
        &self.witnesses.engine
    }

    /// Compares the shard's state with that of the witnesses.
    pub(super) fn compare(&self, engine: &Engine) -> Checked {
        self.witnesses.compare(engine)
    }

    /// Index of the next record to be proposed.
    pub(super) fn next_index(&self) -> u64 {
        self.base + self.entries.len() as u64
    }

    /// Index of the next record that the witnesses have not applied.
    pub(super) fn applied(&self) -> u64 {
        self.applied
    }

    fn entry(&self, index: u64) -> Option<&Entry> {
        self.entries.get(index.checked_sub(self.base)? as usize)
    }

    /// Sets the index of the first record.
    pub(super) fn begin_at(&mut self, index: u64) {
        self.base = index;
        self.applied = index;
    }

    /// Adds a client's request.
    pub(super) fn ask(&mut self, tag: u64, record: Bytes, op: Op) {
        self.asked.push_back((tag, record, op));
    }

    /// Removes an answered request.
    fn unask(&mut self, tag: u64) {
        self.asked.retain(|(asked, ..)| *asked != tag);
    }

    /// Adds a batch that the shard has proposed. Each record must come from a request, or be one of the
    /// node's own.
    pub(super) fn propose(&mut self, first_index: u64, time_us: u64, bytes: &Bytes) -> Checked {
        if first_index != self.next_index() {
            return Err(format!("a batch was given index {first_index}, the next is {}", self.next_index()));
        }
        let mut rest = Records::new(bytes);
        while !rest.rest().is_empty() {
            let start = bytes.len() - rest.rest().len();
            let Some(record) = rest.next() else {
                return Err(format!("the shard proposed a record that cannot be read, at byte {start}"));
            };
            let whole = bytes.slice(start..bytes.len() - rest.rest().len());
            let (op, tags) = self.origin(&whole, record.body)?;
            self.entries.push(Entry { time_us, record: whole, op, tags });
        }
        Ok(())
    }

    /// The origin of a record: the requests of clients, or the node itself. A full disk may strip a request
    /// of its texts; its record may then equal that of another request.
    fn origin(&self, record: &Bytes, body: &[u8]) -> Result<(Op, Vec<u64>), String> {
        let bare = |op: &Op| op.without_texts().filter(|op| has_body(op, body));
        let asked = self.asked.iter().filter_map(|(tag, asked, op)| {
            if asked == record { Some((op.clone(), *tag)) } else { bare(op).map(|op| (op, *tag)) }
        });
        let (ops, tags): (Vec<Op>, Vec<u64>) = asked.unzip();
        match ops.into_iter().next().or_else(|| decode(body, &self.limits)) {
            Some(op) => Ok((op, tags)),
            None => Err(format!("the shard proposed what nobody asked for: {body:?}")),
        }
    }

    /// Removes a batch that the journal has refused.
    pub(super) fn refuse(&mut self, first_index: u64, records: u32) -> Checked {
        if first_index + u64::from(records) != self.next_index() || first_index < self.applied {
            return Err(format!(
                "records {first_index} (+{records}) were refused, next is {}",
                self.next_index()
            ));
        }
        self.entries.truncate((first_index - self.base) as usize);
        Ok(())
    }

    /// Applies a batch that the journal has committed.
    pub(super) fn commit(&mut self, committed: &Committed) -> Checked {
        if committed.first_index != self.applied {
            return Err(format!("batch {} was committed, {} is next", committed.first_index, self.applied));
        }
        let mut at = 0;
        while at < committed.bytes.len() {
            let Some(entry) = self.entry(self.applied) else {
                return Err(format!("record {} was committed and never proposed", self.applied));
            };
            let same = committed.bytes[at..].starts_with(&entry.record) && entry.time_us == committed.time_us;
            if !same {
                return Err(format!("record {} was committed otherwise than proposed", self.applied));
            }
            at += entry.record.len();
            self.step()?;
        }
        Ok(())
    }

    /// Applies the next record to the witnesses.
    fn step(&mut self) -> Checked {
        let index = self.applied;
        let Some(entry) = self.entries.get((index - self.base) as usize) else {
            return Err(format!("there is no record {index}"));
        };
        let taken_in = self.taken_in(&entry.op);
        entry.follow(index, &mut self.witnesses)?;
        self.changes_what_it_may(index, taken_in)?;
        self.applied += 1;
        self.note(index);
        Ok(())
    }

    /// Messages that a bulk is about to change and that match its filter.
    fn taken_in(&self, op: &Op) -> Vec<MessageId> {
        let Op::Bulk(change) = op else { return Vec::new() };
        let engine = &self.witnesses.engine;
        let wanted = |id: &MessageId| {
            engine.message(*id).is_ok_and(|view| {
                engine.queue_name(view.queue) == Some(&change.bulk.wanted.queue)
                    && change.bulk.wants(&view, |blob| self.sent(blob))
            })
        };
        change.ids().filter(wanted).collect()
    }

    /// Checks that a bulk changes only messages that match its filter at that moment, whatever they were when
    /// the bulk looked at them.
    fn changes_what_it_may(&self, index: u64, taken_in: Vec<MessageId>) -> Checked {
        let Some(Op::Bulk(change)) = self.entry(index).map(|entry| &entry.op) else { return Ok(()) };
        let changed = change.ids().zip(&self.witnesses.outcome.results).filter(|(_, result)| result.is_ok());
        for (id, _) in changed {
            if !taken_in.contains(&id) {
                return Err(format!(
                    "record {index}: a bulk has changed {id}, which {:?} leaves out",
                    change.bulk
                ));
            }
        }
        Ok(())
    }

    /// New witnesses, led along the log up to (not including) this index.
    pub(super) fn replayed_to(&self, next_index: u64) -> Result<Witnesses, String> {
        let mut witnesses = Witnesses::new(self.models);
        for (index, entry) in (self.base..next_index).zip(&self.entries) {
            entry.follow(index, &mut witnesses)?;
        }
        Ok(witnesses)
    }

    /// Keeps the answers and deliveries that clients must get for this record.
    fn note(&mut self, index: u64) {
        let Some(entry) = self.entries.get((index - self.base) as usize) else { return };
        let outcome = &self.witnesses.outcome;
        self.told.note(index, &outcome.events, &self.witnesses.engine);
        if !entry.tags.is_empty() {
            let due = Due {
                tags: entry.tags.clone(),
                index,
                error: outcome.error.clone(),
                reply: outcome.reply,
                results: outcome.results.clone(),
                duplicates: (!outcome.duplicates.is_empty())
                    .then(|| Duplicates { ids: outcome.ids.clone(), items: outcome.duplicates.clone() }),
                operations: outcome.operations.clone(),
                refused_at: outcome.refused_at,
            };
            self.due.push(due);
        }
        let pushed = outcome.pushed.iter().map(|(_, delivery)| delivery);
        for delivery in outcome.deliveries.iter().chain(pushed) {
            self.handed.insert(delivery.receipt, (index, *delivery));
        }
    }

    /// Takes the expected answer of this request; `None`: its record is not committed. Of several that it may
    /// be, takes the first that fits.
    pub(super) fn take_due(&mut self, tag: u64, is_answered: impl Fn(&Due) -> bool) -> Option<Due> {
        self.unask(tag);
        let may_be = |due: &Due| due.tags.contains(&tag);
        let fits = self.due.iter().position(|due| may_be(due) && is_answered(due));
        let at = fits.or_else(|| self.due.iter().position(may_be))?;
        let found = (fits.is_some() || self.due[at].tags.len() == 1).then(|| self.due.remove(at));
        self.due.iter_mut().for_each(|due| due.tags.retain(|other| *other != tag));
        found
    }

    /// Takes the delivery that a client was just given; `None`: it is not in the log, or was handed out
    /// before.
    pub(super) fn take_handed(&mut self, receipt: Receipt) -> Option<(u64, Delivery)> {
        self.handed.remove(&receipt)
    }

    /// Drops what clients still expect after the end of the server.
    pub(super) fn forget_clients(&mut self) {
        self.asked.clear();
        self.due.clear();
        self.handed.clear();
    }

    /// Brings the witnesses to the end of the log that recovery has found, up to (not including) this index.
    pub(super) fn recover_to(&mut self, next_index: u64) -> Checked {
        self.entries.truncate((next_index.saturating_sub(self.base)) as usize);
        if self.applied > next_index {
            self.witnesses = Witnesses::new(self.models);
            self.told = EventLog::default();
            self.applied = self.base;
        }
        while self.applied < next_index {
            self.step()?;
        }
        self.forget_clients();
        Ok(())
    }

    /// The content that was sent as this blob.
    pub(super) fn sent(&self, blob: BlobRef) -> Option<SentBlob<'_>> {
        match blob {
            BlobRef::EMPTY => Some(SentBlob::payload(&[])),
            _ => self.entry(blob.index).and_then(|entry| entry.op.blob(blob.item)),
        }
    }

    /// Checks that these bytes are what was sent as this blob.
    pub(super) fn check_blob(&self, blob: BlobRef, bytes: &[u8]) -> Checked {
        let Some(sent) = self.sent(blob) else {
            return Err(format!("{blob:?} was never sent"));
        };
        let same = match sent {
            SentBlob::Text(text) => bytes == text.as_bytes(),
            SentBlob::Bytes(sent) => bytes == sent,
            SentBlob::Message { content_type, headers, tags, payload } => {
                let Some(read) = MessageBlob::parse(bytes) else {
                    return Err(format!("{blob:?} cannot be read"));
                };
                read.payload == payload
                    && read.content_type == content_type
                    && read.headers().eq(headers.iter().copied())
                    && read.tags().eq(tags.iter().copied())
            }
        };
        if same { Ok(()) } else { Err(format!("{blob:?} does not hold what was sent")) }
    }

    /// The command in the record with this index, for a trace.
    pub(super) fn describe(&self, index: u64) -> String {
        self.entry(index).map_or_else(|| "?".to_owned(), |entry| format!("{:?}", entry.op))
    }
}

/// True when a command is encoded as this body.
fn has_body(op: &Op, body: &[u8]) -> bool {
    let mut record = Batch::new();
    op.with(|command| write_record(&mut record, command));
    let (bytes, _) = record.take();
    Records::new(&bytes).next().is_some_and(|record| record.body == body)
}

#[cfg(test)]
mod tests {
    use sluice_engine::BEHAVIOUR_VERSION;
    use sluice_journal::Batch;

    use super::*;
    use crate::rng::Rng;
    use crate::workload::{Generator, NodeOp};

    /// Commits one command as a batch of its own.
    fn commit(history: &mut History, now_us: u64, op: Op) -> Checked {
        let mut batch = Batch::new();
        op.with(|command| write_record(&mut batch, command));
        let (bytes, _) = batch.take();
        let first_index = history.next_index();
        history.ask(0, bytes.clone(), op);
        history.propose(first_index, now_us, &bytes)?;
        history.commit(&Committed { first_index, number: first_index, term: 1, time_us: now_us, bytes })
    }

    fn run(seed: u64) -> Checked {
        let mut rng = Rng::new(seed);
        let limits = Limits { idempotency_window_ms: 5_000, ..Limits::default() };
        let mixes = seed.is_multiple_of(2);
        let mut history = History::new(limits.clone(), !mixes);
        let others = [!seed, seed, seed.swap_bytes(), !seed.swap_bytes(), seed + 1].map(Rng::new);
        let mut clients = Generator::new(0, mixes, rng.fork(), others);
        let mut now_us = 1_767_225_600_000_000;
        history.begin_at(1);
        commit(&mut history, now_us, Op::Node(NodeOp::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION }))?;
        commit(&mut history, now_us, Op::Node(NodeOp::Configure(limits.clone())))?;
        for step in 0..2_000u32 {
            now_us += rng.weighted(&[(20, 100), (10, 50_000), (1, 2_000_000)]);
            let op = match rng.below(10) {
                0..=5 => clients.op(&history.seen()),
                6 | 7 => Op::Node(NodeOp::Tick),
                _ => receive(clients.pull(&history.seen())),
            };
            if op.with(|command| command.check(&limits)).is_ok() {
                commit(&mut history, now_us, op)?;
            }
            let handed: Vec<_> = std::mem::take(&mut history.handed).into_keys().collect();
            handed.into_iter().for_each(|receipt| clients.delivered(receipt));
            if step % 100 == 0 {
                history.compare(history.witness())?;
            }
        }
        history.compare(history.witness())
    }

    fn receive(wanted: crate::workload::Wanted) -> Op {
        Op::Node(NodeOp::Receive {
            namespace: wanted.namespace,
            queues: wanted.queues.iter().map(|(name, weight)| (name.to_string(), *weight)).collect(),
            max_messages: wanted.max_messages,
            max_bytes: wanted.max_bytes,
            lease_ms: wanted.lease_ms,
        })
    }

    #[test]
    fn model_and_engine_agree_on_anything() {
        for seed in 0..20 {
            if let Err(what) = run(seed) {
                panic!("seed {seed}: {what}");
            }
        }
    }
}
