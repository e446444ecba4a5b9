//! Requests that another node of the cluster answers, since it leads their shard.
//!
//! They are passed on before their caller is authenticated and, but for gRPC, whose messages name the
//! namespace, before their body is read: the leader does both, by the client's address, certificate and
//! fields. Body and answer go through as they come. As long as nothing of a request has left, it is tried
//! again, at the leader as it is known then, which may be this node. The time for that is what a request has
//! anywhere that waits for a leader, so that both together take no longer. What waits at the leader while
//! this node stops is asked for there once more, without a wait: so it ends as at the end of its wait. A
//! stream of events ends here then, as one of this node does.
//!
//! `fields` are the header fields of such a request, on both nodes; `body` its body, and that of an answer
//! without an end.

mod body;
mod fields;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::response::Response;
use http::uri::{Authority, Scheme, Uri};
use http::{Request, Version};
use sluice_calls::access::Peer;
use sluice_calls::operation::Trait;
use sluice_calls::{CallError, CallName, LEADER_WAIT_MAX, Operation};
use sluice_engine::Error;
use tokio::time::{Instant, sleep};

use self::body::{ForwardBody, Watched};
use self::fields::fields_for;
use super::arrived::{Arrived, PassedOn, REQUEST_ID};
use super::body::{Body, Inbound};
use super::context::Context;
use super::head::hosts::host_of;
use super::links::{AnswerBody, LinkBody, Unanswered};
use super::nodes::Nodes;

pub(crate) use self::fields::take_sender;

/// Longest pause before such a request is tried again.
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// Shortest such pause: each one is twice as long as that before.
const PAUSE_MIN: Duration = Duration::from_millis(2);

/// The media type of answers in gRPC, and the field in which each tells how it ended.
const GRPC: &str = "application/grpc";
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

impl Context {
    /// Number of the node that leads the shard of a call, if it is another and the call was not passed on
    /// twice.
    #[inline]
    pub(crate) fn leads_elsewhere(&self, peer: &Peer, call: &CallName<'_>) -> Option<u64> {
        self.links.as_ref()?;
        if peer.is_forwarded_last() { None } else { call.leader_elsewhere(&self.calls) }
    }

    /// True when a call does not go to its shard here: another node leads that, or nobody does for now, so
    /// that the call waits until it is known who does.
    #[inline]
    pub(crate) fn is_elsewhere(&self, peer: &Peer, call: &CallName<'_>) -> bool {
        self.leads_elsewhere(peer, call).is_some() || self.links.is_some() && call.is_unled(&self.calls)
    }

    /// Adds the leader's address to an error that names the leader.
    pub(crate) fn with_address(&self, error: CallError) -> CallError {
        match &self.links {
            None => error,
            Some(links) => error.with_address(|leader| links.nodes().address(leader)),
        }
    }
}

/// The body of a request that may be passed on.
pub(crate) struct Passable<'b> {
    /// The part that was read.
    begun: Bytes,
    /// The part that was not; `None`: all was.
    rest: Option<&'b mut Inbound>,
}

impl<'b> Passable<'b> {
    /// A body of which nothing was read.
    pub(crate) fn unread(body: &'b mut Inbound) -> Passable<'b> {
        Passable::begun(Bytes::new(), body)
    }

    /// A body that was read.
    pub(crate) fn read(bytes: Bytes) -> Passable<'b> {
        Passable { begun: bytes, rest: None }
    }

    /// A body of which these bytes were read.
    pub(crate) fn begun(bytes: Bytes, rest: &'b mut Inbound) -> Passable<'b> {
        Passable { begun: bytes, rest: Some(rest) }
    }

    /// True if it can leave as a whole as often as need be.
    fn is_whole(&self) -> bool {
        self.rest.is_none()
    }

    fn lend(&mut self) -> ForwardBody {
        ForwardBody::new(self.begun.clone(), self.rest.as_mut().map(|body| body.lend()))
    }

    /// Takes the body of a request back that has not left, and is dropped by now.
    async fn take_back(&mut self) {
        if let Some(body) = &mut self.rest {
            body.take_back(PAUSE_MAX).await;
        }
    }
}

/// A request as another node gets it: whose it is, and its head.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) context: &'a Context,
    pub(crate) peer: &'a Peer,
    pub(crate) head: &'a Parts,
    pub(crate) request_id: &'a HeaderValue,
}

impl Arrived {
    /// Passes a call on when another node leads its shard, with `refusal` as the form of errors. `None`: this
    /// node answers it.
    pub(crate) async fn passed_on(
        &self,
        call: &CallName<'_>,
        body: Passable<'_>,
        refusal: impl FnOnce(CallError) -> Response<Body>,
    ) -> Option<Response<Body>> {
        let Arrived { context, peer, head, request_id, .. } = self;
        let asked = Asked { context, peer, head, request_id };
        Some(match asked.pass_on(call, body).await? {
            Ok(answer)
                if matches!(
                    call.operation,
                    Operation::Events
                        | Operation::QueueEvents
                        | Operation::DocumentWatch
                        | Operation::LockWatch
                ) =>
            {
                let context = Arc::clone(context);
                watched(answer, async move { context.calls.stopping().await })
            }
            Ok(answer) => passed_back(answer.map(Body::other)),
            Err(error) => {
                context.error_log.log(&error, request_id, &head.method, head.uri.path());
                passed_on(refusal(error))
            }
        })
    }
}

