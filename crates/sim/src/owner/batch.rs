//! Batches that the owner of a journal proposes.

use std::sync::Arc;

use sluice_journal::{Batch, BlobKey, Committed, Entry, Record, Records};

use crate::model::Checked;
use crate::rng::Rng;

/// A batch, as it was proposed or found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Proposed {
    pub(super) first_index: u64,
    /// Number of the batch in the log.
    pub(super) number: u64,
    pub(super) term: u64,
    pub(super) time_us: u64,
    pub(super) records: Vec<Content>,
}

/// Content of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Content {
    /// Number that no other record of the run has.
    pub(super) number: u64,
    /// Blobs that it releases.
    pub(super) releases: Vec<BlobKey>,
    pub(super) blobs: Vec<Vec<u8>>,
}

impl Proposed {
    pub(super) fn last_index(&self) -> u64 {
        self.first_index + self.records.len() as u64 - 1
    }

    /// The records as a batch for the journal.
    pub(super) fn encode(&self) -> Batch {
        let mut batch = Batch::new();
        for content in &self.records {
            let mut record = batch.record(content.blobs.len() as u32);
            record.body(&content.number.to_le_bytes());
            for key in &content.releases {
                record.body(&key.index.to_le_bytes());
                record.body(&key.item.to_le_bytes());
            }
            content.blobs.iter().for_each(|blob| record.blob(&[blob]));
        }
        batch
    }

    /// A batch that the journal gives.
    pub(super) fn given(batch: &Committed) -> Proposed {
        let Committed { first_index, number, term, time_us, ref bytes } = *batch;
        Proposed { first_index, number, term, time_us, records: decode(bytes) }
    }

    /// A batch of the tail.
    pub(super) fn held(entry: &Entry) -> Proposed {
        let Entry { first_index, number, term, time_us, ref bytes, .. } = *entry;
        Proposed { first_index, number, term, time_us, records: decode(bytes) }
    }
}

/// Reads encoded records back; one that nobody has made has the number 0.
fn decode(bytes: &[u8]) -> Vec<Content> {
    let content = |record: Record<'_>| {
        let blobs = (0..record.blob_count()).filter_map(|item| record.blob(item).map(<[u8]>::to_vec));
        let (number, rest) = record.body.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        let releases = rest
            .chunks_exact(12)
            .map(|key| BlobKey { index: number_of(&key[..8]), item: number_of(&key[8..]) as u32 });
        let number = u64::from_le_bytes(*number);
        Content { number, releases: releases.collect(), blobs: blobs.collect() }
    };
    Records::new(bytes).map(content).collect()
}

fn number_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Checks that two logs are the same.
pub(super) fn check_same(what: &str, found: &[Arc<Proposed>], expected: &[Arc<Proposed>]) -> Checked {
    let differs = found.iter().zip(expected).find(|(found, expected)| found != expected);
    if let Some((found, expected)) = differs {
        return Err(format!("{what}: found {}, expected {}", short(found), short(expected)));
    }
    if found.len() == expected.len() {
        return Ok(());
    }
    Err(format!("{what}: {} batches instead of {}", found.len(), expected.len()))
}

/// A batch in a line.
pub(super) fn short(batch: &Proposed) -> String {
    let numbers: Vec<u64> = batch.records.iter().map(|record| record.number).collect();
    format!(
        "batch {} from record {} of term {} at {} with records {numbers:?}",
        batch.number, batch.first_index, batch.term, batch.time_us
    )
}

/// Draws the records of a batch; `next_number` counts them, and `live` are blobs that may be released.
pub(super) fn draw(rng: &mut Rng, next_number: &mut u64, live: &[BlobKey]) -> Vec<Content> {
    let records = rng.weighted(&[(6, 1), (2, 2), (1, 5)]);
    let mut drawn = Vec::new();
    for _ in 0..records {
        *next_number += 1;
        let blobs = rng.weighted(&[(2, 0), (4, 1), (1, 3)]);
        let len = rng.weighted(&[(6, 60), (3, 700), (1, 5_000)]);
        let blobs = (0..blobs).map(|_| vec![(*next_number + rng.below(7)) as u8; rng.below(len) as usize]);
        let blobs = blobs.collect();
        let releases = if live.is_empty() { 0 } else { rng.weighted(&[(2, 0), (3, 1), (2, 3)]) };
        let releases = (0..releases).map(|_| *rng.pick(live)).collect();
        drawn.push(Content { number: *next_number, releases, blobs });
    }
    drawn
}
