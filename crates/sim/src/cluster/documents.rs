//! Documents as the clients of a cluster know them: versions that they were told of, and their next calls.

use std::collections::BTreeMap;

use sluice_engine::documents::DocumentVersion;

use crate::rng::Rng;

const KEYS: [&str; 2] = ["d", "e"];

/// A call about a document, which is never deleted.
#[derive(Clone, Copy, Debug)]
pub(super) enum DocumentCall {
    /// A write; the length of the content is its number.
    Put {
        key: &'static str,
        number: u64,
        over: Option<u64>,
    },
    Get {
        key: &'static str,
    },
}

impl DocumentCall {
    pub(super) fn key(self) -> &'static str {
        match self {
            DocumentCall::Put { key, .. } | DocumentCall::Get { key } => key,
        }
    }
}

/// The version that a call has told, and the number of the write that it was; `None`: there is no document.
pub(super) type Told = Option<(DocumentVersion, u64)>;

/// A document as clients know it.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The revision and the write of each version that anybody was told of.
    pub(super) versions: BTreeMap<u64, (u64, u64)>,
    /// Latest version that was told, and the time of that.
    pub(super) latest: (u64, u64),
    /// Version that was told last.
    pub(super) last: u64,
}

/// Documents as clients know them.
#[derive(Debug, Default)]
pub(super) struct Documents {
    /// Draws of its own, so that those of other clients do not change; `None`: no documents are used.
    rng: Option<Rng>,
    writes: u64,
    pub(super) known: BTreeMap<&'static str, Known>,
}

impl Documents {
    /// Clients of half of the seeds use documents.
    pub(super) fn new(seed: u64) -> Documents {
        let mut rng = Rng::new(seed.rotate_left(17) ^ !0);
        Documents { rng: rng.chance(1, 2).then_some(rng), ..Documents::default() }
    }

    pub(super) fn draw(&mut self) -> Option<DocumentCall> {
        let rng = self.rng.as_mut()?;
        if !rng.chance(1, 8) {
            return None;
        }
        let key = *rng.pick(&KEYS);
        if rng.chance(1, 2) {
            return Some(DocumentCall::Get { key });
        }
        self.writes += 1;
        let last = self.known.get(key).map_or(0, |known| known.last);
        let over = *rng.pick(&[None, Some(last), Some(last), Some(last.saturating_sub(1))]);
        Some(DocumentCall::Put { key, number: self.writes, over })
    }
}
