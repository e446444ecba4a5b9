//! Connections: HTTP/1.1 for calls, pooled up to a limit; HTTP/2 for sessions, one connection each.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::credentials::Alpn;
use crate::error::{ClientError, TransportKind};
use crate::options::Options;
use crate::outgoing::{self, Outgoing};
use crate::tls_fault::TlsFault;
use crate::types::ErrorBody;

/// Largest answer that is taken into memory; a receive of 1,000 messages is cut by the server long before.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Bytes of a stream that may be on their way without having been read.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
/// Bytes that are read at once: most answers, and where they are encrypted a record and more.
const READ_BYTES: usize = 32 << 10;
/// An answer that is this small is copied, so that what is kept of it does not keep [`READ_BYTES`] in memory.
const COPIED_BYTES_MAX: usize = 8 << 10;
/// After so long in silence a stream's connection is asked for a sign of life, and so long that may take.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// A request without the header fields that all requests share.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Bytes,
    /// Header fields of this request alone; without a media type among them a body is JSON.
    pub(crate) headers: HeaderMap,
    /// Time allowed for the whole exchange.
    pub(crate) timeout: Duration,
}

/// An answer with its whole body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// An earlier try of the same request may have taken effect: its answer was lost.
    pub(crate) repeated: bool,
}

/// The failure of a connection.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: TransportKind,
    pub(crate) reason: String,
}

type Connection = SendRequest<Full<Bytes>>;

/// A connection, encrypted or not.
trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// A connection with TLS.
type Secured = TlsStream<BufReader<TcpStream>>;

/// TLS of the connections to a server.
struct Tls {
    http1: TlsConnector,
    http2: TlsConnector,
    /// Name for which the server's certificate must be valid.
    name: ServerName<'static>,
}

/// The connections to one server.
#[derive(Debug)]
pub(crate) struct Transport {
    /// `host:port`, as connected to and shown.
    pub(crate) address: String,
    host: HeaderValue,
    user_agent: HeaderValue,
    authorization: Option<HeaderValue>,
    tls: Option<Tls>,
    connect_timeout: Duration,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

impl Transport {
    pub(crate) fn new(url: &str, options: &Options) -> Result<Transport, ClientError> {
        let invalid =
            |reason: &str| ClientError::InvalidUrl { url: url.to_owned(), reason: reason.to_owned() };
        let full = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let uri: Uri = full.parse().map_err(|_| invalid("expected http://HOST:PORT"))?;
        let (encrypted, default_port) = match uri.scheme_str() {
            Some("http") => (false, 80),
            Some("https") => (true, 443),
            _ => return Err(invalid("expected http://HOST:PORT or https://HOST:PORT")),
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(invalid("expected http://HOST:PORT without a path"));
        }
        let host = uri.host().filter(|h| !h.is_empty()).ok_or_else(|| invalid("it names no host"))?;
        let authority = uri.authority().map_or("", |a| a.as_str());
        let port = match uri.port_u16() {
            Some(port) => port,
            None if authority.len() > host.len() => {
                return Err(invalid("the port is not a number from 1 to 65535"));
            }
            None => default_port,
        };
        let tls = match encrypted {
            false => None,
            true => {
                let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                let name = ServerName::try_from(bare)
                    .map_err(|_| invalid("the host is neither a DNS name nor an address"))?;
                let connector = |alpn| options.credentials.connector(alpn);
                Some(Tls { http1: connector(Alpn::Http1)?, http2: connector(Alpn::Http2)?, name })
            }
        };
        let address = format!("{host}:{port}");
        let host = HeaderValue::from_str(&address).map_err(|_| invalid("the host is not one"))?;
        Ok(Transport {
            address,
            host,
            user_agent: HeaderValue::from_static(concat!("sluice-client/", env!("CARGO_PKG_VERSION"))),
            authorization: options.credentials.authorization()?,
            tls,
            connect_timeout: options.connect_timeout,
            idle: Mutex::new(Vec::new()),
            permits: Semaphore::new(options.connections_max.max(1)),
        })
    }

    /// True when it speaks TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Sends a request and takes the whole answer.
    pub(crate) async fn exchange(&self, call: &Call) -> Result<Answer, Failure> {
        let work = async {
            let _permit = self.permits.acquire().await.map_err(|e| Failure::broken(&e))?;
            let (response, connection) = self.send(call).await?;
            let answer = whole(response).await?;
            self.keep(connection);
            Ok(answer)
        };
        timeout(call.timeout, work).await.unwrap_or_else(|_| Err(Failure::late(call.timeout)))
    }

