//! A new engine from a snapshot's pieces.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::core::tokens::Tokens;
use crate::core::wheel::Wheel;
use crate::engine::Engine;
use crate::engine::snapshot::{MAGIC, each_slab, section};
use crate::error::Error;
use crate::id::ReceiptKey;
use crate::query::State;
use crate::queue::consequence::read_consequences;
use crate::queue::message::state::mark;
use crate::queue::send::idempotency::Idempotency;
use crate::queue::state::read_counters;
use crate::queue::work::Work;
use crate::record::read_limits;
use crate::store::NIL;
use crate::store::idle::IdleKeys;
use crate::store::list::List;
use crate::store::slab::{FRAME_HEAD, Slab, frame_check};
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
    /// Builds an engine from the pieces that [`Engine::snapshot_step`] gave out, in order; their boundaries may have moved.
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
        let mut missing = HashMap::new();
        each_slab!(engine, slab, number => missing.insert(number, slab.blocks()));
        let mut seen = std::collections::HashSet::new();
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
        engine.derive();
        Ok(engine)
    }

    fn read_frame(&mut self, frame: &Frame) -> Result<(), Error> {
        let mut read = None;
        each_slab!(self, slab, number => {
            if number == frame.section && frame.block < slab.blocks() {
                read = slab.read_block(frame.block, Reader::new(&frame.content));
            }
        });
        read.ok_or_else(|| {
            damaged(&format!("block {} of section {} cannot be read", frame.block, frame.section))
        })
    }

    /// Builds what a snapshot leaves out.
    fn derive(&mut self) {
        let namespaces: Vec<u32> = self.namespaces.iter().map(|(slot, _)| slot).collect();
        namespaces.into_iter().for_each(|slot| {
            self.index_namespace(slot);
            self.indexes.add(slot);
        });
        let queues: Vec<u32> = self.queues.iter().map(|(slot, _)| slot).collect();
        queues.into_iter().for_each(|slot| self.index_queue(slot));
        for (slot, message) in self.messages.iter() {
            let queue = self.queues.get_mut(message.queue);
            if matches!(message.state, Some(State::Dead | State::Held)) {
                queue.parked.insert(message.sequence);
            }
            if message.is_marked(mark::ARRIVED) {
                queue.arrived.insert(message.sequence);
            }
            if message.is_marked(mark::RETURNED) {
                queue.trim.returned.insert(message.sequence);
            }
            if message.is_retained() {
                queue.done.insert((message.started_at_us, message.sequence));
            }
            self.indexes.get_mut(queue.namespace).directory.insert(message.sequence, slot);
        }
        self.idempotency.rebuild();
        self.ordering.rebuild();
        self.shared_blobs.rebuild();
        self.lanes.rebuild();
        self.queue_limits.rebuild();
        for (slot, limit) in self.queue_limits.slots.iter().filter(|(_, limit)| !limit.deleted) {
            self.indexes.get_mut(limit.namespace).limits.insert(limit.name.clone(), slot);
        }
        self.schedules.rebuild();
        for (slot, schedule) in self.schedules.slots.iter() {
            self.indexes.get_mut(schedule.namespace).schedules.insert(schedule.name.clone(), slot);
        }
        for (slot, defaults) in self.queue_defaults.iter() {
            self.indexes.get_mut(defaults.namespace).defaults.insert(defaults.pattern.clone(), slot);
        }
        let redriven = self.queues.iter().filter(|(_, queue)| queue.redrive.per_second > 0);
        self.redrives = redriven.map(|(slot, queue)| (queue.redrive.next_us, slot)).collect();
        for (slot, queue) in self.queues.iter().filter(|(_, queue)| queue.limit != NIL) {
            self.queue_limits.slots.get_mut(queue.limit).queues.push(slot);
        }
        self.unique.rebuild();
        self.derive_consumers();
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
    let mut engine = Engine {
        applied_index: reader.u64()?,
        now_us: reader.u64()?,
        epoch: reader.u64()?,
        receipt_key: ReceiptKey(*reader.array()?),
        next_queue: reader.u32()?,
        next_namespace: reader.u32()?,
        limits: read_limits(reader)?,
        totals: read_counters(reader)?,
        wheel: Wheel::read(reader)?,
        ..Engine::default()
    };
    for _ in 0..reader.u32()? {
        let kind = reader.u8()?;
        let slot = reader.u32()?;
        engine.work.push_back(match kind {
            0 => Work::Queue(slot),
            1 => Work::Namespace(slot),
            3 => Work::Limit(slot),
            5 => Work::LimitLines(slot),
            17 => Work::Deliver(slot),
            18 => Work::Consumer(slot),
            _ => return None,
        });
    }
    engine.consequences = read_consequences(reader)?;
    engine.messages = Slab::read_head(reader)?;
    engine.extras.slots = Slab::read_head(reader)?;
    engine.extras.entries = Slab::read_head(reader)?;
    engine.queues = Slab::read_head(reader)?;
    engine.namespaces = Slab::read_head(reader)?;
    engine.tokens = Tokens::read_head(reader)?;
    engine.idempotency = Idempotency::read_head(reader)?;
    engine.extras.options = Slab::read_head(reader)?;
    engine.ordering.slots = Slab::read_head(reader)?;
    engine.ordering.idle = IdleKeys::read(reader, engine.ordering.slots.slots())?;
    engine.shared_blobs.slots = Slab::read_head(reader)?;
    engine.lanes.slots = Slab::read_head(reader)?;
    engine.lanes.idle = IdleKeys::read(reader, engine.lanes.slots.slots())?;
    engine.unique.wheel = Wheel::read(reader)?;
    engine.unique.slots = Slab::read_head(reader)?;
    engine.unique.idle = IdleKeys::read(reader, engine.unique.slots.slots())?;
    engine.expiry.wheel = Wheel::read(reader)?;
    engine.expiry.slots = Slab::read_head(reader)?;
    engine.extras.results = Slab::read_head(reader)?;
    engine.extras.changed = Slab::read_head(reader)?;
    engine.consumers.given = reader.u64()?;
    engine.consumers.served = reader.u64()?;
    engine.consumers.slots = Slab::read_head(reader)?;
    engine.consumers.holds = Slab::read_head(reader)?;
    engine.consumers.sticky.slots = Slab::read_head(reader)?;
    engine.consumers.sticky.used = List::read(reader)?;
    engine.queue_limits.slots = Slab::read_head(reader)?;
    engine.queue_limits.keys.slots = Slab::read_head(reader)?;
    engine.queue_limits.lines.slots = Slab::read_head(reader)?;
    engine.queue_limits.lines.idle = IdleKeys::read(reader, engine.queue_limits.lines.slots.slots())?;
    engine.extras.origins = Slab::read_head(reader)?;
    engine.schedules.slots = Slab::read_head(reader)?;
    engine.schedules.last_number = reader.u64()?;
    engine.flows.slots = Slab::read_head(reader)?;
    engine.flows.parents = Slab::read_head(reader)?;
    engine.flows.edges = Slab::read_head(reader)?;
    engine.flows.chains = Slab::read_head(reader)?;
    engine.queue_defaults = Slab::read_head(reader)?;
    engine.pending_sends = Slab::read_head(reader)?;
    Some(engine)
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
