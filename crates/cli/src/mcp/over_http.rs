//! Streamable HTTP: the protocol's own transport over the network, one request and one answer at a time.
//!
//! There are no sessions: each request stands for itself, under the token that it brings. So a client does
//! not notice when this process starts anew.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::agent::Agent;
use super::unstalled::Unstalled;

/// Connections at the same time; others wait until one is closed.
const CONNECTIONS_MAX: usize = 256;
/// Time for the head of a request.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// Largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// Time for the body of a request.
const BODY_MAX: Duration = Duration::from_secs(10);
/// Largest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Pause after a connection that could not be accepted, mostly for lack of files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

type Service = StreamableHttpService<Agent, NeverSessionManager>;
type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Hosts and origins by which the server is called.
#[derive(Clone, Debug)]
pub(super) struct Callers {
    /// Names in `Host`, beside those of this machine's own programs.
    pub(super) names: Vec<String>,
    /// Origins of web pages that may call.
    pub(super) origins: Vec<String>,
}

/// Serves until the process ends.
pub(super) async fn serve(listener: TcpListener, agent: Agent, callers: Callers) {
    let service = service(agent, callers);
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // It is never closed.
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, from)) => {
                tokio::spawn(connection(stream, from, service.clone(), place));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn service(agent: Agent, callers: Callers) -> Service {
    let Callers { names, origins } = callers;
    let own = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_hosts(own.into_iter().chain(names))
        .with_allowed_origins(origins)
        .enforce_origin_validation();
    StreamableHttpService::new(move || Ok(agent.clone()), Arc::new(NeverSessionManager::default()), config)
}

/// Answers a request whose body comes in time.
async fn handle(service: &Service, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    match timeout(BODY_MAX, Limited::new(body, BODY_BYTES_MAX).collect()).await {
        Ok(Ok(body)) => service.handle(Request::from_parts(head, Full::new(body.to_bytes()))).await,
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let reason = format!("a request may have {BODY_BYTES_MAX} bytes\n");
            refusal(StatusCode::PAYLOAD_TOO_LARGE, reason)
        }
        Ok(Err(error)) => refusal(StatusCode::BAD_REQUEST, format!("the body cannot be read: {error}\n")),
        Err(_) => {
            let reason = format!("the body did not come within {} s\n", BODY_MAX.as_secs());
            refusal(StatusCode::REQUEST_TIMEOUT, reason)
        }
    }
}

/// An answer after which the connection is closed, since the rest of the body may still come.
fn refusal(status: StatusCode, reason: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(reason)).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

async fn connection<S>(stream: S, from: SocketAddr, service: Service, place: OwnedSemaphorePermit)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let handle = service_fn(move |request| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(handle(&service, request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Unstalled::new(stream)), handle)
        .await;
    if let Err(error) = served {
        tracing::debug!(%from, %error, "a connection has ended");
    }
    drop(place);
}

#[cfg(test)]
mod tests {
    use sluice_client::Client;
    use tokio::io::AsyncWriteExt as _;

    use super::super::agent::Identity;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_does_not_read_its_answer_holds_no_connection_for_ever() {
        let agent = Agent::new(Identity::Process(Client::new("http://127.0.0.1:1").unwrap()));
        let service = service(agent, Callers { names: Vec::new(), origins: Vec::new() });
        let room = Arc::new(Semaphore::new(1));
        let place = Arc::clone(&room).acquire_owned().await.unwrap();
        let (mut caller, stream) = tokio::io::duplex(1 << 10);
        tokio::spawn(connection(stream, ([127, 0, 0, 1], 1).into(), service, place));
        let listing = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let request = format!(
            "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{listing}",
            listing.len()
        );
        caller.write_all(request.as_bytes()).await.unwrap();
        // The answer is longer than what fits on the way.
        let left = timeout(Duration::from_secs(600), room.acquire()).await;
        assert!(left.is_ok(), "the connection is still there");
        drop(caller);
    }
}
