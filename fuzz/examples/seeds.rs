//! Writes the seeds of all targets, from real encodings: `scripts/fuzz --seeds`. The same each time.

use std::path::{Path, PathBuf};

use prost::Message as _;
use sluice_engine::blob::BlobHead;
use sluice_engine::command::{Deliver, Receive, RecordSink, Send, SendItem, SettleItem, Settlement};
use sluice_engine::settings::{Backoff, QueuePatch, Quotas};
use sluice_engine::{BEHAVIOUR_VERSION, Command, Engine, Limits, MessageId, NamespaceId, Outcome, Receipt};
use sluice_fuzz::framing::framed;
use sluice_fuzz::image;
use sluice_http2::frame::{FrameHeader, flag, kind};
use sluice_http2::hpack::Encoder;
use sluice_journal::{Batch, BlobKey};
use sluice_proto::framing::frame;
use sluice_proto::v1;
use sluice_proto::v1::client_frame::Frame;
use sluice_proto::v1::{ClientFrame, Message, SendMany, SettleMany};
use sluice_replica::{
    Campaign, Change, Content, Descriptor, Entry, Members, NodeId, PROTOCOL_NEWEST, Position, ReadId,
    Snapshot,
};

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;

fn main() {
    let corpus = Corpus(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus"));
    engine(&corpus);
    texts(&corpus);
    journal(&corpus);
    http(&corpus);
    http1_heads(&corpus);
    http2(&corpus);
    http2_sessions(&corpus);
    config(&corpus);
    access(&corpus);
    filters(&corpus);
    grpc(&corpus);
    replica(&corpus);
    peers(&corpus);
}

struct Corpus(PathBuf);

impl Corpus {
    fn write(&self, target: &str, name: &str, bytes: &[u8]) {
        let folder = self.0.join(target);
        std::fs::create_dir_all(&folder).expect("a folder in corpus/");
        std::fs::write(folder.join(name), bytes).expect("a file in corpus/");
    }
}

/// A record's body, with the byte before it that says how far time goes on (see the target).
#[derive(Default)]
struct Body(Vec<u8>);

impl RecordSink for Body {
    fn body(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn blob(&mut self, _: &[&[u8]]) {}
}

fn body(code: u8, command: &Command<'_>) -> Vec<u8> {
    let mut body = Body(vec![code]);
    command.encode(&mut body);
    body.0
}

fn send(key: &'static [u8], items: &[SendItem<'_>]) -> Vec<u8> {
    let send = Send { namespace: NAMESPACE, queue: "jobs", idempotency_key: key, request_digest: 7, items };
    body(0, &Command::Send(send))
}

fn receive(queues: &[(&str, u16)], max_messages: u32) -> Vec<u8> {
    let (max_bytes, lease_ms, consumer) = (1 << 20, 1_000, "worker");
    body(0, &Command::Receive(Receive { namespace: NAMESPACE, queues, max_messages, max_bytes, lease_ms, consumer }))
}

/// What happens in the first epoch: messages, and receipts that are right when the records apply in this
/// order.
fn moving() -> Vec<Vec<u8>> {
    let plain = SendItem { payload: b"payload", ..SendItem::default() };
    let later = SendItem { deliver: Deliver::AfterMs(5_000), priority: 9, ..plain.clone() };
    let backoff = Some(Backoff::default());
    let once = SendItem { max_attempts: 1, backoff, content_type: "text/plain", headers: &[("a", "b")], ..plain.clone() };
    let at = SendItem { deliver: Deliver::AtUs(1_800_000_000_000_000), ..plain.clone() };
    let mut records = vec![
        body(0, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION }),
        body(0, &Command::Configure(Limits::default())),
        send(b"", &[plain.clone(), later, once, at]),
        send(b"key", &[plain.clone()]),
        send(b"key", &[plain]),
        receive(&[("jobs", 0)], 3),
    ];
    let receipts = receipts(&records);
    let settlements = [Settlement::Ack, Settlement::Nack { delay_ms: None }, Settlement::Reject];
    let item = |(receipt, settlement): (&Receipt, Settlement)| SettleItem { receipt: *receipt, settlement, error: "no", result: None, add_cost: 0 };
    let items: Vec<_> = receipts.iter().zip(settlements).map(item).collect();
    let extended: Vec<_> = receipts.iter().map(|receipt| (*receipt, 60_000)).collect();
    records.push(body(0, &Command::Extend { namespace: NAMESPACE, items: &extended }));
    records.push(body(0, &Command::Settle { namespace: NAMESPACE, items: &items }));
    records.push(body(9, &Command::Tick));
    records.push(receive(&[("jobs", 2), ("other", 1)], 10));
    records.push(body(9, &Command::Tick));
    records
}

