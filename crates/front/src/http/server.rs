//! The accept loop and the life of a connection.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use sluice_node::Node;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::connection::{Activity, Verdict, Watched};
use super::context::Context;
use super::dispatch::handle;
use super::options::{HEAD_BYTES_MAX, HEAD_FIELDS_MAX, HttpOptions, SEND_BUFFER_BYTES, STREAMS_MAX};
use crate::access::{Peer, Slot};
use crate::tls::{HandshakeFailure, client_certificate};

/// How long a connection that was told to close may still stay.
const CLOSE_GRACE: Duration = Duration::from_secs(5);
/// How long administrative acts may still take when their callers are cut.
const ACTS_GRACE: Duration = Duration::from_secs(5);
/// Pause after the system gave no connection: mostly the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections over the limit that get an answer before they are closed.
const REFUSALS_MAX: usize = 64;
/// How long such an answer may take.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/json\r\ncontent-length: 116\r\nretry-after: 1\r\nconnection: close\r\n\r\n\
    {\"error\":{\"code\":\"overloaded\",\"message\":\"too many connections: retry in 1000 ms\",\
    \"details\":{\"retry_after_ms\":1000}}}";

/// How serving ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped {
    /// Connections that did not finish within the grace period and were cut.
    pub connections_cut: usize,
}

/// Serves HTTP/1.1 and HTTP/2 on `listener` until `shutdown` resolves: over TLS when [`HttpOptions::tls`] is there, else in
/// clear text.
///
/// Then it accepts no more, ends the waits of receives, tells every connection to close (`connection: close`,
/// GOAWAY), lets requests in flight finish within [`HttpOptions::shutdown_grace`], and cuts what is left; administrative acts
/// get some seconds more. The node is not shut down: that is for the caller, afterwards.
pub async fn serve(
    listener: TcpListener,
    node: Node,
    options: HttpOptions,
    shutdown: impl Future<Output = ()>,
) -> Stopped {
    let (stop, stopping) = watch::channel(false);
    let grace = options.shutdown_grace;
    let context = Arc::new(Context::new(node, options, stopping.clone()));
    let mut connections = JoinSet::new();
    let mut refusals = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let mut failures = 0u64;
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        while refusals.try_join_next().is_some() {}
        match accepted {
            Ok((stream, from)) if connections.len() < context.options.connections_max => {
                match context.options.guard.enter(from.ip()) {
                    Ok(slot) => {
                        connections.spawn(connection(Arc::clone(&context), stream, slot, stopping.clone()));
                    }
                    // No answer: there may be many of them, and they had theirs.
                    Err(turned) => context.metrics.turned_away(turned),
                }
            }
            Ok((stream, _)) => {
                context.metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
                // Over TLS no answer is worth the handshake that it would take.
                if context.options.tls.is_none() && refusals.len() < REFUSALS_MAX {
                    refusals.spawn(refuse(stream));
                }
            }
            Err(error) => {
                if failures == 0 {
                    tracing::warn!("cannot accept connections: {error}; trying on");
                }
                failures += 1;
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        }
        if failures > 0 {
            tracing::warn!("connections are accepted again, after {failures} failures");
            failures = 0;
        }
    }
    drop(listener);
    // Fails only when no connection is left to hear it.
    let _ = stop.send(true);
    let drained = timeout(grace, async { while connections.join_next().await.is_some() {} }).await;
    let connections_cut = if drained.is_ok() { 0 } else { connections.len() };
    connections.shutdown().await;
    if timeout(ACTS_GRACE, context.acts.ended()).await.is_err() {
        tracing::error!(
            "administrative acts are not finished after {ACTS_GRACE:?}: the audit log may lack them"
        );
    }
    Stopped { connections_cut }
}

