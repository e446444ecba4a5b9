//! Served files: bodies of fixed sizes, with the fields that servers of files send.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ACCEPT_RANGES, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, LAST_MODIFIED, SERVER};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use sluice_http2::adapter::{Direct, DirectResponse};
use sluice_http2::connection::RequestHead;
use sluice_http2::hpack::{Encoded, Field};

/// Paths, and how large their bodies are, in bytes.
pub(super) const BODIES: [(&str, usize); 6] =
    [("/3b", 3), ("/100b", 100), ("/1k", 1 << 10), ("/4k", 4 << 10), ("/16k", 16 << 10), ("/64k", 64 << 10)];

/// Header fields of a file server, besides `date` and `content-length`.
const FIELDS: [(HeaderName, &str); 5] = [
    (SERVER, "sluice"),
    (CONTENT_TYPE, "text/plain"),
    (LAST_MODIFIED, "Sat, 01 Nov 2025 12:00:00 GMT"),
    (ETAG, "\"6905f5c0-4000\""),
    (ACCEPT_RANGES, "bytes"),
];

static CONSTANT: LazyLock<Encoded> =
    LazyLock::new(|| Encoded::new(FIELDS.iter().map(|(name, value)| Field::new(name.as_str(), *value))));

/// The service of both stacks, and the direct calls of ours.
#[derive(Clone, Debug)]
pub(super) struct Files(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bodies: [Bytes; BODIES.len()],
    served: AtomicU64,
}

impl Files {
    pub(super) fn new() -> Files {
        // Letters, so that what arrives can be looked at.
        let body = |bytes: usize| (0..bytes).map(|at| b'a' + (at % 26) as u8).collect();
        Files(Arc::new(Shared { bodies: BODIES.map(|(_, bytes)| body(bytes)), served: AtomicU64::new(0) }))
    }

    /// Requests answered so far.
    pub(super) fn served(&self) -> u64 {
        self.0.served.load(Ordering::Relaxed)
    }

    pub(super) fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        self.0.served.fetch_add(1, Ordering::Relaxed);
        let Some(body) = self.body(request.uri().path().as_bytes()) else {
            let mut response =
                Response::new(Full::new(Bytes::from_static(b"one of /3b /100b /1k /4k /16k /64k\n")));
            *response.status_mut() = StatusCode::NOT_FOUND;
            return response;
        };
        let mut response = Response::new(Full::new(body.clone()));
        let headers = response.headers_mut();
        for (name, value) in FIELDS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }

    fn body(&self, path: &[u8]) -> Option<&Bytes> {
        BODIES.iter().zip(&self.0.bodies).find(|((name, _), _)| name.as_bytes() == path).map(|(_, body)| body)
    }
}

impl<B> tower_service::Service<Request<B>> for Files {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(self.answer(&request)))
    }
}

impl Direct for Files {
    type Call = Ready<DirectResponse>;

    fn takes(&mut self, head: RequestHead<'_>) -> Option<usize> {
        (head.method() == b"GET").then_some(0)
    }

    fn call(&mut self, head: RequestHead<'_>, _: &[u8]) -> Option<Self::Call> {
        let body = self.body(head.path()?)?.clone();
        self.0.served.fetch_add(1, Ordering::Relaxed);
        Some(ready(DirectResponse { constant: Some(&CONSTANT), body, ..DirectResponse::default() }))
    }
}
