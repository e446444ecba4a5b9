//! The same random requests through this stack and through hyper's server: the answers are the same.

use bytes::Bytes;
use futures_util::future::join_all;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sluice_http2::emit::EmitMode;
use tokio::io::duplex;

use super::support::*;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64)]
    }
}

/// hyper's server at one end of a pipe, its client at the other.
async fn connect_hyper() -> SendRequest<AnyBody> {
    let (near, far) = duplex(64 << 10);
    let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(far), service_fn(serve_test));
    tokio::spawn(async move {
        let _ = serving.await;
    });
    client(near).await
}

/// The request that a seed stands for.
fn random_request(seed: u64) -> http::Request<AnyBody> {
    let mut random = Random(seed);
    random.below(2);
    // Not HEAD: hyper leaves it to the service to send no body.
    let method = random.pick(&["GET", "POST", "PUT", "DELETE", "PURGE"]);
    let size = random.pick(&[0, 1, 100, 1_024, 16_384, 70_000]);
    let path = match random.below(10) {
        0 | 1 => "/echo".to_string(),
        2 => "/upload".to_string(),
        3 => format!("/size/{size}"),
        4 => format!("/pieces/{}", size % 7),
        5 => "/trailers".to_string(),
        6 => format!("/head?query={size}"),
        7 => format!("/status/{}", random.pick(&[200, 201, 204, 304, 404, 500])),
        8 => "/fails".to_string(),
        _ => "/nowhere".to_string(),
    };
    let body = match random.below(4) {
        0 => no_body(),
        1 | 2 => full(pattern(size)),
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
    };
    let mut request = request(method, &path, body);
    for index in 0..random.below(4) {
        let name = random.pick(&["x-one", "x-two", "accept"]).parse::<http::HeaderName>().expect("a name");
        request.headers_mut().append(name, format!("value {index}").parse().expect("a value"));
    }
    request
}

/// Everything that a client sees of an answer, but for the date.
async fn tell(sender: &SendRequest<AnyBody>, seed: u64) -> String {
    let response = match sender.clone().send_request(random_request(seed)).await {
        Ok(response) => response,
        Err(error) => return tell_error(&error),
    };
    let (mut head, body) = response.into_parts();
    head.headers.remove("date").expect("every answer has a date");
    let told = format!("{} {:?}", head.status, head.headers);
    match body.collect().await {
        Ok(collected) => {
            let trailers = collected.trailers().cloned();
            let body = collected.to_bytes();
            format!("{told} {} {:?} {trailers:?}", body.len(), body.get(..20))
        }
        // Whether the head is seen before, depends on what is written together.
        Err(error) => tell_error(&error),
    }
}

fn tell_error(error: &hyper::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

#[tokio::test]
async fn random_requests_get_the_same_answers() {
    let tls = Transport::tls();
    for round in 0..20 {
        let theirs = connect_hyper().await;
        let ours = match round % 2 {
            0 => Transport::Plain.connect(64 << 10, EmitMode::Auto, None).await,
            _ => tls.connect(10_000, EmitMode::Auto, Some(round)).await,
        };
        let both = (round * 16..(round + 1) * 16).map(|seed| {
            let (ours, theirs) = (&ours, &theirs);
            async move { (seed, tell(ours, seed).await, tell(theirs, seed).await) }
        });
        for (seed, ours, theirs) in join_all(both).await {
            assert_eq!(ours, theirs, "seed {seed}: {:?}", random_request(seed));
        }
    }
}
