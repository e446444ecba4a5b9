use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use serde_json::json;
use sluice_proto::framing::{Deframer, frame};
use sluice_proto::v1::client_frame::Frame;
use sluice_proto::v1::server_frame::Frame as Told;
use sluice_proto::v1::*;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::support::{Client, PATIENCE, start, start_until};
use crate::net::body::Body;

/// A session as a client sees it.
pub(super) struct Session {
    connection: SendRequest<Body>,
    driver: AbortHandle,
    address: SocketAddr,
    to: mpsc::Sender<std::io::Result<Bytes>>,
    from: Option<Incoming>,
    deframer: Deframer,
    pub(super) number: u64,
    /// Sent with the next session; empty: none.
    pub(super) token: String,
}

impl Session {
    pub(super) async fn start(address: SocketAddr) -> Session {
        let stream = TcpStream::connect(address).await.unwrap();
        let (connection, driver) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        let driver = tokio::spawn(driver).abort_handle();
        let (to, _) = mpsc::channel(1);
        let (deframer, token) = (Deframer::new(usize::MAX), String::new());
        let mut session = Session { connection, driver, address, to, from: None, deframer, number: 0, token };
        session.restart().await;
        session
    }

    /// Another session on the same connection; the one before breaks off.
    pub(super) async fn restart(&mut self) {
        let (to, frames) = mpsc::channel(64);
        let request = Request::post(format!("http://{}/sluice.v1.Sessions/Session", self.address))
            .header("content-type", "application/grpc+proto");
        let request = match self.token.as_str() {
            "" => request,
            token => request.header("authorization", format!("Bearer {token}")),
        };
        let request = request.body(Body::stream(frames)).unwrap();
        let response = self.connection.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        (self.to, self.from) = (to, Some(response.into_body()));
        (self.deframer, self.number) = (Deframer::new(usize::MAX), 0);
    }

    /// Closes the connection without a word, as a process does that is killed.
    pub(super) fn cut(self) {
        self.driver.abort();
    }

    /// The same, opened in a namespace.
    pub(super) async fn open(address: SocketAddr) -> Session {
        let mut session = Session::start(address).await;
        session.ok(Frame::Open(Open::default())).await;
        session
    }

    pub(super) async fn bytes(&self, bytes: Bytes) {
        self.to.send(Ok(bytes)).await.unwrap();
    }

    /// Sends a frame; tells its number.
    pub(super) async fn send(&mut self, told: Frame) -> u64 {
        self.number += 1;
        let mut out = Vec::new();
        frame(&ClientFrame { number: self.number, frame: Some(told) }, &mut out);
        self.bytes(out.into()).await;
        self.number
    }

    /// Sends frames in one piece; tells the number of the first.
    pub(super) async fn send_together(&mut self, frames: impl IntoIterator<Item = Frame>) -> u64 {
        let (mut out, first) = (Vec::new(), self.number + 1);
        for told in frames {
            self.number += 1;
            frame(&ClientFrame { number: self.number, frame: Some(told) }, &mut out);
        }
        self.bytes(out.into()).await;
        first
    }

    /// The next frame of the server; or how it ended.
    pub(super) async fn next(&mut self) -> Result<Told, HeaderMap> {
        loop {
            if let Some(bytes) = self.deframer.next().unwrap() {
                return Ok(ServerFrame::decode(bytes).unwrap().frame.unwrap());
            }
            let next = timeout(PATIENCE, self.from.as_mut().unwrap().frame()).await.expect("nothing came");
            match next.unwrap().unwrap().into_data() {
                Ok(data) => self.deframer.push(data),
                Err(trailers) => return Err(trailers.into_trailers().unwrap()),
            }
        }
    }

