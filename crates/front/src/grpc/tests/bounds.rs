//! Frames and calls with more in them than can be, and frames that take their time.

use std::time::Duration;

use bytes::Bytes;
use sluice_proto::framing::frame;
use sluice_proto::v1::client_frame::Frame;
use sluice_proto::v1::*;
use tokio::time::sleep;

use super::session::{Session, attach};
use super::support::{Client, start};

#[tokio::test]
async fn lists_that_are_too_long_are_refused_and_the_session_goes_on() {
    let address = start(|_, _| {}).await;
    let mut session = Session::open(address).await;
    let names = |count: u32| -> Vec<Bytes> { (0..count).map(|at| format!("q{at}").into()).collect() };
    for (count, told) in
        [(65, "queues: at most 64 queues, got 65"), (500_000, "queues: at most 64, got 500000")]
    {
        session.send(Frame::Attach(Attach { queues: names(count), ..attach("q", 1) })).await;
        let error = session.result().await.error.unwrap();
        assert_eq!((&error.code[..], &error.message[..]), (&b"invalid_argument"[..], told.as_bytes()));
    }
    session.send(Frame::Settle(SettleMany { items: vec![], acks: names(10_001) })).await;
    assert_eq!(&session.result().await.error.unwrap().code[..], b"batch_too_large");
    session.send(Frame::Attach(Attach { resume: names(10_001), ..attach("q", 1) })).await;
    assert_eq!(&session.result().await.error.unwrap().code[..], b"batch_too_large");
    session.ok(Frame::Attach(Attach { queues: names(64), ..attach("q", 1) })).await;
}

#[tokio::test]
async fn calls_with_too_much_in_them_are_refused() {
    let mut client = Client::connect(start(|_, _| {}).await).await;
    // Field 1, empty, over and over: as text its last counts.
    let mut body = Vec::new();
    sluice_proto::framing::frame_with(&mut body, |out| out.extend_from_slice(&[0x0a, 0].repeat(100_000)));
    let (code, message, _) = client.post("/sluice.v1.Queues/Purge", body.into()).await.unwrap_err();
    assert_eq!(code, "invalid_argument");
    assert!(message.contains("given once"), "{message}");
}

#[tokio::test]
async fn a_large_frame_may_take_as_long_as_a_large_body() {
    let address = start(|http, _| http.body_timeout = Duration::from_millis(300)).await;
    let mut session = Session::open(address).await;
    let message = Message { payload: vec![7; 256 << 10].into(), ..Message::default() };
    let send = SendMany { queue: "q".into(), messages: vec![message], ..SendMany::default() };
    session.number += 1;
    let mut out = Vec::new();
    frame(&ClientFrame { number: session.number, frame: Some(Frame::Send(send)) }, &mut out);
    let rest = out.split_off(250 << 10);
    session.bytes(out.into()).await;
    // Two seconds more for what is here.
    sleep(Duration::from_millis(800)).await;
    session.bytes(rest.into()).await;
    assert_eq!(session.result().await.error, None);
}
