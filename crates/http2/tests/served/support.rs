//! A server on this stack, and hyper's client at its other end.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use sluice_http2::adapter::{Adapter, RequestBody};
use sluice_http2::drive::{Driver, Plain, Tls, Wire};
use sluice_http2::emit::EmitMode;
use sluice_http2::{Connection, Limits};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type AnyBody = BoxBody<Bytes, Error>;

/// The byte at each place of a body that the test service makes.
pub(crate) fn pattern(bytes: usize) -> Bytes {
    (0..bytes).map(|at| (at / 251 + at) as u8).collect()
}

/// What the servers of all tests do, on this stack and on hyper's:
/// - `/echo` gives back the body as it comes, and its trailers;
/// - `/length` tells how long the body was;
/// - `/size/N` gives N bytes, in one piece; `/pieces/N` gives N pieces of 8 KiB;
/// - `/trailers` gives a body and trailers;
/// - `/head` tells what the head of the request was;
/// - `/status/N` gives an empty answer;
/// - `/fails` breaks off in the middle of its body.
pub(crate) async fn serve_test<B>(request: Request<B>) -> Result<Response<AnyBody>, Error>
where
    B: Body<Data = Bytes> + Send + Sync + 'static,
    B::Error: Into<Error>,
{
    let path = request.uri().path().to_string();
    let (route, argument) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
    let number = || argument.parse::<usize>().map_err(Error::from);
    let text = |text: String| Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed();
    let stream = |frames: Vec<Result<Frame<Bytes>, Error>>| {
        StreamBody::new(futures_util::stream::iter(frames)).boxed()
    };
    Ok(Response::new(match route {
        "echo" => request.into_body().map_err(Into::into).boxed(),
        "length" => {
            text(request.into_body().collect().await.map_err(Into::into)?.to_bytes().len().to_string())
        }
        "size" => Full::new(pattern(number()?)).map_err(|never| match never {}).boxed(),
        "pieces" => stream((0..number()?).map(|_| Ok(Frame::data(pattern(8 << 10)))).collect()),
        "trailers" => {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", "0".parse()?);
            stream(vec![Ok(Frame::data(Bytes::from_static(b"body"))), Ok(Frame::trailers(trailers))])
        }
        "head" => text(tell_head(&request)),
        "status" => {
            let status = StatusCode::from_u16(number()? as u16)?;
            let body = Empty::new().map_err(|never| match never {}).boxed();
            return Ok(Response::builder().status(status).body(body)?);
        }
        "fails" => stream(vec![Ok(Frame::data(Bytes::from_static(b"half"))), Err("on purpose".into())]),
        _ => {
            let response = Response::builder().status(StatusCode::NOT_FOUND);
            return Ok(response.body(text(format!("there is no {path}")))?);
        }
    }))
}

fn tell_head<B>(request: &Request<B>) -> String {
    let mut fields: Vec<String> =
        request.headers().iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    fields.sort();
    format!("{} {} {}", request.method(), request.uri(), fields.join(" "))
}

/// The test service for this stack.
#[derive(Clone)]
pub(crate) struct TestService;

impl tower_service::Service<Request<RequestBody>> for TestService {
    type Response = Response<AnyBody>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<AnyBody>, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        Box::pin(serve_test(request))
    }
}

pub(crate) type TestDriver<W> = Driver<W, Adapter<TestService, AnyBody>>;

pub(crate) fn driver<W: Wire + Unpin>(wire: W, limits: Limits, mode: EmitMode) -> TestDriver<W> {
    let limits = Arc::new(limits);
    let adapter = Adapter::new(TestService, &limits);
    Driver::new(wire, adapter, |now_us| Connection::new(limits, mode, now_us))
}

/// A way to reach a server.
#[derive(Clone)]
pub(crate) enum Transport {
    Plain,
    Tls(Arc<rustls::ServerConfig>, Arc<rustls::ClientConfig>),
}

