//! Random sessions in which everything is right, frame by frame, through this stack and through hyper's
//! server: the answers are the same. Bodies are padded and cut, heads continued, windows small, and frames
//! that change nothing stand in between.

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sluice_http2::Limits;
use sluice_http2::drive::Plain;
use sluice_http2::emit::EmitMode;
use sluice_http2::frame::{Setting, flag, kind};

use super::differential::serve_without_body_to_head;
use super::frames::Random;
use super::script::Script;
use super::simulated::{Cut, Simulated, Told};
use super::support::*;

/// Routes whose answers do not depend on time.
const PATHS: [&str; 10] = [
    "/",
    "/echo",
    "/upload",
    "/size/0",
    "/size/3",
    "/size/9000",
    "/pieces/2",
    "/trailers",
    "/fields/20",
    "/nowhere",
];

/// What is left of the request of a stream.
struct Request {
    stream: u32,
    /// Whether its head is sent.
    begun: bool,
    /// Pieces of its body.
    body: u64,
    trailers: bool,
}

impl Request {
    fn random(random: &mut Random, stream: u32) -> Self {
        let body = random.pick(&[0, 0, 1, 4]);
        Self { stream, begun: false, body, trailers: random.below(3) == 0 }
    }

    fn is_over(&self) -> bool {
        self.begun && self.body == 0 && !self.trailers
    }

    /// Sends the next of it.
    fn go_on(&mut self, random: &mut Random, mut script: Script) -> Script {
        if !self.begun {
            self.begun = true;
            let value = "v".repeat(random.below(300) as usize);
            let (method, path) = (random.pick(&["GET", "HEAD", "POST", "PUT"]), random.pick(&PATHS));
            let block = script.head(method, path, &[("x-value", &value), ("x-same", "y")]);
            script.streams += 1;
            send_block(random, script, self.stream, self.is_over(), &block)
        } else if self.body > 0 {
            self.body -= 1;
            send_data(random, script, self.stream, self.is_over())
        } else {
            self.trailers = false;
            let block = script.block(&[("checksum", "1"), ("x-same", "y")]);
            send_block(random, script, self.stream, true, &block)
        }
    }
}

fn end_flag(end: bool) -> u8 {
    if end { flag::END_STREAM } else { 0 }
}

/// A header block in one frame or in several.
fn send_block(random: &mut Random, mut script: Script, stream: u32, end: bool, block: &[u8]) -> Script {
    let mut cuts: Vec<usize> =
        (0..random.below(4)).map(|_| random.below(block.len() as u64) as usize).collect();
    cuts.sort_unstable();
    let (mut begin, pieces) = (0, cuts.len());
    for (place, until) in cuts.into_iter().chain([block.len()]).enumerate() {
        let piece = &block[begin..until];
        begin = until;
        let end_headers = if place == pieces { flag::END_HEADERS } else { 0 };
        let flags = end_flag(end) | end_headers;
        script = match place {
            0 if random.below(3) == 0 => {
                let padded = [&[3, 0, 0, 0, 0, 99], piece, &[0; 3]].concat();
                script.frame(kind::HEADERS, flags | flag::PADDED | flag::PRIORITY, stream, &padded)
            }
            0 => script.frame(kind::HEADERS, flags, stream, piece),
            _ => script.frame(kind::CONTINUATION, end_headers, stream, piece),
        };
    }
    script
}

fn send_data(random: &mut Random, script: Script, stream: u32, end: bool) -> Script {
    let data = pattern(random.pick(&[0, 1, 100, 3_000]));
    if random.below(3) > 0 {
        return script.data(stream, &data, end_flag(end));
    }
    let padding = random.below(200) as u8;
    let padded = [&[padding], &data[..], &vec![0; usize::from(padding)]].concat();
    script.data(stream, &padded, end_flag(end) | flag::PADDED)
}

