//! That what is urgent stays ahead also of what its producer has not made yet.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Waker};

use bytes::Bytes;
use sluice_http2::drive::{Driver, Handler, Plain};
use sluice_http2::emit::EmitMode;
use sluice_http2::frame::{Frame, FrameHeader, PREFACE, Setting, flag, kind, write};
use sluice_http2::hpack::Encoder;
use sluice_http2::{Connection, Event, Limits, StreamKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

/// Answers every request with a body that has no end, as fast as there is room.
#[derive(Default)]
struct Endless {
    ready: Vec<StreamKey>,
}

impl Handler for Endless {
    fn on_event(&mut self, connection: &mut Connection, event: Event<'_>) {
        if let Event::Request { stream, .. } = event {
            connection.respond(stream, 200, None, [], false).expect("open");
            self.ready.push(stream);
        }
    }

    fn on_room(&mut self, stream: StreamKey) {
        self.ready.push(stream);
    }

    fn poll(&mut self, _: &mut Context<'_>, connection: &mut Connection) {
        for stream in self.ready.drain(..) {
            while connection.send_room(stream) > 0 {
                connection.send_body(stream, Bytes::from(vec![7; 8 << 10]), false).expect("open");
            }
        }
    }
}

/// Requests of eight downloads in the background, and of one that is urgent.
fn requests() -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    write::settings(&mut bytes, &[Setting::InitialWindowSize(1 << 24)]);
    write::window_update(&mut bytes, 0, 1 << 24);
    let mut encoder = Encoder::new();
    for stream in (0..9).map(|index| 1 + 2 * index) {
        let priority: &[u8] = if stream == URGENT { b"u=1" } else { b"u=5" };
        let head: [(&[u8], &[u8]); 5] = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":path", b"/"),
            (b":authority", b"a"),
            (b"priority", priority),
        ];
        let mut block = Vec::new();
        encoder.encode(head, &mut block);
        write::header(&mut bytes, block.len(), kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream);
        bytes.extend(block);
    }
    bytes
}

const URGENT: u32 = 17;

#[tokio::test]
async fn rfc9218_10_an_urgent_response_has_the_whole_connection() {
    let (mut near, far) = duplex(1 << 20);
    near.write_all(&requests()).await.expect("open");
    let limits = Arc::new(Limits::default());
    let make = |now_us| Connection::new(limits, EmitMode::Auto, now_us);
    let mut driver = Box::pin(Driver::new(Plain::new(far), Endless::default(), make));
    assert!(driver.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(driver);
    let mut said = Vec::new();
    near.read_to_end(&mut said).await.expect("all of it");
    let mut rest = &said[..];
    let mut streams = BTreeSet::new();
    while let Some(header) = FrameHeader::parse(rest) {
        let Some((frame, after)) = rest.split_at_checked(FrameHeader::BYTES + header.length as usize) else {
            break;
        };
        rest = after;
        if let Ok(Frame::Data { stream, .. }) = Frame::parse(header, &frame[FrameHeader::BYTES..]) {
            streams.insert(stream);
        }
    }
    assert!(said.len() > 1_000_000, "{} bytes", said.len());
    assert_eq!(streams, BTreeSet::from([URGENT]));
}
