//! From bytes to frames.

use super::{FrameHeader, MAX_31_BITS, SettingsPayload, flag, kind};
use crate::error::{ErrorCode, Fault};

/// A received frame, valid by itself. Slices borrow from the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Frame<'a> {
    /// A piece of a body (RFC 9113 §6.1).
    Data {
        /// The stream.
        stream: u32,
        /// The piece, without padding.
        data: &'a [u8],
        /// Bytes that flow control counts: the whole payload, with padding.
        flow_bytes: u32,
        /// END_STREAM: the body ends with this frame.
        end_stream: bool,
    },
    /// The beginning of a header block (RFC 9113 §6.2).
    Headers {
        /// The stream.
        stream: u32,
        /// The piece of the block, without padding and priority.
        fragment: &'a [u8],
        /// END_STREAM: nothing follows the block on this stream.
        end_stream: bool,
        /// END_HEADERS: the block ends with this frame.
        end_headers: bool,
        /// True when it says that the stream depends on itself, which is an error of the stream (RFC 7540
        /// §5.3.1), once the block has gone through the decoder.
        depends_on_itself: bool,
    },
    /// A priority of RFC 7540 (§6.3), which has no effect.
    Priority {
        /// The stream.
        stream: u32,
    },
    /// The end of a stream (RFC 9113 §6.4).
    Reset {
        /// The stream.
        stream: u32,
        /// Why.
        code: ErrorCode,
    },
    /// Settings of the peer (RFC 9113 §6.5).
    Settings(SettingsPayload<'a>),
    /// The peer has taken over ours.
    SettingsAck,
    /// A ping, or the answer to ours (RFC 9113 §6.7).
    Ping {
        /// ACK: the frame is an answer.
        ack: bool,
        /// Eight bytes, which the answer repeats.
        payload: [u8; 8],
    },
    /// The peer will open no more streams (RFC 9113 §6.8).
    GoAway {
        /// The last stream of ours that it has dealt with: of no meaning, since a server opens none.
        last_stream: u32,
        /// Why.
        code: ErrorCode,
    },
    /// A window opens (RFC 9113 §6.9).
    WindowUpdate {
        /// The stream, or 0 for the connection.
        stream: u32,
        /// By how many bytes: 1 to 2³¹-1.
        increment: u32,
    },
    /// More of a header block (RFC 9113 §6.10).
    Continuation {
        /// The stream.
        stream: u32,
        /// The piece of the block.
        fragment: &'a [u8],
        /// True when the block is whole.
        end_headers: bool,
    },
    /// The priority of a stream changes (RFC 9218 §7.1).
    PriorityUpdate {
        /// The stream.
        stream: u32,
        /// A structured field, such as `u=1, i`.
        value: &'a [u8],
    },
    /// A kind that is not known, and has to be passed over (RFC 9113 §5.5).
    Unknown,
}

impl<'a> Frame<'a> {
    /// Reads the payload that follows `header`.
    ///
    /// # Errors
    /// What is wrong with the frame by itself: its size, its stream, its padding. `payload` has the length
    /// that the header tells.
    pub fn parse(header: FrameHeader, payload: &'a [u8]) -> Result<Self, Fault> {
        debug_assert_eq!(payload.len(), header.length as usize);
        match header.kind {
            kind::DATA => data(header, payload),
            kind::HEADERS => headers(header, payload),
            kind::PRIORITY => priority(header, payload),
            kind::RST_STREAM => reset(header, payload),
            kind::SETTINGS => settings(header, payload),
            kind::PUSH_PROMISE => Err(protocol_error("a client may not push")),
            kind::PING => ping(header, payload),
            kind::GOAWAY => go_away(header, payload),
            kind::WINDOW_UPDATE => window_update(header, payload),
            kind::CONTINUATION => {
                of_stream(header, "CONTINUATION on stream 0")?;
                let end_headers = header.has(flag::END_HEADERS);
                Ok(Frame::Continuation { stream: header.stream, fragment: payload, end_headers })
            }
            kind::PRIORITY_UPDATE => priority_update(header, payload),
            _ => Ok(Frame::Unknown),
        }
    }
}

const fn protocol_error(what: &'static str) -> Fault {
    Fault::connection(ErrorCode::PROTOCOL_ERROR, what)
}

const fn size_error(what: &'static str) -> Fault {
    Fault::connection(ErrorCode::FRAME_SIZE_ERROR, what)
}

fn of_stream(header: FrameHeader, what: &'static str) -> Result<(), Fault> {
    if header.stream == 0 { Err(protocol_error(what)) } else { Ok(()) }
}

fn of_connection(header: FrameHeader, what: &'static str) -> Result<(), Fault> {
    if header.stream != 0 { Err(protocol_error(what)) } else { Ok(()) }
}

fn u32_at(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes)
}

/// The payload without its padding (RFC 9113 §6.1, §6.2).
fn unpadded(header: FrameHeader, payload: &[u8]) -> Result<&[u8], Fault> {
    if !header.has(flag::PADDED) {
        return Ok(payload);
    }
    let (&padding, rest) = payload.split_first().ok_or(size_error("a padded frame without a pad length"))?;
    let kept =
        rest.len().checked_sub(padding.into()).ok_or(protocol_error("padding is longer than the frame"))?;
    Ok(&rest[..kept])
}

