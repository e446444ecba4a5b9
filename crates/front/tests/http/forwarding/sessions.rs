//! Sessions of clients that do not go to the leader by themselves, and of those that do.

use std::convert::Infallible;

use bytes::Bytes;
use data_encoding::BASE64_NOPAD;
use futures_util::stream::unfold;
use http::{HeaderMap, Request};
use http_body::Frame as Piece;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sluice_node::shard::store::Standing;
use sluice_proto::framing::{Deframer, frame};
use sluice_proto::v1::client_frame::Frame;
use sluice_proto::v1::server_frame::Frame as Told;
use sluice_proto::v1::{Attach, ClientFrame, FrameResult, Message, Open, SendMany, ServerFrame, SettleMany};
use tokio::sync::mpsc;

use super::failures::one_that_breaks_off;
use super::support::{ASKED, Cluster, LEADER};
use crate::tls_support::{Pair, TlsClient};
use crate::waits::soon;

/// A session with the node that does not lead.
struct Session {
    to: mpsc::UnboundedSender<Bytes>,
    from: Incoming,
    deframer: Deframer,
    number: u64,
}

impl Session {
    async fn begin(cluster: &Cluster, by: &Pair) -> Session {
        let stream = TlsClient::new(&cluster.ca, Some(by), "h2").connect(cluster.asked.address).await;
        let stream = TokioIo::new(stream.unwrap());
        let (mut connection, driver) = handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(driver);
        let (to, frames) = mpsc::unbounded_channel::<Bytes>();
        let frames = unfold(frames, |mut frames| async move {
            let piece = frames.recv().await?;
            Some((Ok::<_, Infallible>(Piece::data(piece)), frames))
        });
        let request = Request::post(format!("https://{}/sluice.v1.Sessions/Session", cluster.asked.address))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(StreamBody::new(Box::pin(frames)));
        let response = connection.send_request(request.unwrap()).await.unwrap();
        Session { to, from: response.into_body(), deframer: Deframer::new(usize::MAX), number: 0 }
    }

    /// Sends frames in one piece.
    fn send(&mut self, frames: impl IntoIterator<Item = Frame>) {
        let mut piece = Vec::new();
        for told in frames {
            self.number += 1;
            frame(&ClientFrame { number: self.number, frame: Some(told) }, &mut piece);
        }
        self.to.send(piece.into()).unwrap();
    }

    /// The next frame; at the end the trailers.
    async fn next(&mut self) -> Result<Told, HeaderMap> {
        loop {
            if let Some(bytes) = self.deframer.next().unwrap() {
                return Ok(ServerFrame::decode_lists(bytes).unwrap().frame.unwrap());
            }
            match soon(self.from.frame()).await.unwrap().unwrap().into_data() {
                Ok(data) => self.deframer.push(data),
                Err(trailers) => return Err(trailers.into_trailers().unwrap()),
            }
        }
    }

    async fn result(&mut self) -> FrameResult {
        match self.next().await {
            Ok(Told::Result(result)) => result,
            other => panic!("{other:?}"),
        }
    }

    /// The trailers, behind frames of any kind.
    async fn ended(&mut self) -> HeaderMap {
        loop {
            if let Err(trailers) = self.next().await {
                return trailers;
            }
        }
    }
}

fn open() -> Frame {
    Frame::Open(Open::default())
}

fn send(queue: &'static str) -> Frame {
    let message = Message { payload: Bytes::from_static(b"a"), ..Message::default() };
    Frame::Send(SendMany { queue: queue.into(), messages: vec![message], ..SendMany::default() })
}

