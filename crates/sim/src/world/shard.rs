//! One shard of the server as the world sees it: its process parts, its log with the two witnesses, its
//! clients, and what must survive.

use sluice_journal::{BlobKey, BlobRead, Journal};

use super::clients::Clients;
use super::history::{History, Witnesses};
use super::server::Server;
use crate::model::Checked;
use crate::workload::Generator;

/// See the module.
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
    /// Index before which records were given to the disk, and where the last of them begin.
    pub(super) written: u64,
    pub(super) last_write: u64,
    /// Index before which the next start must find all records.
    pub(super) must_have: u64,
}

/// Upkeep waits so long before it writes an idle marker, then sees that there is nothing after it, and waits
/// so long before it writes the manifest.
const PAUSES_US: [u64; 3] = [20_000, 0, 1_000_000];

/// State of upkeep on a log to which nothing is added.
#[derive(Default)]
struct Rest {
    next_index: u64,
    /// How many of [`PAUSES_US`] are over.
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

    /// The first records of a start are durable now, though nothing in the log tells that yet.
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

    /// Notes that everything is durable, and that the manifest notes it.
    pub(super) fn note_all(&mut self) {
        self.noted = self.history.applied();
    }

    /// Upkeep has made a step. When it has made one after each of [`PAUSES_US`], with nothing proposed
    /// meanwhile and nothing that disturbs it, the manifest tells how far the log is durable.
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

/// Reads all that lies in the log for messages and schedules, from cache or disk. Whether something may be
/// unreadable is the caller's knowledge.
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
