//! Restore: an engine built from a snapshot's pieces.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::core::Core;
use crate::core::shared_blobs::SharedBlobs;
use crate::core::tokens::Tokens;
use crate::core::wheel::Wheel;
use crate::engine::Engine;
use crate::engine::snapshot::{MAGIC, each_slab, section};
use crate::error::Error;
use crate::event::Watched;
use crate::id::ReceiptKey;
use crate::limits::Limits;
use crate::queue::QueueModule;
use crate::queue::state::consequence::read_consequences;
use crate::queue::state::consumer::AllConsumers;
use crate::queue::state::expiry::Expiries;
use crate::queue::state::extras::AllExtras;
use crate::queue::state::fair::Lanes;
use crate::queue::state::flow::Flows;
use crate::queue::state::idempotency::Idempotency;
use crate::queue::state::limit::AllLimits;
use crate::queue::state::namespace_index::NamespaceIndexes;
use crate::queue::state::ordering::OrderingKeys;
use crate::queue::state::queue::{Queues, read_counters};
use crate::queue::state::schedule::Schedules;
use crate::queue::state::unique::UniqueKeys;
use crate::queue::state::work::read_work;
use crate::store::directory::Directory;
use crate::store::hash_index::HashIndex;
use crate::store::slab::{FRAME_HEAD, Slab, frame_check};
use crate::store::slot::Slot;
use crate::wire::{FORMAT, Reader};

/// One frame: where it belongs, and its content.
struct Frame {
    section: u8,
    block: u32,
    content: Vec<u8>,
}

/// Cuts pieces, whose ends may fall anywhere, into frames.
struct Frames<'a> {
    pieces: &'a mut dyn FnMut() -> Option<Vec<u8>>,
    buffer: Vec<u8>,
    at: usize,
}

impl Engine {
    /// Builds an engine from the pieces that [`Engine::snapshot_step`] gave out, in order; their boundaries
    /// may have moved.
    ///
    /// # Errors
    /// [`Error::Internal`] tells what is damaged or missing, or that the format is of another version.
    pub fn restore(pieces: &mut dyn FnMut() -> Option<Vec<u8>>) -> Result<Engine, Error> {
        let mut frames = Frames { pieces, buffer: Vec::new(), at: 0 };
        let head = frames.next()?;
        if head.section != section::HEAD {
            return Err(damaged("it does not begin with its head"));
        }
        let mut engine = read_head(&head.content)?;
        let mut missing = BTreeMap::new();
        each_slab!([mut] &mut engine, slab, number => missing.insert(number, slab.blocks()));
        let mut seen = BTreeSet::new();
        loop {
            let frame = frames.next()?;
            if frame.section == section::END {
                break;
            }
            let left = missing.get_mut(&frame.section).filter(|left| **left > 0);
            let Some(left) = left.filter(|_| seen.insert((frame.section, frame.block))) else {
                return Err(damaged(&format!(
                    "block {} of section {} is one too many",
                    frame.block, frame.section
                )));
            };
            *left -= 1;
            engine.read_frame(&frame)?;
        }
        if let Some((section, left)) = missing.iter().find(|(_, left)| **left > 0) {
            return Err(damaged(&format!("{left} block(s) of section {section} are missing")));
        }
        engine.core.rebuild();
        engine.queue.rebuild(&engine.core);
        Ok(engine)
    }

    fn read_frame(&mut self, frame: &Frame) -> Result<(), Error> {
        let mut read = None;
        each_slab!([mut] self, slab, number => {
            if number == frame.section && frame.block < slab.blocks() {
                read = slab.read_block(frame.block, Reader::new(&frame.content));
            }
        });
        read.ok_or_else(|| {
            damaged(&format!("block {} of section {} cannot be read", frame.block, frame.section))
        })
    }
}

/// The engine without its slabs' blocks.
fn read_head(content: &[u8]) -> Result<Engine, Error> {
    let mut reader = Reader::new(content);
    let magic = reader.array::<7>().ok_or_else(|| damaged("its head is cut"))?;
    if magic != MAGIC {
        return Err(damaged("it does not begin like a snapshot"));
    }
    let format = reader.u8().ok_or_else(|| damaged("its head is cut"))?;
    check_format(format)?;
    let engine = read_state(&mut reader).filter(|_| reader.is_empty());
    engine.ok_or_else(|| damaged("its head cannot be read"))
}

fn check_format(format: u8) -> Result<(), Error> {
    let writer = match format.cmp(&FORMAT) {
        Ordering::Equal => return Ok(()),
        Ordering::Less => "an older version",
        Ordering::Greater => "a newer version",
    };
    let reason = format!(
        "the snapshot has format {format}, this program reads only format {FORMAT}: \
         it was written by {writer}"
    );
    Err(Error::Internal { reason })
}

