//! Restore: an engine built from a snapshot's pieces.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Engine;
use crate::engine::snapshot::{MAGIC, each_part, each_slab, section};
use crate::error::Error;
use crate::store::slab::{FRAME_HEAD, frame_check};
use crate::wire::{FORMAT, HeadPart, Reader, WITHOUT_BEHAVIOUR};

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
        engine.queue.rebuild(&mut engine.core);
        engine.locks.rebuild(&mut engine.core);
        engine.documents.rebuild(&mut engine.core);
        engine.transactions.rebuild();
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
    let engine = read_state(format, &mut reader).filter(|_| reader.is_empty());
    engine.ok_or_else(|| damaged("its head cannot be read"))
}

fn check_format(format: u8) -> Result<(), Error> {
    let (oldest, newest) = (WITHOUT_BEHAVIOUR.0, FORMAT);
    if (oldest..=newest).contains(&format) {
        return Ok(());
    }
    let writer = if format < oldest { "an older version" } else { "a newer version" };
    let reason = format!(
        "the snapshot has format {format}, this program reads only formats {oldest} to {newest}: \
         it was written by {writer}"
    );
    Err(Error::Internal { reason })
}

fn read_state(format: u8, reader: &mut Reader<'_>) -> Option<Engine> {
    let mut engine = Engine::default();
    let (without, behaviour) = WITHOUT_BEHAVIOUR;
    engine.core.behaviour = if format == without { behaviour } else { reader.u16()? };
    each_part!(&mut engine, format, part => *part = HeadPart::read_head(reader)?);
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
        let oldest = WITHOUT_BEHAVIOUR.0;
        for (format, writer) in [(oldest - 1, "an older version"), (FORMAT + 1, "a newer version")] {
            let refused = read_head(&[&MAGIC[..], &[format]].concat()).unwrap_err().to_string();
            let told = format!(
                "format {format}, this program reads only formats {oldest} to {FORMAT}: it was written by {writer}"
            );
            assert!(refused.contains(&told), "{refused}");
        }
    }
}
