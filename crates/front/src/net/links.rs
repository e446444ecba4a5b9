//! HTTP/2 connections to other nodes, each with as many requests as it may carry.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::{Instant, timeout_at};

use super::nodes::{Nodes, Wire};
use super::options::STREAMS_MAX;

/// Longest time for a connection to be made.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);
/// Connections over which a request is tried.
const TRIES: usize = 3;
/// Bytes of an answer that may be on their way without having been read by the client.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// Bytes of all answers of a connection: a client that reads nothing holds up no other.
const LINK_WINDOW_BYTES: u32 = STREAM_WINDOW_BYTES * STREAMS_MAX;
/// Time in silence after which a node is asked for a sign of life, and the time that it has for that.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// The body of a request to another node.
pub(crate) type LinkBody = UnsyncBoxBody<Bytes, io::Error>;

/// The reason why a request has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The node was not reached: nothing of the request has left, and its body was not read.
    Unsent(String),
    /// The request, or a part of it, has left: it may have been done.
    Lost(String),
}

/// The connections to all other nodes.
#[derive(Debug)]
pub(crate) struct Links {
    nodes: Arc<dyn Nodes>,
    to: Mutex<HashMap<u64, Arc<To>>>,
}

/// The connections to one node.
#[derive(Debug, Default)]
struct To {
    links: Mutex<Vec<Arc<Link>>>,
    /// Held by who makes a connection; others wait for it.
    connecting: tokio::sync::Mutex<()>,
}

/// A connection; each request on it holds it.
#[derive(Debug)]
struct Link(SendRequest<LinkBody>);

impl Links {
    /// No connections yet to these nodes.
    pub(crate) fn new(nodes: Arc<dyn Nodes>) -> Links {
        Links { nodes, to: Mutex::default() }
    }

    /// The other nodes.
    pub(crate) fn nodes(&self) -> &dyn Nodes {
        &*self.nodes
    }

    /// Sends a request to a node, which has to be reached before `until`. Dropping the answer, or its body,
    /// resets the request's stream.
    ///
    /// # Errors
    /// The node is not reached, or its answer is lost.
    pub(crate) async fn send(
        &self,
        node: u64,
        mut request: Request<LinkBody>,
        until: Instant,
    ) -> Result<Response<AnswerBody>, Unanswered> {
        let to = Arc::clone(locked(&self.to).entry(node).or_default());
        // A connection may have ended since its last request: then another one is taken.
        for _ in 0..TRIES {
            let until = until.min(Instant::now() + CONNECT_TIME_MAX);
            let link = timeout_at(until, to.link(|| self.nodes.connect(node))).await;
            let link = link.map_err(|_| unsent("no connection in time"))?.map_err(unsent)?;
            match link.0.clone().try_send_request(request).await {
                Ok(response) => return Ok(response.map(|body| AnswerBody { body, _link: link })),
                Err(mut failed) => match failed.take_message() {
                    None => return Err(Unanswered::Lost(failed.error().to_string())),
                    Some(same) => {
                        request = same;
                        to.forget(&link);
                    }
                },
            }
        }
        Err(unsent("each connection ends at once"))
    }
}

fn unsent(reason: impl ToString) -> Unanswered {
    Unanswered::Unsent(reason.to_string())
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl To {
    /// A connection with room for one more request.
    async fn link<F>(&self, connect: impl FnOnce() -> F) -> io::Result<Arc<Link>>
    where
        F: Future<Output = io::Result<Box<dyn Wire>>>,
    {
        if let Some(link) = self.find() {
            return Ok(link);
        }
        let _turn = self.connecting.lock().await;
        // Another request may have made one meanwhile.
        if let Some(link) = self.find() {
            return Ok(link);
        }
        let link = Arc::new(Link::new(connect().await?).await?);
        locked(&self.links).push(Arc::clone(&link));
        Ok(link)
    }

    fn find(&self) -> Option<Arc<Link>> {
        let mut links = locked(&self.links);
        links.retain(|link| !link.0.is_closed());
        // One is held by this list, the others by requests.
        let has_room = |link: &&Arc<Link>| Arc::strong_count(link) <= STREAMS_MAX as usize;
        links.iter().find(has_room).map(Arc::clone)
    }

    fn forget(&self, ended: &Arc<Link>) {
        locked(&self.links).retain(|link| !Arc::ptr_eq(link, ended));
    }
}

impl Link {
    async fn new(wire: Box<dyn Wire>) -> io::Result<Link> {
        let (sender, driver) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(LINK_WINDOW_BYTES)
            .max_send_buf_size(STREAM_WINDOW_BYTES as usize)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_INTERVAL)
            .handshake(TokioIo::new(wire))
            .await
            .map_err(io::Error::other)?;
        // It ends with the connection, and its error reaches the requests that it carried.
        tokio::spawn(driver);
        Ok(Link(sender))
    }
}

/// The body of an answer, which holds its connection.
#[derive(Debug)]
pub(crate) struct AnswerBody {
    body: Incoming,
    _link: Arc<Link>,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map(|frame| frame.map(|frame| frame.map_err(io::Error::other)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