    /// Sends a request and leaves the body of a successful answer to be read piece by piece, for as long as
    /// that takes.
    pub(crate) async fn download(&self, call: &Call) -> Result<Result<Download, Answer>, Failure> {
        let begin = async {
            let (response, connection) = self.send(call).await?;
            if response.status().is_success() {
                let (head, body) = response.into_parts();
                let (status, headers, address) = (head.status.as_u16(), head.headers, self.address.clone());
                return Ok(Ok(Download { status, headers, body, _connection: connection, address }));
            }
            whole(response).await.map(Err)
        };
        timeout(call.timeout, begin).await.unwrap_or_else(|_| Err(Failure::late(call.timeout)))
    }

    async fn send(&self, call: &Call) -> Result<(Response<Incoming>, Connection), Failure> {
        let mut request = self.request(call)?;
        // An idle connection may have been closed meanwhile; when the request did not go out, take the next
        // one.
        while let Some(mut connection) = self.take_idle() {
            if connection.ready().await.is_err() {
                continue;
            }
            match connection.try_send_request(request).await {
                Ok(response) => return Ok((response, connection)),
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => {
                        self.forget_idle();
                        return Err(Failure::broken(failed.error()));
                    }
                },
            }
        }
        let mut connection = self.connect().await?;
        let response = connection.send_request(request).await.map_err(|e| Failure::broken(&e))?;
        Ok((response, connection))
    }

    /// Begins a stream over HTTP/2, on a connection of its own that ends with it.
    pub(crate) async fn stream(&self, path: &str, outgoing: Outgoing) -> Result<Response<Incoming>, Failure> {
        let begin = async {
            let stream = self.reach(Alpn::Http2).await?;
            let (mut sender, driver) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .initial_stream_window_size(STREAM_WINDOW_BYTES)
                .initial_connection_window_size(STREAM_WINDOW_BYTES)
                .keep_alive_interval(PING_INTERVAL)
                .keep_alive_timeout(PING_INTERVAL)
                .handshake(TokioIo::new(stream))
                .await
                .map_err(|e| Failure { kind: TransportKind::Connect, reason: e.to_string() })?;
            // The driver ends with the connection; its error reaches the stream that it carried.
            tokio::spawn(driver);
            let scheme = if self.tls.is_some() { "https" } else { "http" };
            let uri =
                format!("{scheme}://{}{path}", self.address).parse().map_err(|e| Failure::broken(&e))?;
            let mut request = outgoing::request(uri, outgoing);
            request.headers_mut().insert(USER_AGENT, self.user_agent.clone());
            if let Some(authorization) = &self.authorization {
                request.headers_mut().insert(AUTHORIZATION, authorization.clone());
            }
            sender.send_request(request).await.map_err(|e| Failure::broken(&e))
        };
        let late = || Failure {
            kind: TransportKind::Timeout,
            reason: format!("no answer within {}", seconds(2 * self.connect_timeout)),
        };
        timeout(2 * self.connect_timeout, begin).await.unwrap_or_else(|_| Err(late()))
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, Failure> {
        let mut request = Request::new(Full::new(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = call.path.parse().map_err(|e| Failure::broken(&e))?;
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(USER_AGENT, self.user_agent.clone());
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        if !call.body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in &call.headers {
            headers.insert(name, value.clone());
        }
        Ok(request)
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let stream = self.reach(Alpn::Http1).await?;
        let connected = builder().handshake(TokioIo::new(stream)).await;
        let (sender, driver) =
            connected.map_err(|e| Failure { kind: TransportKind::Connect, reason: e.to_string() })?;
        // The driver ends with the connection; its error reaches the request that it carried.
        tokio::spawn(driver);
        Ok(sender)
    }

    /// Makes a connection, over which nothing is spoken yet.
    async fn reach(&self, alpn: Alpn) -> Result<Box<dyn Wire>, Failure> {
        let stream = self.reach_port().await?;
        match &self.tls {
            None => Ok(Box::new(stream)),
            Some(tls) => Ok(Box::new(self.secure(tls, alpn, stream).await?)),
        }
    }

    async fn reach_port(&self) -> Result<TcpStream, Failure> {
        let stream = match timeout(self.connect_timeout, TcpStream::connect(&self.address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(e)) => return Err(unreached(e.to_string())),
            Err(_) => {
                return Err(unreached(format!("no connection within {}", seconds(self.connect_timeout))));
            }
        };
        stream.set_nodelay(true).map_err(|e| unreached(e.to_string()))?;
        Ok(stream)
    }

    /// Does the handshake of TLS.
    async fn secure(&self, tls: &Tls, alpn: Alpn, stream: TcpStream) -> Result<Secured, Failure> {
        let connector = if alpn == Alpn::Http2 { &tls.http2 } else { &tls.http1 };
        // rustls asks for 4 KiB at a time, and each time would be a system call.
        let stream = BufReader::with_capacity(READ_BYTES, stream);
        match timeout(self.connect_timeout, connector.connect(tls.name.clone(), stream)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(e)) if has_ended(&e) => {
                Err(unreached(format!("the connection ended in the TLS handshake: {e}")))
            }
            Ok(Err(e)) => {
                let (fault, reason) = TlsFault::of(&e);
                Err(Failure { kind: TransportKind::Tls(fault), reason })
            }
            Err(_) => Err(unreached(format!("no TLS within {}", seconds(self.connect_timeout)))),
        }
    }

    /// The certificate that the server shows, as DER; `None`: it speaks clear text.
    pub(crate) async fn shown_certificate(&self) -> Result<Option<Vec<u8>>, Failure> {
        let Some(tls) = &self.tls else { return Ok(None) };
        let stream = self.secure(tls, Alpn::Http1, self.reach_port().await?).await?;
        Ok(stream.get_ref().1.peer_certificates().and_then(|shown| Some(shown.first()?.to_vec())))
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let connection = idle.pop()?;
            if !connection.is_closed() {
                return Some(connection);
            }
        }
    }

    fn keep(&self, connection: Connection) {
        if !connection.is_closed() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }

    /// A connection that broke under a request was most likely not the only one.
    fn forget_idle(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The failure of a connection that could not be made.
fn unreached(reason: String) -> Failure {
    Failure { kind: TransportKind::Connect, reason }
}

/// Settings of HTTP/1.1 connections: an answer that comes in one piece is used where it lies.
fn builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.read_buf_exact_size(Some(READ_BYTES));
    builder
}

/// Takes an answer to its end.
async fn whole(response: Response<Incoming>) -> Result<Answer, Failure> {
    let (parts, body) = response.into_parts();
    let collected = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|e| Failure::broken(&*e))?;
    let body = collected.to_bytes();
    let body = if body.len() <= COPIED_BYTES_MAX { Bytes::copy_from_slice(&body) } else { body };
    Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body, repeated: false })
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A time for people: to a tenth of a second, and what is shorter than a second as it is.
fn seconds(time: Duration) -> String {
    let tenths = (time.as_millis() + 50) / 100;
    match u64::try_from(tenths) {
        Ok(tenths) if tenths >= 10 => format!("{:?}", Duration::from_millis(tenths * 100)),
        _ => format!("{time:?}"),
    }
}

