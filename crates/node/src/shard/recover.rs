//! Recovery of a state: restores the snapshot, replays the log after it, and tells the journal which blobs
//! are live.

use sluice_engine::{Engine, Outcome, check_behaviour, check_known};
use sluice_journal::{BlobKey, DiskJournal, Knows, OpenError, Replay, SnapshotReader};

use crate::api::StartError;

/// Checks by which the journal refuses another version's log before it changes anything.
pub fn knows() -> Knows {
    Knows { behaviour: check_behaviour, record: check_known }
}

/// Restores an engine from an opened journal.
///
/// # Errors
/// A sentence for the operator: the snapshot or the log cannot be read, or another version wrote it and the
/// journal was opened without [`knows`].
pub fn recover(
    snapshot: Option<SnapshotReader>,
    mut replay: Replay,
    journal: &mut DiskJournal,
) -> Result<Engine, StartError> {
    let mut engine = match snapshot {
        Some(snapshot) => restore(snapshot)?,
        None => Engine::new(),
    };
    let mut outcome = Outcome::default();
    while let Some(batch) = replay.next_batch()? {
        for (index, record) in (batch.first_index..).zip(batch.records()) {
            check_known(record.body).map_err(|what| unknown(index, &what))?;
            engine.apply(batch.time_us, index, record.body, &mut outcome);
        }
    }
    journal.set_live(live_blobs(&engine))?;
    Ok(engine)
}

/// All blobs to which a state refers, each with its length in bytes.
pub(super) fn live_blobs(engine: &Engine) -> impl Iterator<Item = (BlobKey, u32)> {
    engine.live_blobs().map(|blob| (BlobKey { index: blob.index, item: blob.item }, blob.len))
}

/// Makes an engine of a snapshot.
///
/// # Errors
/// As [`recover`].
pub(super) fn restore(mut snapshot: SnapshotReader) -> Result<Engine, StartError> {
    let mut failure: Option<OpenError> = None;
    let restored = Engine::restore(&mut || match snapshot.next_piece() {
        Ok(piece) => piece,
        Err(error) => {
            failure = Some(error);
            None
        }
    });
    match failure {
        Some(error) => Err(error.into()),
        None => restored.map_err(|error| StartError::Failed(error.to_string())),
    }
}

fn unknown(index: u64, what: &str) -> StartError {
    StartError::Refused(format!("record {index} cannot be replayed: {what}; start the version that wrote it"))
}
