//! Limits on everything that a peer could make large or frequent.

use std::fmt;

use crate::frame::{MAX_31_BITS, PAYLOAD_BYTES_MAX};

/// The rate of an event: `burst` times at once, and `per_second` times a second in the long run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// Times at once.
    pub burst: u32,
    /// Times a second.
    pub per_second: u32,
}

/// The limits of one connection. Sizes are in bytes, times in microseconds; `u64::MAX` is no deadline.
///
/// # Frames in answer to DATA
/// Well-behaved clients answer DATA with frames of their own, more often the faster it comes. Clients of gRPC
/// measure the bandwidth: they send a PING and a WINDOW_UPDATE of a few bytes for DATA that comes after the
/// last PING was answered, which can be once per call. Those of Go open the window of a stream by 4 KiB each
/// time that they have read that much, also after the stream has ended.
///
/// So each DATA frame that is sent allows 4 more frames of each kind that is counted like this, and each KiB
/// in it one more; a client that is sent nothing is held to the allowance. The cost is bounded: such a frame
/// takes some 50 ns, a DATA frame with its request at least 1 µs, or 8 µs when it is full, so that all kinds
/// together add at most about a half.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest number of open streams; more are refused with REFUSED_STREAM.
    pub streams: u32,
    /// Largest decoded header list of a request, or of trailers, counted with 32 bytes more for each field
    /// (RFC 9113 §10.5.1); a larger request is answered with status 431.
    pub header_list_bytes: u32,
    /// Largest sum of the header lists of all open requests, counted likewise; a request beyond it is refused
    /// with REFUSED_STREAM.
    pub connection_header_bytes: u32,
    /// Largest encoded header block; a larger one ends the connection with ENHANCE_YOUR_CALM.
    pub header_block_bytes: u32,
    /// Largest number of CONTINUATION frames of one header block; more end the connection with
    /// ENHANCE_YOUR_CALM.
    pub continuation_frames: u32,
    /// Size of the dynamic table with which the peer compresses its headers (SETTINGS_HEADER_TABLE_SIZE).
    pub decoder_table_bytes: u32,
    /// Receive window of a stream: bytes of its request body that may wait to be consumed; at least 65,535.
    pub stream_receive_bytes: u32,
    /// Receive window of the connection: the same for all streams together; at least 65,535.
    pub connection_receive_bytes: u32,
    /// Bytes of a response that may be queued on one stream before its producer has to wait.
    pub stream_send_bytes: u32,
    /// The same for all streams together. A reserve of half as much is kept for small pieces of streams with
    /// nothing queued and an open window, so that streams which the client does not read cannot block them.
    pub connection_send_bytes: u32,
    /// Bytes of frames and heads of responses that may wait to be written before reading stops and calls are
    /// not polled.
    pub backlog_bytes: u32,
    /// Largest size of a plan. A multiple of 16 KiB fills the records of TLS.
    pub plan_bytes: u32,
    /// Largest piece of a body that is copied behind its frame header; larger ones are written by reference.
    pub copy_bytes: u32,
    /// Bytes that may be encrypted ahead of what the transport has accepted.
    pub encrypt_ahead_bytes: u32,
    /// Size of TLS records at the beginning of a flight, so that each can be decrypted when its packet has
    /// come.
    pub short_record_bytes: u32,
    /// Bytes that are sent in short records, at first and after a pause of `short_idle_us`: about the
    /// congestion window of a new connection.
    pub short_flight_bytes: u32,

    /// Streams that end early: that the peer resets, refused ones, and those with an error of the peer
    /// (CVE-2023-44487, CVE-2025-8671).
    pub resets: Allowance,
    /// PING frames, beyond [those in answer to DATA](#frames-in-answer-to-data).
    pub pings: Allowance,
    /// SETTINGS frames.
    pub settings: Allowance,
    /// Frames that carry nothing: empty DATA without END_STREAM, empty pieces of header blocks.
    pub empty_frames: Allowance,
    /// PRIORITY, PRIORITY_UPDATE and GOAWAY frames, and those of unknown kinds.
    pub idle_frames: Allowance,
    /// WINDOW_UPDATE frames that open a window of less than a KiB by less than a KiB, and changes of the
    /// initial window.
    pub small_windows: Allowance,
    /// WINDOW_UPDATE frames that add less than a KiB to a larger window, beyond [those in
    /// answer to DATA](#frames-in-answer-to-data).
    pub small_updates: Allowance,
    /// Frames on streams that have ended, beyond [those in answer to DATA](#frames-in-answer-to-data).
    pub late_frames: Allowance,

    /// Deadline for the preface and the first SETTINGS.
    pub preface_us: u64,
    /// Deadline for progress (4 KiB, or the end) of a frame that has begun, and for a whole header block.
    pub frame_us: u64,
    /// Deadline for the acknowledgement of our SETTINGS.
    pub settings_ack_us: u64,
    /// Deadline for progress (4 KiB, or the end) of a body of a stated length, while all that has come is
    /// consumed and the window of the connection is open.
    pub body_stall_us: u64,
    /// Deadline for the peer to read 4 KiB, or all there is: on a stream whose window is closed, or on the
    /// connection as a whole.
    pub read_stall_us: u64,
    /// Time without input from a peer with open streams after which a PING is sent, and the deadline for its
    /// answer.
    pub keep_alive_us: u64,
    /// Time without an open stream after which the connection is ended.
    pub idle_us: u64,
    /// Time for which the first step of a graceful shutdown waits for the peer's answer before the second is
    /// taken.
    pub drain_us: u64,
    /// Time without output after which a new flight begins, with short records.
    pub short_idle_us: u64,
}

