//! The accept loop.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice_calls::Calls;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::connection;
use super::context::Context;
use super::options::HttpOptions;
use super::service::Service;

/// Grace period of administrative acts whose callers were cut.
const ACTS_GRACE: Duration = Duration::from_secs(5);
/// Pause after the system gave no connection: mostly the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections over the limit that get an answer before they are closed.
const REFUSALS_MAX: usize = 64;
/// Longest time for such an answer.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/json\r\ncontent-length: 116\r\nretry-after: 1\r\nconnection: close\r\n\r\n\
    {\"error\":{\"code\":\"overloaded\",\"message\":\"too many connections: retry in 1000 ms\",\
    \"details\":{\"retry_after_ms\":1000}}}";

/// The outcome of serving.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped {
    /// Connections that did not finish within the grace period and were cut.
    pub connections_cut: usize,
}

/// Accepts connections until `shutdown` resolves, and has `S` answer their requests.
pub(crate) async fn serve<S: Service>(
    listener: TcpListener,
    calls: Calls,
    options: HttpOptions,
    shutdown: impl Future<Output = ()>,
) -> Stopped {
    let (stop, stopping) = watch::channel(false);
    let grace = options.shutdown_grace;
    let context = Arc::new(Context::new(calls, options));
    S::begin(&context);
    let mut accepting = Accepting {
        context: Arc::clone(&context),
        stopping,
        connections: JoinSet::new(),
        refusals: JoinSet::new(),
        failures: 0,
    };
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
        };
        accepting.take::<S>(accepted).await;
    }
    drop(listener);
    let mut connections = accepting.connections;
    // Fails only when no connection is left to hear it.
    let _ = stop.send(true);
    context.calls.stop();
    let drained = timeout(grace, async { while connections.join_next().await.is_some() {} }).await;
    let connections_cut = if drained.is_ok() { 0 } else { connections.len() };
    connections.shutdown().await;
    context.calls.end_open_transactions();
    if timeout(ACTS_GRACE, context.acts.ended()).await.is_err() {
        tracing::error!(
            "administrative acts are not finished after {ACTS_GRACE:?}: the audit log may lack them"
        );
    }
    Stopped { connections_cut }
}

/// The accept loop's connections and refusals.
struct Accepting {
    context: Arc<Context>,
    stopping: watch::Receiver<bool>,
    connections: JoinSet<()>,
    refusals: JoinSet<()>,
    /// Failures of `accept` since the last connection.
    failures: u64,
}

impl Accepting {
    /// Serves or refuses an accepted connection; after a failure, pauses.
    async fn take<S: Service>(&mut self, accepted: io::Result<(TcpStream, SocketAddr)>) {
        while self.connections.try_join_next().is_some() {}
        while self.refusals.try_join_next().is_some() {}
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if self.failures == 0 {
                    tracing::warn!("cannot accept connections: {error}; trying on");
                }
                self.failures += 1;
                return sleep(ACCEPT_PAUSE).await;
            }
        };
        let options = &self.context.options;
        if self.connections.len() < options.connections_max || options.guard.is_of_node(from.ip()) {
            self.serve::<S>(stream, from);
        } else {
            self.refuse(stream);
        }
        if self.failures > 0 {
            tracing::warn!("connections are accepted again, after {} failures", self.failures);
            self.failures = 0;
        }
    }

    fn serve<S: Service>(&mut self, stream: TcpStream, from: SocketAddr) {
        let context = &self.context;
        match context.options.guard.enter(from.ip()) {
            Ok(slot) => {
                let (context, stopping) = (Arc::clone(context), self.stopping.clone());
                self.connections.spawn(connection::serve::<S>(context, stream, slot, stopping));
            }
            // No answer: there may be many of them, and they had theirs.
            Err(turned) => context.metrics.turned_away(turned),
        }
    }

    fn refuse(&mut self, stream: TcpStream) {
        self.context.metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
        // Over TLS no answer is worth the handshake that it would take.
        if self.context.options.tls.is_none() && self.refusals.len() < REFUSALS_MAX {
            self.refusals.spawn(refuse(stream));
        }
    }
}

/// Tells a client that there are too many connections; in HTTP/1.1, which an HTTP/2 client also understands
/// as a failure.
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
