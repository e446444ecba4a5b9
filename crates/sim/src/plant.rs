//! Bugs planted on purpose, chosen at run time, to see that the simulator finds them.

use std::fmt;
use std::str::FromStr;

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plant {
    /// Syncs answer without having done anything.
    SkipSync,
    /// A batch counts as committed before it is synced.
    ReplyBeforeSync,
    /// A transition forgets to count.
    DropCounter,
    /// A message is handed out to two consumers.
    DeliverTwice,
    /// Recovery cuts one valid record too many.
    CutValidRecordAtRecovery,
    /// A receipt passes though its token is not the lease's.
    StaleToken,
    /// Now and then a message goes past its ordering key.
    PassOrderingKey,
    /// A limit key has a place more than its limit says.
    ExceedLimit,
    /// Recovery takes an older snapshot.
    OlderSnapshotFallback,
    /// A start goes on with the epoch of the last one.
    ReuseIdAfterLostTail,
}

impl Plant {
    /// All of them.
    pub const ALL: [Plant; 10] = [
        Plant::SkipSync,
        Plant::ReplyBeforeSync,
        Plant::DropCounter,
        Plant::DeliverTwice,
        Plant::CutValidRecordAtRecovery,
        Plant::StaleToken,
        Plant::PassOrderingKey,
        Plant::ExceedLimit,
        Plant::OlderSnapshotFallback,
        Plant::ReuseIdAfterLostTail,
    ];

    /// The bug of the engine that this one is; `None`: it is planted outside, in the disk or beside the journal.
    pub(crate) fn in_engine(self) -> Option<sluice_engine::plant::Plant> {
        match self {
            Plant::DropCounter => Some(sluice_engine::plant::Plant::DropCounter),
            Plant::DeliverTwice => Some(sluice_engine::plant::Plant::DeliverTwice),
            Plant::StaleToken => Some(sluice_engine::plant::Plant::StaleToken),
            Plant::PassOrderingKey => Some(sluice_engine::plant::Plant::PassOrderingKey),
            Plant::ExceedLimit => Some(sluice_engine::plant::Plant::ExceedLimit),
            _ => None,
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Plant::SkipSync => "skip_sync",
            Plant::ReplyBeforeSync => "reply_before_sync",
            Plant::DropCounter => "drop_counter",
            Plant::DeliverTwice => "deliver_twice",
            Plant::CutValidRecordAtRecovery => "cut_valid_record_at_recovery",
            Plant::StaleToken => "stale_token",
            Plant::PassOrderingKey => "pass_ordering_key",
            Plant::ExceedLimit => "exceed_limit",
            Plant::OlderSnapshotFallback => "older_snapshot_fallback",
            Plant::ReuseIdAfterLostTail => "reuse_id_after_lost_tail",
        }
    }
}

impl fmt::Display for Plant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Plant {
    type Err = String;

    fn from_str(name: &str) -> Result<Plant, String> {
        let known = Plant::ALL.into_iter().find(|plant| plant.name() == name);
        known.ok_or_else(|| {
            let names: Vec<_> = Plant::ALL.iter().map(|plant| plant.name()).collect();
            format!("{name:?} is not a planted bug: use one of {}", names.join(", "))
        })
    }
}