/// Progress that is worth the name: what comes or goes in smaller steps than this, a stall of its deadline
/// ends.
pub(crate) const PROGRESS_BYTES: u32 = 4_096;

/// WINDOW_UPDATE frames that open a window by less are counted ([`Limits::small_windows`]).
pub(crate) const SMALL_WINDOW_BYTES: u32 = 1_024;

/// The texts of heads are put together in pieces of so many bytes, each of which lasts as long as any text in
/// it: what the head of an open request may take beside its own bytes.
pub(crate) const TEXTS_BYTES: usize = 1_024;

/// Number of frames of each kind that is counted so which a peer may send in answer to one DATA frame; and
/// the bytes of DATA that allow one more.
pub(crate) const ANSWERS_PER_FRAME: u64 = 4;
pub(crate) const ANSWER_BYTES: u64 = 1_024;

const SECOND_US: u64 = 1_000_000;

impl Default for Limits {
    fn default() -> Self {
        Self {
            streams: 256,
            header_list_bytes: 32 << 10,
            connection_header_bytes: 1 << 20,
            header_block_bytes: 48 << 10,
            continuation_frames: 32,
            decoder_table_bytes: 4_096,
            stream_receive_bytes: 256 << 10,
            connection_receive_bytes: 1 << 20,
            stream_send_bytes: 64 << 10,
            connection_send_bytes: 1 << 20,
            backlog_bytes: 64 << 10,
            plan_bytes: 64 << 10,
            copy_bytes: 1_024,
            encrypt_ahead_bytes: 64 << 10,
            short_record_bytes: 1_300,
            short_flight_bytes: 16 << 10,
            resets: Allowance { burst: 1_000, per_second: 100 },
            pings: Allowance { burst: 100, per_second: 10 },
            settings: Allowance { burst: 100, per_second: 10 },
            empty_frames: Allowance { burst: 1_000, per_second: 100 },
            idle_frames: Allowance { burst: 1_000, per_second: 100 },
            small_windows: Allowance { burst: 10_000, per_second: 1_000 },
            small_updates: Allowance { burst: 10_000, per_second: 1_000 },
            // When uploads are answered early, as much may be on its way as the connection's window allows: 1
            // MiB in messages of gRPC of 25 bytes are 42,000 frames. Passing over one takes some 200 ns: 10
            // ms for a burst, 0.1 % of a core after that.
            late_frames: Allowance { burst: 50_000, per_second: 5_000 },
            preface_us: 10 * SECOND_US,
            frame_us: 10 * SECOND_US,
            settings_ack_us: 30 * SECOND_US,
            body_stall_us: 30 * SECOND_US,
            read_stall_us: 30 * SECOND_US,
            keep_alive_us: 20 * SECOND_US,
            idle_us: 180 * SECOND_US,
            drain_us: SECOND_US,
            short_idle_us: SECOND_US,
        }
    }
}

