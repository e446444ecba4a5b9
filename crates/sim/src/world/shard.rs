//! One shard of the server in the world: its process parts, its log with the witnesses, its clients, and the
//! records that must survive.

use sluice_journal::{BlobKey, BlobRead, Journal};

use super::clients::Clients;
use super::history::{History, Witnesses};
use super::server::Server;
use crate::model::Checked;
use crate::workload::Generator;

/// One shard; see the module.
pub(super) struct ShardWorld {
    /// The shard's process; `None`: none runs.
    pub(super) server: Option<Server>,
    pub(super) history: History,
    pub(super) generator: Generator,
    pub(super) clients: Clients,
    /// Index before which all records are durable, whatever the durability setting.
    pub(super) durable: u64,
    /// Index before which all records are durable, with something durable after them that shows it.
    pub(super) vouched: u64,
    /// Index before which the manifest notes all records as durable.
    pub(super) noted: u64,
    /// Progress of upkeep on an idle log.
    rest: Rest,
    /// Index before which the journal has written all records; index at which those of the last write begin.
    pub(super) written: u64,
    pub(super) last_write: u64,
    /// Index before which the next start must find all records.
    pub(super) must_have: u64,
}

/// Pauses of upkeep in microseconds: before it writes an idle marker, before it sees that nothing follows the
/// marker, and before it writes the manifest.
const PAUSES_US: [u64; 3] = [20_000, 0, 1_000_000];

/// State of upkeep on a log to which nothing is added.
#[derive(Default)]
struct Rest {
    next_index: u64,
    /// Number of [`PAUSES_US`] that are over.
    pauses: usize,
    since_us: u64,
}

impl ShardWorld {
    pub(super) fn new(history: History, generator: Generator) -> ShardWorld {
        ShardWorld {
            server: None,
            history,
            generator,
            clients: Clients::new(),
            durable: 0,
            vouched: 0,
            noted: 0,
            rest: Rest::default(),
            written: 0,
            last_write: 0,
            must_have: 0,
        }
    }

    /// Notes that the first records of a start are durable; nothing in the log shows it yet.
    pub(super) fn has_begun(&mut self) {
        self.last_write = self.durable;
        self.sync_all();
        self.written = self.durable;
        self.must_have = self.durable;
    }

    /// Notes that everything is durable. Only later writes show it.
    pub(super) fn sync_all(&mut self) {
        self.vouched = self.durable;
        self.durable = self.history.applied();
    }

    /// Notes what the journal has written since. With a sync after each write only a later one shows that an
    /// earlier one was synced; one that failed, or waits for room, need not be on the disk.
    pub(super) fn note_written(&mut self) {
        let Some(server) = &mut self.server else { return };
        let written = server.shard.store().durable_index() + 1;
        if written > self.written {
            self.last_write = self.written;
            self.written = written;
        }
    }

    /// Notes that everything is durable, and that the manifest notes it.
    pub(super) fn note_all(&mut self) {
        self.noted = self.history.applied();
    }

    /// Notes a step of upkeep. After a step behind each of [`PAUSES_US`], with nothing proposed meanwhile and
    /// no fault, the manifest tells how far the log is durable.
    pub(super) fn rests(&mut self, now_us: u64, calm: bool) {
        let next_index = self.history.next_index();
        let all_committed = self.history.applied() == next_index;
        if !calm || !all_committed || self.rest.next_index != next_index {
            self.rest = Rest { next_index, pauses: 0, since_us: now_us };
            return;
        }
        let Some(pause_us) = PAUSES_US.get(self.rest.pauses) else { return };
        if now_us >= self.rest.since_us + pause_us {
            self.rest = Rest { next_index, pauses: self.rest.pauses + 1, since_us: now_us };
        }
        if self.rest.pauses == PAUSES_US.len() {
            self.note_all();
        }
    }
}

/// Reads back all blobs of messages and schedules, from cache or disk. `excused`: blobs may be unreadable.
pub(super) fn read_back(
    server: &mut Server,
    witnesses: &Witnesses,
    history: &History,
    excused: bool,
) -> Checked {
    for (holder, blob) in witnesses.blobs() {
        let read = match server.shard.store().read(BlobKey { index: blob.index, item: blob.item }) {
            BlobRead::Cached(bytes) => Ok(bytes),
            BlobRead::OnDisk(location) => location.read().map_err(|error| format!("{error:?}")),
            BlobRead::Missing => Err("it is not in the journal".to_owned()),
        };
        match read {
            Ok(bytes) => history.check_blob(blob, &bytes)?,
            Err(_) if excused => {}
            Err(why) => return Err(format!("what {holder} has in the log cannot be read back: {why}")),
        }
    }
    Ok(())
}
