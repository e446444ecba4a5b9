//! Sessions with the nodes of a cluster, of which one leads.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use data_encoding::BASE64_NOPAD;
use http::{Request, Response};
use http_body::{Body, Frame as Piece};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sluice_client::v1::client_frame::Frame;
use sluice_client::v1::server_frame::Frame as Told;
use sluice_client::v1::{ClientFrame, FrameResult, Message, Open, SendMany, ServerFrame};
use sluice_client::{Client, Options, Settle, Stop, Worker, WorkerEvent, WorkerOptions, WorkerTransport};
use sluice_proto::framing::{Deframer, frame};
use sluice_proto::wire::put_bytes;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Frames of a server, as the body of an answer.
struct Frames(mpsc::UnboundedReceiver<Bytes>);

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Piece::data(bytes))))
    }
}

/// A node: it leads, or knows who does.
#[derive(Default)]
struct Node {
    leader: Mutex<Option<SocketAddr>>,
    opened: Mutex<Vec<Open>>,
    sent: Mutex<Vec<SendMany>>,
    /// Sends with this payload are not answered.
    unanswered: &'static [u8],
}

impl Node {
    async fn start(self: &Arc<Node>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, node) = (listener.local_addr().unwrap(), Arc::clone(self));
        tokio::spawn(async move {
            loop {
                let (stream, node) = (listener.accept().await.unwrap().0, Arc::clone(&node));
                let service = service_fn(move |request| {
                    let answer = node.answer(request);
                    async move { Ok::<_, Infallible>(answer) }
                });
                tokio::spawn(
                    Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        address
    }

    fn answer(self: &Arc<Node>, request: Request<Incoming>) -> Response<Frames> {
        let (to, frames) = mpsc::unbounded_channel();
        let response = Response::builder().header("content-type", "application/grpc");
        let leader = *self.leader.lock().unwrap();
        let response = match leader {
            None => {
                tokio::spawn(Arc::clone(self).serve(request.into_body(), to));
                response
            }
            Some(leader) => response
                .header("grpc-status", "14")
                .header("sluice-code", "not_leader")
                .header("grpc-message", "another node leads")
                .header("grpc-status-details-bin", details(&leader.to_string())),
        };
        response.body(Frames(frames)).unwrap()
    }

    /// Answers frames until a send that is not to be answered.
    async fn serve(self: Arc<Node>, mut from: Incoming, to: mpsc::UnboundedSender<Bytes>) {
        let mut deframer = Deframer::new(usize::MAX);
        while let Some(Ok(piece)) = from.frame().await {
            deframer.push(piece.into_data().unwrap());
            while let Some(bytes) = deframer.next().unwrap() {
                let ClientFrame { number, frame: Some(told) } = ClientFrame::decode_lists(bytes).unwrap()
                else {
                    panic!("a frame without content")
                };
                match told {
                    Frame::Open(open) => self.opened.lock().unwrap().push(open),
                    Frame::Send(send) => {
                        let is_answered = send.messages[0].payload != self.unanswered;
                        self.sent.lock().unwrap().push(send);
                        if !is_answered {
                            return;
                        }
                    }
                    Frame::Attach(_) | Frame::Credit(_) | Frame::Detach(_) => {}
                    other => panic!("{other:?}"),
                }
                let result = FrameResult { number, ..FrameResult::default() };
                let mut out = Vec::new();
                frame(&ServerFrame { frame: Some(Told::Result(result)) }, &mut out);
                let _ = to.send(out.into());
            }
        }
    }
}

/// `google.rpc.Status` with the leader's address.
fn details(address: &str) -> String {
    let mut info = Vec::new();
    for (name, value) in HashMap::from([("leader", "3"), ("address", address)]) {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, name.as_bytes());
        put_bytes(&mut entry, 2, value.as_bytes());
        put_bytes(&mut info, 3, &entry);
    }
    let mut any = Vec::new();
    put_bytes(&mut any, 1, b"type.googleapis.com/google.rpc.ErrorInfo");
    put_bytes(&mut any, 2, &info);
    let mut status = Vec::new();
    put_bytes(&mut status, 3, &any);
    BASE64_NOPAD.encode(&status)
}

fn send(payload: &'static [u8]) -> Frame {
    let message = Message { payload: Bytes::from_static(payload), ..Message::default() };
    Frame::Send(SendMany { queue: "q".into(), messages: vec![message], ..SendMany::default() })
}

/// The nodes of a cluster whose last leads, and a client of all of them.
async fn cluster(options: Options) -> (Vec<Arc<Node>>, Client) {
    let nodes: Vec<Arc<Node>> =
        (0..3).map(|_| Arc::new(Node { unanswered: b"lost", ..Node::default() })).collect();
    let mut addresses = Vec::new();
    for node in &nodes {
        addresses.push(node.start().await);
    }
    for node in &nodes[..2] {
        *node.leader.lock().unwrap() = Some(addresses[2]);
    }
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let urls: Vec<String> =
        [nobody].iter().chain(&addresses).map(|address| format!("http://{address}")).collect();
    (nodes, Client::with_options(&urls.join(","), options).unwrap())
}

#[tokio::test]
async fn a_session_is_opened_with_the_node_that_leads() {
    let (nodes, client) = cluster(Options::default()).await;
    let (session, mut frames) = client.in_namespace("shop").session().await.unwrap();
    assert_eq!(*nodes[2].opened.lock().unwrap(), [Open { namespace: "shop".into(), follows_leaders: true }]);
    assert!(nodes[..2].iter().all(|node| node.opened.lock().unwrap().is_empty()));
    let number = session.send(send(b"a"));
    let told = frames.next().await.unwrap();
    assert!(matches!(told, Some(Told::Result(result)) if result.number == number));
}

#[tokio::test]
async fn a_client_of_one_node_lets_it_pass_the_session_on() {
    let node = Arc::new(Node::default());
    let client = Client::new(&format!("http://{}", node.start().await)).unwrap();
    client.session().await.unwrap();
    assert_eq!(*node.opened.lock().unwrap(), [Open::default()]);
}

#[tokio::test]
async fn a_worker_goes_on_to_the_node_that_leads_without_a_word() {
    let [follower, leader] = [(); 2].map(|()| Arc::new(Node::default()));
    let addresses = [follower.start().await, leader.start().await];
    *follower.leader.lock().unwrap() = Some(addresses[1]);
    let client = Client::new(&addresses.map(|address| format!("http://{address}")).join(",")).unwrap();
    let mut options = WorkerOptions::new(vec![("q".to_owned(), 0)]);
    (options.until_empty, options.transport) = (true, WorkerTransport::Session);
    let (events, mut told) = mpsc::unbounded_channel();
    let done = Worker::new(client, options).run(Stop::new(), |_| async { Settle::Ack }, events).await;
    assert_eq!((done.unwrap().acked, leader.opened.lock().unwrap().len()), (0, 1));
    assert!(told.recv().await.is_none());
}

/// Closes the first connections as soon as something comes, as a server that stops does, then listens no
/// more.
async fn breaks(times: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for _ in 0..times {
            listener.accept().await.unwrap().0.readable().await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn a_worker_goes_on_when_its_first_connection_breaks() {
    for transport in [WorkerTransport::Session, WorkerTransport::Auto] {
        let leader = Arc::new(Node::default());
        let addresses = [breaks(1).await, leader.start().await];
        let client = Client::new(&addresses.map(|address| format!("http://{address}")).join(",")).unwrap();
        let mut options = WorkerOptions::new(vec![("q".to_owned(), 0)]);
        (options.until_empty, options.transport) = (true, transport);
        options.lease = Duration::from_secs(2);
        let (events, mut told) = mpsc::unbounded_channel();
        let began = Instant::now();
        let done = Worker::new(client, options).run(Stop::new(), |_| async { Settle::Ack }, events).await;
        assert_eq!((done.unwrap().acked, leader.opened.lock().unwrap().len()), (0, 1));
        assert!(matches!(told.recv().await, Some(WorkerEvent::ReceiveFailed(_))));
        assert!(matches!(told.recv().await, Some(WorkerEvent::ReceiveRecovered)));
        assert!(began.elapsed() >= Duration::from_secs(2), "what was lost may come back");
    }
}

#[tokio::test]
async fn sends_of_a_session_have_keys_by_which_those_without_an_answer_are_repeated() {
    let (nodes, client) = cluster(Options::default()).await;
    let (session, mut frames) = client.session().await.unwrap();
    let own = SendMany { queue: "q".into(), idempotency_key: "mine".into(), ..SendMany::default() };
    let Frame::Send(SendMany { messages, .. }) = send(b"b") else { panic!("a send") };
    for told in [send(b"a"), Frame::Send(SendMany { messages, ..own }), send(b"lost")] {
        session.send(told);
    }
    while frames.next().await.is_ok() {}
    let lost = session.take_unanswered();
    assert_eq!(lost.iter().map(|send| &send.messages[0].payload[..]).collect::<Vec<_>>(), [b"lost"]);
    assert!(session.take_unanswered().is_empty());
    let (session, _frames) = client.session().await.unwrap();
    for lost in lost {
        session.send(Frame::Send(lost));
    }
    crate::support::until(|| nodes[2].sent.lock().unwrap().len() == 4).await;
    let sent = nodes[2].sent.lock().unwrap();
    let keys: Vec<&Bytes> = sent.iter().map(|send| &send.idempotency_key).collect();
    assert_eq!((&keys[1][..], keys[3]), (&b"mine"[..], keys[2]));
    assert!(!keys[0].is_empty() && keys[0] != keys[2]);
}

#[tokio::test]
async fn sends_have_no_keys_where_that_is_measured() {
    let (nodes, client) = cluster(Options { key_sends: false, ..Options::default() }).await;
    let (session, mut frames) = client.session().await.unwrap();
    session.send(send(b"a"));
    frames.next().await.unwrap();
    assert!(nodes[2].sent.lock().unwrap()[0].idempotency_key.is_empty());
    assert!(session.take_unanswered().is_empty());
}
