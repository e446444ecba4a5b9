//! The log as it was proposed, kept in memory, and the witnesses that are led along it: a second engine, the
//! model, and what is told of messages. Where recovery has lost an end of the log that it may lose, they are
//! led along again from the beginning.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use sluice_engine::blob::MessageBlob;
use sluice_engine::id::{BlobRef, MessageId, Receipt};
use sluice_engine::limits::Limits;
use sluice_engine::outcome::{Delivery, Reply};
use sluice_engine::{Engine, Error, Outcome};
use sluice_journal::{Batch, Committed, Records};
use sluice_node::Duplicates;
use sluice_node::shard::request::{Answer, write_record};

use super::event_log::EventLog;
use crate::lives::Lives;
use crate::model::{Checked, Model};
use crate::workload::{Op, Seen, SentBlob, decode};

/// One record.
#[derive(Clone, Debug)]
struct Entry {
    time_us: u64,
    record: Bytes,
    op: Op,
    /// The clients' numbers of the requests that it may be: more than one where several are the same to the
    /// byte.
    tags: Vec<u64>,
}

impl Entry {
    /// Leads witnesses past this record.
    fn follow(&self, index: u64, witnesses: &mut Witnesses) -> Checked {
        let Witnesses { engine, model, lives, outcome } = witnesses;
        let Some(record) = Records::new(&self.record).next() else {
            return Err(format!("record {index} cannot be read"));
        };
        if let Some(model) = model {
            self.op.with(|command| model.look(command, engine));
        }
        engine.apply(self.time_us, index, record.body, outcome);
        self.op
            .with(|command| {
                lives.follow(self.time_us, index, command, outcome, engine)?;
                match model {
                    Some(model) => model.apply(self.time_us, index, command, outcome, engine),
                    None => Ok(()),
                }
            })
            .map_err(|rule| format!("record {index} ({:?}): {rule}", self.op))
    }
}

/// What is led along the log: another engine, the model, and what is told of messages.
#[derive(Debug)]
pub(super) struct Witnesses {
    pub(super) engine: Engine,
    /// Left out where all that there is comes together: then what it predicts would be a second copy of every
    /// rule.
    model: Option<Model>,
    lives: Lives,
    outcome: Outcome,
}

impl Witnesses {
    /// Before the first record.
    fn new(models: bool) -> Witnesses {
        let mut engine = Engine::new();
        engine.watch_events(true);
        let model = models.then(Model::new);
        Witnesses { engine, model, lives: Lives::new(), outcome: Outcome::default() }
    }

    /// Lays the state of the shard, after the same record, beside theirs.
    pub(super) fn compare(&self, engine: &Engine) -> Checked {
        self.lives.compare(engine)?;
        match &self.model {
            Some(model) => model.compare(engine),
            None => {
                engine.recount().map_err(|wrong| format!("counters are not what a recount gives: {wrong}"))
            }
        }
    }

    /// What lies in the log for messages and schedules, with whose it is.
    pub(super) fn blobs(&self) -> Vec<(String, BlobRef)> {
        match &self.model {
            Some(model) => model.blobs().map(|(holder, blob)| (format!("{holder:?}"), blob)).collect(),
            None => Seen(&self.engine).blobs(),
        }
    }
}

/// What a request must be answered.
#[derive(Clone, Debug)]
pub(super) struct Due {
    /// Tags of the clients of whom one asked.
    tags: Vec<u64>,
    pub(super) index: u64,
    pub(super) error: Option<Error>,
    pub(super) reply: Reply,
    pub(super) results: Vec<Result<(), Error>>,
    pub(super) duplicates: Option<Duplicates>,
}

impl Due {
    pub(super) fn result(&self) -> Result<Reply, Error> {
        self.error.clone().map_or(Ok(self.reply), Err)
    }