fn administering() -> Vec<Vec<u8>> {
    let (namespace, queue) = (NAMESPACE, "jobs");
    let quotas = Quotas { queues: 5, messages: 10, bytes: 1_000, ..Quotas::default() };
    let patch = QueuePatch { lease_ms: Some(5_000), max_attempts: Some(2), ..QueuePatch::default() };
    [
        Command::QueueSet { namespace, queue, patch, create: true },
        Command::NamespaceCreate { number: None, name: "tenant", shard: 0, quotas },
        Command::NamespaceSet { namespace, quotas },
        Command::DeadRedrive { namespace, queue, ids: &[] },
        Command::Tick,
        Command::DeadDelete { namespace, queue, ids: &[MessageId { namespace, sequence: 1 << 22 }] },
        Command::QueuePurge { namespace, queue },
        Command::Tick,
        Command::QueueDelete { namespace, queue },
        Command::NamespaceDelete { namespace: NamespaceId(2), force: true },
        Command::Tick,
    ]
    .iter()
    .map(|command| body(0, command))
    .collect()
}

fn engine_after(records: &[Vec<u8>]) -> (Engine, Vec<Receipt>) {
    let (mut engine, mut out, mut receipts) = (Engine::new(), Outcome::default(), Vec::new());
    for (index, record) in (1..).zip(records) {
        engine.apply(1_700_000_000_000_000 + index * 1_000, index, &record[1..], &mut out);
        assert_eq!(out.error, None);
        receipts.extend(out.deliveries.iter().map(|delivery| delivery.receipt));
    }
    (engine, receipts)
}

fn receipts(records: &[Vec<u8>]) -> Vec<Receipt> {
    engine_after(records).1
}

fn engine(corpus: &Corpus) {
    let moving = moving();
    corpus.write("engine_records", "moving", &framed(moving.clone()));
    let both: Vec<_> = moving.iter().cloned().chain(administering()).collect();
    corpus.write("engine_records", "administering", &framed(both));
    for (name, mut engine) in [("fresh", Engine::new()), ("used", engine_after(&moving[..7]).0)] {
        let mut pieces = Vec::new();
        engine.snapshot_begin();
        while !engine.snapshot_step(1 << 16, &mut pieces) {}
        corpus.write("engine_snapshot", name, &framed(pieces.chunks(30_000).map(<[u8]>::to_vec)));
    }
}

fn texts(corpus: &Corpus) {
    let id = MessageId { namespace: NAMESPACE, sequence: (3 << 22) + 99 };
    corpus.write("engine_texts", "id", id.to_string().as_bytes());
    corpus.write("engine_texts", "receipt", Receipt { id, token: (3 << 22) + 7, tag: 5 }.to_string().as_bytes());
    let head = BlobHead::default().build("text/plain", &[("traceparent", "00-1-2-01"), ("a", "")]).to_vec();
    corpus.write("engine_texts", "blob", &[&head, &b"payload"[..]].concat());
    corpus.write("engine_texts", "blob-plain", &[&[0, 0], &b"payload"[..]].concat());
}

