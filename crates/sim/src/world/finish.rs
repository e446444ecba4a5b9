//! The end of a run: trouble stops, one last crash, and then consumers must be able to get to the end of everything.

use sluice_engine::command::Settlement;
use sluice_node::shard::Step;

use super::World;
use super::config::{ROOMY, Trouble};
use crate::disk::Crash;
use crate::model::Checked;
use crate::workload::{Op, QUEUES, Wanted};

/// Rounds of pulling and acking after which what is left counts as stuck.
const ROUNDS_MAX: usize = 400;
/// Steps after which the server must have come to rest.
const SETTLING_MAX: usize = 10_000;
/// Time that passes between two rounds: longer than most leases and delays.
const ROUND_US: u64 = 5_000_000;

impl World {
    /// Ends the run.
    ///
    /// # Errors
    /// What must be true and is not.
    pub fn finish(&mut self) -> Checked {
        self.calm();
        let crash = if self.rng.chance(1, 2) { Crash::Kill } else { Crash::Power };
        self.crash(crash)?;
        for _ in 0..ROUNDS_MAX {
            self.settle_down()?;
            if self.history.model().open_messages() == 0 {
                return self.compare();
            }
            self.pull_everything();
            self.settle_down()?;
            while !self.clients.reads.is_empty() {
                self.read_blob()?;
            }
            self.ack_everything()?;
            self.settle_down()?;
            self.clock.advance(ROUND_US);
        }
        Err(format!("{} messages are stuck", self.history.model().open_messages()))
    }

    /// No more trouble.
    fn calm(&mut self) {
        self.config.trouble = Trouble::NONE;
        self.full = false;
        self.disk.set_capacity(ROOMY);
        for flip in std::mem::take(&mut self.flips).iter().rev() {
            self.disk.unflip(flip);
        }
    }

    fn settle_down(&mut self) -> Checked {
        for _ in 0..SETTLING_MAX {
            self.writer_steps();
            self.maintenance_steps();
            let Some(server) = &mut self.server else { return Ok(()) };
            let step = server.shard.step();
            let resting = step == Step::Idle && server.shard.in_flight() == 0;
            if step == Step::Failed {
                return self.shard_steps();
            }
            self.look()?;
            if resting {
                return self.nobody_waits_in_vain();
            }
        }
        Err("the server does not come to rest".to_owned())
    }

    fn pull_everything(&mut self) {
        for namespace in self.history.model().namespaces() {
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
                // The mailbox is small: let the shard take what is in it.
                if let Some(server) = &mut self.server {
                    server.shard.step();
                }
            }
        }
    }

    fn ack_everything(&mut self) -> Checked {
        for receipt in self.generator.take_held() {
            let items = vec![(receipt, Settlement::Ack, String::new())];
            self.ask(Op::Settle { namespace: receipt.id.namespace, items })?;
            if let Some(server) = &mut self.server {
                server.shard.step();
            }
            self.look()?;
        }
        Ok(())
    }
}
