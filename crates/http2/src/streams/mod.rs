//! The streams of a connection: a slab whose slots are used again, with all that a stream holds.

pub(crate) mod fields;
mod links;
mod priority;

use std::collections::VecDeque;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::limits::PROGRESS_BYTES;

pub(crate) use links::{Links, NONE, UNLINKED};
pub use priority::Priority;

/// The key of a stream while it is open. Ids are never reused, so that a key of a closed stream refers to
/// nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StreamKey {
    pub(crate) slot: u32,
    pub(crate) id: u32,
}

impl StreamKey {
    /// Stream id on the wire (RFC 9113 §5.1.1).
    pub fn id(self) -> u32 {
        self.id
    }

    /// Index of the stream among the open streams, below [`Limits::streams`](crate::Limits::streams), for
    /// tables of the caller.
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// The state of the sending side of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sending {
    /// No head of a response yet.
    Idle,
    /// The head is written, the body may follow.
    Open,
    /// The end is queued: only what is queued follows.
    Ending,
}

/// Why a stream that is no longer there has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// Both sides were through, or the peer has reset it.
    ByPeer,
    /// A reset by this side, so that frames on their way may still come in.
    ByUs,
}

/// One stream. All sizes in bytes.
#[derive(Debug)]
pub(crate) struct Stream {
    /// 0 in a slot that is free.
    pub(crate) id: u32,
    /// Size of the header list of its request (RFC 9113 §10.5.1).
    pub(crate) head_bytes: u32,
    /// True when the peer may still send.
    pub(crate) receiving: bool,
    /// Receive window.
    pub(crate) receive_window: i64,
    /// Bytes that were received and not yet consumed.
    pub(crate) unconsumed: u32,
    /// Bytes that were consumed and not yet returned to the peer as credit.
    pub(crate) owed: u32,
    /// Bytes left of the stated `content-length`; `None`: none was stated.
    pub(crate) body_left: Option<u64>,
    pub(crate) receive_progress: Progress,

    pub(crate) sending: Sending,
    /// Send window; negative after the peer has reduced it (RFC 9113 §6.9.2).
    pub(crate) send_window: i64,
    /// Pieces of the body that wait to be sent.
    pub(crate) queue: VecDeque<Bytes>,
    /// Bytes in `queue`.
    pub(crate) queued: usize,
    /// Fields of trailers that follow the queue, as [`fields`] lays them out.
    pub(crate) trailers: Vec<u8>,
    pub(crate) send_progress: Progress,
    /// True when the producer waits for room.
    pub(crate) wants_room: bool,
    pub(crate) priority: Priority,
    pub(crate) links: Links,
}

/// The last progress of a direction of a stream.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Progress {
    pub(crate) since_us: u64,
    pub(crate) bytes: u32,
}

impl Progress {
    /// Restarts the measurement.
    pub(crate) fn restart(&mut self, now_us: u64) {
        *self = Self { since_us: now_us, bytes: 0 };
    }

    /// Notes that `bytes` have moved.
    pub(crate) fn note(&mut self, bytes: u32, now_us: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= PROGRESS_BYTES {
            self.restart(now_us);
        }
    }
}

impl Stream {
    fn new() -> Self {
        Self {
            id: 0,
            head_bytes: 0,
            receiving: false,
            receive_window: 0,
            unconsumed: 0,
            owed: 0,
            body_left: None,
            receive_progress: Progress::default(),
            sending: Sending::Idle,
            send_window: 0,
            queue: VecDeque::new(),
            queued: 0,
            trailers: Vec::new(),
            send_progress: Progress::default(),
            wants_room: false,
            priority: Priority::default(),
            links: Links::default(),
        }
    }

    /// True when the emitter could send something of it now, as far as the stream is concerned.
    pub(crate) fn is_sendable(&self) -> bool {
        self.queued > 0 && self.send_window > 0
    }

    /// True when a small piece would go out at once, as far as the stream is concerned.
    pub(crate) fn could_send(&self) -> bool {
        self.queued == 0 && self.send_window > 0
    }

    /// True when what it has to send does not wait for its own window: for its turn, or for the connection's
    /// window.
    pub(crate) fn waits_for_others(&self) -> bool {
        self.queued > 0 && self.send_window >= self.queued.min(PROGRESS_BYTES as usize) as i64
    }

