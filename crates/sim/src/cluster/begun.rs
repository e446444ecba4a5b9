//! The log with which a cluster begins: that of one node, which was the only one.

use std::path::Path;
use std::sync::Arc;

use sluice_engine::Command;
use sluice_engine::id::{NamespaceId, ReceiptKey};
use sluice_engine::settings::Quotas;
use sluice_journal::{Commit, DiskJournal, Entry, LogReader, Opened, Options};
use sluice_node::clock::LogClock;
use sluice_node::mailbox::Mailbox;
use sluice_node::shard::recover::recover;
use sluice_node::shard::request::Request;
use sluice_node::shard::{Parts, Shard, Step};

use crate::across::requests::Place;
use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::rng::Rng;

/// Size of a disk that is never full, in bytes.
const ROOMY: usize = 1 << 30;

/// Namespaces besides `default`.
const NAMESPACES: [&str; 2] = ["across-1", "across-2"];

/// A disk with the data of a node that was alone, and the log that it has.
pub(super) struct Begun {
    pub(super) disk: SimDisk,
    pub(super) log: Vec<Entry>,
    /// Namespaces for transactions over several, each on the one shard.
    pub(super) places: Vec<Place>,
}

impl Begun {
    /// Lets one node begin a log, and perhaps take a snapshot.
    pub(super) fn new(options: &Options, rng: &mut Rng) -> Result<Begun, String> {
        let disk = SimDisk::new(Path::new("/"), ROOMY, rng.fork());
        let process = Arc::new(disk.for_next_process());
        let options = Options { commit: Commit::Own, ..options.clone() };
        let opened = DiskJournal::open(process, options).map_err(|error| error.to_string())?;
        let Opened { mut journal, writer, mut maintenance, snapshot, replay, report, .. } = opened;
        let engine = recover(snapshot, replay, &mut journal).map_err(|error| format!("{error:?}"))?;
        let clock = SimClock::default();
        let log_clock =
            LogClock::start(&clock, 0, true).map_err(|ahead_us| format!("{ahead_us} us ahead"))?;
        let limits = engine.limits().clone();
        let mailbox = Mailbox::new(NAMESPACES.len());
        let mut shard = Shard::new(Parts {
            number: 0,
            engine,
            store: journal,
            clock,
            log_clock,
            mailbox: mailbox.clone(),
            waiting_max: 1,
            events: Default::default(),
        });
        shard.begin(&limits, report.term, ReceiptKey([7; 16]));
        while writer.step() || shard.step() != Step::Idle {}
        for name in NAMESPACES {
            let quotas = Quotas::default();
            let create = Command::NamespaceCreate { number: None, name, shard: 0, quotas };
            mailbox.push_surely(Request::surely(&create));
        }
        while writer.step() || shard.step() != Step::Idle {}
        let known = shard.engine().namespaces().into_iter().filter(|view| view.id != NamespaceId::SYS);
        let places = known.map(|view| (view.id, view.shard)).collect();
        if rng.chance(1, 2) {
            shard.store().request_snapshot();
            while shard.step() != Step::Idle || maintenance.step(0) {}
        }
        writer.finish()?;
        let mut reader = LogReader::new(1);
        shard.store().read_on(&mut reader).map_err(|gone| format!("{gone:?}"))?;
        let log = reader.read(usize::MAX).map_err(|error| format!("{error:?}"))?;
        Ok(Begun { disk, log, places })
    }
}