    /// Whether this is what was answered.
    pub(super) fn is(&self, answer: &Answer) -> bool {
        let same_results = answer.results == self.results
            || (answer.results.is_empty() && self.results.iter().all(Result::is_ok));
        answer.result == self.result()
            && same_results
            && answer.duplicates.as_deref() == self.duplicates.as_ref()
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct History {
    /// Index of the first entry.
    base: u64,
    entries: Vec<Entry>,
    /// Records that clients have asked for, until they are answered.
    asked: VecDeque<(u64, Bytes, Op)>,
    witnesses: Witnesses,
    /// Whether there is a model among them.
    models: bool,
    /// What watchers are to hear.
    told: EventLog,
    /// Index of the next record that the witnesses are to apply.
    applied: u64,
    limits: Limits,
    /// What records that clients have asked for must be answered, in the order of the log.
    due: Vec<Due>,
    /// Deliveries that the log tells of and that were not yet handed out: index of the record, and what was
    /// delivered.
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

    /// What clients see of the shard.
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

    /// Lays the state of the shard beside what the log makes of it.
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

    /// The index of the very first record.
    pub(super) fn begin_at(&mut self, index: u64) {
        self.base = index;
        self.applied = index;
    }

    /// A client has asked for this.
    pub(super) fn ask(&mut self, tag: u64, record: Bytes, op: Op) {
        self.asked.push_back((tag, record, op));
    }

    /// What was asked was answered.
    fn unask(&mut self, tag: u64) {
        self.asked.retain(|(asked, ..)| *asked != tag);
    }

    /// The shard has proposed a batch.
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

    /// The origin of a record: clients, or nobody but the node itself. What a client has asked
    /// for may have lost its texts on the way, for which a full disk has no room; and then be another's
    /// record to the byte.
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

    /// The journal has refused a batch after all.
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

    /// The journal says that this batch is in the log for ever.
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

    /// Leads the witnesses past the next record.
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

    /// The messages that a bulk is about to change and that its filter takes in.
    fn taken_in(&self, op: &Op) -> Vec<MessageId> {
        let Op::Bulk(change) = op else { return Vec::new() };
        let engine = &self.witnesses.engine;
        let wanted = |id: &MessageId| {
            engine.message(*id).is_ok_and(|view| {
                engine.queue_name(view.queue) == Some(&change.bulk.filter.queue)
                    && change.bulk.wants(&view, |blob| self.sent(blob))
            })
        };
        change.ids().filter(wanted).collect()
    }

    /// A bulk changes no message that its filter does not take in at that moment, whatever it was when the
    /// bulk saw it.
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

    /// Other witnesses, led along the log up to (not including) this index.
    pub(super) fn replayed_to(&self, next_index: u64) -> Result<Witnesses, String> {
        let mut witnesses = Witnesses::new(self.models);
        for (index, entry) in (self.base..next_index).zip(&self.entries) {
            entry.follow(index, &mut witnesses)?;
        }
        Ok(witnesses)
    }

    /// Keeps what clients are to get for this record.
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
            };
            self.due.push(due);
        }
        let pushed = outcome.pushed.iter().map(|(_, delivery)| delivery);
        for delivery in outcome.deliveries.iter().chain(pushed) {
            self.handed.insert(delivery.receipt, (index, *delivery));
        }
    }

    /// Takes what this request must be answered, which it was, if `is_answered`; `None`: its record is not
    /// committed. Of several that it may be, it is the first that fits.
    pub(super) fn take_due(&mut self, tag: u64, is_answered: impl Fn(&Due) -> bool) -> Option<Due> {
        self.unask(tag);
        let may_be = |due: &Due| due.tags.contains(&tag);
        let fits = self.due.iter().position(|due| may_be(due) && is_answered(due));
        let at = fits.or_else(|| self.due.iter().position(may_be))?;
        let found = (fits.is_some() || self.due[at].tags.len() == 1).then(|| self.due.remove(at));
        self.due.iter_mut().for_each(|due| due.tags.retain(|other| *other != tag));
        found
    }

    /// Takes the delivery that a client was just given; `None`: the log does not tell of it, or it was handed
    /// out.
    pub(super) fn take_handed(&mut self, receipt: Receipt) -> Option<(u64, Delivery)> {
        self.handed.remove(&receipt)
    }

    /// The server has ended: nobody is answered any more.
    pub(super) fn forget_clients(&mut self) {
        self.asked.clear();
        self.due.clear();
        self.handed.clear();
    }

    /// Recovery found the log up to (not including) this index. Brings the witnesses there.
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

    /// A blob as it was sent.
    pub(super) fn sent(&self, blob: BlobRef) -> Option<SentBlob<'_>> {
        match blob {
            BlobRef::EMPTY => Some(SentBlob::payload(&[])),
            _ => self.entry(blob.index).and_then(|entry| entry.op.blob(blob.item)),
        }
    }

    /// Whether these are the bytes that were sent as this blob.
    pub(super) fn check_blob(&self, blob: BlobRef, bytes: &[u8]) -> Checked {
        let Some(sent) = self.sent(blob) else {
            return Err(format!("{blob:?} was never sent"));
        };
        let same = match sent {
            SentBlob::Text(text) => bytes == text.as_bytes(),
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

    /// What the record with this index asks, for a trace.
    pub(super) fn describe(&self, index: u64) -> String {
        self.entry(index).map_or_else(|| "?".to_owned(), |entry| format!("{:?}", entry.op))
    }
}

/// Whether the record of a command has this body.
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
    use sluice_node::shard::request::write_record;

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
        history.commit(&Committed { first_index, time_us: now_us, bytes })
    }

    fn run(seed: u64) -> Checked {
        let mut rng = Rng::new(seed);
        let limits = Limits { idempotency_window_ms: 5_000, ..Limits::default() };
        let mixes = seed.is_multiple_of(2);
        let mut history = History::new(limits.clone(), !mixes);
        let mut clients = Generator::new(0, mixes, rng.fork());
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
