//! Everything that a peer could make large or frequent, with its limit.

use std::fmt;

use crate::frame::{MAX_31_BITS, PAYLOAD_BYTES_MAX};

/// How often something may happen: `burst` times at once, and `per_second` times a second in the long run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// Times at once.
    pub burst: u32,
    /// Times a second.
    pub per_second: u32,
}

/// The limits of one connection. Sizes are in bytes, times in microseconds; a time of `u64::MAX` never comes.
///
/// # What is in answer
/// Clients in good faith answer to what they get, and the faster they get it the more often: gRPC's clients
/// measure the bandwidth with a PING and a WINDOW_UPDATE of a few bytes each time that DATA comes after the
/// last was answered, which is once a call when calls follow each other; Go's open a stream's window by 4 KiB
/// each time they have read that much, also after the stream has ended. So each DATA frame that is sent
/// allows 4 frames more of each kind that is counted like this, and each KiB of it one, while a client that
/// gets nothing is held to the allowance. It is cheap: such a frame takes some 50 ns, and a DATA frame at
/// least 1 µs with its request, or 8 µs when it is full. So all kinds together add some half at most to what
/// was done anyway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Streams that are open at once; more are refused with REFUSED_STREAM.
    pub streams: u32,
    /// The decoded header list of a request, each field with 32 bytes on top (RFC 9113 §10.5.1); a larger one
    /// is answered with status 431. The size of trailers has the same limit.
    pub header_list_bytes: u32,
    /// The header lists of all requests that are open, counted in the same way; a request beyond is refused
    /// with REFUSED_STREAM.
    pub connection_header_bytes: u32,
    /// A header block as it comes in, before it is decoded; more ends the connection with ENHANCE_YOUR_CALM.
    pub header_block_bytes: u32,
    /// CONTINUATION frames of one header block; more end the connection with ENHANCE_YOUR_CALM.
    pub continuation_frames: u32,
    /// The table with which the peer may compress its headers.
    pub decoder_table_bytes: u32,
    /// Bytes of request bodies that may wait to be consumed, of one stream: at least 65,535.
    pub stream_receive_bytes: u32,
    /// The same of all streams together.
    pub connection_receive_bytes: u32,
    /// Bytes of a response that wait to be sent, of one stream, after which its producer has to wait.
    pub stream_send_bytes: u32,
    /// The same of all streams together. Half as much again is kept for small pieces of streams that have
    /// nothing else queued and an open window, so that others which the client does not read cannot silence
    /// them.
    pub connection_send_bytes: u32,
    /// Bytes of answers and heads of responses that wait to be written, after which nothing more is read and
    /// calls do not go on.
    pub backlog_bytes: u32,
    /// Bytes that are planned at once. A multiple of 16 KiB fills the records of TLS.
    pub plan_bytes: u32,
    /// The largest piece of a body that is copied behind its header, rather than being written from where it
    /// is.
    pub copy_bytes: u32,
    /// Bytes that are encrypted before the transport has taken those before them.
    pub encrypt_ahead_bytes: u32,
    /// The size of records at the beginning of a flight, so that the first can be decrypted when its packet
    /// is there.
    pub short_record_bytes: u32,
    /// Bytes that go in short records, at first and after a pause of `short_idle_us`: about what a connection
    /// may send before the peer has answered.
    pub short_flight_bytes: u32,

    /// Streams that end early: that the peer resets, refused ones, and those with an error of the peer
    /// (CVE-2023-44487, CVE-2025-8671).
    pub resets: Allowance,
    /// PING frames, beyond [those in answer](#what-is-in-answer).
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
    /// answer](#what-is-in-answer).
    pub small_updates: Allowance,
    /// Frames on streams that have ended, beyond [those in answer](#what-is-in-answer).
    pub late_frames: Allowance,

    /// How long the preface and the first SETTINGS may take.
    pub preface_us: u64,
    /// How long a frame that has begun may make no progress (4 KiB, or its end), and how long a header block
    /// may take.
    pub frame_us: u64,
    /// How long the acknowledgement of our SETTINGS may take.
    pub settings_ack_us: u64,
    /// How long a body of a stated length may make no progress (4 KiB, or its end) although all that came of
    /// it is consumed, and the connection's window is open.
    pub body_stall_us: u64,
    /// How long a peer may take nothing (4 KiB, or all there is) of what waits for it: on a stream whose
    /// window is closed, or of all that waits on the connection.
    pub read_stall_us: u64,
    /// How long a peer with open streams may be silent before it is asked for a sign of life (PING), and how
    /// long that may take.
    pub keep_alive_us: u64,
    /// How long a connection may have no stream before it is ended.
    pub idle_us: u64,
    /// How long the first step of a graceful end waits for the peer's answer, before the second step is made
    /// without.
    pub drain_us: u64,
    /// How long nothing was written when a flight begins anew, with short records.
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

/// How many frames of each kind that is counted so a peer may send in answer to one DATA frame, and to how
/// many bytes of it one more.
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
    /// The first that is wrong.
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

/// A limit that may not have its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrongLimit {
    /// Which one.
    pub name: &'static str,
    /// What it was.
    pub value: u32,
    /// The least that it may be.
    pub least: u32,
    /// The most that it may be.
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
