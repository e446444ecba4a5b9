//! The process under test: opening of the journal, recovery, and the parts whose steps the scheduler picks.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use sluice_engine::query::NamespaceView;
use sluice_engine::{Command, Error};
use sluice_journal::{Backups, Class, DiskJournal, Keyring, Maintenance, OpenError, Opened, Space, Writer};
use sluice_node::clock::LogClock;
use sluice_node::mailbox::Mailbox;
use sluice_node::shard::recover::recover;
use sluice_node::shard::request::{Proposal, ReplyTo, Request};
use sluice_node::shard::{Parts, Shard, Step};
use tokio::sync::oneshot;

use super::config::Config;
use super::spy::{JournalCalls, Spy};
use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::plant::Plant;

/// Number of tries for the first records of a start.
const FIRST_RECORDS_TRIES: usize = 100;

/// One shard of a running server, with its journal.
pub(super) struct Server {
    /// Term of the journal's opening.
    term: u64,
    pub(super) shard: Shard<Spy, SimClock>,
    pub(super) writer: Writer,
    pub(super) maintenance: Maintenance,
    pub(super) mailbox: Mailbox<Request>,
    pub(super) sights: JournalCalls,
    pub(super) backups: Backups,
    pub(super) keyring: Keyring,
}

/// Reason for which a server did not start.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The journal is damaged.
    Damaged(String),
    /// A call to the disk failed.
    Io(String),
    /// Snapshot or log could not be read: damaged, or a failed call.
    Unread(String),
    /// A root key is missing.
    Key(String),
    /// A shard is missing.
    Lost(String),
    /// Anything else.
    Other(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Damaged(why)
            | Refusal::Io(why)
            | Refusal::Unread(why)
            | Refusal::Key(why)
            | Refusal::Lost(why)
            | Refusal::Other(why) => f.write_str(why),
        }
    }
}

impl Refusal {
    fn of(error: &OpenError) -> Refusal {
        match error {
            OpenError::Damaged(_) | OpenError::Format { .. } => Refusal::Damaged(error.to_string()),
            OpenError::Io { .. } => Refusal::Io(error.to_string()),
            OpenError::Key { .. } => Refusal::Key(error.to_string()),
            _ => Refusal::Other(error.to_string()),
        }
    }
}

/// A server that has recovered and not served yet.
pub(super) struct Recovered {
    pub(super) server: Server,
    /// Index of the record that follows the recovered log.
    pub(super) next_index: u64,
    /// Findings of the journal's opening.
    pub(super) report: String,
}

/// Reason for which the first records of a start are not in the log.
pub(super) enum NotBegun {
    /// The journal has failed.
    Failed(String),
    /// The disk is full.
    NoRoom,
}

/// Tells the shards that have begun of this shard's namespaces that shard 0 does not know, as a node does.
/// Returns the numbers of the shards that were told.
pub(super) fn adopt(
    begun: &mut [&mut Server],
    starting: &Server,
    placed: &mut Vec<NamespaceView>,
) -> Result<BTreeSet<usize>, NotBegun> {
    let mut told = BTreeSet::new();
    let Some(next) = begun.first().map(|first| first.shard.engine().next_namespace()) else {
        return Ok(told);
    };
    for adoption in starting.shard.adoptions(placed, next) {
        for (shard, command) in adoption.steps() {
            let Some(server) = begun.get_mut(shard as usize) else { continue };
            told.insert(shard as usize);
            server.tell(&command)?;
        }
        adoption.enter(placed);
    }
    Ok(told)
}

/// Opens the journal of a shard, which shares `space` with others, and recovers.
pub(super) fn open(
    config: &Config,
    number: u32,
    disk: &SimDisk,
    space: Option<Arc<Space>>,
    clock: &SimClock,
    plant: Option<Plant>,
) -> Result<Recovered, Refusal> {
    let disk = Arc::new(disk.for_next_process());
    let opened =
        DiskJournal::open(disk, config.journal(number, clock, space)).map_err(|error| Refusal::of(&error))?;
    let Opened { mut journal, writer, maintenance, backups, keyring, snapshot, replay, report, .. } = opened;
    let engine =
        recover(snapshot, replay, &mut journal).map_err(|error| Refusal::Unread(error.to_string()))?;
    let log_clock = LogClock::start(clock, report.last_time_us, true)
        .map_err(|ahead| Refusal::Other(format!("the clock is {ahead} us ahead")))?;
    let sights = JournalCalls::default();
    let mailbox = Mailbox::new(config.mailbox);
    let hasty = plant == Some(Plant::ReplyBeforeSync);
    let shard = Shard::new(Parts {
        number,
        engine,
        store: Spy::new(journal, sights.clone(), hasty),
        clock: clock.clone(),
        log_clock,
        mailbox: mailbox.clone(),
        waiting_max: config.waiting_max,
        events: config.events,
    });
    let term = report.term;
    let server = Server { shard, term, writer, maintenance, mailbox, sights, backups, keyring };
    Ok(Recovered { server, next_index: report.next_index, report: format!("{report:?}") })
}

impl Server {
    /// Proposes a command and makes it durable: one that another shard needs at a start.
    fn tell(&mut self, command: &Command<'_>) -> Result<(), NotBegun> {
        let (sender, mut answer) = oneshot::channel();
        let mut proposal = Proposal::new(command, ReplyTo::Once(sender));
        proposal.class = Class::Draining;
        self.mailbox.push_surely(Request::Propose(proposal));
        for _ in 0..FIRST_RECORDS_TRIES {
            if self.shard.step() == Step::Failed {
                return Err(NotBegun::Failed(self.shard.failure().unwrap_or_default().to_owned()));
            }
            self.writer.step();
            self.writer.sync().map_err(NotBegun::Failed)?;
            if let Ok(answer) = answer.try_recv() {
                return match answer.result {
                    Ok(_) | Err(Error::NamespaceNotFound { .. }) => Ok(()),
                    Err(Error::DiskFull { .. }) => Err(NotBegun::NoRoom),
                    Err(error) => Err(NotBegun::Failed(error.to_string())),
                };
            }
        }
        Err(NotBegun::NoRoom)
    }

    /// Begins the epoch and makes its record durable, as a node does before it serves.
    pub(super) fn begin(
        &mut self,
        config: &Config,
        placed: &[NamespaceView],
        plant: Option<Plant>,
    ) -> Result<(), NotBegun> {
        let known = self.shard.engine().epoch();
        let reuse = plant == Some(Plant::ReuseIdAfterLostTail) && known > 0;
        let epoch =
            if reuse { known } else { self.shard.begin(&config.limits, self.term, config.receipt_key()) };
        for _ in 0..FIRST_RECORDS_TRIES {
            let begun = self.shard.engine().epoch() == epoch && self.shard.in_flight() == 0;
            if begun && self.shard.follow_placement(placed) {
                return Ok(());
            }
            self.writer.step();
            self.writer.sync().map_err(NotBegun::Failed)?;
            if self.shard.step() == Step::Failed {
                return Err(NotBegun::Failed(self.shard.failure().unwrap_or_default().to_owned()));
            }
        }
        Err(NotBegun::NoRoom)
    }
}
