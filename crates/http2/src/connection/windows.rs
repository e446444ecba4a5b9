//! Flow control (RFC 9113 §5.2, §6.9).
//!
//! What the peer sends is given back as credit when it is consumed, in steps of half a window, or sooner if
//! little is left. What is sent to the peer keeps within the windows that it opens.

use super::guard::Costly;
use super::{Connection, StreamKey};
use crate::error::{ErrorCode, Fault};
use crate::frame::{MAX_31_BITS, write};
use crate::limits::{PROGRESS_BYTES, SMALL_WINDOW_BYTES};

/// Initial size of every window in bytes (RFC 9113 §6.9.2).
pub(super) const FIRST_WINDOW_BYTES: u32 = 65_535;

/// The receive window of the connection.
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    left: i64,
    /// Bytes that were consumed and not yet returned to the peer.
    owed: u32,
    size: u32,
}

impl ReceiveWindow {
    pub(super) fn new(size: u32) -> Self {
        Self { left: size.into(), owed: 0, size }
    }

    /// Takes bytes off.
    pub(super) fn take(&mut self, bytes: u32, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.left -= i64::from(bytes);
        if self.left >= 0 {
            self.give(0, out);
            return Ok(());
        }
        Err(Fault::connection(
            ErrorCode::FLOW_CONTROL_ERROR,
            "more came in than the connection's window allows",
        ))
    }

    /// Gives bytes back: with later ones, but at once if that doubles what is left. Streams whose bytes are
    /// not consumed may hold all the rest, and must not keep the others from going on.
    pub(super) fn give(&mut self, bytes: u32, out: &mut Vec<u8>) {
        self.owed += bytes;
        if self.owed > 0 && (self.owed >= self.size / 2 || i64::from(self.owed) >= self.left) {
            write::window_update(out, 0, self.owed);
            self.left += i64::from(self.owed);
            self.owed = 0;
        }
    }

    /// True when the window of the connection lets the peer make progress.
    pub(super) fn is_open(&self) -> bool {
        self.left >= PROGRESS_BYTES.into()
    }
}

impl Connection {
    /// Returns `bytes` of the body of a request to the peer as credit, when the caller has freed them. Bytes
    /// of a stream that has ended were returned at its end.
    pub fn consumed(&mut self, stream: StreamKey, bytes: usize) {
        let Some(slot) = self.streams.live(stream) else { return };
        let bytes = self.streams[slot].unconsumed.min(bytes as u32);
        self.streams[slot].unconsumed -= bytes;
        self.give_credit(slot, bytes);
    }

    /// Gives bytes back that are consumed, or that nobody will see, such as padding.
    pub(super) fn give_credit(&mut self, slot: u32, bytes: u32) {
        self.receive.give(bytes, &mut self.output.ready);
        let stream = &mut self.streams[slot];
        stream.owed += bytes;
        if stream.receiving && stream.owed >= self.limits.stream_receive_bytes / 2 {
            write::window_update(&mut self.output.ready, stream.id, stream.owed);
            stream.receive_window += i64::from(stream.owed);
            stream.owed = 0;
        }
    }

    /// WINDOW_UPDATE (RFC 9113 §6.9, §6.9.1).
    pub(super) fn on_window_update(&mut self, id: u32, increment: u32) -> Result<(), Fault> {
        if id == 0 {
            self.count_small_window(increment, self.output.send_window)?;
            self.output.send_window += i64::from(increment);
            if self.output.send_window > MAX_31_BITS.into() {
                return Err(Fault::connection(
                    ErrorCode::FLOW_CONTROL_ERROR,
                    "the connection's window overflows",
                ));
            }
            return Ok(());
        }
        let Some(slot) = self.streams.slot(id) else { return self.on_late_frame(id, true) };
        self.count_small_window(increment, self.streams[slot].send_window)?;
        let stream = &mut self.streams[slot];
        stream.send_window += i64::from(increment);
        if stream.send_window > MAX_31_BITS.into() {
            return Err(Fault::stream(id, ErrorCode::FLOW_CONTROL_ERROR, "the stream's window overflows"));
        }
        self.window_changed(slot);
        Ok(())
    }

    /// Counts an `increment` to a `window` if it is small. One that is all there is to send in makes us send
    /// frames as small as itself (CVE-2019-9511), and so is not paid for by them; added to a window that is
    /// open, it says only what the peer has read.
    fn count_small_window(&mut self, increment: u32, window: i64) -> Result<(), Fault> {
        if increment >= SMALL_WINDOW_BYTES {
            Ok(())
        } else if window < SMALL_WINDOW_BYTES.into() {
            self.guard.count(Costly::SmallWindow, self.now_us)
        } else {
            self.count_answer(Costly::SmallUpdate)
        }
    }

    /// SETTINGS_INITIAL_WINDOW_SIZE, which moves the windows of all streams, below 0 if need be (RFC 9113
    /// §6.9.2). `largest`: of those that it was on the way to `bytes`, in one frame.
    pub(super) fn on_first_window(&mut self, bytes: u32, largest: u32) -> Result<(), Fault> {
        let change = i64::from(bytes) - self.first_send_window;
        let largest_change = i64::from(largest) - self.first_send_window;
        if change == 0 && largest_change == 0 {
            return Ok(());
        }
        self.guard.count(Costly::SmallWindow, self.now_us)?;
        self.first_send_window = bytes.into();
        let mut from = 0;
        while let Some(slot) = self.streams.next_live(from) {
            from = slot + 1;
            let stream = &mut self.streams[slot];
            if stream.send_window + largest_change > MAX_31_BITS.into() {
                return Err(Fault::connection(
                    ErrorCode::FLOW_CONTROL_ERROR,
                    "SETTINGS_INITIAL_WINDOW_SIZE makes a stream's window overflow",
                ));
            }
            stream.send_window += change;
            self.window_changed(slot);
        }
        Ok(())
    }

    /// The window of a stream has changed: puts it where it belongs, and lets its producer go on if that
    /// alone was missing.
    fn window_changed(&mut self, slot: u32) {
        self.schedule(slot);
        if self.relieve_at.is_some() {
            self.tell_room(slot);
        }
    }

    /// Puts a stream where it belongs: among those that can send, or not.
    pub(super) fn schedule(&mut self, slot: u32) {
        if self.streams[slot].is_sendable() {
            self.output.schedule.insert(&mut self.streams, slot);
        } else {
            self.output.schedule.remove(&mut self.streams, slot);
        }
    }
}
