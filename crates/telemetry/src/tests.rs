//! Telemetry to a collector that answers well, badly, late or not at all.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice_proto::wire::{Raw, next_field};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::endpoint::{Endpoint, Headers};
use crate::metrics::{Buckets, Figures, Kind};
use crate::queue::Queue;
use crate::spans::{Span, Traces};
use crate::trace::{Context, MessageKey, Parent, Phase};
use crate::{Options, Signals, Telemetry};

const KEY: MessageKey = MessageKey { namespace: 1, sequence: 7 };
const PATIENCE: Duration = Duration::from_secs(20);

fn options(port: u16) -> Options {
    Options {
        endpoint: Endpoint::parse(&format!("http://127.0.0.1:{port}/otlp")).unwrap(),
        ca: None,
        headers: Headers::parse("x-key=secret").unwrap(),
        sampled_ppm: 1_000_000,
        interval: Duration::from_secs(1),
        signals: Signals { traces: true, metrics: true, logs: false },
        version: "1.2.3".to_owned(),
        instance: "here:7070".to_owned(),
    }
}

/// A collector that gives these answers, one after the other, and then the last one for ever; its port, and
/// what it is sent: the head and the body.
async fn collector(answers: &'static [&'static str]) -> (u16, mpsc::UnboundedReceiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut given = 0;
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            while let Some(request) = request(&mut socket).await {
                let answer = answers[given.min(answers.len() - 1)];
                given += 1;
                if tell.send(request).is_err() || socket.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
                if answer.contains("close") {
                    break;
                }
            }
        }
    });
    (port, told)
}

async fn request(socket: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let length: usize = length.parse().unwrap();
    let mut body = bytes.split_off(end);
    while body.len() < length {
        if socket.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some((head, body))
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
const WRONG: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 3\r\n\r\nbad";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n\r\n";
/// An answer whose body does not come.
const BEGUN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
/// An answer that rejects two items.
const PARTIAL: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n\n\u{2}\u{8}\u{2}";
const NONSENSE: &str = "what? close";

fn span(traces: &Traces) -> Span<'static> {
    Span {
        context: traces.context(KEY, None).unwrap(),
        message: KEY,
        phase: Phase::Send,
        from_ns: 5,
        until_ns: 4,
        queue: "mail",
        attributes: &[],
        failure: None,
    }
}

/// The fields of a message.
fn fields(mut bytes: &[u8]) -> Vec<(u32, Raw<'_>)> {
    std::iter::from_fn(|| next_field(&mut bytes).unwrap()).collect()
}

fn inner(bytes: &[u8], wanted: u32) -> Vec<&[u8]> {
    let found = fields(bytes).into_iter().filter(|(number, _)| *number == wanted);
    found.map(|(_, value)| if let Raw::Bytes(bytes) = value { bytes } else { panic!("{value:?}") }).collect()
}

async fn next(told: &mut mpsc::UnboundedReceiver<(String, Vec<u8>)>) -> (String, Vec<u8>) {
    tokio::time::timeout(PATIENCE, told.recv()).await.expect("a request").unwrap()
}

#[tokio::test]
async fn spans_go_together_and_on_one_connection() {
    let (port, mut told) = collector(&[OK]).await;
    let telemetry = Telemetry::start(&options(port), None).unwrap();
    let traces = Arc::clone(telemetry.traces().unwrap());
    for _ in 0..2 {
        (0..3).for_each(|_| traces.record(&span(&traces)));
        let (head, body) = next(&mut told).await;
        assert!(head.starts_with("POST /otlp/v1/traces HTTP/1.1\r\n"), "{head}");
        for field in ["content-type: application/x-protobuf", "x-key: secret", "host: 127.0.0.1:"] {
            assert!(head.contains(field), "{head}");
        }
        let scoped = inner(inner(&body, 1)[0], 2);
        let spans = inner(scoped[0], 2);
        assert_eq!(spans.len(), 3);
        let times: Vec<_> =
            fields(spans[0]).into_iter().filter(|(number, _)| [7, 8].contains(number)).collect();
        assert_eq!(times, [(7, Raw::Number(5)), (8, Raw::Number(5))], "no span ends before it begins");
    }
    telemetry.finish().await;
    assert_eq!(traces.queue().counts.sent.load(Ordering::Relaxed), 6);
}

#[tokio::test]
async fn what_a_collector_cannot_take_now_is_sent_again_and_what_it_refuses_is_dropped() {
    let (port, mut told) = collector(&[BUSY, NONSENSE, CHUNKED, WRONG, OK]).await;
    let telemetry = Telemetry::start(&options(port), None).unwrap();
    let traces = Arc::clone(telemetry.traces().unwrap());
    traces.record(&span(&traces));
    let first = next(&mut told).await;
    for _ in 0..2 {
        assert_eq!(next(&mut told).await.1, first.1, "the same again");
    }
    traces.record(&span(&traces));
    next(&mut told).await;
    traces.record(&span(&traces));
    next(&mut told).await;
    telemetry.finish().await;
    let counts = &traces.queue().counts;
    let counts = [&counts.sent, &counts.dropped, &counts.failed].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts, [2, 1, 3]);
}

