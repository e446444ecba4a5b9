//! A request whose head is there: what it carries along until it has its answer, and what is noted of it
//! then.

use std::sync::Arc;
use std::time::Instant;

use http::header::{CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue};
use http::request::Parts;
use http::response::Response;
use http::{Method, Request, StatusCode, Version};
use sluice_calls::access::{Act, Caller, Peer};
use sluice_calls::{Noted, Operation};

use super::activity::Activity;
use super::body::{Body, Inbound, read_rest};
use super::context::Context;
use super::in_flight::InFlight;

/// Longest request id that is taken over from a client, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;
/// Value of `Connection` that ends a connection of HTTP/1.1 after the answer.
pub(crate) const CLOSE: HeaderValue = HeaderValue::from_static("close");
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request that has no answer yet.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) context: Arc<Context>,
    pub(crate) peer: Arc<Peer>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) head: Parts,
    pub(crate) request_id: HeaderValue,
    started: Instant,
}

/// The outcome of a request, for metrics and the audit log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished<'f> {
    /// `None`: nowhere.
    pub(crate) operation: Option<Operation>,
    /// The status in HTTP.
    pub(crate) status: u16,
    pub(crate) caller: &'f Caller,
    /// Path or method of the request, for the audit log.
    pub(crate) target: &'f str,
}

/// The record of a request in the audit log, beside its operation and path. Its `made` is a path.
#[derive(Clone, Debug)]
pub(crate) struct ToRecord(pub(crate) Noted);

/// Mark of an answer that another node has given, or that tells that it gave none: here nothing was done
/// that the audit log of this node could record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassedOn;

impl Arrived {
    /// Counts a request as one in flight; its body is for who answers it.
    pub(crate) fn new(
        context: Arc<Context>,
        activity: &Arc<Activity>,
        peer: Arc<Peer>,
        request: Request<Inbound>,
    ) -> (Arrived, Inbound) {
        let started = Instant::now();
        let in_flight = InFlight::enter(&context, activity);
        let (head, body) = request.into_parts();
        let request_id = request_id(head.headers.get(REQUEST_ID).map(HeaderValue::as_bytes), &context);
        (Arrived { context, peer, in_flight, head, request_id, started }, body)
    }

    /// Takes an administrative act down before its caller hears of it, adds what every answer gets, and
    /// counts and logs the request.
    pub(crate) async fn finish(
        &self,
        mut response: Response<Body>,
        finished: Finished<'_>,
    ) -> Response<Body> {
        let passed_on = response.extensions_mut().remove::<PassedOn>().is_some();
        if self.is_audited(finished.operation) && !passed_on {
            let noted = response.extensions_mut().remove::<ToRecord>();
            self.record(finished, noted.map(|ToRecord(noted)| noted).unwrap_or_default()).await;
        }
        self.complete(&mut response);
        let (status, elapsed) = (finished.status, self.started.elapsed());
        self.context.metrics.count(finished.operation, status, elapsed);
        tracing::debug!(
            request_id = self.request_id.to_str().unwrap_or_default(),
            status,
            elapsed_us = elapsed.as_micros() as u64,
            "{} {}",
            self.head.method,
            self.head.uri.path()
        );
        response
    }

    /// True if the audit log records the request.
    fn is_audited(&self, operation: Option<Operation>) -> bool {
        self.context.calls.access().asks() && operation.is_some_and(Operation::is_audited)
    }

    #[cold]
    async fn record(&self, finished: Finished<'_>, noted: Noted) {
        if noted.is_silent {
            return;
        }
        let outcome = finished.status.to_string();
        let act = Act {
            operation: finished.operation.map_or("", Operation::name),
            target: noted.made.as_deref().unwrap_or(finished.target),
            refused: (400..500).contains(&finished.status),
            outcome: &outcome,
            details: noted.details.as_ref(),
            request_id: self.request_id.to_str().unwrap_or_default(),
        };
        self.context.calls.record(&self.peer, finished.caller, act).await;
    }

    /// Leaves a body that nobody has read to its end: its connection goes on behind it, or says that it does
    /// not.
    pub(crate) async fn leave(&self, mut body: Inbound, response: &mut Response<Body>) {
        if !read_rest(&mut body, &self.head.headers).await {
            response.headers_mut().insert(CONNECTION, CLOSE);
        }
    }

    fn complete(&self, response: &mut Response<Body>) {
        response.headers_mut().insert(REQUEST_ID, self.request_id.clone());
        if self.peer.is_turned_away() && self.head.version <= Version::HTTP_11 {
            response.headers_mut().insert(CONNECTION, CLOSE);
        }
        // What has no body at all says nothing of its length (RFC 9110 §8.6).
        let bodiless = matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if self.head.method == Method::HEAD
            && let Some(length) = response.body_mut().clear()
            && !bodiless
        {
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        response.body_mut().keep(Arc::clone(&self.in_flight));
    }
}

/// The client's id for the request, if it is printable and short; else one of ours.
pub(crate) fn request_id(given: Option<&[u8]>, context: &Context) -> HeaderValue {
    let is_good = |given: &&[u8]| {
        let printable = given.iter().all(|byte| (0x21..0x7f).contains(byte));
        printable && !given.is_empty() && given.len() <= REQUEST_ID_BYTES_MAX
    };
    if let Some(Ok(given)) = given.filter(is_good).map(HeaderValue::from_bytes) {
        return given;
    }
    let number = context.next_request_number();
    HeaderValue::from_str(&format!("{number:016x}")).unwrap_or(HeaderValue::from_static("none"))
}
