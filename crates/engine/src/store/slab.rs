//! Slots that are reused, and that a running snapshot sees as they were when it began.
//!
//! A snapshot goes through the slots in blocks. Before a block that it has not yet written is first changed,
//! the block is serialised; therefore a snapshot neither pauses the engine nor copies the state.

use crate::hash::hash;
use crate::store::arena::Arena;
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// An item that may lie in a slab.
pub(crate) trait Item: Sized {
    /// Slots that a snapshot writes together.
    const BLOCK: usize;
    /// An unused slot which points to the next unused one.
    fn vacant(next: Slot<Self>) -> Self;
    /// The next unused slot, if this one is unused.
    fn next_vacant(&self) -> Option<Slot<Self>>;
    /// Appends the slot's bytes.
    fn write(&self, out: &mut Vec<u8>);
    /// Reads what `write` wrote.
    fn read(reader: &mut Reader<'_>) -> Option<Self>;
}

/// A slot that has a field of its own for the next unused one, and is written with a mark before it that
/// tells whether it is in use.
pub(crate) trait PlainItem: Sized {
    /// Slots that a snapshot writes together.
    const BLOCK: usize;
    /// An unused slot which points to the next unused one.
    fn vacant(next: Slot<Self>) -> Self;
    /// The next unused slot, if this one is unused.
    fn next_vacant(&self) -> Option<Slot<Self>>;
    /// Appends the bytes of a slot in use.
    fn write_used(&self, out: &mut Vec<u8>);
    /// Reads what `write_used` wrote.
    fn read_used(reader: &mut Reader<'_>) -> Option<Self>;
}

impl<T: PlainItem> Item for T {
    const BLOCK: usize = T::BLOCK;

    #[inline]
    fn vacant(next: Slot<Self>) -> Self {
        T::vacant(next)
    }

    #[inline]
    fn next_vacant(&self) -> Option<Slot<Self>> {
        self.next_vacant()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let next = self.next_vacant();
        out.bool(next.is_some());
        match next {
            Some(next) => next.write(out),
            None => self.write_used(out),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        if reader.bool()? { Some(T::vacant(Slot::read(reader)?)) } else { T::read_used(reader) }
    }
}

/// Slots of one kind. `CHUNK` slots are allocated at a time.
#[derive(Debug)]
pub(crate) struct Slab<T, const CHUNK: usize> {
    slots: Arena<T, CHUNK>,
    vacant: Slot<T>,
    used: u32,
    snapshot: Option<Box<Progress>>,
}

/// The progress of a snapshot in one slab.
#[derive(Debug)]
struct Progress {
    section: u8,
    /// Blocks when it began.
    blocks: u32,
    /// All blocks below are written.
    cursor: u32,
    /// One bit per block: written already.
    written: Vec<u64>,
    /// Frames of blocks that changed before the snapshot came to them.
    pending: Vec<u8>,
}

impl<T: Item, const CHUNK: usize> Default for Slab<T, CHUNK> {
    fn default() -> Self {
        Slab { slots: Arena::default(), vacant: Slot::NIL, used: 0, snapshot: None }
    }
}

impl<T: Item, const CHUNK: usize> HeadPart for Slab<T, CHUNK> {
    fn write_head(&self, out: &mut Vec<u8>) {
        out.u32(self.slots.len() as u32);
        self.vacant.write(out);
        out.u32(self.used);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let len = reader.u32()?;
        let mut slab = Slab { vacant: Slot::read(reader)?, used: reader.u32()?, ..Slab::default() };
        for _ in 0..len {
            slab.slots.push(T::vacant(Slot::NIL));
        }
        Some(slab)
    }
}

impl<T: Item, const CHUNK: usize> Slab<T, CHUNK> {
    /// Slots in use.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// Slots, in use or vacant.
    #[inline]
    pub(crate) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    #[inline]
    pub(crate) fn get(&self, slot: Slot<T>) -> &T {
        self.slots.get(slot.index())
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot<T>) -> &mut T {
        if self.snapshot.is_some() {
            self.preserve(slot);
        }
        self.slots.get_mut(slot.index())
    }

    /// Puts an item into an unused slot.
    #[inline]
    pub(crate) fn insert(&mut self, item: T) -> Slot<T> {
        self.used += 1;
        if self.vacant == Slot::NIL {
            let slot = Slot::new(self.slots.len() as u32);
            if self.snapshot.is_some() {
                self.preserve(slot);
            }
            self.slots.push(item);
            return slot;
        }
        let slot = self.vacant;
        let place = self.get_mut(slot);
        let next = place.next_vacant();
        *place = item;
        debug_assert!(next.is_some(), "slot {slot} was vacant");
        self.vacant = next.unwrap_or(Slot::NIL);
        slot
    }

    /// Empties a slot and returns what lay in it.
    #[inline]
    pub(crate) fn remove(&mut self, slot: Slot<T>) -> T {
        let next = self.vacant;
        self.vacant = slot;
        self.used -= 1;
        std::mem::replace(self.get_mut(slot), T::vacant(next))
    }

