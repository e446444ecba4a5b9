//! End of a run: faults end, the server may crash once more, and then consumers must bring every message to
//! its end.

use sluice_engine::command::{Deliver, Settlement};
use sluice_engine::id::NamespaceId;
use sluice_engine::query::{MessageView, State};
use sluice_engine::settings::QueuePatch;
use sluice_node::shard::Step;

use super::World;
use crate::disk::Crash;
use crate::model::Checked;
use crate::workload::{ChangeOp, Item, Op, QUEUES, ScheduleOp, Settled, Wanted};

/// Upper limit of rounds of pulling and acking in which the work left does not fall below its least so far;
/// then the rest counts as stuck. A narrow limit lets few messages through in a round.
const ROUNDS_MAX: usize = 400;
/// Upper limit of steps until the server is idle.
const SETTLING_MAX: usize = 10_000;
/// Virtual time that passes while something is in flight and nothing else can be done, in microseconds.
const RETRY_US: u64 = 1_000;
/// Virtual time between two rounds, longer than most leases and delays, in microseconds.
const ROUND_US: u64 = 5_000_000;

impl World {
    /// Ends the run.
    ///
    /// # Errors
    /// An invariant that does not hold.
    pub fn finish(&mut self) -> Checked {
        self.calm();
        self.lanes.iter_mut().for_each(|lane| lane.clients.reads_all = true);
        if self.disk.is_halted() {
            self.crash(self.dying)?;
        } else if !self.armed && !self.tainted && self.rng.chance(1, 2) {
            // Service resumes by itself, without a start.
            self.serves_again()?;
        } else {
            let crash = if self.rng.chance(1, 2) { Crash::Kill } else { Crash::Power };
            self.crash(crash)?;
        }
        self.end_across()?;
        (0..self.lanes.len()).try_for_each(|at| {
            self.at = at;
            self.end_bulks()?;
            self.end_schedules()?;
            self.drain()?;
            self.tidy_up()
        })
    }

    /// Checks that each shard takes messages soon after trouble has ended.
    fn serves_again(&mut self) -> Checked {
        for at in 0..self.lanes.len() {
            self.at = at;
            self.settle_down()?;
            self.clock.advance(ROUND_US);
            self.settle_down()?;
            let before = self.lanes[at].clients.acknowledged;
            self.ask(probe())?;
            self.settle_down()?;
            if self.lanes[at].clients.acknowledged <= before {
                return Err(format!("shard {at} still refuses sends, though trouble has ended"));
            }
        }
        Ok(())
    }

    /// Ends schedules; checks that no due instant is left.
    fn end_schedules(&mut self) -> Checked {
        self.settle_down()?;
        self.clock.advance(ROUND_US);
        self.settle_down()?;
        let seen = self.lanes[self.at].history.seen();
        let now_us = seen.now_us();
        if let Some(late) = seen.firing_schedules().iter().find(|(_, _, next_us)| *next_us <= now_us) {
            return Err(format!("at {now_us} a schedule has not fired that was to: {late:?}"));
        }
        for _ in 0..ROUNDS_MAX {
            let firing = self.lanes[self.at].history.seen().firing_schedules();
            let Some((namespace, schedule, _)) = firing.into_iter().next() else { return Ok(()) };
            self.ask(Op::Schedule(ScheduleOp::Delete { namespace, schedule }))?;
            self.settle_down()?;
        }
        Err("schedules cannot be deleted".to_owned())
    }

    /// Drains all queues; checks that every message ends.
    fn drain(&mut self) -> Checked {
        let (mut least, mut rounds) = (usize::MAX, 0);
        while rounds < ROUNDS_MAX {
            let left = self.lanes[self.at].history.seen().work_left();
            rounds = if left < least { 0 } else { rounds + 1 };
            least = least.min(left);
            self.settle_down()?;
            if self.lanes[self.at].history.seen().open_messages().is_empty() {
                return self.compare();
            }
            self.resume_queues()?;
            self.decide_on_held()?;
            self.pull_everything();
            self.settle_down()?;
            while !self.lanes[self.at].clients.reads.is_empty() {
                self.read_blobs()?;
            }
            self.ack_everything()?;
            self.settle_down()?;
            self.clock.advance(ROUND_US);
        }
        let open = self.lanes[self.at].history.seen().open_messages();
        Err(format!("{} messages are stuck: {:?}", open.len(), open.first()))
    }

