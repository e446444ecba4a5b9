//! HTTP/1.1, by hyper.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::heads::{Heads, Refusal};
use super::{Conversation, Served};
use crate::net::activity::{Activity, SLOW_HEAD, Verdict, Watched};
use crate::net::body::{Body, Inbound};
use crate::net::options::{HEAD_BYTES_MAX, HEAD_FIELDS_MAX, HttpOptions};
use crate::net::refusal::refuse;
use crate::net::service::Service;

/// Longest time for the answer to a head that came too slowly.
const REFUSAL_TIME_MAX: Duration = Duration::from_secs(1);

impl Served<'_> {
    /// Answers requests of HTTP/1.1 until the connection ends.
    pub(super) async fn speak_http1<S: Service>(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) {
        let refusal = Arc::new(Refusal::default());
        let watched = Watched::new(stream, Arc::clone(&self.activity));
        let io = TokioIo::new(Heads::new(watched, Arc::clone(&refusal), Arc::clone(&self.activity)));
        let (context, activity, peer) = (self.context, Arc::clone(&self.activity), Arc::clone(&self.peer));
        let service = service_fn(|request: Request<Incoming>| {
            let refused = refusal.of(&request);
            let request = request.map(Inbound::http1);
            let (context, activity, peer) = (Arc::clone(context), Arc::clone(&activity), Arc::clone(&peer));
            async {
                Ok::<_, Infallible>(match refused {
                    None => S::answer(context, activity, peer, request).await,
                    Some(error) => Box::pin(refuse(context, activity, peer, request, error)).await,
                })
            }
        });
        let connection = pin!(builder().serve_connection(io, service));
        let (activity, refusal) = (Arc::clone(&activity), Arc::clone(&refusal));
        self.converse(Http1 { connection, activity, refusal }).await;
    }
}

fn builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    // Deadlines are kept by `Activity`.
    builder.header_read_timeout(None).max_buf_size(HEAD_BYTES_MAX).max_headers(HEAD_FIELDS_MAX);
    builder
}

/// A connection of hyper, and what it does.
struct Http1<'c, I, S: HttpService<Incoming>> {
    connection: Pin<&'c mut http1::Connection<I, S>>,
    activity: Arc<Activity>,
    refusal: Arc<Refusal>,
}

impl<I, S> Future for Http1<'_, I, S>
where
    I: Read + Write + Unpin + 'static,
    S: HttpService<Incoming, ResBody = Body>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, waker: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.as_mut().poll(waker).map_err(io::Error::other)
    }
}

impl<I, S> Conversation for Http1<'_, I, S>
where
    I: Read + Write + Unpin + 'static,
    S: HttpService<Incoming, ResBody = Body>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
{
    fn shut_down(&mut self) {
        self.connection.as_mut().graceful_shutdown();
    }

    fn verdict(&self, options: &HttpOptions) -> Verdict {
        match self.activity.verdict(options) {
            Verdict::Cut(SLOW_HEAD) if self.refusal.head_is_late() => Verdict::Keep(REFUSAL_TIME_MAX),
            verdict => verdict,
        }
    }
}