#[tokio::test]
async fn a_session_of_a_client_that_knows_no_leaders_is_served_by_the_leader() {
    let cluster = Cluster::new().await;
    let mut session = Session::begin(&cluster, &cluster.ops).await;
    let attach = Attach { consumer: 1, queues: vec!["jobs".into()], credit: 9, ..Attach::default() };
    // What comes with the first frame is passed on with it.
    session.send([open(), Frame::Attach(attach)]);
    assert_eq!((session.result().await.number, session.result().await.number), (1, 2));
    session.send([send("jobs")]);
    let (mut ids, mut receipts) = (Vec::new(), Vec::new());
    while ids.is_empty() || receipts.is_empty() {
        match session.next().await.unwrap() {
            Told::Result(result) => ids = result.ids,
            Told::Deliveries(told) => receipts = told.messages.into_iter().map(|it| it.receipt).collect(),
            other => panic!("{other:?}"),
        }
    }
    session.send([Frame::Settle(SettleMany { items: Vec::new(), acks: receipts })]);
    let acked = session.result().await;
    assert!(acked.error.is_none() && acked.failures.is_empty(), "{acked:?}");
    assert_eq!(cluster.sent().await, [0, 1]);
    // The client ends it, and hears that all went well.
    drop(session.to);
    let trailers = soon(session.from.collect()).await.unwrap().trailers().cloned();
    assert_eq!(trailers.unwrap()["grpc-status"], "0");
}

#[tokio::test]
async fn the_caller_of_a_session_that_is_passed_on_is_the_client() {
    let cluster = Cluster::new().await;
    let mut session = Session::begin(&cluster, &cluster.billing).await;
    session.send([open(), send("jobs"), send("others")]);
    assert!(session.result().await.error.is_none());
    let mut results = [session.result().await, session.result().await];
    results.sort_by_key(|result| result.number);
    assert!(results[0].error.is_none(), "{results:?}");
    assert_eq!(results[1].error.as_ref().unwrap().code, "forbidden");
    assert_eq!(cluster.sent().await, [0, 1]);
}

#[tokio::test]
async fn a_client_that_follows_leaders_is_told_where_to_go() {
    let cluster = Cluster::new().await;
    let mut session = Session::begin(&cluster, &cluster.ops).await;
    session.send([Frame::Open(Open { follows_leaders: true, ..Open::default() })]);
    let trailers = session.ended().await;
    assert_eq!(trailers["sluice-code"], "not_leader");
    let details = BASE64_NOPAD.decode(trailers["grpc-status-details-bin"].as_bytes()).unwrap();
    assert!(String::from_utf8_lossy(&details).contains("leader.example:7070"));
}

#[tokio::test]
async fn a_session_is_passed_on_twice_at_most() {
    let cluster = Cluster::new().await;
    cluster.reach(ASKED);
    let standing = Standing::Follower { leader: Some(ASKED) };
    cluster.leader.node.leaders().iter().for_each(|leader| leader.set(standing));
    let mut session = Session::begin(&cluster, &cluster.ops).await;
    session.send([open()]);
    assert_eq!(session.ended().await["sluice-code"], "not_leader");
}

#[tokio::test]
async fn a_session_whose_leader_is_lost_ends() {
    let cluster = Cluster::new().await;
    cluster.others.reach(LEADER, one_that_breaks_off);
    let mut session = Session::begin(&cluster, &cluster.ops).await;
    session.send([open()]);
    assert_eq!(session.ended().await["sluice-code"], "outcome_unknown");
    cluster.others.reach(LEADER, || async { Err(std::io::Error::other("it is gone")) });
    let mut session = Session::begin(&cluster, &cluster.ops).await;
    session.send([open()]);
    assert_eq!(session.ended().await["sluice-code"], "no_leader");
}

#[tokio::test]
async fn a_session_that_is_passed_on_ends_when_this_node_stops() {
    let mut cluster = Cluster::new().await;
    let mut session = Session::begin(&cluster, &cluster.ops).await;
    session.send([open()]);
    assert!(session.result().await.error.is_none());
    cluster.asked.begin_stop();
    assert_eq!(session.ended().await["sluice-code"], "shutting_down");
}