/// A term that node 2 leads, another that node 3 asks for, and what a follower would say to a leader; each
/// without its checksum.
fn replica(corpus: &Corpus) {
    use sluice_replica::{Body, Message, wire};

    let at = |term, index| Position { term, index };
    let batch = Descriptor { first_record: 1, records: 2, time_us: 3, bytes: 4, checksum: 5 };
    let change = Change::Add(NodeId::new(4).expect("not 0"));
    let contents = [Content::Begin, Content::Batch(batch), Content::Members(change)];
    let entries = contents.into_iter().zip(2..);
    let entries = entries.map(|(content, index)| Entry { position: at(2, index), content }).collect();
    let voters = [1, 2, 3].map(|id| NodeId::new(id).expect("not 0")).to_vec();
    let members = Members::new(voters, Vec::new(), 3).expect("the members are right");
    let vote = |is_try| Body::Vote { is_try, is_granted: true, commit: at(0, 0) };
    let ask = |campaign| Body::AskVote { campaign, last: at(2, 9), commit: at(2, 9) };
    let following = [
        (2, 2, Body::Append { previous: at(1, 1), commit: 0, entries }),
        (2, 2, Body::Heartbeat { commit: 3, read: Some(ReadId(7)) }),
        (2, 2, Body::Snapshot(Snapshot { position: at(2, 9), members })),
        (2, 2, Body::TimeoutNow),
        (3, 4, ask(Campaign::Try)),
        (3, 4, ask(Campaign::Election)),
        (3, 6, ask(Campaign::Transfer)),
    ];
    let leading = [
        (2, 2, vote(true)),
        (2, 2, vote(false)),
        (2, 2, Body::AppendRefused { previous: 1, hint: at(0, 0), commit: 0 }),
        (2, 2, Body::Appended { index: 2, commit: 0 }),
        (2, 2, Body::HeartbeatSeen { commit: 1, read: None }),
    ];
    let encoded = |(from, term, body)| {
        let [from, to] = [from, 1].map(|id| NodeId::new(id).expect("not 0"));
        let mut bytes = Vec::new();
        let message = Message { from, to, term, body };
        wire::encode(&message, PROTOCOL_NEWEST, &mut bytes);
        bytes.truncate(bytes.len() - 4);
        bytes
    };
    corpus.write("replica_messages", "following", &framed(following.map(encoded)));
    corpus.write("replica_messages", "leading", &framed(leading.map(encoded)));
}

/// One frame of each kind; a direction with several; and pieces of one byte.
fn peers(corpus: &Corpus) {
    use sluice_peers::hello::{Formats, Hello};
    use sluice_peers::{ClusterId, Identity, frame::Frame};
    use sluice_replica::{
        Body, Envelope, Message, Protocols, SentBlob, StateBody, StateHead, StateMessage,
    };

    let [from, to] = [2, 1].map(|id| NodeId::new(id).expect("not 0"));
    let batches = [&b"three"[..], b"", b"batches"].map(bytes::Bytes::from_static).to_vec();
    let entry = |(index, batch): (u64, &bytes::Bytes)| Entry {
        position: Position { term: 2, index },
        content: Content::Batch(Descriptor {
            first_record: index,
            records: 1,
            time_us: 3,
            bytes: batch.len() as u32,
            checksum: crc32fast::hash(batch),
        }),
    };
    let entries = (2..).zip(&batches).map(entry).collect();
    let append = Body::Append { previous: Position { term: 1, index: 1 }, commit: 1, entries };
    let heartbeat = Body::Heartbeat { commit: 1, read: None };
    let envelope = |body, batches| Envelope::new(Message { from, to, term: 2, body }, batches);
    let identity = Identity { cluster: ClusterId(7), node: from };
    let formats = Formats { highest: 1, in_force: 1 };
    let hello = Hello { identity, protocols: Protocols::OWN, start: 5, wall_us: 6, formats };
    let content = bytes::Bytes::from_static(b"content");
    let at = Position { term: 2, index: 9 };
    let state = |body| Frame::State { shard: 3, message: StateMessage { from, to, state: at, body } };
    let key = BlobKey { index: 30, item: 1 };
    let label = b"members".to_vec();
    let head = StateHead { applied_index: 40, number: 9, term: 2, time_us: 3, behaviour: 1, label };
    let blobs = [SentBlob::Whole(content.clone()), SentBlob::Gone, SentBlob::Damaged];
    let blobs = blobs.map(|blob| (key, blob)).to_vec();
    let frames = [
        ("greeting", Frame::Hello(hello)),
        ("refusal", Frame::Refused("nobody knows you".to_owned())),
        ("removal", Frame::Removed),
        ("alive", Frame::Alive),
        ("heartbeat", Frame::Envelope { shard: 3, envelope: envelope(heartbeat, Vec::new()) }),
        ("append", Frame::Envelope { shard: 3, envelope: envelope(append, batches) }),
        ("request", Frame::Request { number: 1, within_ms: 2, content: content.clone() }),
        ("answer", Frame::Answer { number: 1, content: content.clone() }),
        ("state-busy", state(StateBody::Busy)),
        ("state-ask-content", state(StateBody::AskContent { offset: 7, is_again: true })),
        ("state-ask-blobs", state(StateBody::AskBlobs { keys: vec![key, key] })),
        ("state-content", state(StateBody::Content { head, offset: 7, bytes: content, end: Some(9) })),
        ("state-blobs", state(StateBody::Blobs { whole_from: 40, blobs })),
    ];
    let encoded = |frame: &Frame| {
        let mut bytes = Vec::new();
        frame.encode(0, PROTOCOL_NEWEST, &mut bytes);
        frame.batches().iter().for_each(|batch| bytes.extend_from_slice(batch));
        bytes
    };
    let seed = |cut: u8, frames: Vec<Vec<u8>>| [vec![cut], framed(frames)].concat();
    for (name, frame) in &frames {
        corpus.write("peer_frames", name, &seed(255, vec![encoded(frame)]));
    }
    let all: Vec<Vec<u8>> = frames.iter().map(|(_, frame)| encoded(frame)).collect();
    corpus.write("peer_frames", "all", &seed(99, all.clone()));
    corpus.write("peer_frames", "all-by-byte", &seed(0, all));
}

