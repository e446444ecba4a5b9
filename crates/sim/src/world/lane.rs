//! One shard of the server as the world sees it: its process parts, its log with the two witnesses, its clients, and
//! what must survive.

use sluice_journal::{BlobKey, BlobRead, Journal};

use super::clients::Clients;
use super::history::{History, Witnesses};
use super::server::Server;
use crate::model::Checked;
use crate::workload::Generator;

/// See the module.
pub(super) struct Lane {
    /// `None` while no process runs.
    pub(super) server: Option<Server>,
    pub(super) history: History,
    pub(super) generator: Generator,
    pub(super) clients: Clients,
    /// All before this record is durable, whatever the durability setting.
    pub(super) durable: u64,
    /// All before this record is durable, and so is something behind it that tells that it was synced.
    pub(super) vouched: u64,
    /// Records before this one have been given to the disk; and where what was given last begins.
    pub(super) written: u64,
    pub(super) last_write: u64,
    /// The next start must find all records before this one.
    pub(super) must_have: u64,
}

impl Lane {
    pub(super) fn new(history: History, generator: Generator) -> Lane {
        Lane {
            server: None,
            history,
            generator,
            clients: Clients::new(),
            durable: 0,
            vouched: 0,
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

    /// Everything is durable now. Only what is written later tells so.
    pub(super) fn sync_all(&mut self) {
        self.vouched = self.durable;
        self.durable = self.history.applied();
    }
}

/// Reads all that lies in the log for messages and schedules, from cache or disk. Whether something may be unreadable is the caller's knowledge.
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
