//! Bulks: the scheduler drives their steps, as the node's task does, in between all other steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use sluice_engine::Error;
use sluice_engine::id::MessageId;
use sluice_journal::{Batch, BlobError, BlobRead, read_together, take_ahead};
use sluice_node::bulk::{Next, Portions, ReadFailure, StepInput, Steps};
use sluice_node::clock::Clock;
use sluice_node::search::PageSeen;
use sluice_node::shard::request::{Answer, Read, Request, ShardView};
use sluice_record::write_record;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use super::World;
use super::bulk_check::{BulkCheck, QueueSnapshot};
use crate::model::Checked;
use crate::plant::Plant;
use crate::workload::{BulkChange, BulkOp, Op};

/// Upper limit of bulks of a shard at a time.
const BULKS_MAX: usize = 2;
/// Rounds within which a bulk has to end without trouble, and the virtual time between two.
const ROUNDS_MAX: usize = 10_000;
const ROUND_US: u64 = 50_000;

/// Result of a read, for the node and for the check of the bulk.
type Look<T> = Result<(Result<T, Error>, QueueSnapshot), Error>;

/// The bulks of a shard.
#[derive(Default)]
pub(super) struct Bulks {
    beginning: Option<(Arc<BulkOp>, oneshot::Receiver<Look<Steps>>)>,
    running: Vec<Bulk>,
    /// Answers to records of bulks.
    answers: BTreeMap<u64, Answer>,
}

/// A running bulk.
struct Bulk {
    op: Arc<BulkOp>,
    steps: Steps,
    awaits: Awaits,
    check: BulkCheck,
    cancelled: bool,
}

/// Input that a bulk waits for.
enum Awaits {
    Look(oneshot::Receiver<Look<PageSeen>>),
    Blobs(Vec<BlobRead>),
    Answer(u64),
    Step(StepInput),
}

impl Bulks {
    fn is_empty(&self) -> bool {
        self.beginning.is_none() && self.running.is_empty()
    }

    /// Notes the answer to a record of a bulk.
    pub(super) fn answered(&mut self, tag: u64, answer: &Answer) {
        self.answers.insert(tag, answer.clone());
    }
}

impl World {
    /// Weight of a bulk's beginning or next step.
    pub(super) fn bulk_weight(&self) -> u64 {
        let lane = &self.lanes[self.at];
        match lane.generator.changes() {
            false => 0,
            true if lane.clients.bulks.is_empty() => 40,
            true => 2_500,
        }
    }

    /// Begins a bulk, drives one a step, or cancels one.
    pub(super) fn bulk(&mut self) -> Checked {
        let bulks = &mut self.lanes[self.at].clients.bulks;
        let running = bulks.running.len();
        if bulks.beginning.is_some() {
            self.bulk_begins()?;
        } else if running == 0 || (running < BULKS_MAX && self.rng.chance(1, 30)) {
            return self.ask_for_bulk();
        }
        if running == 0 {
            return Ok(());
        }
        let chosen = self.rng.index(running);
        let cancels = self.rng.chance(1, 60);
        let mut bulk = self.lanes[self.at].clients.bulks.running.swap_remove(chosen);
        if cancels {
            self.trace(|| format!("  {:?} is cancelled", bulk.op));
            bulk.cancelled = true;
            bulk.steps.cancel();
        }
        self.drive_bulk(bulk)
    }

    fn ask_for_bulk(&mut self) -> Checked {
        let lane = &mut self.lanes[self.at];
        let op = Arc::new(lane.generator.bulk(&lane.history.seen()));
        let request = Arc::new(op.request());
        match (request.check(&self.config.limits), op.is_wrong()) {
            (Ok(()), false) => {}
            (Err(_), true) => return Ok(()),
            (checked, _) => return Err(format!("{op:?} was checked: {checked:?}")),
        }
        let portions = Portions {
            page_messages: *self.rng.pick(&[1, 2, 7, 30, 128]),
            read_bytes: *self.rng.pick(&[1, 500, 4 << 20]),
        };
        self.trace(|| format!("  a bulk begins, {portions:?}: {op:?}"));
        let looked = self.look_at(&op, move |at| Steps::begin(at, request, portions));
        self.lanes[self.at].clients.bulks.beginning = looked.ok().map(|receiver| (op, receiver));
        Ok(())
    }

