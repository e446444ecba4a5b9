//! Commands of the engine as records of the journal.
//!
//! What lives here: how a command is written into a batch, and how much room it is given. What does not: what
//! its bytes mean, which is the engine's (`sluice_engine::command`), and where they go, which is the
//! journal's.

use sluice_engine::command::{Command, RecordSink};
use sluice_journal::{Batch, RecordWriter};

/// Estimate of an item's encoding besides payload and headers, in bytes.
pub const ITEM_BYTES: usize = 48;

/// Appends a command to a batch, as one record.
#[inline]
pub fn write_record(batch: &mut Batch, command: &Command<'_>) {
    batch.reserve(size_hint(command));
    encode(batch, command);
}

/// A batch of one record.
pub fn record_of(command: &Command<'_>) -> Batch {
    let mut record = Batch::with_capacity(size_hint(command));
    encode(&mut record, command);
    record
}

#[inline]
fn encode(batch: &mut Batch, command: &Command<'_>) {
    command.encode(&mut Sink(batch.record(command.blob_count())));
}

/// Estimate of a record's encoding, in bytes; too little costs a reallocation.
#[inline]
fn size_hint(command: &Command<'_>) -> usize {
    match command {
        Command::Send(send) => {
            let items = send.items.iter();
            128 + send.queue.len()
                + items.map(|item| ITEM_BYTES + item.payload.len() + 32 * item.headers.len()).sum::<usize>()
        }
        Command::Receive(_) => 256,
        Command::Settle { items, .. } => {
            64 + items
                .iter()
                .map(|item| ITEM_BYTES + item.result.map_or(0, |it| it.bytes.len()))
                .sum::<usize>()
        }
        _ => size_hint_of_others(command),
    }
}

fn size_hint_of_others(command: &Command<'_>) -> usize {
    match command {
        Command::Group(group) => {
            let items =
                group.members.iter().chain(std::iter::once(group.callback)).map(|member| &member.item);
            128 + items
                .map(|item| 2 * ITEM_BYTES + item.payload.len() + 32 * item.headers.len())
                .sum::<usize>()
        }
        Command::Report { items, .. } => {
            64 + items.iter().map(|item| ITEM_BYTES + item.checkpoint.map_or(0, <[u8]>::len)).sum::<usize>()
        }
        Command::Transaction(whole) => {
            128 + whole.operations.iter().map(|operation| 8 + size_hint(operation)).sum::<usize>()
        }
        Command::DocumentPut(put) => 512 + put.content.len() + 32 * put.attributes.len(),
        Command::UploadChunk(chunk) => 512 + chunk.content.len(),
        Command::SchedulePut(put) => 512 + put.item.payload.len() + 32 * put.item.headers.len(),
        Command::Resume { receipts, .. } => 64 + receipts.len() * ITEM_BYTES,
        Command::Extend { items, .. } => 64 + items.len() * ITEM_BYTES,
        Command::Change(change) => 512 + change.items.len() * ITEM_BYTES,
        Command::SearchFill(fill) => 128 + fill.messages.len() * ITEM_BYTES,
        _ => 256,
    }
}

struct Sink<'a>(RecordWriter<'a>);

impl RecordSink for Sink<'_> {
    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        self.0.body(bytes);
    }

    #[inline]
    fn blob(&mut self, pieces: &[&[u8]]) {
        self.0.blob(pieces);
    }
}
