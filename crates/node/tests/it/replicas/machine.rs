//! A shard on one of several nodes.

use std::sync::{Arc, Mutex};

use sluice_engine::command::Command;
use sluice_engine::limits::Limits;
use sluice_engine::{BEHAVIOUR_VERSION, Engine};
use sluice_journal::Batch;
use sluice_node::clock::{Clock, LogClock};
use sluice_node::mailbox::Mailbox;
use sluice_node::shard::request::Request;
use sluice_node::shard::{Parts, Shard};
use sluice_record::write_record;

use super::agreement::{Agreement, Member};
use crate::rig::{KEY, START_US, Time};

/// A node's clock: its own origin, and a wall clock of its own.
#[derive(Clone)]
pub struct NodeTime {
    pub time: Time,
    pub origin_us: u64,
    /// Lead of the wall clock over that of others.
    pub wall_us: i64,
}

impl Clock for NodeTime {
    fn monotonic_us(&self) -> u64 {
        self.time.monotonic_us() + self.origin_us
    }

    fn wall_us(&self) -> u64 {
        self.time.wall_us().saturating_add_signed(self.wall_us)
    }
}

/// The agreement of so many nodes that was one node's log before.
pub fn begun(nodes: usize) -> Arc<Mutex<Agreement>> {
    let mut begun = Batch::new();
    write_record(&mut begun, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    write_record(&mut begun, &Command::ReceiptKey(KEY));
    write_record(&mut begun, &Command::Configure(Limits::default()));
    Agreement::new(nodes, &mut begun, START_US)
}

pub struct Machine {
    pub shard: Shard<Member, NodeTime>,
    pub mailbox: Mailbox<Request>,
}

impl Machine {
    pub fn new(agreement: &Arc<Mutex<Agreement>>, node: usize, clock: NodeTime) -> Machine {
        let mailbox = Mailbox::new(1 << 12);
        let shard = Shard::new(Parts {
            number: 0,
            engine: Engine::new(),
            store: Member { of: Arc::clone(agreement), node },
            log_clock: LogClock::follow(&clock, START_US),
            clock,
            mailbox: mailbox.clone(),
            waiting_max: 100,
            events: Default::default(),
        });
        Machine { shard, mailbox }
    }
}