impl Limits {
    /// Checks each limit against what the protocol allows, and the limits against each other.
    ///
    /// # Errors
    /// The first limit that is out of range.
    pub fn validate(&self) -> Result<(), WrongLimit> {
        let within = |name, value: u32, least, most| {
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                Err(WrongLimit { name, value, least, most })
            }
        };
        within("streams", self.streams, 1, 1 << 20)?;
        within("header_list_bytes", self.header_list_bytes, 1_024, 1 << 24)?;
        within("connection_header_bytes", self.connection_header_bytes, self.header_list_bytes, 1 << 30)?;
        within("header_block_bytes", self.header_block_bytes, PAYLOAD_BYTES_MAX, 1 << 24)?;
        within("decoder_table_bytes", self.decoder_table_bytes, 0, 1 << 20)?;
        // Until the peer has seen other settings it may send as much as the protocol's own first window.
        within("stream_receive_bytes", self.stream_receive_bytes, 65_535, MAX_31_BITS)?;
        within("connection_receive_bytes", self.connection_receive_bytes, 65_535, MAX_31_BITS)?;
        within("stream_send_bytes", self.stream_send_bytes, 1_024, MAX_31_BITS)?;
        within("connection_send_bytes", self.connection_send_bytes, 1_024, MAX_31_BITS)?;
        within("backlog_bytes", self.backlog_bytes, 1_024, 1 << 30)?;
        within("plan_bytes", self.plan_bytes, 1_024, 1 << 30)?;
        within("copy_bytes", self.copy_bytes, 0, PAYLOAD_BYTES_MAX)?;
        within("encrypt_ahead_bytes", self.encrypt_ahead_bytes, PAYLOAD_BYTES_MAX, 1 << 30)?;
        within("short_record_bytes", self.short_record_bytes, 64, PAYLOAD_BYTES_MAX)
    }
}

impl Limits {
    /// The most memory that a connection takes, in bytes, with driver and adapter, besides that of TLS' own
    /// handshake and of the service: its futures, what it has read of bodies, one head of a response, and one
    /// piece of each body that it makes. With the default limits some 9.8 MiB; a connection that had no
    /// stream yet takes less than 16 KiB, and so does one that has had none for a second, besides what it
    /// keeps for 8 streams at most.
    pub fn connection_bytes_max(&self) -> u64 {
        // A field of a request takes up to four times what its list counts, in the table of `http` that it is
        // put into.
        let heads = 4 * u64::from(self.connection_header_bytes) + 5 * u64::from(self.header_list_bytes);
        // Small pieces lie in buffers that double as they grow.
        let sent = u64::from(self.connection_send_bytes);
        let bodies = 2 * u64::from(self.connection_receive_bytes) + sent + sent / 2;
        let blocks = 2 * u64::from(self.header_block_bytes) + 4 * u64::from(self.decoder_table_bytes);
        let output = 4 * (u64::from(self.backlog_bytes) + u64::from(self.plan_bytes));
        let places = u64::from(self.streams) * (4_096 + TEXTS_BYTES as u64);
        heads + bodies + blocks + output + places + 2 * u64::from(self.encrypt_ahead_bytes) + (128 << 10)
    }
}

/// The error of a limit that is out of range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrongLimit {
    /// Name of the limit.
    pub name: &'static str,
    /// Its value.
    pub value: u32,
    /// Smallest allowed value.
    pub least: u32,
    /// Largest allowed value.
    pub most: u32,
}

impl fmt::Display for WrongLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, least, most } = self;
        write!(f, "{name} is {value}, but has to be within {least} and {most}")
    }
}

impl std::error::Error for WrongLimit {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_within_their_bounds() {
        assert_eq!(Limits::default().validate(), Ok(()));
    }

    #[test]
    fn a_wrong_limit_is_named_with_its_bounds() {
        let limits = Limits { stream_receive_bytes: 1_000, ..Limits::default() };
        let wrong = limits.validate().expect_err("too small");
        assert_eq!(
            wrong.to_string(),
            "stream_receive_bytes is 1000, but has to be within 65535 and 2147483647"
        );
    }
}