/// Tells a client that there are too many connections; in HTTP/1.1, which an HTTP/2 client also understands as a failure.
async fn refuse(mut stream: TcpStream) {
    let answer = async {
        stream.write_all(REFUSAL).await?;
        stream.shutdown().await?;
        // Until the client closes: closing on unread bytes would reset the connection and lose the answer.
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    // A client that does not take its refusal gets none.
    let _ = timeout(REFUSAL_TIMEOUT, answer).await;
}

async fn connection(context: Arc<Context>, stream: TcpStream, slot: Slot, stopping: watch::Receiver<bool>) {
    context.metrics.connections.fetch_add(1, Ordering::Relaxed);
    let _open = OpenConnection::new(&context);
    // A small answer must not wait for the next one; if that fails it is only slower.
    let _ = stream.set_nodelay(true);
    // Only if the system allows; without it, slow clients are judged more coarsely.
    let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(SEND_BUFFER_BYTES);
    let Some(tls) = &context.options.tls else {
        let peer = Peer::new(&context.options.access, slot, None);
        return converse(&context, stream, peer, stopping).await;
    };
    match tls.accept(stream).await {
        Ok(stream) => {
            let certificate = client_certificate(&stream).map(AsRef::as_ref);
            let peer = Peer::new(&context.options.access, slot, certificate);
            converse(&context, stream, peer, stopping).await;
        }
        Err(failure) => {
            // Who only looks whether the port is open, as balancers do, has failed nothing.
            if !matches!(failure, HandshakeFailure::Gone) {
                // Banned or not, this connection is over.
                let _ = slot.failed();
            }
            context.metrics.handshakes_failed.fetch_add(1, Ordering::Relaxed);
            tracing::debug!("connection ended: {failure}");
        }
    }
}

/// Answers the requests of a connection until it ends.
async fn converse(
    context: &Arc<Context>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    mut stopping: watch::Receiver<bool>,
) {
    let activity = Arc::new(Activity::new(context.options.connection_answers_bytes_max));
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&activity)));
    let peer = Arc::new(peer);
    let service = service_fn(|request: Request<Incoming>| {
        let answer = handle(Arc::clone(context), Arc::clone(&activity), Arc::clone(&peer), request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let builder = builder(context.options.ping_interval);
    let mut serving = pin!(builder.serve_connection(io, service));
    let (mut closing, mut turned_away) = (false, false);
    let mut look_after = context.options.head_timeout.min(context.options.idle_timeout);
    loop {
        tokio::select! {
            // First, so that an answer that the stop brings about says `connection: close`.
            biased;
            _ = stopping.wait_for(|stopping| *stopping), if !closing => {
                closing = true;
                serving.as_mut().graceful_shutdown();
            }
            () = peer.turned_away(), if !turned_away => {
                (closing, turned_away, look_after) = (true, true, CLOSE_GRACE);
                serving.as_mut().graceful_shutdown();
            }
            result = serving.as_mut() => {
                if let Err(error) = result {
                    if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout) {
                        context.metrics.connections_cut.fetch_add(1, Ordering::Relaxed);
                    }
                    tracing::debug!("connection ended: {error}");
                }
                return;
            }
            () = sleep(look_after) => match activity.verdict(&context.options) {
                // Its last answers had their time, and a session or requests without end get no more.
                _ if turned_away => return,
                Verdict::Keep(next) => look_after = next,
                Verdict::Close if !closing => {
                    closing = true;
                    look_after = CLOSE_GRACE;
                    serving.as_mut().graceful_shutdown();
                }
                Verdict::Close => return,
                Verdict::Cut(reason) => {
                    context.metrics.connections_cut.fetch_add(1, Ordering::Relaxed);
                    tracing::debug!("connection cut: {reason}");
                    return;
                }
            },
        }
    }
}

/// Counts an open connection while it lives.
struct OpenConnection<'c>(&'c Context);

impl<'c> OpenConnection<'c> {
    fn new(context: &'c Context) -> OpenConnection<'c> {
        context.connections.fetch_add(1, Ordering::Relaxed);
        OpenConnection(context)
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn builder(ping_interval: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // Deadlines are kept by `Activity`, for both versions alike.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEAD_FIELDS_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(ping_interval)
        .keep_alive_timeout(ping_interval)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .initial_stream_window_size(256 << 10)
        .initial_connection_window_size(1 << 20)
        .max_send_buf_size(256 << 10);
    builder
}

#[cfg(test)]
mod tests {
    use super::REFUSAL;

    #[test]
    fn the_refusal_is_as_long_as_it_says() {
        let text = std::str::from_utf8(REFUSAL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
        serde_json::from_str::<serde_json::Value>(body).unwrap();
    }
}