fn journal(corpus: &Corpus) {
    let mut batch = Batch::new();
    let mut record = batch.record(2);
    record.body(b"body");
    record.blob(&[b"one"]);
    record.blob(&[b""]);
    drop(record);
    batch.record(0).body(b"bare");
    corpus.write("journal_records", "two", &batch.take().0);

    let image = image::make();
    assert!(image::read(&image.disk).is_ok_and(|bodies| !bodies.is_empty()));
    let manifest = image.disk.change(&image::dir().join("manifest"), |bytes| bytes[16..].to_vec());
    corpus.write("journal_manifest", "whole", &manifest);
    let encrypted = image::make_with(&image::encrypted());
    let keyring = encrypted.disk.change(&image::dir().join("keyring"), |bytes| bytes[16..].to_vec());
    corpus.write("journal_keyring", "whole", &keyring);
    for file in 0..image.disk.paths().len() as u8 {
        for (name, change) in [
            ("flip", [file, 0, 40, 0, 0, 0, 1, 0xff].to_vec()),
            ("cut", [file, 2, 99, 0, 0, 0, 0].to_vec()),
            ("gone", [file, 3, 0, 0, 0, 0, 0].to_vec()),
            ("stale", [file, 4, 0, 2, 0, 0, 255, 0, 4, 0, 0].to_vec()),
        ] {
            corpus.write("journal_open", &format!("{name}-{file}"), &change);
        }
    }
    corpus.write("backup_restore", "shard", &image.backup);
    let shards = 1u32.to_le_bytes();
    let frame = |shard: u32, bytes: &[u8]| {
        [&shard.to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes(), bytes].concat()
    };
    let node = [&b"SLUICEB1"[..], &shards, &frame(0, &image.backup), &frame(u32::MAX, &[])].concat();
    let dir = tempfile::tempdir().expect("a temporary folder");
    sluice_node::backup::restore(&mut &node[..], &dir.path().join("data"), &image::roots()).expect("a whole backup is restored");
    corpus.write("backup_restore", "node", &node);
}