impl Asked<'_> {
    /// Passes a call on as long as another node leads its shard, or it is not known who does: what comes to a
    /// shard then is refused when another node leads. `None`: this node answers it.
    ///
    /// # Errors
    /// `no_leader` when nothing was done, since the leader is not reached or not known; `outcome_unknown`
    /// when its answer was lost; `shutting_down` for a session while this node stops.
    pub(crate) async fn pass_on(
        self,
        call: &CallName<'_>,
        mut body: Passable<'_>,
    ) -> Option<Result<Response<AnswerBody>, CallError>> {
        let links = self.context.links.as_ref()?;
        let passed = self.context.calls.passed();
        let mut until = Instant::now() + LEADER_WAIT_MAX;
        let (mut unreached, mut pause, mut at_once) = (None, PAUSE_MIN, false);
        loop {
            if let Some(node) = self.context.leads_elsewhere(self.peer, call) {
                let request = self.outgoing(links.nodes(), node, body.lend(), at_once);
                let reason = tokio::select! {
                    biased;
                    answer = links.send(node, request, until) => match answer {
                        Ok(answer) => {
                            passed.answered();
                            return Some(Ok(answer));
                        }
                        Err(Unanswered::Unsent(reason)) => reason,
                        Err(Unanswered::Lost(reason)) => {
                            passed.unanswered(node, false);
                            return Some(Err(lost(call, &reason)));
                        }
                    },
                    () = self.stopping(call), if !at_once => match body.is_whole() {
                        true => {
                            (at_once, until) = (true, Instant::now() + LEADER_WAIT_MAX);
                            continue;
                        }
                        false => return Some(Err(Error::ShuttingDown {}.into())),
                    },
                };
                tracing::debug!(node, "the leader is not reached: {reason}");
                unreached = Some(node);
                body.take_back().await;
            } else if !call.is_unled(&self.context.calls) {
                return None;
            }
            if Instant::now() >= until {
                if let Some(node) = unreached {
                    passed.unanswered(node, true);
                }
                return Some(Err(Error::NoLeader {}.into()));
            }
            sleep(pause).await;
            pause = PAUSE_MAX.min(2 * pause);
        }
    }

    /// Resolves when this node stops, for a call that waits.
    async fn stopping(&self, call: &CallName<'_>) {
        match call.operation.is(Trait::Waits) {
            true => self.context.calls.stopping().await,
            false => pending().await,
        }
    }

    /// The request as the leader gets it, which answers it `at_once` if this node stops.
    fn outgoing(&self, nodes: &dyn Nodes, node: u64, body: ForwardBody, at_once: bool) -> Request<LinkBody> {
        let mut request = Request::new(LinkBody::new(body));
        *request.method_mut() = self.head.method.clone();
        *request.version_mut() = Version::HTTP_2;
        *request.headers_mut() = fields_for(self.peer, &self.head.headers, at_once);
        request.headers_mut().insert(REQUEST_ID, self.request_id.clone());
        let mut target = std::mem::take(request.uri_mut()).into_parts();
        // A page's origin is compared with it.
        let host = host_of(self.head).parse::<Authority>().ok();
        let host = host.or_else(|| nodes.address(node)?.parse().ok());
        target.authority = Some(host.unwrap_or(Authority::from_static("localhost")));
        target.scheme = Some(Scheme::HTTPS);
        target.path_and_query = self.head.uri.path_and_query().cloned();
        *request.uri_mut() = Uri::from_parts(target).unwrap_or_default();
        request
    }
}

/// The answer of the leader as an answer of this node.
fn passed_back(answer: Response<Body>) -> Response<Body> {
    let (head, body) = answer.into_parts();
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    passed_on(response)
}

/// A stream of events as an answer of this node, which ends when this node stops.
fn watched(
    answer: Response<AnswerBody>,
    stopping: impl Future<Output = ()> + Send + 'static,
) -> Response<Body> {
    let is_grpc = answer.headers().get(CONTENT_TYPE).is_some_and(|found| *found == GRPC);
    let trailers = is_grpc.then(|| HeaderMap::from_iter([(GRPC_STATUS, HeaderValue::from_static("0"))]));
    passed_back(answer.map(|body| Body::other(Watched::new(body, stopping, trailers))))
}

/// Marks an answer that is not this node's own.
fn passed_on(mut response: Response<Body>) -> Response<Body> {
    response.extensions_mut().insert(PassedOn);
    response
}

/// The error of a call whose answer was lost. A call that only looks has done nothing.
fn lost(call: &CallName<'_>, reason: &str) -> CallError {
    tracing::debug!("the answer of the leader is lost: {reason}");
    if call.operation.only_looks() { Error::NoLeader {}.into() } else { Error::OutcomeUnknown {}.into() }
}