    pub(super) async fn result(&mut self) -> FrameResult {
        match self.next().await.unwrap() {
            Told::Result(result) => result,
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn deliveries(&mut self) -> Vec<Delivered> {
        match self.next().await.unwrap() {
            Told::Deliveries(deliveries) => deliveries.messages,
            other => panic!("{other:?}"),
        }
    }

    /// Sends a frame that has to go well, and whose result has to come next.
    pub(super) async fn ok(&mut self, told: Frame) -> FrameResult {
        let number = self.send(told).await;
        let result = self.result().await;
        assert_eq!((result.number, &result.error, &result.failures), (number, &None, &vec![]));
        result
    }

    /// Sends so many messages.
    pub(super) async fn fill(&mut self, queue: &str, count: u8) -> Vec<Bytes> {
        let messages =
            (0..count).map(|at| Message { payload: vec![at].into(), ..Message::default() }).collect();
        let queue = queue.to_owned().into();
        let number = self.send(Frame::Send(SendMany { queue, messages, ..SendMany::default() })).await;
        loop {
            if let Told::Result(result) = self.next().await.unwrap()
                && result.number == number
            {
                assert_eq!(result.error, None);
                return result.ids;
            }
        }
    }

    /// Code of the error that ends the session.
    async fn code(&mut self) -> String {
        loop {
            if let Err(trailers) = self.next().await {
                assert_ne!(trailers["grpc-status"], "0");
                return trailers["sluice-code"].to_str().unwrap().to_owned();
            }
        }
    }

    /// Nothing has come but what it is answered, with this credit as before: not when the shard was asked
    /// something later either.
    async fn is_quiet(&mut self, credit: u32) {
        self.ok(Frame::Credit(SetCredit { consumer: 7, credit })).await;
        self.ok(Frame::Ping(Ping {})).await;
    }
}

pub(super) fn attach(queue: &str, credit: u32) -> Attach {
    let queues = vec![queue.to_owned().into()];
    Attach { consumer: 7, queues, credit, name: "w".into(), ..Attach::default() }
}

pub(super) fn ack(receipts: &[&Delivered]) -> Frame {
    let acks = receipts.iter().map(|message| message.receipt.clone()).collect();
    Frame::Settle(SettleMany { items: vec![], acks })
}

#[tokio::test]
async fn credit_bounds_what_is_in_flight_and_an_ack_gives_it_back() {
    let address = start(|_, _| {}).await;
    let mut session = Session::open(address).await;
    let ids = session.fill("q", 5).await;
    session.ok(Frame::Attach(attach("q", 2))).await;
    let mut held = session.deliveries().await;
    while held.len() < 2 {
        held.extend(session.deliveries().await);
    }
    assert_eq!((&held[0].id, &held[1].id), (&ids[0], &ids[1]));
    assert_eq!((&held[0].queue[..], &held[0].payload[..], held[0].attempt), (&b"q"[..], &[0][..], 1));
    session.is_quiet(2).await;

    let first = session.send(ack(&[&held[0]])).await;
    let (mut more, mut done) = (Vec::new(), false);
    while more.is_empty() || !done {
        match session.next().await.unwrap() {
            Told::Deliveries(deliveries) => more.extend(deliveries.messages),
            Told::Result(result) => done = result.number == first && result.failures.is_empty(),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((more.len(), &more[0].id), (1, &ids[2]));
    session.ok(Frame::Credit(SetCredit { consumer: 7, credit: 0 })).await;
    session.ok(ack(&[&held[1], &more[0]])).await;
    session.is_quiet(0).await;
    session.send(Frame::Credit(SetCredit { consumer: 7, credit: 10 })).await;
    let mut rest = Vec::new();
    while rest.len() < 2 {
        if let Told::Deliveries(deliveries) = session.next().await.unwrap() {
            rest.extend(deliveries.messages);
        }
    }
    assert_eq!((&rest[0].id, &rest[1].id), (&ids[3], &ids[4]));
}

#[tokio::test]
async fn items_fail_alone_and_frames_are_answered_by_their_numbers() {
    let address = start(|_, _| {}).await;
    let mut session = Session::open(address).await;
    session.fill("q", 3).await;
    session.ok(Frame::Attach(attach("q", 10))).await;
    let mut held = session.deliveries().await;
    while held.len() < 3 {
        held.extend(session.deliveries().await);
    }
    // Three frames in one piece, two of them acks.
    let nonsense = Frame::Settle(SettleMany { items: vec![], acks: vec!["nonsense".into()] });
    let nack = Settlement {
        receipt: held[1].receipt.clone(),
        outcome: "nack".into(),
        error: Some("no".into()),
        delay_ms: Some(60_000),
        ..Settlement::default()
    };
    let nack = Frame::Settle(SettleMany { items: vec![nack], acks: vec![held[0].receipt.clone()] });
    let last = session.send_together([ack(&[&held[0]]), nonsense, nack]).await + 2;
    let mut results = [session.result().await, session.result().await, session.result().await];
    results.sort_by_key(|result| result.number);
    assert_eq!(results.each_ref().map(|result| result.number), [last - 2, last - 1, last]);
    assert_eq!(results[0].failures, []);
    assert_eq!(&results[1].failures[0].error.as_ref().unwrap().code[..], b"invalid_receipt");
    assert_eq!((results[2].failures[0].item, results[2].failures[0].already_settled), (1, true));
    assert_eq!(results[2].failures.len(), 1);

    let extension = |receipt: &Bytes, percent| Extension {
        receipt: receipt.clone(),
        lease_ms: Some(60_000),
        progress: Some(Report { percent: Some(percent), note: None }),
        ..Extension::default()
    };
    session.ok(Frame::Extend(ExtendMany { items: vec![extension(&held[2].receipt, 50)] })).await;
    let number =
        session.send(Frame::Extend(ExtendMany { items: vec![extension(&held[2].receipt, 101)] })).await;
    let refused = session.result().await;
    assert_eq!(
        (refused.number, &refused.error.as_ref().unwrap().code[..]),
        (number, &b"invalid_argument"[..])
    );
    assert!(refused.error.unwrap().message.starts_with(b"items[0].progress.percent: "));
    session.ok(Frame::Ping(Ping {})).await;
    let number = session.send(Frame::Credit(SetCredit { consumer: 9, credit: 1 })).await;
    let refused = session.result().await;
    assert_eq!((refused.number, &refused.error.unwrap().code[..]), (number, &b"consumer_not_found"[..]));
}

#[tokio::test]
async fn sends_of_every_kind_are_answered() {
    let address = start(|_, _| {}).await;
    let mut session = Session::open(address).await;
    let unique = Unique { key: "k".into(), ..Unique::default() };
    let header = Header { name: "a".into(), value: "b".into() };
    let plain = Message {
        payload: "a".into(),
        headers: vec![header],
        tags: vec!["t".into()],
        ordering_key: "o".into(),
        ..Message::default()
    };
    let ruled = Message {
        payload: "b".into(),
        unique: Some(unique.into()),
        max_attempts: Some(2),
        ..Message::default()
    };
    let send = |messages: Vec<Message>, key: &'static str| {
        Frame::Send(SendMany { queue: "q".into(), messages, idempotency_key: key.into() })
    };
    let first = session.ok(send(vec![plain.clone(), plain.clone()], "key")).await;
    let again = session.ok(send(vec![plain.clone(), plain], "key")).await;
    assert_eq!((&first.ids, first.duplicate, again.duplicate), (&again.ids, false, true));
    session.ok(send(vec![ruled.clone()], "")).await;
    assert_eq!(session.ok(send(vec![ruled], "")).await.duplicates, [0]);
    session.send(send(vec![Message { priority: Some(11), ..Message::default() }], "")).await;
    let refused = session.result().await.error.unwrap();
    assert!(refused.message.starts_with(b"messages[0].priority: "), "{refused:?}");
    session.send(send(vec![], "")).await;
    assert_eq!(&session.result().await.error.unwrap().code[..], b"invalid_argument");

    session.ok(Frame::Attach(attach("q", 1))).await;
    let message = &session.deliveries().await[0];
    assert_eq!((&message.headers[0].name[..], &message.tags[0][..]), (&b"a"[..], &b"t"[..]));
}

#[tokio::test]
async fn a_frame_with_a_field_that_is_not_known_is_refused() {
    let mut session = Session::open(start(|_, _| {}).await).await;
    // Of `SendMany`: the queue, and a message with the field 99 or a priority of 2^32.
    let unknown = [0x0a, 1, b'q', 0x12, 6, 0x0a, 1, b'x', 0x98, 0x06, 1];
    let too_large = [0x0a, 1, b'q', 0x12, 9, 0x0a, 1, b'x', 0x28, 0x80, 0x80, 0x80, 0x80, 0x10];
    for (at, (send, code)) in
        [(&unknown[..], "unknown_field"), (&too_large[..], "invalid_argument")].into_iter().enumerate()
    {
        let mut message = vec![0x08, 100 + at as u8, 0x3a, send.len() as u8];
        message.extend_from_slice(send);
        let mut frame = vec![0];
        frame.extend_from_slice(&(message.len() as u32).to_be_bytes());
        frame.extend_from_slice(&message);
        session.bytes(frame.into()).await;
        let error = session.result().await.error.unwrap();
        assert_eq!(error.code, code, "{error:?}");
    }
}

#[tokio::test]
async fn a_session_that_breaks_is_resumed_with_its_receipts() {
    let address = start(|_, _| {}).await;
    let mut session = Session::open(address).await;
    session.fill("q", 1).await;
    session.ok(Frame::Attach(attach("q", 1))).await;
    let held = session.deliveries().await;
    session.restart().await;
    session.ok(Frame::Open(Open::default())).await;
    let resume = vec![held[0].receipt.clone(), "nonsense".into()];
    session.send(Frame::Attach(Attach { resume, ..attach("q", 1) })).await;
    let result = session.result().await;
    assert_eq!(result.error, None);
    assert_eq!((result.failures.len(), result.failures[0].item), (1, 1));
    session.ok(ack(&[&held[0]])).await;
}

#[tokio::test]
async fn what_is_held_goes_back_at_once_if_the_client_wants_it_so() {
    let address = start(|_, _| {}).await;
    let mut session = Session::open(address).await;
    session.fill("q", 1).await;
    session.ok(Frame::Attach(Attach { grace_ms: Some(0), ..attach("q", 1) })).await;
    session.deliveries().await;
    session.restart().await;
    session.ok(Frame::Open(Open::default())).await;
    session.ok(Frame::Attach(attach("q", 1))).await;
    let held = session.deliveries().await;
    assert_eq!((held[0].attempt, held[0].deliveries), (2, 2), "the session was lost");
    session.ok(Frame::Detach(Detach { consumer: 7, grace_ms: None })).await;
    session.ok(Frame::Attach(Attach { consumer: 8, ..attach("q", 1) })).await;
    let held = session.deliveries().await;
    assert_eq!((held[0].attempt, held[0].deliveries), (2, 3), "it was given back");
}

#[tokio::test]
async fn cancelled_work_and_a_stop_of_the_server_are_told() {
    let (stop, stopped) = oneshot::channel::<()>();
    let address = start_until(|_, _| {}, async move {
        let _ = stopped.await;
    })
    .await;
    let mut session = Session::open(address).await;
    session.fill("q", 1).await;
    session.ok(Frame::Attach(attach("q", 1))).await;
    let held = session.deliveries().await;
    let id = String::from_utf8(held[0].id.to_vec()).unwrap();
    Client::connect(address).await.call("Messages/Cancel", json!({"id": id})).await.unwrap();
    match session.next().await.unwrap() {
        Told::Cancellations(told) => assert_eq!((told.consumer, &told.receipts[0]), (7, &held[0].receipt)),
        other => panic!("{other:?}"),
    }
    stop.send(()).unwrap();
    match session.next().await.unwrap() {
        Told::Draining(draining) => assert_eq!(draining.grace_ms, 5_000),
        other => panic!("{other:?}"),
    }
    session.ok(ack(&[&held[0]])).await;
    let (closed, _) = mpsc::channel(1);
    session.to = closed;
    assert_eq!(session.next().await.unwrap_err()["grpc-status"], "0");
}

#[tokio::test]
async fn what_breaks_the_rules_ends_the_session_and_nothing_else() {
    let address = start(|http, _| http.head_timeout = Duration::from_millis(300)).await;
    let mut other = Session::open(address).await;
    let mut session = Session::start(address).await;
    session.send(Frame::Ping(Ping {})).await;
    assert_eq!(session.code().await, "frame_out_of_order");

    session.restart().await;
    session.ok(Frame::Open(Open::default())).await;
    session.number = 0;
    session.send(Frame::Ping(Ping {})).await;
    assert_eq!(session.code().await, "frame_out_of_order");

    session.restart().await;
    session.ok(Frame::Open(Open::default())).await;
    session.send(Frame::Open(Open::default())).await;
    assert_eq!(session.code().await, "frame_out_of_order");

    for (bytes, code) in [
        (&b"\x00\x00\x00\x00\x02\xff\xff"[..], "invalid_protobuf"),
        (b"\x00\x00\x00\x00\x02\x08\x01", "invalid_protobuf"),
        (b"\x01\x00\x00\x00\x00", "invalid_protobuf"),
        (b"\x00\xff\xff\xff\xff", "body_too_large"),
    ] {
        session.restart().await;
        session.bytes(Bytes::copy_from_slice(bytes)).await;
        assert_eq!(session.code().await, code);
    }
    // One that never writes.
    session.restart().await;
    assert_eq!(session.code().await, "request_timeout");
    // One that ends within a frame.
    session.restart().await;
    session.bytes(Bytes::from_static(b"\x00\x00")).await;
    let (closed, _) = mpsc::channel(1);
    session.to = closed;
    assert_eq!(session.code().await, "incomplete_body");

    session.restart().await;
    session.send(Frame::Open(Open { namespace: "nowhere".into(), ..Open::default() })).await;
    assert_eq!(session.code().await, "namespace_not_found");
    session.restart().await;
    session.ok(Frame::Open(Open::default())).await;
    session.send(Frame::Attach(attach("q", 10_001))).await;
    assert_eq!(&session.result().await.error.unwrap().code[..], b"invalid_argument");
    session.ok(Frame::Attach(attach("q", 1))).await;
    session.send(Frame::Attach(attach("q", 1))).await;
    assert_eq!(&session.result().await.error.unwrap().code[..], b"invalid_argument");
    other.ok(Frame::Ping(Ping {})).await;
}

#[tokio::test]
async fn one_that_does_not_read_holds_back_only_itself() {
    let address = start(|_, _| {}).await;
    let mut slow = Session::open(address).await;
    let mut other = Session::open(address).await;
    slow.send(Frame::Attach(attach("big", 1_000))).await;
    let payload = Bytes::from(vec![7; 500_000]);
    for _ in 0..20 {
        let message = Message { payload: payload.clone(), ..Message::default() };
        let send = SendMany { queue: "big".into(), messages: vec![message], ..SendMany::default() };
        other.ok(Frame::Send(send)).await;
    }
    other.fill("q", 1).await;
    other.ok(Frame::Attach(attach("q", 1))).await;
    assert_eq!(other.deliveries().await.len(), 1);
    // It gets all of it when it reads.
    let mut got = 0;
    while got < 20 {
        if let Told::Deliveries(deliveries) = slow.next().await.unwrap() {
            got += deliveries.messages.len();
        }
    }
}

#[tokio::test]
async fn each_frame_is_asked_who_sends_it() {
    let address = start(|_, _| {}).await;
    let mut client = Client::connect(address).await;
    client.token = client.make_token("root", "sluice://ns/*?perm=admin").await;
    let mut session = Session::start(address).await;
    session.send(Frame::Open(Open::default())).await;
    assert_eq!(session.next().await.unwrap_err()["sluice-code"], "unauthenticated");

    session.token = client.make_token("worker", "sluice://ns/default?perm=r").await;
    session.restart().await;
    session.ok(Frame::Open(Open::default())).await;
    let messages = vec![Message { payload: "a".into(), ..Message::default() }];
    session.send(Frame::Send(SendMany { queue: "q".into(), messages, ..SendMany::default() })).await;
    assert_eq!(&session.result().await.error.unwrap().code[..], b"forbidden");
    let attach = Attach { consumer: 1, queues: vec!["q".into()], credit: 1, ..Attach::default() };
    session.ok(Frame::Attach(attach)).await;

    session.restart().await;
    session.send(Frame::Open(Open { namespace: "$sys".into(), ..Open::default() })).await;
    assert_eq!(session.next().await.unwrap_err()["sluice-code"], "forbidden");

    session.restart().await;
    session.ok(Frame::Open(Open::default())).await;
    client.revoke_token("worker").await;
    let revoked = Instant::now();
    assert_eq!(session.next().await.unwrap_err()["sluice-code"], "unauthenticated");
    assert!(revoked.elapsed() < Duration::from_secs(5), "before anything is asked of it");
}

#[tokio::test]
async fn whose_token_is_revoked_gets_nothing_that_was_not_on_its_way() {
    const MESSAGES: u64 = 40;
    let address = start(|_, _| {}).await;
    let mut client = Client::connect(address).await;
    client.token = client.make_token("root", "sluice://ns/*?perm=admin").await;
    let mut root = Session::start(address).await;
    root.token = client.token.clone();
    root.restart().await;
    root.ok(Frame::Open(Open::default())).await;
    for _ in 0..MESSAGES {
        let message = Message { payload: vec![7; 200 << 10].into(), ..Message::default() };
        root.ok(Frame::Send(SendMany { queue: "q".into(), messages: vec![message], ..SendMany::default() }))
            .await;
    }
    let mut session = Session::start(address).await;
    session.token = client.make_token("worker", "sluice://ns/default?perm=r").await;
    session.restart().await;
    session.ok(Frame::Open(Open::default())).await;
    let credit = MESSAGES as u32;
    session
        .ok(Frame::Attach(Attach { consumer: 1, queues: vec!["q".into()], credit, ..Attach::default() }))
        .await;
    // It does not read, until there is no room for more on the way.
    tokio::time::sleep(Duration::from_millis(300)).await;
    client.revoke_token("worker").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut got = 0;
    let end = loop {
        match session.next().await {
            Ok(Told::Deliveries(deliveries)) => got += deliveries.messages.len() as u64,
            Ok(other) => panic!("{other:?}"),
            Err(end) => break end,
        }
    };
    assert_eq!(end["sluice-code"], "unauthenticated");
    let ready = client.get("/v1/queues/q").await["counts"]["ready"].as_u64().unwrap();
    assert!(got > 0 && got + ready == MESSAGES, "{got} were delivered, and {ready} went back");
}