fn read_state(reader: &mut Reader<'_>) -> Option<Engine> {
    let applied_index = reader.u64()?;
    let now_us = reader.u64()?;
    let epoch = reader.u64()?;
    let receipt_key = ReceiptKey(*reader.array()?);
    let next_queue = reader.u32()?;
    let next_namespace = reader.u32()?;
    let limits = Limits::read(reader)?;
    let totals = read_counters(reader)?;
    let wheel = Wheel::read(reader)?;
    let work = read_work(reader)?;
    let consequences = read_consequences(reader)?;
    let messages = Slab::read_head(reader)?;
    let (slots, entries) = (Slab::read_head(reader)?, Slab::read_head(reader)?);
    let queues = Queues::read_head(reader)?;
    let namespaces = Slab::read_head(reader)?;
    let tokens = Tokens::read_head(reader)?;
    let idempotency = Idempotency::read_head(reader)?;
    let options = Slab::read_head(reader)?;
    let ordering = OrderingKeys::read_head(reader)?;
    let shared_blobs = SharedBlobs::read_head(reader)?;
    let lanes = Lanes::read_head(reader)?;
    let unique = UniqueKeys::read_head(reader)?;
    let expiry = Expiries::read_head(reader)?;
    let (results, changed) = (Slab::read_head(reader)?, Slab::read_head(reader)?);
    let consumers = AllConsumers::read_head(reader)?;
    let queue_limits = AllLimits::read_head(reader)?;
    let origins = Slab::read_head(reader)?;
    let extras = AllExtras { slots, entries, options, results, changed, origins };
    let schedules = Schedules::read_head(reader)?;
    let flows = Flows::read_head(reader)?;
    let queue_defaults = Slab::read_head(reader)?;
    let pending_sends = Slab::read_head(reader)?;
    let core = Core {
        applied_index,
        now_us,
        epoch,
        receipt_key,
        limits,
        namespaces,
        next_namespace,
        namespace_numbers: Directory::default(), // derived
        namespace_names: HashIndex::default(),   // derived
        last_namespace: None,
        tokens,
        shared_blobs,
        watched: Watched::default(),
    };
    let queue = QueueModule {
        totals,
        messages,
        extras,
        ordering,
        lanes,
        queue_limits,
        unique,
        schedules,
        flows,
        expiry,
        consumers,
        queues,
        next_queue,
        queue_defaults,
        idempotency,
        wheel,
        consequences,
        backlog: 0,
        spent: 0,
        pending_sends,
        work,
        indexes: NamespaceIndexes::default(), // derived
        queue_names: HashIndex::default(),    // derived
        queue_numbers: Directory::default(),  // derived
        last_queue: Slot::NIL,
        redrives: BTreeSet::new(), // derived
        weighted: Vec::new(),
    };
    Some(Engine { core, queue, snapshot: None })
}

impl Frames<'_> {
    fn next(&mut self) -> Result<Frame, Error> {
        let head = self.take(FRAME_HEAD)?;
        let mut reader = Reader::new(&head);
        let fields = (|| Some((reader.u8()?, reader.u32()?, reader.u32()?, reader.u64()?)))();
        let (section, block, len, check) = fields.ok_or_else(|| damaged("a frame's head is cut"))?;
        let content = self.take(len as usize)?;
        if frame_check(section, block, &content) != check {
            return Err(damaged(&format!("block {block} of section {section} does not verify")));
        }
        Ok(Frame { section, block, content })
    }

    fn take(&mut self, len: usize) -> Result<Vec<u8>, Error> {
        while self.buffer.len() - self.at < len {
            let piece = (self.pieces)().ok_or_else(|| damaged("it ends too early"))?;
            self.buffer.drain(..self.at);
            self.at = 0;
            self.buffer.extend_from_slice(&piece);
        }
        let taken = self.buffer[self.at..self.at + len].to_vec();
        self.at += len;
        Ok(taken)
    }
}

fn damaged(what: &str) -> Error {
    Error::Internal { reason: format!("the snapshot is damaged: {what}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_of_another_format_is_refused() {
        for (format, writer) in [(FORMAT - 1, "an older version"), (FORMAT + 1, "a newer version")] {
            let refused = read_head(&[&MAGIC[..], &[format]].concat()).unwrap_err().to_string();
            let told = format!(
                "format {format}, this program reads only format {FORMAT}: it was written by {writer}"
            );
            assert!(refused.contains(&told), "{refused}");
        }
    }
}