    /// Reads the shard as the node does, and the whole queue at the same moment.
    fn look_at<T: Send + 'static>(
        &self,
        op: &Arc<BulkOp>,
        look: impl FnOnce(&mut ShardView<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<oneshot::Receiver<Look<T>>, Error> {
        let Some(server) = &self.lanes[self.at].server else { return Err(Error::ShuttingDown {}) };
        let (sender, receiver) = oneshot::channel();
        let op = Arc::clone(op);
        let read = move |at: Result<&mut ShardView<'_>, Error>| {
            let looked = at.map(|at| {
                let sight = QueueSnapshot::of(&op, at.engine);
                (look(at), sight)
            });
            let _ = sender.send(looked);
        };
        let pushed = server.mailbox.push(Request::Read(Read(Box::new(read))));
        pushed.map(|()| receiver).map_err(|_| overloaded())
    }

    /// Begins a bulk once its first read is answered.
    fn bulk_begins(&mut self) -> Checked {
        let lane = &mut self.lanes[self.at];
        let (clients, history) = (&mut lane.clients, &lane.history);
        let Some((op, mut receiver)) = clients.bulks.beginning.take() else { return Ok(()) };
        let (steps, sight) = match receiver.try_recv() {
            Err(TryRecvError::Empty) => {
                clients.bulks.beginning = Some((op, receiver));
                return Ok(());
            }
            Err(TryRecvError::Closed) | Ok(Err(_)) => return Ok(()),
            Ok(Ok((steps, sight))) => (steps, sight),
        };
        let steps = match (steps, sight.has_queues) {
            (Ok(steps), true) => steps,
            (Err(Error::QueueNotFound { .. }), false) => return Ok(()),
            (begun, _) => return Err(format!("{op:?} has begun with {begun:?}, when there was {sight:?}")),
        };
        let check = BulkCheck::begin(&op, &sight, history);
        let awaits = Awaits::Step(StepInput::Time);
        clients.bulks.running.push(Bulk { op, steps, awaits, check, cancelled: false });
        Ok(())
    }

    /// Gives a bulk its input, and does what its output asks for.
    fn drive_bulk(&mut self, mut bulk: Bulk) -> Checked {
        let heard = match self.bulk_hears(&mut bulk)? {
            Ok(heard) => heard,
            Err(awaits) => {
                bulk.awaits = awaits;
                self.lanes[self.at].clients.bulks.running.push(bulk);
                return Ok(());
            }
        };
        self.trace(|| format!("  {:?} hears {heard:?}", bulk.op));
        let next = bulk.steps.step(self.clock.monotonic_us(), heard);
        self.trace(|| format!("  and asks for {next:?}"));
        bulk.awaits = match next {
            Next::Look(page) => match self.look_at(&bulk.op, move |at| page.see(at)) {
                Ok(receiver) => Awaits::Look(receiver),
                Err(error) => Awaits::Step(StepInput::Seen(Err(error))),
            },
            Next::Read(blobs) => Awaits::Blobs(blobs),
            Next::Change(items) => self.bulk_changes(&mut bulk, &items)?,
            Next::Rest { .. } => Awaits::Step(StepInput::Time),
            Next::End => return self.bulk_ends(&bulk),
        };
        self.lanes[self.at].clients.bulks.running.push(bulk);
        Ok(())
    }

    /// The input that has arrived for a bulk, or what it still waits for.
    fn bulk_hears(&mut self, bulk: &mut Bulk) -> Result<Result<StepInput, Awaits>, String> {
        let (disk, trouble) = (&self.disk, self.tainted || self.armed);
        let lane = &mut self.lanes[self.at];
        let (clients, history) = (&mut lane.clients, &lane.history);
        let awaits = std::mem::replace(&mut bulk.awaits, Awaits::Step(StepInput::Time));
        Ok(match awaits {
            Awaits::Step(heard) => Ok(heard),
            Awaits::Look(mut receiver) => match receiver.try_recv() {
                Err(TryRecvError::Empty) => Err(Awaits::Look(receiver)),
                Err(TryRecvError::Closed) => Ok(StepInput::Seen(Err(Error::ShuttingDown {}))),
                Ok(Err(error)) => Ok(StepInput::Seen(Err(error))),
                Ok(Ok((seen, sight))) => {
                    bulk.check.look(&sight, history);
                    Ok(StepInput::Seen(seen))
                }
            },
            Awaits::Blobs(blobs) => {
                // The process may die between two reads.
                let excused = || trouble || disk.is_halted();
                Ok(StepInput::Read(read(blobs, excused)?))
            }
            Awaits::Answer(tag) => match clients.bulks.answers.remove(&tag) {
                None => Err(Awaits::Answer(tag)),
                Some(answer) => {
                    bulk.check.answered(&answer);
                    Ok(StepInput::Changed(Ok(answer)))
                }
            },
        })
    }

