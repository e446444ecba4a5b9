//! Events of a connection.

use super::StreamKey;
use crate::error::{ErrorCode, Fault};

/// An event of a connection. Slices borrow from the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request. Its head is [`Connection::request`](super::Connection::request) until the next call of
    /// [`Connection::next_event`](super::Connection::next_event).
    Request {
        /// Stream of the request and of its response.
        stream: StreamKey,
        /// True when the request has no body.
        end: bool,
    },
    /// A piece of the body of a request. Its bytes count against the windows until
    /// [`Connection::consumed`](super::Connection::consumed).
    Data {
        /// The stream.
        stream: StreamKey,
        /// The piece.
        data: &'a [u8],
        /// True when the request ends with it.
        end: bool,
    },
    /// Trailers, with which the request ends. They are [`Connection::trailers`](super::Connection::trailers)
    /// until the next call of [`Connection::next_event`](super::Connection::next_event).
    Trailers {
        /// The stream.
        stream: StreamKey,
    },
    /// A stream has ended before its response was complete, by RST_STREAM or by a fault of the peer. Its key
    /// is invalid from here on.
    Reset {
        /// The stream.
        stream: StreamKey,
        /// Error code that the peer sent, or that its fault has.
        code: ErrorCode,
    },
    /// A stream was reset with CANCEL because its peer made no progress within
    /// [`Limits::body_stall_us`](crate::Limits::body_stall_us) or
    /// [`Limits::read_stall_us`](crate::Limits::read_stall_us). Its key is invalid from here on.
    Stalled {
        /// The stream.
        stream: StreamKey,
        /// The direction without progress.
        half: Half,
    },
    /// No stream was open for a second: storage kept for streams can be freed.
    Idle,
    /// GOAWAY: the peer will open no more streams.
    GoAway {
        /// Error code of the frame.
        code: ErrorCode,
    },
    /// The connection has ended with an error, and with it every stream. Output that is planned is still to
    /// be written.
    Closed(Fault),
}

/// A direction of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// The request, which the peer sends.
    Request,
    /// The response, which the peer reads.
    Response,
}