/// True for a handshake that the other side left without a word, as a server does whose process ends.
fn has_ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

impl Failure {
    fn late(waited: Duration) -> Failure {
        Failure { kind: TransportKind::Timeout, reason: format!("waited {}", seconds(waited)) }
    }

    fn broken(error: &(dyn std::error::Error + 'static)) -> Failure {
        let mut reason = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            reason.push_str(": ");
            reason.push_str(&inner.to_string());
            source = inner.source();
        }
        Failure { kind: TransportKind::Broken, reason }
    }
}

impl Answer {
    /// Turns an answer that is not a success into an error.
    pub(crate) fn into_success(self) -> Result<Answer, ClientError> {
        #[derive(serde::Deserialize)]
        struct Wire {
            error: ErrorBody,
        }
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        match serde_json::from_slice::<Wire>(&self.body) {
            Ok(Wire { error }) => Err(ClientError::Server {
                status: self.status,
                code: error.code,
                message: error.message,
                details: error.details,
                retry_after: self.retry_after(),
            }),
            Err(_) => {
                let text = String::from_utf8_lossy(&self.body);
                let start: String = text.chars().take(200).collect();
                Err(ClientError::Protocol {
                    status: self.status,
                    reason: format!(
                        "not an error of Sluice: {start:?}; is this the address of a Sluice server?"
                    ),
                })
            }
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        let seconds: f64 = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

/// The body of an answer, read piece by piece.
#[derive(Debug)]
pub struct Download {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    _connection: Connection,
    pub(crate) address: String,
}

impl Download {
    /// The next piece; `None` at the end. A body that is cut off is an error, not an end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => return Ok(Some(data)),
                    Err(_trailers) => continue,
                },
                Some(Err(e)) => {
                    let Failure { kind, reason } = Failure::broken(&e);
                    return Err(ClientError::Transport {
                        kind,
                        server: self.address.clone(),
                        tried: 1,
                        reason,
                    });
                }
            }
        }
    }
}
