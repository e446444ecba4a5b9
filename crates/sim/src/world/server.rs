//! The process under test: opening the journal, recovering, and the parts whose steps the scheduler picks.

use std::fmt;
use std::sync::Arc;

use sluice_journal::{DiskJournal, Maintenance, OpenError, Opened, Writer};
use sluice_node::clock::LogClock;
use sluice_node::mailbox::Mailbox;
use sluice_node::shard::recover::recover;
use sluice_node::shard::request::Request;
use sluice_node::shard::{Parts, Shard, Step};

use super::config::Config;
use super::spy::{Sights, Spy};
use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::plant::Plant;

/// A running server: one shard with its journal.
pub(super) struct Server {
    pub(super) shard: Shard<Spy, SimClock>,
    pub(super) writer: Writer,
    pub(super) maintenance: Maintenance,
    pub(super) mailbox: Mailbox<Request>,
    pub(super) sights: Sights,
}

/// Why a server did not start.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The journal says that it is damaged.
    Damaged(String),
    /// The journal could not do what it wanted.
    Io(String),
    /// Snapshot or log could not be read, for either reason.
    Unread(String),
    /// Anything else.
    Other(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Damaged(why) | Refusal::Io(why) | Refusal::Unread(why) | Refusal::Other(why) => {
                f.write_str(why)
            }
        }
    }
}

impl Refusal {
    fn of(error: &OpenError) -> Refusal {
        match error {
            OpenError::Damaged(damage) => Refusal::Damaged(damage.to_string()),
            OpenError::Io { .. } => Refusal::Io(error.to_string()),
            _ => Refusal::Other(error.to_string()),
        }
    }
}

/// A server that has recovered, and served nothing yet.
pub(super) struct Recovered {
    pub(super) server: Server,
    /// Index of the record that follows the recovered log.
    pub(super) next_index: u64,
    /// What the journal says of its opening.
    pub(super) report: String,
}

/// Opens the journal and recovers.
pub(super) fn open(
    config: &Config,
    disk: &SimDisk,
    clock: &SimClock,
    plant: Option<Plant>,
) -> Result<Recovered, Refusal> {
    let disk = Arc::new(disk.for_next_process());
    let opened = DiskJournal::open(disk, config.journal.clone()).map_err(|error| Refusal::of(&error))?;
    let Opened { mut journal, writer, maintenance, snapshot, replay, report, .. } = opened;
    let engine =
        recover(snapshot, replay, &mut journal).map_err(|error| Refusal::Unread(error.to_string()))?;
    let log_clock = LogClock::start(clock, report.last_time_us, true)
        .map_err(|ahead| Refusal::Other(format!("the clock is {ahead} us ahead")))?;
    let sights = Sights::default();
    let mailbox = Mailbox::new(config.mailbox);
    let hasty = plant == Some(Plant::ReplyBeforeSync);
    let shard = Shard::new(Parts {
        number: 0,
        engine,
        store: Spy::new(journal, sights.clone(), hasty),
        clock: clock.clone(),
        log_clock,
        mailbox: mailbox.clone(),
        waiting_max: config.waiting_max,
    });
    let server = Server { shard, writer, maintenance, mailbox, sights };
    Ok(Recovered { server, next_index: report.next_index, report: format!("{report:?}") })
}

impl Server {
    /// Begins the epoch, and makes it durable, as a node does before it serves.
    pub(super) fn begin(&mut self, config: &Config, plant: Option<Plant>) -> Result<(), String> {
        let reuse = plant == Some(Plant::ReuseIdAfterLostTail) && self.shard.engine().epoch() > 0;
        if !reuse {
            self.shard.begin(&config.limits);
        }
        self.writer.step();
        self.writer.sync()?;
        match self.shard.step() {
            Step::Failed => Err(self.shard.failure().unwrap_or_default().to_owned()),
            _ => Ok(()),
        }
    }
}
