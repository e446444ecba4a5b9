//! What is served: bodies of fixed sizes, with the fields that servers of files send.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ACCEPT_RANGES, CONTENT_TYPE, ETAG, HeaderValue, LAST_MODIFIED};
use http::{Request, Response, StatusCode};
use http_body_util::Full;

/// Paths, and how large their bodies are, in bytes.
pub(super) const BODIES: [(&str, usize); 6] =
    [("/3b", 3), ("/100b", 100), ("/1k", 1 << 10), ("/4k", 4 << 10), ("/16k", 16 << 10), ("/64k", 64 << 10)];

/// The service of both stacks.
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
        let path = request.uri().path();
        let Some(at) = BODIES.iter().position(|(name, _)| *name == path) else {
            let mut response =
                Response::new(Full::new(Bytes::from_static(b"one of /3b /100b /1k /4k /16k /64k\n")));
            *response.status_mut() = StatusCode::NOT_FOUND;
            return response;
        };
        let mut response = Response::new(Full::new(self.0.bodies[at].clone()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        headers.insert(LAST_MODIFIED, HeaderValue::from_static("Sat, 01 Nov 2025 12:00:00 GMT"));
        headers.insert(ETAG, HeaderValue::from_static("\"6905f5c0-4000\""));
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        response
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
