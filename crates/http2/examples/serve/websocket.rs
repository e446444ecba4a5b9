//! Gives back the messages of a WebSocket, frame by frame (RFC 6455 §5.2).

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use sluice_http2::adapter::{BodyError, RequestBody};

/// The server's side of the socket whose client's side is a body.
pub(crate) struct Echo {
    from: RequestBody,
    unread: BytesMut,
}

impl Echo {
    pub(crate) fn new(from: RequestBody) -> Self {
        Self { from, unread: BytesMut::new() }
    }
}

impl Body for Echo {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            if let Some(frame) = take_frame(&mut self.unread) {
                return Poll::Ready(Some(Ok(Frame::data(frame))));
            }
            match ready!(Pin::new(&mut self.from).poll_frame(context)?) {
                Some(frame) => self.unread.extend(frame.into_data().ok()),
                None => return Poll::Ready(None),
            }
        }
    }
}

const OPCODE: u8 = 0xf;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;
const MASKED: u8 = 0x80;

/// The first whole frame, as the server sends it: without a mask, and a ping as a pong.
fn take_frame(bytes: &mut BytesMut) -> Option<Bytes> {
    let (head, length) = match bytes.get(1)? & !MASKED {
        126 => (4, u64::from(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?))),
        127 => (10, u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?)),
        length => (2, u64::from(length)),
    };
    let mask: [u8; 4] = *bytes.get(head..)?.first_chunk()?;
    let begin = head + mask.len();
    let end = begin.checked_add(usize::try_from(length).ok()?)?;
    if bytes.len() < end {
        return None;
    }
    let frame = bytes.split_to(end);
    let mut echo = BytesMut::from(&frame[..head]);
    echo[1] &= !MASKED;
    if echo[0] & OPCODE == PING {
        echo[0] = echo[0] & !OPCODE | PONG;
    }
    echo.extend(frame[begin..].iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    Some(echo.freeze())
}