fn data<'a>(header: FrameHeader, payload: &'a [u8]) -> Result<Frame<'a>, Fault> {
    of_stream(header, "DATA on stream 0")?;
    Ok(Frame::Data {
        stream: header.stream,
        data: unpadded(header, payload)?,
        flow_bytes: header.length,
        end_stream: header.has(flag::END_STREAM),
    })
}

fn headers<'a>(header: FrameHeader, payload: &'a [u8]) -> Result<Frame<'a>, Fault> {
    of_stream(header, "HEADERS on stream 0")?;
    let mut fragment = unpadded(header, payload)?;
    let mut depends_on_itself = false;
    if header.has(flag::PRIORITY) {
        let (&[d0, d1, d2, d3, _weight], rest) =
            fragment.split_first_chunk::<5>().ok_or(size_error("HEADERS is too short for its priority"))?;
        depends_on_itself = u32_at([d0, d1, d2, d3]) & MAX_31_BITS == header.stream;
        fragment = rest;
    }
    Ok(Frame::Headers {
        stream: header.stream,
        fragment,
        end_stream: header.has(flag::END_STREAM),
        end_headers: header.has(flag::END_HEADERS),
        depends_on_itself,
    })
}

fn priority<'a>(header: FrameHeader, payload: &[u8]) -> Result<Frame<'a>, Fault> {
    of_stream(header, "PRIORITY on stream 0")?;
    let &[d0, d1, d2, d3, _weight] = payload
        .try_into()
        .map_err(|_| Fault::stream(header.stream, ErrorCode::FRAME_SIZE_ERROR, "PRIORITY has not 5 bytes"))?;
    if u32_at([d0, d1, d2, d3]) & MAX_31_BITS == header.stream {
        return Err(Fault::stream(header.stream, ErrorCode::PROTOCOL_ERROR, "a stream depends on itself"));
    }
    Ok(Frame::Priority { stream: header.stream })
}

fn reset<'a>(header: FrameHeader, payload: &[u8]) -> Result<Frame<'a>, Fault> {
    of_stream(header, "RST_STREAM on stream 0")?;
    let &code = payload.try_into().map_err(|_| size_error("RST_STREAM has not 4 bytes"))?;
    Ok(Frame::Reset { stream: header.stream, code: ErrorCode(u32_at(code)) })
}

fn settings<'a>(header: FrameHeader, payload: &'a [u8]) -> Result<Frame<'a>, Fault> {
    of_connection(header, "SETTINGS on a stream")?;
    if header.has(flag::ACK) {
        let empty = payload.is_empty();
        return if empty {
            Ok(Frame::SettingsAck)
        } else {
            Err(size_error("SETTINGS with ACK is not empty"))
        };
    }
    if !payload.len().is_multiple_of(6) {
        return Err(size_error("SETTINGS is not a multiple of 6 bytes"));
    }
    Ok(Frame::Settings(SettingsPayload::new(payload)))
}

fn ping<'a>(header: FrameHeader, payload: &[u8]) -> Result<Frame<'a>, Fault> {
    of_connection(header, "PING on a stream")?;
    let &payload = payload.try_into().map_err(|_| size_error("PING has not 8 bytes"))?;
    Ok(Frame::Ping { ack: header.has(flag::ACK), payload })
}

fn go_away<'a>(header: FrameHeader, payload: &[u8]) -> Result<Frame<'a>, Fault> {
    of_connection(header, "GOAWAY on a stream")?;
    let &[l0, l1, l2, l3, c0, c1, c2, c3] =
        payload.first_chunk().ok_or(size_error("GOAWAY has less than 8 bytes"))?;
    Ok(Frame::GoAway {
        last_stream: u32_at([l0, l1, l2, l3]) & MAX_31_BITS,
        code: ErrorCode(u32_at([c0, c1, c2, c3])),
    })
}

fn window_update<'a>(header: FrameHeader, payload: &[u8]) -> Result<Frame<'a>, Fault> {
    let &increment = payload.try_into().map_err(|_| size_error("WINDOW_UPDATE has not 4 bytes"))?;
    let increment = u32_at(increment) & MAX_31_BITS;
    match (increment, header.stream) {
        (0, 0) => Err(protocol_error("WINDOW_UPDATE by 0")),
        (0, id) => Err(Fault::stream(id, ErrorCode::PROTOCOL_ERROR, "WINDOW_UPDATE by 0")),
        (increment, stream) => Ok(Frame::WindowUpdate { stream, increment }),
    }
}

fn priority_update<'a>(header: FrameHeader, payload: &'a [u8]) -> Result<Frame<'a>, Fault> {
    of_connection(header, "PRIORITY_UPDATE on a stream")?;
    let (&id, value) =
        payload.split_first_chunk::<4>().ok_or(size_error("PRIORITY_UPDATE has less than 4 bytes"))?;
    let stream = u32_at(id) & MAX_31_BITS;
    if stream == 0 {
        return Err(protocol_error("PRIORITY_UPDATE of stream 0"));
    }
    Ok(Frame::PriorityUpdate { stream, value })
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
