//! Pushes of a node in memory to endpoints that answer well, badly, without an end, or not at all.

mod sessions;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_engine::command::{Send, SendItem};
use sluice_engine::push::{PushHeaders, PushSecrets, PushUrl};
use sluice_engine::query::{QueueView, State};
use sluice_engine::settings::{Backoff, BackoffKind, QueuePatch};
use sluice_engine::{MessageId, NamespaceId};
use sluice_https::Tls;
use sluice_node::{Durability, Node};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::address::Allowed;
use crate::log::{Attempt, Outcome};
use crate::resolve::Resolve;
use crate::{Options, Pushes, Pushing, secret};

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
const QUEUE: &str = "hooks";
const PATIENCE: Duration = Duration::from_secs(20);
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The way in which an endpoint treats a request.
#[derive(Clone, Copy)]
enum Treat {
    Answer(&'static str),
    /// An answer after so many milliseconds.
    After(u64, &'static str),
    /// An answer that says that its connection ends, and ends it.
    Close(&'static str),
    /// Nothing, for ever.
    Hang,
    /// This head, and then a body without an end.
    Endless(&'static str),
}

/// An endpoint that treats its requests in these ways, one after the other, and then in the last one for
/// ever.
struct Endpoint {
    address: SocketAddr,
    requests: mpsc::UnboundedReceiver<String>,
}

impl Endpoint {
    async fn at(address: &str, ways: &'static [Treat]) -> Endpoint {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, requests) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let given = Arc::new(Mutex::new(0));
            while let Ok((socket, _)) = listener.accept().await {
                let (tell, given) = (tell.clone(), Arc::clone(&given));
                let next = move || {
                    let mut given = given.lock().unwrap();
                    *given += 1;
                    ways[(*given - 1).min(ways.len() - 1)]
                };
                tokio::spawn(treat_all(socket, tell, next));
            }
        });
        Endpoint { address, requests }
    }

    async fn new(ways: &'static [Treat]) -> Endpoint {
        Endpoint::at("127.0.0.1:0", ways).await
    }

    fn url(&self) -> String {
        format!("http://{}/hooks?x=1", self.address)
    }

    async fn next(&mut self) -> String {
        timeout(PATIENCE, self.requests.recv()).await.expect("a request").unwrap()
    }
}

async fn treat_all(mut socket: TcpStream, tell: mpsc::UnboundedSender<String>, next: impl Fn() -> Treat) {
    let mut bytes = Vec::new();
    loop {
        let Some(request) = request(&mut socket, &mut bytes).await else { return };
        let _ = tell.send(request);
        match next() {
            Treat::Answer(answer) => socket.write_all(answer.as_bytes()).await.unwrap(),
            Treat::After(ms, answer) => {
                sleep(Duration::from_millis(ms)).await;
                // Who has asked may be gone.
                let _ = socket.write_all(answer.as_bytes()).await;
            }
            Treat::Close(answer) => return socket.write_all(answer.as_bytes()).await.unwrap(),
            Treat::Hang => sleep(PATIENCE).await,
            Treat::Endless(head) => {
                socket.write_all(head.as_bytes()).await.unwrap();
                while socket.write_all(&[b'x'; 16 << 10]).await.is_ok() {}
                let _ = tell.send("the connection was closed".to_owned());
                return;
            }
        }
    }
}

async fn request(socket: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<String> {
    loop {
        let text = String::from_utf8_lossy(bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
            let length: usize = length.parse().ok()?;
            if body.len() >= length {
                bytes.drain(..head.len() + 4 + length);
                return Some(text[..head.len() + 4 + length].to_owned());
            }
        }
        if socket.read_buf(bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// A node with a queue that pushes.
pub(crate) struct Bed {
    pub(crate) node: Node,
    pushes: Pushes,
    pushing: Pushing,
}

impl Bed {
    pub(crate) async fn new(url: &str, patch: QueuePatch, options: Options) -> Bed {
        Bed::with_mailbox(1_024, url, patch, options).await
    }

    /// With room for so many requests at a time.
    async fn with_mailbox(requests: usize, url: &str, patch: QueuePatch, options: Options) -> Bed {
        let node = Node::start(sluice_node::Options {
            data_dir: None,
            shards: 1,
            durability: Durability::Os,
            cache_bytes: 1 << 20,
            limits: Default::default(),
            mailbox_requests: requests,
            mailbox_bytes: 256 << 20,
            waiting_receives: 100,
            events: Default::default(),
            reserve_bytes: 0,
            low_water_bytes: 0,
            accept_clock_jump: false,
            movable_time: true,
            encryption: Default::default(),
            key_source: None,
        });
        let node = node.unwrap();
        let backoff = Backoff { kind: BackoffKind::None, ..Backoff::default() };
        let patch = QueuePatch { push_url: Some(PushUrl(url.into())), backoff: Some(backoff), ..patch };
        node.queue_set(NAMESPACE, QUEUE, patch, true).await.unwrap();
        let pushes = Pushes::new(options);
        let pushing = pushes.start(node.clone());
        Bed { node, pushes, pushing }
    }

    async fn to(endpoint: &Endpoint, patch: QueuePatch) -> Bed {
        Bed::new(&endpoint.url(), patch, options("127.0.0.0/8")).await
    }

    pub(crate) async fn send(&self, payload: &str) -> MessageId {
        let headers = [("traceparent", "00-trace"), ("Kind", "order"), ("ä", "no header of HTTP")];
        let item = SendItem {
            payload: payload.as_bytes(),
            content_type: "text/plain",
            headers: &headers,
            ..SendItem::default()
        };
        let items = &[item];
        let send =
            Send { namespace: NAMESPACE, queue: QUEUE, idempotency_key: b"", request_digest: 0, items };
        self.node.send(&send).await.unwrap().first
    }

    async fn set(&self, patch: QueuePatch) {
        self.node.queue_set(NAMESPACE, QUEUE, patch, false).await.unwrap();
    }

    async fn until(&self, what: &str, is_so: impl Fn(&QueueView) -> bool) -> QueueView {
        let look = async {
            loop {
                let queue = self.node.queue(NAMESPACE, QUEUE).await.unwrap();
                if is_so(&queue) {
                    return queue;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        let found = timeout(PATIENCE, look).await;
        let log = self.pushes.log(NAMESPACE, QUEUE, 9);
        found.unwrap_or_else(|_| panic!("waited in vain: {what}; {log:?}"))
    }

    async fn until_dead(&self) -> String {
        self.until("a dead letter", |queue| in_state(queue, State::Dead) == 1).await;
        self.logged().await.error.into()
    }

    /// The latest push.
    async fn logged(&self) -> Attempt {
        self.logged_as("a push", |_| true).await
    }

    /// A push that is as described, as soon as it is in the log: entries follow their settlements.
    async fn logged_as(&self, what: &str, is_so: impl Fn(&Attempt) -> bool) -> Attempt {
        let look = async {
            loop {
                if let Some(attempt) = self.pushes.log(NAMESPACE, QUEUE, 9).into_iter().find(&is_so) {
                    return attempt;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        let found = timeout(PATIENCE, look).await;
        let log = self.pushes.log(NAMESPACE, QUEUE, 9);
        found.unwrap_or_else(|_| panic!("not in the log: {what}; {log:?}"))
    }
}

fn in_state(queue: &QueueView, state: State) -> u64 {
    queue.counters.states[state as usize]
}

pub(crate) fn options(allowed: &str) -> Options {
    Options::new(Tls::trusting_nobody(), Allowed::parse(allowed).unwrap(), "sluice/test".to_owned())
}

/// A queue whose messages have one attempt.
fn once() -> QueuePatch {
    QueuePatch { max_attempts: Some(1), ..QueuePatch::default() }
}

#[tokio::test]
async fn a_message_is_pushed_signed_and_acked() {
    let mut endpoint = Endpoint::new(&[Treat::Answer(OK)]).await;
    let patch = QueuePatch {
        push_secrets: Some(PushSecrets([secret::parse(SECRET).unwrap()].into())),
        push_headers: Some(PushHeaders::new(vec![("x-env".into(), "test".into())])),
        ..QueuePatch::default()
    };
    let bed = Bed::to(&endpoint, patch).await;
    bed.send("hello").await;
    let request = endpoint.next().await;
    let field = |name: &str| request.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    assert!(request.starts_with("POST /hooks?x=1 HTTP/1.1\r\n") && request.ends_with("\r\n\r\nhello"));
    for (name, value) in [
        ("host: ", endpoint.address.to_string().as_str()),
        ("user-agent: ", "sluice/test"),
        ("content-type: ", "text/plain"),
        ("traceparent: ", "00-trace"),
        ("sluice-header-kind: ", "order"),
        ("sluice-queue: ", QUEUE),
        ("sluice-attempt: ", "1"),
        ("x-env: ", "test"),
    ] {
        assert_eq!(field(name), value, "{request}");
    }
    let signer = secret::Signer::new(&PushSecrets([secret::parse(SECRET).unwrap()].into()));
    let signature = signer.sign(field("webhook-id: "), field("webhook-timestamp: "), b"hello");
    assert_eq!(field("webhook-signature: "), signature);
    bed.until("an ack", |queue| queue.counters.acked == 1).await;
    let attempt = bed.logged().await;
    assert_eq!((attempt.status, attempt.outcome, &*attempt.error), (Some(200), Outcome::Acked, ""));
    assert_eq!(attempt.message.to_string(), field("webhook-id: "));
    bed.pushing.stop().await;
}

#[tokio::test]
async fn a_message_is_tried_again_under_its_id_by_the_rules_of_its_queue() {
    const BAD: &str = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 4\r\n\r\nboom";
    let mut endpoint = Endpoint::new(&[Treat::Answer(BAD), Treat::Answer(OK)]).await;
    let bed = Bed::to(&endpoint, QueuePatch::default()).await;
    bed.send("m").await;
    let (first, second) = (endpoint.next().await, endpoint.next().await);
    let id = |request: &str| request.lines().find(|line| line.starts_with("webhook-id")).unwrap().to_owned();
    assert_eq!(id(&first), id(&second));
    assert!(second.contains("sluice-attempt: 2\r\n") && !first.contains("webhook-signature"));
    let queue = bed.until("an ack", |queue| queue.counters.acked == 1).await;
    assert_eq!(queue.counters.nacked, 1);
    bed.logged_as("the refusal", |push| &*push.error == "HTTP 500 Internal Server Error: boom").await;
}

#[tokio::test]
async fn connections_are_kept_and_one_that_was_closed_is_no_failed_attempt() {
    const CLOSING: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let mut endpoint = Endpoint::new(&[Treat::Answer(OK), Treat::Close(CLOSING), Treat::Answer(OK)]).await;
    let bed = Bed::to(&endpoint, once()).await;
    for acked in 1..=4 {
        bed.send("m").await;
        endpoint.next().await;
        bed.until("an ack", |queue| queue.counters.acked == acked).await;
    }
}

#[tokio::test]
async fn an_endpoint_that_hangs_holds_up_nobody_else_and_leaves_nothing() {
    let endpoint = Endpoint::new(&[Treat::Hang, Treat::Answer(OK)]).await;
    let patch = QueuePatch { push_timeout_ms: Some(200), ..once() };
    let bed = Bed::to(&endpoint, patch).await;
    bed.send("hangs").await;
    bed.send("goes").await;
    bed.until("one of each", |queue| queue.counters.acked == 1 && in_state(queue, State::Dead) == 1).await;
    bed.logged_as("the hanging push", |push| &*push.error == "no answer within 200 ms").await;
    assert_eq!(bed.pushes.counts().in_flight.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    const MOVED: &str =
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    let endpoint = Endpoint::new(&[Treat::Answer(MOVED)]).await;
    let bed = Bed::to(&endpoint, once()).await;
    bed.send("m").await;
    let error = bed.until_dead().await;
    assert!(error.starts_with("HTTP 307 Temporary Redirect: redirects are not followed"), "{error}");
}

#[tokio::test]
async fn an_answer_without_an_end_is_cut_whatever_it_says() {
    const LONG: &str = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 99999999999\r\n\r\n";
    let mut endpoint = Endpoint::new(&[Treat::Endless(LONG)]).await;
    let bed = Bed::to(&endpoint, once()).await;
    bed.send("m").await;
    let error = bed.until_dead().await;
    assert!(error.starts_with("HTTP 500 Internal Server Error: xxx") && error.len() < 1_024, "{error}");
    endpoint.next().await;
    assert_eq!(endpoint.next().await, "the connection was closed");

    const GOOD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n";
    let mut endpoint = Endpoint::new(&[Treat::Endless(GOOD)]).await;
    let bed = Bed::to(&endpoint, once()).await;
    bed.send("m").await;
    bed.until("an ack", |queue| queue.counters.acked == 1).await;
    endpoint.next().await;
    assert_eq!(endpoint.next().await, "the connection was closed");
}

#[tokio::test]
async fn a_head_without_an_end_and_an_answer_that_is_no_http_fail() {
    for treat in [&[Treat::Endless("HTTP/1.1 200 OK\r\nx: ")][..], &[Treat::Close("what?\r\n\r\n")]] {
        let endpoint = Endpoint::new(treat).await;
        let bed = Bed::to(&endpoint, QueuePatch { push_timeout_ms: Some(5_000), ..once() }).await;
        bed.send("m").await;
        let error = bed.until_dead().await;
        assert!(error.starts_with("the connection failed"), "{error}");
    }
}

/// Addresses for one look-up after the other, the last for ever.
#[derive(Debug)]
struct Looks(Mutex<VecDeque<Vec<SocketAddr>>>);

impl Resolve for Looks {
    fn resolve(&self, _: &str, _: u16) -> std::io::Result<Vec<SocketAddr>> {
        let mut looks = self.0.lock().unwrap();
        let first = if looks.len() > 1 { looks.pop_front() } else { looks.front().cloned() };
        Ok(first.unwrap_or_default())
    }
}

fn looks(allowed: &str, looks: &[&[SocketAddr]]) -> Options {
    let looks = looks.iter().map(|look| look.to_vec()).collect();
    Options { resolver: Arc::new(Looks(Mutex::new(looks))), ..options(allowed) }
}

#[tokio::test]
async fn an_address_that_is_refused_on_the_second_look_is_not_connected_with() {
    const CLOSING: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let mut open = Endpoint::new(&[Treat::Close(CLOSING)]).await;
    let mut refused = Endpoint::at("127.0.0.2:0", &[Treat::Answer(OK)]).await;
    let options = looks("127.0.0.1/32", &[&[open.address], &[refused.address]]);
    let bed = Bed::new("http://endpoint.test/", once(), options).await;
    bed.send("first").await;
    open.next().await;
    bed.until("an ack", |queue| queue.counters.acked == 1).await;
    bed.send("second").await;
    bed.until("a dead letter", |queue| in_state(queue, State::Dead) == 1).await;
    assert!(refused.requests.try_recv().is_err() && open.requests.try_recv().is_err());
    bed.logged_as("the refused address", |push| push.error.contains("127.0.0.2 is none of them")).await;
}

#[tokio::test]
async fn of_several_addresses_those_that_are_refused_are_left_out() {
    let mut open = Endpoint::new(&[Treat::Answer(OK)]).await;
    let mut refused = Endpoint::at("127.0.0.2:0", &[Treat::Answer(OK)]).await;
    let options = looks("127.0.0.1/32", &[&[refused.address, open.address]]);
    let bed = Bed::new("http://endpoint.test/", once(), options).await;
    bed.send("m").await;
    open.next().await;
    assert!(refused.requests.try_recv().is_err());
}

#[tokio::test]
async fn an_endpoint_of_this_machine_is_refused_by_default() {
    let mut endpoint = Endpoint::new(&[Treat::Answer(OK)]).await;
    let bed = Bed::new(&format!("https://{}/", endpoint.address), once(), options("")).await;
    bed.send("m").await;
    let error = bed.until_dead().await;
    assert!(error.contains("127.0.0.1 is refused (loopback)"), "{error}");
    assert!(endpoint.requests.try_recv().is_err());
    assert!(bed.pushes.check_url("https://10.0.0.1/").is_err());
}

#[tokio::test]
async fn an_endpoint_that_is_gone_pauses_its_queue_until_it_is_resumed() {
    const GONE: &str = "HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n";
    let mut endpoint = Endpoint::new(&[Treat::Answer(GONE), Treat::Answer(OK)]).await;
    let bed = Bed::to(&endpoint, QueuePatch { push_concurrency: Some(1), ..once() }).await;
    bed.send("m").await;
    let queue = bed.until("the pause", |queue| queue.settings.push_paused).await;
    assert!(!queue.settings.paused);
    bed.until("the message is back", |queue| in_state(queue, State::Ready) == 1).await;
    assert_eq!(bed.logged().await.outcome, Outcome::Gone);
    endpoint.next().await;
    sleep(Duration::from_millis(700)).await;
    assert!(endpoint.requests.try_recv().is_err(), "nothing is pushed while it is paused");
    bed.set(QueuePatch { push_paused: Some(false), ..QueuePatch::default() }).await;
    let request = endpoint.next().await;
    assert!(request.contains("sluice-attempt: 1\r\n"), "the attempt did not count: {request}");
    bed.until("an ack", |queue| queue.counters.acked == 1).await;
}

#[tokio::test]
async fn an_endpoint_that_wants_messages_later_gets_nothing_before() {
    const LATER: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";
    let mut endpoint = Endpoint::new(&[Treat::Answer(LATER), Treat::Answer(OK)]).await;
    let bed = Bed::to(&endpoint, QueuePatch { push_concurrency: Some(1), ..once() }).await;
    let began = std::time::Instant::now();
    bed.send("one").await;
    endpoint.next().await;
    bed.send("other").await;
    for _ in 0..2 {
        endpoint.next().await;
        assert!(began.elapsed() > Duration::from_millis(900), "{:?}", began.elapsed());
    }
    let queue = bed.until("both acks", |queue| queue.counters.acked == 2).await;
    assert_eq!((queue.counters.released >= 1, queue.counters.nacked), (true, 0));
}

#[tokio::test]
async fn pushes_keep_to_their_rate_and_their_number() {
    let mut endpoint = Endpoint::new(&[Treat::Answer(OK)]).await;
    let bed = Bed::to(&endpoint, QueuePatch { push_rate: Some(10), ..once() }).await;
    let began = std::time::Instant::now();
    for _ in 0..4 {
        bed.send("m").await;
    }
    for _ in 0..4 {
        endpoint.next().await;
    }
    assert!(began.elapsed() >= Duration::from_millis(250), "{:?}", began.elapsed());

    let mut endpoint = Endpoint::new(&[Treat::Hang]).await;
    let bed = Bed::to(&endpoint, QueuePatch { push_concurrency: Some(2), ..once() }).await;
    for _ in 0..10 {
        bed.send("m").await;
    }
    let all = |queue: &QueueView| in_state(queue, State::Leased) == 8 && queue.counters.sent == 10;
    let queue = bed.until("leases", all).await;
    assert_eq!(in_state(&queue, State::Ready), 2, "four times as many as are pushed are held");
    for _ in 0..2 {
        endpoint.next().await;
    }
    sleep(Duration::from_millis(200)).await;
    assert!(endpoint.requests.try_recv().is_err(), "two at a time");
}

#[tokio::test]
async fn other_settings_count_soon_and_without_an_endpoint_nothing_is_pushed() {
    let mut one = Endpoint::new(&[Treat::Answer(OK)]).await;
    let other = Endpoint::new(&[Treat::Answer(OK)]).await;
    let bed = Bed::to(&one, once()).await;
    bed.send("m").await;
    one.next().await;
    let to = |url: String| QueuePatch { push_url: Some(PushUrl(url.into())), ..QueuePatch::default() };
    bed.set(to(other.url())).await;
    let turn = async {
        while other.requests.is_empty() {
            bed.send("m").await;
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, turn).await.expect("a push to the other endpoint");
    bed.until("every ack", |queue| in_state(queue, State::Ready) + in_state(queue, State::Leased) == 0).await;
    assert_eq!(bed.pushes.log(NAMESPACE, QUEUE, 1).len(), 1, "the log goes on");
    bed.set(to(String::new())).await;
    let end = async {
        while bed.node.consumers(NAMESPACE, None, 10).await.unwrap().iter().any(|of| of.credit > 0) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, end).await.expect("no consumer that has credit");
    bed.send("m").await;
    bed.until("a message that waits", |queue| in_state(queue, State::Ready) == 1).await;
    assert!(bed.pushes.log(NAMESPACE, QUEUE, 1).is_empty());
}

#[tokio::test]
async fn a_stop_gives_back_what_hangs() {
    let mut endpoint = Endpoint::new(&[Treat::Hang]).await;
    let bed = Bed::to(&endpoint, once()).await;
    bed.send("m").await;
    endpoint.next().await;
    let Bed { node, pushing, .. } = bed;
    pushing.stop().await;
    let look = async {
        while in_state(&node.queue(NAMESPACE, QUEUE).await.unwrap(), State::Ready) != 1 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, look).await.expect("the message is ready again, and its attempt does not count");
}