/// Something that changes no answer.
fn aside(random: &mut Random, script: Script, stream: u32) -> Script {
    match random.below(7) {
        0 => script.frame(kind::PING, 0, 0, b"12345678"),
        1 => script.frame(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 4, 0]),
        2 => script.frame(kind::WINDOW_UPDATE, 0, stream, &[0, 0, 4, 0]),
        3 => script.frame(kind::PRIORITY, 0, stream, &[0, 0, 0, 0, 7]),
        4 => script.frame(0xfa, 0xff, stream, b"unknown"),
        5 => {
            let window = 10 + random.below(70_000) as u32;
            script.frame(kind::SETTINGS, 0, 0, &[&[0, 4][..], &window.to_be_bytes()].concat())
        }
        _ => script,
    }
}

fn random_script(seed: u64) -> Script {
    let mut random = Random(seed);
    let window = random.pick(&[10, 1_000, 65_535]);
    let mut script = Script::with(&[Setting::InitialWindowSize(window)]);
    let streams: Vec<u32> = (0..1 + random.below(8) as u32).map(|number| 1 + 2 * number).collect();
    // Those that have begun, and the next one, go on in any order.
    let mut waiting = streams.iter();
    let mut open: Vec<Request> = Vec::new();
    loop {
        if open.iter().all(|request| request.begun) {
            open.extend(waiting.next().map(|stream| Request::random(&mut random, *stream)));
        }
        if open.is_empty() {
            break;
        }
        let at = random.below(open.len() as u64) as usize;
        script = open[at].go_on(&mut random, script);
        if random.below(3) == 0 {
            script = aside(&mut random, script, open[at].stream);
        }
        open.retain(|request| !request.is_over());
    }
    // Now all windows open.
    for stream in [0].iter().chain(&streams) {
        script = script.frame(kind::WINDOW_UPDATE, 0, *stream, &[0, 0x80, 0, 0]);
    }
    script
}

/// An answer without the length of its body, which is there anyway: that of an echo is known if its request
/// came as a whole.
fn comparable(told: &[String]) -> Vec<String> {
    let words = |line: &String| {
        line.split_inclusive(' ').filter(|word| !word.starts_with("content-length=")).collect()
    };
    told.iter().map(words).collect()
}

async fn ours(script: &Script, mode: EmitMode, cut: Cut) -> Told {
    let mut io = Simulated::new(&script.bytes, script.answers(), cut, cut);
    let result = driver(Plain::new(&mut io), Limits::default(), mode).await;
    io.into_told(result)
}

async fn theirs(script: &Script) -> Told {
    let mut io = Simulated::new(&script.bytes, script.answers(), Cut::Nowhere, Cut::Nowhere);
    let service = service_fn(serve_without_body_to_head);
    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let result = builder.serve_connection(TokioIo::new(&mut io), service).await;
    result.unwrap_or_else(|error| panic!("hyper refuses it: {error:?}"));
    io.into_told(Ok(()))
}

#[tokio::test(start_paused = true)]
async fn random_sessions_get_the_same_answers() {
    let modes = [EmitMode::Auto, EmitMode::Copy, EmitMode::Gather, EmitMode::Naive];
    for seed in 0..120 {
        println!("seed {seed}");
        let script = random_script(seed);
        let theirs = theirs(&script).await;
        let mut random = Random(seed);
        let at = Cut::At(random.below(script.bytes.len() as u64) as usize);
        for cut in [Cut::Nowhere, if seed % 10 == 0 { Cut::Everywhere } else { at }] {
            let ours = ours(&script, random.pick(&modes), cut).await;
            for (stream, told) in &theirs.streams {
                let (ours, theirs) = (comparable(&ours.streams[stream]), comparable(told));
                assert!(ours == theirs, "stream {stream}, {cut:?}:\n{ours:?}\n{theirs:?}");
            }
            assert_eq!((ours.streams.len(), &ours.pongs), (script.streams, &theirs.pongs), "{cut:?}");
        }
    }
}