impl Transport {
    /// With a certificate of its own.
    pub(crate) fn tls() -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let own = rcgen::generate_simple_self_signed(["localhost".to_string()]).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()).into();
        let mut server = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .expect("a key");
        server.alpn_protocols = vec![b"h2".to_vec()];
        let mut roots = rustls::RootCertStore::empty();
        roots.add(own.cert.der().clone()).expect("a root");
        let mut client = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![b"h2".to_vec()];
        Self::Tls(Arc::new(server), Arc::new(client))
    }

    /// Starts a server on this stack at one end of a pipe that holds `pipe_bytes`, and hyper's client at the other.
    pub(crate) async fn connect(
        &self,
        pipe_bytes: usize,
        mode: EmitMode,
        chop: Option<u64>,
    ) -> SendRequest<AnyBody> {
        let (near, far) = duplex(pipe_bytes);
        match self {
            Self::Plain => {
                serve_chopped(far, chop, |io| driver(Plain::new(io), Limits::default(), mode));
                client(near).await
            }
            Self::Tls(server, config) => {
                let tls = rustls::ServerConnection::new(server.clone()).expect("a configuration");
                let limits = Limits::default();
                serve_chopped(far, chop, |io| driver(Tls::new(io, tls, &limits), limits.clone(), mode));
                let name = ServerName::try_from("localhost").expect("a name");
                let io = tokio_rustls::TlsConnector::from(config.clone()).connect(name, near).await;
                client(io.expect("a handshake")).await
            }
        }
    }
}

fn serve_chopped<W, F>(io: DuplexStream, chop: Option<u64>, make: F)
where
    W: Wire + Unpin + Send + 'static,
    F: FnOnce(Chopped) -> TestDriver<W>,
{
    let driver = make(Chopped { inner: io, state: chop });
    tokio::spawn(async move {
        if let Err(error) = driver.await {
            println!("the server's connection: {error}");
        }
    });
}

/// hyper's client, with windows of the protocol's own size.
pub(crate) async fn client<T>(io: T) -> SendRequest<AnyBody>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(io)).await.expect("a handshake");
    tokio::spawn(async move {
        let _ = connection.await;
    });
    sender
}

pub(crate) fn request(method: &str, path: &str, body: AnyBody) -> Request<AnyBody> {
    Request::builder().method(method).uri(format!("https://localhost{path}")).body(body).expect("a request")
}

pub(crate) fn no_body() -> AnyBody {
    Empty::new().map_err(|never| match never {}).boxed()
}

pub(crate) fn full(bytes: Bytes) -> AnyBody {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}

/// The status and the whole body of the answer.
pub(crate) async fn ask(sender: &mut SendRequest<AnyBody>, request: Request<AnyBody>) -> (StatusCode, Bytes) {
    sender.ready().await.expect("a connection");
    let response = sender.send_request(request).await.expect("an answer");
    let status = response.status();
    (status, response.into_body().collect().await.expect("a body").to_bytes())
}

/// A pipe whose reads and writes come in pieces of random sizes, and now and then not at all, if it has a state.
pub(crate) struct Chopped {
    inner: DuplexStream,
    state: Option<u64>,
}

impl Chopped {
    /// How many bytes may go now; none: not now.
    fn piece(&mut self, context: &Context<'_>) -> Option<usize> {
        let Some(state) = &mut self.state else { return Some(usize::MAX) };
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = (*state >> 33) as usize;
        if random.is_multiple_of(4) {
            context.waker().wake_by_ref();
            return None;
        }
        Some(1 + (random / 4) % [1, 10, 100, 5_000][random / 16 % 4])
    }
}

impl AsyncRead for Chopped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(piece) = self.piece(context) else { return Poll::Pending };
        let mut part = buf.take(piece);
        let polled = Pin::new(&mut self.inner).poll_read(context, &mut part);
        let filled = part.filled().len();
        buf.advance(filled);
        polled
    }
}

impl AsyncWrite for Chopped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(piece) = self.piece(context) else { return Poll::Pending };
        Pin::new(&mut self.inner).poll_write(context, &bytes[..bytes.len().min(piece)])
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