    /// Empties a slot, of which nothing is needed any more.
    #[inline]
    pub(crate) fn free(&mut self, slot: Slot<T>) {
        let next = self.vacant;
        self.vacant = slot;
        self.used -= 1;
        *self.get_mut(slot) = T::vacant(next);
    }

    /// All items in use, by slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot<T>, &T)> {
        (0..).map(Slot::new).zip(self.slots.iter()).filter(|(_, item)| item.next_vacant().is_none())
    }

    /// The items in use among `count` slots from `from` on, and the slot after these; `None` at the end.
    pub(crate) fn range(
        &self,
        from: u32,
        count: usize,
    ) -> (impl Iterator<Item = (Slot<T>, &T)>, Option<u32>) {
        let until = (from as usize).saturating_add(count).min(self.slots.len());
        let slots = (from as usize..until).map(|at| (Slot::new(at as u32), self.slots.get(at as u32)));
        (
            slots.filter(|(_, item)| item.next_vacant().is_none()),
            (until < self.slots.len()).then_some(until as u32),
        )
    }

    /// Number of blocks.
    pub(crate) fn blocks(&self) -> u32 {
        self.slots.len().div_ceil(T::BLOCK) as u32
    }

    /// Appends the bytes of one block.
    pub(crate) fn write_block(&self, block: u32, out: &mut Vec<u8>) {
        let from = block as usize * T::BLOCK;
        let until = (from + T::BLOCK).min(self.slots.len());
        for slot in from..until {
            self.slots.get(slot as u32).write(out);
        }
    }

    /// Reads what `write_block` wrote.
    pub(crate) fn read_block(&mut self, block: u32, mut reader: Reader<'_>) -> Option<()> {
        let from = block as usize * T::BLOCK;
        let until = (from + T::BLOCK).min(self.slots.len());
        for slot in from..until {
            *self.slots.get_mut(slot as u32) = T::read(&mut reader)?;
        }
        reader.end()
    }

    /// Begins a snapshot, which later changes do not reach.
    pub(crate) fn snapshot_begin(&mut self, section: u8) {
        let blocks = self.blocks();
        let written = vec![0; (blocks as usize).div_ceil(64)];
        self.snapshot = Some(Box::new(Progress { section, blocks, cursor: 0, written, pending: Vec::new() }));
    }

    /// Appends frames until `out` holds `until_len` bytes; true when all blocks are written.
    pub(crate) fn snapshot_step(&mut self, until_len: usize, out: &mut Vec<u8>) -> bool {
        let Some(mut progress) = self.snapshot.take() else { return true };
        out.append(&mut progress.pending);
        while progress.cursor < progress.blocks && out.len() < until_len {
            let block = progress.cursor;
            if progress.take(block) {
                frame(progress.section, block, out, |out| self.write_block(block, out));
            }
            progress.cursor += 1;
        }
        let done = progress.cursor == progress.blocks;
        if !done {
            self.snapshot = Some(progress);
        }
        done
    }

    pub(crate) fn snapshot_abort(&mut self) {
        self.snapshot = None;
    }

    #[cold]
    fn preserve(&mut self, slot: Slot<T>) {
        let block = slot.index() / T::BLOCK as u32;
        let Some(mut progress) = self.snapshot.take() else { return };
        if block < progress.blocks && progress.take(block) {
            let mut pending = std::mem::take(&mut progress.pending);
            frame(progress.section, block, &mut pending, |out| self.write_block(block, out));
            progress.pending = pending;
        }
        self.snapshot = Some(progress);
    }
}

impl Progress {
    /// Marks a block as written; false if it was.
    fn take(&mut self, block: u32) -> bool {
        let (word, bit) = (block as usize / 64, 1u64 << (block % 64));
        let fresh = self.written[word] & bit == 0;
        self.written[word] |= bit;
        fresh
    }
}

/// Bytes before the content of a frame: section, block, length, checksum.
pub(crate) const FRAME_HEAD: usize = 1 + 4 + 4 + 8;

/// Appends one frame of a snapshot.
pub(crate) fn frame(section: u8, block: u32, out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.resize(start + FRAME_HEAD, 0);
    content(out);
    let bytes = &out[start + FRAME_HEAD..];
    let len = bytes.len() as u32;
    let check = frame_check(section, block, bytes);
    let head = &mut out[start..start + FRAME_HEAD];
    head[0] = section;
    head[1..5].copy_from_slice(&block.to_le_bytes());
    head[5..9].copy_from_slice(&len.to_le_bytes());
    head[9..].copy_from_slice(&check.to_le_bytes());
}

/// The checksum of a frame covers where it belongs, too.
pub(crate) fn frame_check(section: u8, block: u32, content: &[u8]) -> u64 {
    hash(u64::from(section) << 32 | u64::from(block), content)
}
