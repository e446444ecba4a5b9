//! What a connection tells.

use super::StreamKey;
use crate::error::{ErrorCode, Fault};

/// Something that came in. Slices point into the bytes that were given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request, whose head is [`Connection::request`](super::Connection::request) until the next event is
    /// asked for.
    Request {
        /// Its stream, to answer on.
        stream: StreamKey,
        /// Whether it has no body.
        end: bool,
    },
    /// A piece of the body of a request, to be given back with
    /// [`Connection::consumed`](super::Connection::consumed).
    Data {
        /// The stream.
        stream: StreamKey,
        /// The piece.
        data: &'a [u8],
        /// Whether the request ends with it.
        end: bool,
    },
    /// The request ends with trailers, which are [`Connection::trailers`](super::Connection::trailers) until
    /// the next event is asked for.
    Trailers {
        /// The stream.
        stream: StreamKey,
    },
    /// A stream has ended before its response: nobody waits for that any more. Its key has no meaning from
    /// here on.
    Reset {
        /// The stream.
        stream: StreamKey,
        /// Why: the peer's word, or what the peer did wrong.
        code: ErrorCode,
    },
    /// The same of a stream that was ended here, with CANCEL, because its peer let it stall
    /// ([`Limits::body_stall_us`](crate::Limits::body_stall_us),
    /// [`Limits::read_stall_us`](crate::Limits::read_stall_us)).
    Stalled {
        /// The stream.
        stream: StreamKey,
        /// What did not go on.
        half: Half,
    },
    /// No stream has been open for a while: what is kept for streams may go.
    Idle,
    /// The peer will open no more streams.
    GoAway {
        /// Why.
        code: ErrorCode,
    },
    /// The connection is over, and with it every stream. What waits to be written, the peer should still get.
    Closed(Fault),
}

/// One of the two ways of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// The request, which the peer sends.
    Request,
    /// The response, which the peer reads.
    Response,
}
