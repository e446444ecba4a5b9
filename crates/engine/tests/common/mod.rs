//! What the tests share: a log in memory, and numbers to draw by.

use std::collections::BTreeMap;

use sluice_engine::blob::MessageBlob;
use sluice_engine::command::{FilledMessage, RecordSink, SearchFill};
use sluice_engine::search::{SearchMessage, SearchTerm, SearchWork};
use sluice_engine::{BlobRef, Command, Engine, Outcome, error_fingerprint};

/// A small generator of numbers (xorshift64*).
#[allow(dead_code)] // Not each test draws.
pub(crate) struct Numbers(u64);

#[allow(dead_code)] // Not each test draws.
impl Numbers {
    /// `seed` is not 0.
    pub(crate) fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// One record, as a journal would keep it.
#[allow(dead_code)]
#[derive(Clone, Default)]
pub(crate) struct Record {
    pub(crate) now_us: u64,
    pub(crate) index: u64,
    pub(crate) body: Vec<u8>,
    pub(crate) blobs: Vec<Vec<u8>>,
}

impl RecordSink for Record {
    fn body(&mut self, bytes: &[u8]) {
        assert!(self.blobs.is_empty(), "the body comes first");
        self.body.extend_from_slice(bytes);
    }

    fn blob(&mut self, pieces: &[&[u8]]) {
        self.blobs.push(pieces.concat());
    }
}

/// An engine, its log, and the blobs that a journal would still hold.
#[derive(Default)]
pub(crate) struct Driver {
    pub(crate) engine: Engine,
    pub(crate) log: Vec<Record>,
    pub(crate) blobs: BTreeMap<BlobRef, Vec<u8>>,
    pub(crate) out: Outcome,
}

impl Driver {
    pub(crate) fn new() -> Driver {
        Driver { engine: Engine::new(), ..Driver::default() }
    }

    /// Encodes and applies; what came of it is in `out`. Each released blob must have been held.
    pub(crate) fn apply(&mut self, now_us: u64, command: &Command<'_>) {
        let index = self.log.len() as u64 + 1;
        let mut record = Record { now_us, index, ..Record::default() };
        command.encode(&mut record);
        assert_eq!(record.blobs.len(), command.blob_count() as usize);
        for (item, blob) in (0u32..).zip(&record.blobs) {
            self.blobs.insert(BlobRef { index, item, len: blob.len() as u32 }, blob.clone());
        }
        self.engine.apply(now_us, index, &record.body, &mut self.out);
        for released in &self.out.released {
            assert!(self.blobs.remove(released).is_some(), "{released:?} was released and not held");
        }
        self.log.push(record);
    }

    /// Tells terms of messages that were read before, as a node does.
    #[allow(dead_code)] // Not each test searches.
    pub(crate) fn fill(&mut self, now_us: u64, work: &SearchWork, messages: &[FilledMessage]) {
        let SearchWork { namespace, queue, began, from, until, .. } = *work;
        self.apply(
            now_us,
            &Command::SearchFill(SearchFill { namespace, queue, began, from, until, messages }),
        );
    }

    /// The terms of messages, as a node reads them.
    #[allow(dead_code)] // Not each test searches.
    pub(crate) fn read_terms(&self, work: &SearchWork) -> Vec<FilledMessage> {
        let filled = |message: &SearchMessage| {
            let bytes = |blob| self.blobs.get(&blob).cloned().unwrap_or_default();
            let tagged = message.tags.map(bytes).unwrap_or_default();
            let tags =
                MessageBlob::parse(&tagged).into_iter().flat_map(|blob| blob.tags()).map(SearchTerm::of_tag);
            let error = message.error.map(bytes);
            let error = error.map(|error| SearchTerm::of_error(error_fingerprint(&error)));
            let terms: Vec<SearchTerm> = tags.chain(error).collect();
            let (sequence, source) = (message.id.sequence, message.source);
            (message.is_dirty || !terms.is_empty()).then_some(FilledMessage { sequence, source, terms })
        };
        work.messages.iter().filter_map(filled).collect()
    }
}