fn http(corpus: &Corpus) {
    let receipt = "00000080000g0000000g000100000001";
    let bodies = [
        r#"{"messages":[{"payload":"a\u00e9\n","headers":{"a":"b"},"priority":3,"delay_ms":5},{"payload_base64":"AAEC",
            "content_type":"image/png","max_attempts":2,"backoff":{"kind":"linear","base_ms":1,"cap_ms":9}}]}"#
            .to_owned(),
        format!(r#"{{"receipts":["{receipt}","forged"]}}"#),
        format!(r#"{{"receipt":"{receipt}","error":"why \ud83d\ude00","delay_ms":5}}"#),
        format!(r#"{{"receipt":"{receipt}","delay_ms":5}}"#),
        format!(r#"{{"receipt":"{receipt}","error":"never"}}"#),
        format!(r#"{{"items":[{{"receipt":"{receipt}","outcome":"nack","error":"e","delay_ms":1}}]}}"#),
        format!(r#"{{"items":[{{"receipt":"{receipt}","lease_ms":1000}},{{"receipt":"{receipt}"}}]}}"#),
        r#"{"queues":["a",{"name":"b","weight":3}],"max":5,"wait_ms":10,"lease_ms":7,"consumer":"c"}"#.to_owned(),
        r#"{"lease_ms":5,"max_attempts":3,"backoff":{"kind":"none","jitter_percent":10}}"#.to_owned(),
        format!(r#"{{"ids":["{}"]}}"#, &receipt[..20]),
        r#"{"quotas":{"queues":1,"messages":2,"bytes":3},"shard":0}"#.to_owned(),
        "state=dead&cursor=x%2Fy+z&limit=10&payload=false".to_owned(),
    ];
    assert_eq!(bodies.len(), sluice_front::http::fuzzing::DECODERS.len(), "a seed for each decoder");
    for (which, body) in (0u8..).zip(bodies) {
        corpus.write("http_json", &format!("decoder-{which:02}"), &[&[which], body.as_bytes()].concat());
    }
}

fn http1_heads(corpus: &Corpus) {
    let good = "POST /v1/queues/jobs/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}\
        PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2;x=1\r\nab\r\n0\r\nt: 1\r\n\r\n\
        GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    let refused = [
        ("both-lengths", "transfer-encoding: chunked\r\ncontent-length: 2"),
        ("two-lengths", "content-length: 2\r\ncontent-length: 3"),
        ("gzip", "transfer-encoding: gzip, chunked"),
        ("bare-cr", "a: b\rc"),
    ];
    corpus.write("http1_heads", "at-once", &[b"\x00", good.as_bytes()].concat());
    corpus.write("http1_heads", "in-pieces", &[b"\x03\x01\x07\x40", good.as_bytes()].concat());
    for (name, fields) in refused {
        let input = format!("\u{2}\u{1}\u{9}{good}PUT / HTTP/1.1\r\n{fields}\r\n\r\n");
        corpus.write("http1_heads", name, input.as_bytes());
    }
}

fn http2(corpus: &Corpus) {
    let requests: [&'static [(&str, &str)]; 3] = [
        &[(":method", "POST"), (":path", "/v1/queues/jobs/messages"), ("user-agent", "curl/8"), ("x-a", "b")],
        &[(":method", "GET"), (":path", "/"), ("user-agent", "curl/8"), ("x-a", "c"), ("authorization", "Bearer x")],
        &[(":status", "200"), ("content-type", "text/plain"), ("x-binary", "\u{1}~\n"), ("x-a", "c")],
    ];
    let bytes = |list: &'static [(&str, &str)]| list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let mut encoder = Encoder::new();
    let blocks = requests.map(|list| {
        let mut block = Vec::new();
        encoder.encode(bytes(list), &mut block);
        encoder.set_max_table_size(200);
        block
    });
    corpus.write("http2_hpack", "connection", &framed(blocks));
    // RFC 7541 C.6: an insertion for each field, a size update before them, and evictions.
    let evicting = [
        &b"\x3f\xe1\x01\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b"[..],
        b"\x48\x83\x64\x0e\xff\xbf",
        b"\x40\x01a\x02bc\xbe\x7f\x00\x01d\x10\x01e\x00",
    ];
    corpus.write("http2_hpack", "evicting", &framed(evicting.map(<[u8]>::to_vec)));
}

fn http2_sessions(corpus: &Corpus) {
    // Each block by itself: a session begins with an empty table.
    let head = |stream: u32, flags: u8, fields: &[(&str, &str)]| {
        let mut block = Vec::new();
        Encoder::new().encode(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut block);
        http2_frame(kind::HEADERS, flags | flag::END_HEADERS, stream, &block)
    };
    let get = [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a"), ("priority", "u=1, i")];
    let post = [(":method", "POST"), (":scheme", "https"), (":path", "/x"), ("host", "a"), ("content-length", "5")];
    // What the server does (see the target's module): answers, sends bodies, writes.
    let answer: &[u8] = &[192, 1, 193, 100, 194, 100, 230, 255];
    let data = |stream, flags, bytes: &[u8]| http2_frame(kind::DATA, flags, stream, bytes);
    let window = |stream, bytes: u32| http2_frame(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
    let tunnel = [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"), (":path", "/"), (":authority", "a")];
    let waits = [(":method", "PUT"), (":scheme", "https"), (":path", "/"), (":authority", "a"), ("expect", "100-continue")];
    let whole = head(1, flag::END_STREAM, &get);
    let (begin, rest) = whole[9..].split_at(3);
    let sessions: [(&str, Vec<Vec<u8>>); 8] = [
        ("requests", vec![head(1, flag::END_STREAM, &get), head(3, flag::END_STREAM, &get), window(0, 9_000)]),
        ("body", vec![head(1, 0, &post), data(1, 0, b"abc"), data(1, flag::END_STREAM, b"de")]),
        ("trailers", vec![head(1, 0, &get), data(1, 8, b"\x01a\0"), head(1, flag::END_STREAM, &[("a", "b")])]),
        (
            "small_windows",
            vec![
                http2_frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 9, 0, 1, 0, 0, 0, 0]),
                head(1, flag::END_STREAM, &get),
                window(1, 50),
                http2_frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=7"),
                http2_frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 8]),
            ],
        ),
        ("tunnel", vec![head(1, 0, &tunnel), data(1, 0, b"abc"), data(1, flag::END_STREAM, b"de")]),
        ("waits", vec![head(1, 0, &waits), data(1, flag::END_STREAM, b"abc")]),
        (
            "continued",
            vec![
                http2_frame(kind::HEADERS, flag::END_STREAM | flag::PADDED, 1, &[&[2], begin, &[0, 0]].concat()),
                http2_frame(kind::CONTINUATION, 0, 1, b""),
                http2_frame(kind::CONTINUATION, flag::END_HEADERS, 1, rest),
            ],
        ),
        (
            "leaves",
            vec![
                http2_frame(kind::PING, 0, 0, b"12345678"),
                head(3, 0, &post),
                http2_frame(kind::GOAWAY, 0, 0, &[0; 8]),
                http2_frame(0xfa, 0xff, 0, b"unknown"),
                data(3, flag::END_STREAM, b"abcde"),
            ],
        ),
    ];
    for (name, frames) in sessions {
        let mut script = vec![0];
        for frame in frames {
            script.push(frame.len() as u8);
            script.extend(frame);
            script.extend(answer);
        }
        corpus.write("http2_session", name, &script);
    }
}

fn http2_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let header = FrameHeader { length: payload.len() as u32, kind, flags, stream };
    [&header.to_bytes()[..], payload].concat()
}

fn config(corpus: &Corpus) {
    let seeds = [
        ("file", "listen = \"127.0.0.1:7070\"\nshards = 2\nmemory = true\ndurability = \"interval:1s\"\n[limits]\npayload = 4096\n"),
        ("sources", "cache = \"1GiB\"\n---\nSLUICE_GRACE=1m30s\nSLUICE_HTTP_CONNECTIONS=10_000\nshards=3\nlog.format=json\n"),
        ("mistakes", "shard = 2\ncache = 1.5\n[limits]\npayloads = \"1MiB\"\n---\nSLUICE_GRACE=30\ndurability=sometimes\n"),
        ("against", "---\nlimits.payload=8MiB\nlimits.batch_bytes=4MiB\n"),
        ("dotted", "http.connections = 1\nhttp = { requests = 2 }\n"),
    ];
    for (name, text) in seeds {
        corpus.write("config", name, text.as_bytes());
    }
}

fn access(corpus: &Corpus) {
    let seeds = [
        (
            "rules",
            "[[rule]]\nname = \"billing\"\nidentities = [\"billing\", \"spiffe://prod/billing-*\"]\nrole = \"consumer\"\n\
            namespaces = [\"shop\"]\nqueues = [\"invoices\", \"emails.*\"]\n",
        ),
        ("rates", "[[rate]]\nidentities = ['batch-*']\nrequests_per_s = 100\nburst = 0x20\n"),
        ("revoked", "[revoked]\nserials = [\"05:AB\", '0102']\n"),
        ("mistakes", "rule = 1\n[[rate]]\nburst = 0\n[revoked]\nserials = [7, \"x\"]\nserial = []\n"),
        ("dotted", "revoked.serials = []\nrule = [{ name = 'a', identities = ['a'], role = 'admin' }]\n"),
    ];
    for (name, text) in seeds {
        corpus.write("access_policy", name, text.as_bytes());
    }
    // Those of access_certificate were made once with `sluice cert client`: new ones would differ each time.
}

fn filters(corpus: &Corpus) {
    let seeds = [
        (
            "operators",
            "{\"/a\":{\"in\":[1,\"x\",null],\"not\":{\"eq\":2}},\"/b/0\":{\"ge\":1,\"lt\":1e3},\"\":{\"exists\":true}}\n\
            {\"a\":1,\"b\":[5]}\n\
            {\"a\":\"x\",\"b\":[0.5]}\n",
        ),
        (
            "words",
            "{\"or\":[{\"/a\":\"x\"},{\"and\":[{\"/s\":{\"prefix\":\"u\"}},{\"not\":{\"/l\":{\"contains\":\"v\"}}}]}]}\n\
            {\"a\":\"x\"}\n\
            {\"s\":\"un\",\"l\":[\"v\"]}\n",
        ),
        (
            "times",
            "{\"/at\":{\"ge\":{\"now\":\"-7d\"},\"lt\":{\"time\":\"2026-01-31T12:00:00+01:00\"}}}\n\
            {\"at\":1767225600000}\n\
            {\"at\":\"2026-01-01T00:00:00Z\"}\n",
        ),
        (
            "pointers",
            "{\"/a~1b/m~0n/-/01\":null,\"/\u{fc}\":{\"exists\":false}}\n\
            {\"a/b\":{\"m~n\":{\"-\":[1]}}}\n",
        ),
        (
            "faults",
            "{\"/a\":{\"$gt\":1},\"/a\":2}\n\
            1\n",
        ),
    ];
    for (name, text) in seeds {
        corpus.write("filter", name, text.as_bytes());
    }
}

fn grpc(corpus: &Corpus) {
    let receipt = "00000080000g0000000g000100000001";
    let plain = Message { payload: "plain".into(), ..Message::default() };
    let header = v1::Header { name: "a".into(), value: "b".into() };
    let rich = Message {
        payload: "rich".into(),
        content_type: "text/plain".into(),
        headers: vec![header],
        tags: vec!["red".into()],
        priority: Some(3),
        delay_ms: Some(5),
        ordering_key: "customer".into(),
        max_attempts: Some(2),
        ttl_ms: Some(60_000),
        ..Message::default()
    };
    let send = SendMany { queue: "jobs".into(), messages: vec![plain.clone(), rich], idempotency_key: "key".into() };
    let nack = v1::Settlement {
        receipt: receipt.into(),
        outcome: "nack".into(),
        error: Some("why".into()),
        delay_ms: Some(5),
        ..v1::Settlement::default()
    };
    let settle = SettleMany { items: vec![nack], acks: vec![receipt.into(), "forged".into()] };
    let extension = v1::Extension { receipt: receipt.into(), lease_ms: Some(1_000), ..v1::Extension::default() };
    let attach = v1::Attach { consumer: 1, queues: vec!["jobs".into()], credit: 8, ..v1::Attach::default() };
    let session = [
        Frame::Open(v1::Open { namespace: "shop".into(), follows_leaders: true }),
        Frame::Attach(attach),
        Frame::Send(SendMany { messages: vec![plain], ..send.clone() }),
        Frame::Send(send.clone()),
        Frame::Settle(settle.clone()),
        Frame::Extend(v1::ExtendMany { items: vec![extension] }),
        Frame::Credit(v1::SetCredit { consumer: 1, credit: 0 }),
        Frame::Detach(v1::Detach { consumer: 1, grace_ms: Some(100) }),
        Frame::Ping(v1::Ping {}),
    ];
    // The first byte chooses frames, the second how long the pieces are in which they come.
    for (name, piece) in [("session", 0xff), ("session-in-pieces", 6)] {
        let mut bytes = vec![0, piece];
        for (number, told) in (1..).zip(session.clone()) {
            frame(&ClientFrame { number, frame: Some(told) }, &mut bytes);
        }
        corpus.write("grpc_frames", name, &bytes);
    }
    // Messages of calls have the same shapes; the byte before one chooses the call.
    for (which, message) in [(0u8, send.encode_to_vec()), (2, settle.encode_to_vec())] {
        corpus.write("grpc_frames", &format!("call-{which:02}"), &[&[1, which], &message[..]].concat());
    }
    // A host, and the symbol that is asked for.
    corpus.write("grpc_frames", "reflection", b"\x02\x0a\x01h\x22\x0fsluice.v1.Locks");
}
