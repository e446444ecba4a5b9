//! The connection's window, when services do something else than reading bodies.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use http::StatusCode;
use hyper::client::conn::http2::SendRequest;
use sluice_http2::adapter::Adapter;
use sluice_http2::drive::Handler;
use sluice_http2::emit::EmitMode;
use sluice_http2::frame::{Frame, FrameHeader, PREFACE, flag, kind, write};
use sluice_http2::hpack::Encoder;
use sluice_http2::{Connection, Limits};

use super::support::*;

/// More than the connection's window.
async fn upload_more(sender: &mut SendRequest<AnyBody>) {
    let answer = ask(sender, request("POST", "/upload", full(pattern(3 << 20))));
    let (status, _) = tokio::time::timeout(Duration::from_secs(20), answer).await.expect("credit");
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn bodies_that_nobody_reads_do_not_hold_up_others() {
    let mut sender = Transport::Plain.connect(64 << 10, EmitMode::Auto, None).await;
    let mut answers = Vec::new();
    for _ in 0..6 {
        sender.ready().await.expect("a connection");
        let ignored = request("POST", "/ignore", full(pattern(1 << 20)));
        answers.push(sender.send_request(ignored).await.expect("an answer"));
    }
    upload_more(&mut sender).await;
    drop(answers);
}

/// As many requests with a body of a whole frame as fill the connection's window.
fn whole_bodies(limits: &Limits) -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    write::settings(&mut bytes, &[]);
    let mut encoder = Encoder::new();
    for stream in (0..limits.connection_receive_bytes / (16 << 10)).map(|index| 1 + 2 * index) {
        let head: [(&[u8], &[u8]); 4] =
            [(b":method", b"POST"), (b":scheme", b"https"), (b":path", b"/hold"), (b":authority", b"a")];
        let mut block = Vec::new();
        encoder.encode(head, &mut block);
        write::header(&mut bytes, block.len(), kind::HEADERS, flag::END_HEADERS, stream);
        bytes.extend(block);
        write::header(&mut bytes, 16 << 10, kind::DATA, flag::END_STREAM, stream);
        bytes.extend([7; 16 << 10]);
    }
    bytes
}

/// How far the connection's window is opened by what is planned now.
fn credit(connection: &mut Connection) -> u32 {
    let plan = connection.plan(0, usize::MAX);
    let mut slices = [std::io::IoSlice::new(&[]); 100];
    let filled = plan.slices(&mut slices, usize::MAX);
    let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.iter()).copied().collect();
    let mut rest = &bytes[..];
    let mut credit = 0;
    while let Some(header) = FrameHeader::parse(rest) {
        let (frame, after) = rest.split_at(FrameHeader::BYTES + header.length as usize);
        rest = after;
        if let Ok(Frame::WindowUpdate { stream: 0, increment }) =
            Frame::parse(header, &frame[FrameHeader::BYTES..])
        {
            credit += increment;
        }
    }
    connection.wrote(bytes.len());
    credit
}

#[test]
fn bodies_that_came_whole_do_not_hold_up_others() {
    let limits = Arc::new(Limits::default());
    let mut connection = Connection::new(limits.clone(), EmitMode::Auto, 0);
    let mut adapter = Adapter::new(TestService, &limits);
    credit(&mut connection);
    let bytes = whole_bodies(&limits);
    let mut rest = &bytes[..];
    while let Some(event) = connection.next_event(&mut rest, 0) {
        adapter.on_event(&mut connection, event);
    }
    assert_eq!(credit(&mut connection), 0);
    adapter.poll(&mut Context::from_waker(Waker::noop()), &mut connection);
    assert_eq!(credit(&mut connection), limits.connection_receive_bytes, "they are the services' now");
}