#[tokio::test]
async fn what_was_taken_is_not_sent_again_and_what_is_rejected_counts_as_dropped() {
    let (port, mut told) = collector(&[BEGUN, PARTIAL]).await;
    let telemetry = Telemetry::start(&options(port), None).unwrap();
    let traces = Arc::clone(telemetry.traces().unwrap());
    traces.record(&span(&traces));
    next(&mut told).await;
    (0..3).for_each(|_| traces.record(&span(&traces)));
    next(&mut told).await;
    telemetry.finish().await;
    assert!(told.try_recv().is_err(), "sent again");
    let counts = &traces.queue().counts;
    let counts = [&counts.sent, &counts.dropped, &counts.failed].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts, [2, 2, 0]);
}

#[tokio::test]
async fn nobody_waits_for_a_collector_that_is_not_there_or_says_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let away = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    for port in [silent.local_addr().unwrap().port(), away] {
        let telemetry = Telemetry::start(&options(port), None).unwrap();
        let traces = Arc::clone(telemetry.traces().unwrap());
        for _ in 0..100_000 {
            traces.record(&span(&traces));
        }
        let dropped = traces.queue().counts.dropped.load(Ordering::Relaxed);
        assert!((10_000..100_000).contains(&dropped), "{dropped}");
        let begun = std::time::Instant::now();
        telemetry.finish().await;
        assert!(begun.elapsed() < Duration::from_secs(4));
    }
}

#[tokio::test]
async fn metrics_have_their_kinds_labels_and_buckets() {
    let (port, mut told) = collector(&[OK]).await;
    let telemetry = Telemetry::start(&options(port), None).unwrap();
    let mut figures = Figures::new(1_000);
    figures.family("none", Kind::Gauge, "without points");
    figures.family("gauge", Kind::Gauge, "a gauge");
    figures.point(&[("queue", "mail")], 3);
    figures.point(&[], 5);
    figures.family("count", Kind::Counter, "a count");
    figures.point(&[], 9);
    figures.family("old", Kind::OlderCounter, "an older count");
    figures.point(&[], 10);
    figures.family("times", Kind::Histogram, "a histogram");
    let buckets = Buckets { bounds: &[0.1, 1.0], cumulated: &[2, 5], count: 6, sum: 7.5 };
    figures.buckets(&[], buckets);
    let metrics = telemetry.exports().metrics.unwrap();
    metrics.send(figures).await;
    let (head, body) = next(&mut told).await;
    assert!(head.starts_with("POST /otlp/v1/metrics "), "{head}");
    let scoped = inner(inner(&body, 1)[0], 2);
    let metrics = inner(scoped[0], 2);
    let names: Vec<_> = metrics.iter().map(|metric| inner(metric, 1)[0]).collect();
    assert_eq!(names, [&b"gauge"[..], b"count", b"old", b"times"]);
    assert_eq!(inner(inner(metrics[0], 5)[0], 1).len(), 2);
    for (metric, field, starts) in [(metrics[1], 7, true), (metrics[2], 7, false), (metrics[3], 9, true)] {
        let point = inner(inner(metric, field)[0], 1)[0];
        assert_eq!(fields(point)[0] == (2, Raw::Number(1_000_000_000)), starts);
    }
    let histogram = inner(inner(metrics[3], 9)[0], 1)[0];
    let counts: Vec<u8> = [2u64, 3, 1].into_iter().flat_map(u64::to_le_bytes).collect();
    assert_eq!(inner(histogram, 6), [counts]);
}

#[test]
fn a_message_is_recorded_as_its_own_trace_says() {
    let (all, none) = (Traces::new(1_000_000), Traces::new(0));
    let parent = Parent { trace: [9; 16], span: [8; 8], is_sampled: true };
    for traces in [&all, &none] {
        let expected = Context { trace: [9; 16], parent: Some([8; 8]) };
        assert_eq!(traces.context(KEY, Some(parent)), Some(expected));
        assert_eq!(traces.context(KEY, Some(Parent { is_sampled: false, ..parent })), None);
    }
    assert_eq!(none.context(KEY, None), None);
    assert_eq!(all.context(KEY, None).map(|context| context.parent), Some(None));
}

#[tokio::test]
async fn events_of_the_log_go_without_those_about_telling() {
    use tracing_subscriber::layer::SubscriberExt as _;

    let queue = Arc::new(Queue::new(1 << 20));
    let subscriber = tracing_subscriber::registry().with(crate::logs::Layer(Arc::clone(&queue)));
    tracing::subscriber::with_default(subscriber, || {
        tracing::warn!(target: "sluice_node", shard = 3u64, name = "x", "the {} is full", "disk");
        tracing::warn!(target: "sluice_telemetry::export", "not again");
        tracing::info!(target: "sluice_node", "{}", "é".repeat(5_000));
    });
    let events = queue.take();
    assert_eq!(events.len(), 2);
    assert_eq!(inner(inner(&events[0], 5)[0], 1), [b"the disk is full"]);
    assert_eq!(inner(&events[0], 6).len(), 3);
    assert!(fields(&events[0]).contains(&(2, Raw::Number(13))));
    assert_eq!(inner(inner(&events[1], 5)[0], 1)[0].len(), 4 << 10);
}