    /// Proposes the record that a bulk asks for.
    fn bulk_changes(&mut self, bulk: &mut Bulk, items: &[(MessageId, u64)]) -> Result<Awaits, String> {
        bulk.check.asks(items, self.clock.monotonic_us(), &self.lanes[self.at].history)?;
        let change = |items: &[_]| Op::Bulk(BulkChange::new(&bulk.op, items));
        let mut op = change(items);
        let mut asked = Batch::new();
        bulk.steps.view().request.with_change(items, |command| write_record(&mut asked, command));
        let mut meant = Batch::new();
        op.with(|command| write_record(&mut meant, command));
        if asked.take().0 != meant.take().0 {
            return Err(format!("{:?} asks for another record than {op:?}", bulk.op));
        }
        if self.plant == Some(Plant::BulkForgetsVersions) {
            op = change(&items.iter().map(|(id, _)| (*id, 0)).collect::<Vec<_>>());
        }
        Ok(match self.propose(op) {
            Some(tag) => Awaits::Answer(tag),
            None => Awaits::Step(StepInput::Changed(Err(overloaded()))),
        })
    }

    fn bulk_ends(&mut self, bulk: &Bulk) -> Checked {
        self.stats.bulks += 1;
        let lane = &self.lanes[self.at];
        let Some(server) = &lane.server else { return Ok(()) };
        let ended = bulk.check.end(bulk.steps.view(), bulk.cancelled, server.shard.engine(), self.tainted);
        ended.map_err(|wrong| format!("{:?} has ended as {:?}: {wrong}", bulk.op, bulk.steps.view()))
    }

    /// Drives running bulks, and a new one, to their ends after all trouble has ended.
    pub(super) fn end_bulks(&mut self) -> Checked {
        self.bulks_end()?;
        if self.lanes[self.at].generator.changes() {
            self.ask_for_bulk()?;
            self.bulks_end()?;
        }
        Ok(())
    }

    fn bulks_end(&mut self) -> Checked {
        for _ in 0..ROUNDS_MAX {
            self.settle_down()?;
            self.bulk_begins()?;
            let running = std::mem::take(&mut self.lanes[self.at].clients.bulks.running);
            running.into_iter().try_for_each(|bulk| self.drive_bulk(bulk))?;
            if self.lanes[self.at].clients.bulks.is_empty() {
                return Ok(());
            }
            self.clock.advance(ROUND_US);
        }
        Err("a bulk does not come to its end".to_owned())
    }
}

/// Reads blobs as the node does, without further tries.
fn read(
    mut blobs: Vec<BlobRead>,
    excused: impl Fn() -> bool,
) -> Result<Vec<Result<Bytes, ReadFailure>>, String> {
    if !take_ahead(&mut blobs) {
        read_together(&mut blobs);
    }
    let read = |blob| match blob {
        BlobRead::Cached(bytes) => Ok(Ok(bytes)),
        BlobRead::OnDisk(location) => match location.read() {
            Ok(bytes) => Ok(Ok(bytes)),
            Err(BlobError::Io(_)) if excused() => Ok(Err(ReadFailure::Later)),
            Err(BlobError::Damaged(_)) if excused() => Ok(Err(ReadFailure::Damaged)),
            Err(error) => Err(format!("a bulk cannot read a blob: {error:?}")),
        },
        BlobRead::Missing => Err("a bulk is to read what is not in the journal".to_owned()),
    };
    blobs.into_iter().map(read).collect()
}

fn overloaded() -> Error {
    Error::Overloaded { what: "requests", retry_after_ms: 500 }
}