    /// Resumes paused queues, which would keep their messages.
    fn resume_queues(&mut self) -> Checked {
        for (namespace, queue) in self.lanes[self.at].history.seen().paused_queues() {
            let patch = QueuePatch { paused: Some(false), ..QueuePatch::default() };
            self.ask(Op::QueueSet { namespace, queue, patch, create: false })?;
            self.settle_down()?;
        }
        Ok(())
    }

    /// Approves held messages, and drops damaged ones.
    fn decide_on_held(&mut self) -> Checked {
        let held = self.lanes[self.at].history.seen().messages(Some(State::Held));
        let damaged = |view: &MessageView| view.reason == Some("payload_damaged");
        for view in held {
            let op = ChangeOp::decide(view.id.namespace, &[view.id], !damaged(&view));
            self.ask(Op::Change(op))?;
            self.settle_down()?;
        }
        Ok(())
    }

    /// Checks that a requested snapshot is made.
    fn tidy_up(&mut self) -> Checked {
        let Some(server) = &mut self.lanes[self.at].server else { return Ok(()) };
        let before = server.shard.store().snapshots();
        server.shard.store().request_snapshot();
        for _ in 0..ROUNDS_MAX {
            self.settle_down()?;
            self.clock.advance(ROUND_US);
            let Some(server) = &mut self.lanes[self.at].server else { return Ok(()) };
            if server.shard.store().snapshots() > before {
                return Ok(());
            }
        }
        Err("a snapshot was asked for, and does not come".to_owned())
    }

    pub(super) fn settle_down(&mut self) -> Checked {
        for _ in 0..SETTLING_MAX {
            self.writer_steps();
            self.maintenance_steps();
            let Some(server) = &mut self.lanes[self.at].server else { return Ok(()) };
            let step = server.shard.step();
            let resting = step == Step::Idle && server.shard.in_flight() == 0;
            if step == Step::Failed {
                return self.shard_fails();
            }
            self.look()?;
            if resting {
                return self.nobody_waits_in_vain();
            }
            if step == Step::Idle {
                // Operations that wait for space are tried again from time to time.
                self.clock.advance(RETRY_US);
            }
        }
        Err("the server does not come to rest".to_owned())
    }

    fn pull_everything(&mut self) {
        for namespace in self.lanes[self.at].history.seen().namespaces(self.at as u32) {
            for queue in QUEUES {
                let wanted = Wanted {
                    namespace,
                    queues: vec![(Box::from(queue), 0)],
                    max_messages: 1_000,
                    max_bytes: 16 << 20,
                    lease_ms: 60_000,
                    wait_us: ROUND_US,
                };
                self.pull(wanted, false);
                // The mailbox is small: let the shard take its requests.
                if let Some(server) = &mut self.lanes[self.at].server {
                    server.shard.step();
                }
            }
        }
    }

    fn ack_everything(&mut self) -> Checked {
        for receipt in self.lanes[self.at].generator.take_held() {
            let items = vec![Settled::plain(receipt, Settlement::Ack)];
            self.ask(Op::Settle { namespace: receipt.id.namespace, items })?;
            if let Some(server) = &mut self.lanes[self.at].server {
                server.shard.step();
            }
            self.look()?;
        }
        Ok(())
    }
}

/// A send that takes space in the log, to a namespace that does not exist.
fn probe() -> Op {
    let item = Item {
        payload: Vec::new(),
        content_type: "",
        headers: Vec::new(),
        tags: Vec::new(),
        priority: 0,
        deliver: Deliver::Now,
        max_attempts: 0,
        backoff: None,
        options: Default::default(),
        relations: Default::default(),
    };
    let (namespace, queue, key) = (NamespaceId(77), QUEUES[0].to_owned(), Vec::new());
    Op::Send { namespace, queue, key, digest: 0, items: vec![item] }
}
