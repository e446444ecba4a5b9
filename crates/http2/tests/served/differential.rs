//! The same random requests through this stack and through hyper's server: the answers are the same.

use bytes::Bytes;
use futures_util::future::join_all;
use http_body::{Body, Frame};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sluice_http2::emit::EmitMode;
use tokio::io::duplex;

use super::frames::Random;
use super::support::*;

/// hyper's server at one end of a pipe, its client at the other.
async fn connect_hyper(builder: &Builder<TokioExecutor>) -> SendRequest<AnyBody> {
    let (near, far) = duplex(64 << 10);
    let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(far), service_fn(serve_without_body_to_head));
    tokio::spawn(async move {
        let _ = serving.await;
    });
    client_of(builder, near).await
}

/// hyper leaves it to the service to send no body to HEAD; this stack does not.
pub(crate) async fn serve_without_body_to_head(
    request: http::Request<Incoming>,
) -> Result<http::Response<AnyBody>, Error> {
    let is_head = request.method() == http::Method::HEAD;
    let mut response = serve_test(request).await?;
    if is_head {
        let bytes = response.body().size_hint().exact().filter(|bytes| *bytes > 0);
        if let Some(bytes) = bytes {
            response.headers_mut().insert("content-length", bytes.into());
        }
        *response.body_mut() = no_body();
    }
    Ok(response)
}

/// How a client takes an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Whole,
    /// Leaves once it has the head.
    AfterHead,
    /// Leaves without having waited.
    AtOnce,
}

const FATES: [Fate; 6] = [Fate::Whole, Fate::Whole, Fate::Whole, Fate::Whole, Fate::AfterHead, Fate::AtOnce];

/// The request that a seed stands for, and what becomes of its answer.
fn random_request(seed: u64) -> (http::Request<AnyBody>, Fate) {
    let mut random = Random(seed);
    random.below(2);
    let method = random.pick(&["GET", "GET", "HEAD", "POST", "POST", "PUT", "DELETE", "OPTIONS", "PURGE"]);
    let size = random.pick(&[0, 1, 100, 1_024, 16_383, 16_384, 16_385, 70_000]);
    let path = match random.below(14) {
        0 | 1 => "/echo".to_string(),
        2 => "/upload".to_string(),
        3 => "/sip".to_string(),
        4 | 5 => format!("/size/{size}"),
        6 => format!("/pieces/{}", size % 7),
        7 => "/trailers".to_string(),
        8 => format!("/head?query={size}"),
        9 => format!("/status/{}", random.pick(&[200, 201, 204, 304, 404, 413, 500])),
        // With the first of them a frame is not enough for the head.
        10 => format!("/fields/{}", random.pick(&[20, 1, 8])),
        11 => "/fails".to_string(),
        12 => "/".to_string(),
        _ => "/nowhere".to_string(),
    };
    let mut request = request(method, &path, random_body(&mut random, size));
    for index in 0..random.below(4) {
        let name = random.pick(&["x-one", "x-two", "accept"]).parse::<http::HeaderName>();
        let value = format!("value {index}{}", "x".repeat(random.pick(&[0, 0, 300, 3_000])));
        request.headers_mut().append(name.expect("a name"), value.parse().expect("a value"));
    }
    // Whether the head of an answer that breaks off is seen, depends on what is written together.
    let fates = if path == "/fails" { &FATES[..1] } else { &FATES };
    (request, random.pick(fates))
}

/// None, one of a stated length, or pieces with trailers or without.
fn random_body(random: &mut Random, size: usize) -> AnyBody {
    match random.below(4) {
        0 => no_body(),
        1 => full(pattern(size)),
        _ => {
            let mut frames: Vec<Result<Frame<Bytes>, Error>> = Vec::new();
            for _ in 0..random.below(5) {
                frames.push(Ok(Frame::data(pattern(random.pick(&[0, 1, 5_000, 20_000])))));
            }
            if random.below(2) == 0 {
                let field = ("checksum".parse().expect("a name"), "1".parse().expect("a value"));
                frames.push(Ok(Frame::trailers([field].into_iter().collect())));
            }
            StreamBody::new(futures_util::stream::iter(frames)).boxed()
        }
    }
}

/// Everything that a client sees of an answer, but for the date.
async fn tell(sender: &SendRequest<AnyBody>, seed: u64) -> String {
    let mut sender = sender.clone();
    if let Err(error) = sender.ready().await {
        return tell_error(&error);
    }
    let (request, fate) = random_request(seed);
    let answer = sender.send_request(request);
    if fate == Fate::AtOnce {
        return "left at once".into();
    }
    let response = match answer.await {
        Ok(response) => response,
        Err(error) => return tell_error(&error),
    };
    let (mut head, body) = response.into_parts();
    head.headers.remove("date").expect("every answer has a date");
    // In the order of names: that of fields with other names means nothing.
    let mut fields: Vec<_> = head.headers.iter().collect();
    fields.sort_by_key(|(name, _)| name.as_str());
    let told = format!("{} {fields:?}", head.status);
    if fate == Fate::AfterHead {
        return told;
    }
    match body.collect().await {
        Ok(collected) => {
            let trailers = collected.trailers().cloned();
            let body = collected.to_bytes();
            format!("{told} {} {:?} {trailers:?}", body.len(), adler(&body))
        }
        Err(error) => tell_error(&error),
    }
}

/// A checksum of a body.
fn adler(body: &[u8]) -> u32 {
    let (low, high) = body.iter().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    high << 16 | low
}

fn tell_error(error: &hyper::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// A client with windows and frames of all sizes.
fn random_client(random: &mut Random) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .initial_stream_window_size(random.pick(&[1_000, 16_384, 65_535, 1 << 20]))
        .initial_connection_window_size(random.pick(&[65_535, 100_000, 1 << 20]))
        .max_frame_size(random.pick(&[16_384, 20_000, 1 << 20]))
        .max_header_list_size(64 << 10);
    builder
}

#[tokio::test]
async fn random_requests_get_the_same_answers() {
    let tls = Transport::tls();
    let modes = [EmitMode::Auto, EmitMode::Copy, EmitMode::Gather, EmitMode::Naive];
    let mut seeds = 0..;
    for round in 0..40 {
        let mut random = Random(round);
        random.below(2);
        let builder = random_client(&mut random);
        let theirs = connect_hyper(&builder).await;
        let (transport, mode) = (random.pick(&[&Transport::Plain, &tls]), random.pick(&modes));
        let chop = random.pick(&[None, Some(round)]);
        let ours = transport.connect_by(&builder, random.pick(&[1_000, 10_000, 64 << 10]), mode, chop).await;
        // One after the other, some at once, and many.
        let at_once = random.pick(&[1, 16, 16, 120]);
        let both = seeds.by_ref().take(at_once).map(|seed| {
            let (ours, theirs) = (&ours, &theirs);
            async move { (seed, tell(ours, seed).await, tell(theirs, seed).await) }
        });
        for (seed, ours, theirs) in join_all(both).await {
            assert!(ours == theirs, "seed {seed}: {:?}\n{ours}\n{theirs}", random_request(seed));
        }
    }
}