    /// Makes the slot free; what it has allocated is used again, unless it is much.
    fn clear(&mut self) {
        self.id = 0;
        self.queue.clear();
        self.queue.shrink_to(16);
        self.queued = 0;
        self.trailers.clear();
        self.trailers.shrink_to(512);
    }
}

/// Streams that have ended of which is remembered how: frames may still come in for them. Later ones are
/// passed over on all streams.
const REMEMBERED: usize = 128;

/// All streams.
#[derive(Debug)]
pub(crate) struct Streams {
    slots: Vec<Stream>,
    free: Vec<u32>,
    by_id: FxHashMap<u32, u32>,
    /// The last that have ended, oldest overwritten first.
    ended: Vec<(u32, Ended)>,
    ended_next: usize,
    /// The highest of which that is not known any more.
    forgotten: u32,
}

impl Streams {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_id: FxHashMap::default(),
            ended: Vec::new(),
            ended_next: 0,
            forgotten: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Number of slots, used or free.
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }

    /// Frees the storage of all slots, if none is used.
    pub(crate) fn rest(&mut self) {
        if self.is_empty() {
            self.slots = Vec::new();
            self.free = Vec::new();
            self.by_id = FxHashMap::default();
        }
    }

    /// The slot of the living stream `id`.
    pub(crate) fn slot(&self, id: u32) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    /// The slot of `key`, if its stream lives.
    pub(crate) fn live(&self, key: StreamKey) -> Option<u32> {
        self.slots.get(key.slot as usize).filter(|stream| stream.id == key.id).map(|_| key.slot)
    }

    /// The key of the living stream in `slot`.
    pub(crate) fn key(&self, slot: u32) -> StreamKey {
        StreamKey { slot, id: self[slot].id }
    }

    /// A new stream, with its windows; everything else has its first value.
    pub(crate) fn insert(&mut self, id: u32, receive_window: u32, send_window: i64) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Stream::new());
            self.slots.len() as u32 - 1
        });
        let stream = &mut self.slots[slot as usize];
        stream.id = id;
        stream.head_bytes = 0;
        stream.receiving = true;
        stream.receive_window = receive_window.into();
        stream.unconsumed = 0;
        stream.owed = 0;
        stream.body_left = None;
        stream.sending = Sending::Idle;
        stream.send_window = send_window;
        stream.wants_room = false;
        stream.priority = Priority::default();
        self.by_id.insert(id, slot);
        slot
    }

    /// Frees the slot of a stream, which stands in no list any more.
    pub(crate) fn remove(&mut self, slot: u32, how: Ended) {
        let stream = &mut self.slots[slot as usize];
        debug_assert!(!stream.links.is_linked());
        let id = stream.id;
        stream.clear();
        self.by_id.remove(&id);
        self.free.push(slot);
        self.remember(id, how);
    }

    /// Notes how a stream has ended, or that it was never let in.
    pub(crate) fn remember(&mut self, id: u32, how: Ended) {
        if self.ended.len() < REMEMBERED {
            self.ended.push((id, how));
        } else {
            let (oldest, _) = std::mem::replace(&mut self.ended[self.ended_next], (id, how));
            self.forgotten = self.forgotten.max(oldest);
            self.ended_next = (self.ended_next + 1) % REMEMBERED;
        }
    }

    /// The end of stream `id`; `None` if it never began. A stream that is not remembered may have been reset
    /// here.
    pub(crate) fn how_ended(&self, id: u32) -> Option<Ended> {
        // The last note counts: a stream of the peer may be reset here because of what came after its end.
        let (older, newer) = (&self.ended[..self.ended_next], &self.ended[self.ended_next..]);
        let newest_first = older.iter().rev().chain(newer.iter().rev());
        let remembered = newest_first.clone().find(|(ended, _)| *ended == id).map(|&(_, how)| how);
        remembered.or((id <= self.forgotten).then_some(Ended::ByUs))
    }

    /// The first slot in which a stream lives, from `slot` on.
    pub(crate) fn next_live(&self, slot: u32) -> Option<u32> {
        let rest = self.slots.get(slot as usize..)?;
        rest.iter().position(|stream| stream.id != 0).map(|ahead| slot + ahead as u32)
    }
}

impl std::ops::Index<u32> for Streams {
    type Output = Stream;

    fn index(&self, slot: u32) -> &Stream {
        &self.slots[slot as usize]
    }
}

impl std::ops::IndexMut<u32> for Streams {
    fn index_mut(&mut self, slot: u32) -> &mut Stream {
        &mut self.slots[slot as usize]
    }
}
