//! A server on this stack, and hyper's client at its other end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use sluice_http2::adapter::Adapter;
use sluice_http2::drive::{Driver, Plain, Tls, Wire};
use sluice_http2::emit::EmitMode;
use sluice_http2::{Connection, Limits};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

pub(crate) use super::service::{AnyBody, Error, TestService, pattern, serve_test};

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

    /// Starts a server on this stack at one end of a pipe that holds `pipe_bytes`, and hyper's client at the
    /// other.
    pub(crate) async fn connect(
        &self,
        pipe_bytes: usize,
        mode: EmitMode,
        chop: Option<u64>,
    ) -> SendRequest<AnyBody> {
        self.connect_by(&Builder::new(TokioExecutor::new()), pipe_bytes, mode, chop).await
    }

    /// The same, with a client of these settings.
    pub(crate) async fn connect_by(
        &self,
        builder: &Builder<TokioExecutor>,
        pipe_bytes: usize,
        mode: EmitMode,
        chop: Option<u64>,
    ) -> SendRequest<AnyBody> {
        let (near, far) = duplex(pipe_bytes);
        match self {
            Self::Plain => {
                serve_chopped(far, chop, |io| driver(Plain::new(io), Limits::default(), mode));
                client_of(builder, near).await
            }
            Self::Tls(server, config) => {
                let tls = rustls::ServerConnection::new(server.clone()).expect("a configuration");
                let limits = Limits::default();
                serve_chopped(far, chop, |io| driver(Tls::new(io, tls, &limits), limits.clone(), mode));
                let name = ServerName::try_from("localhost").expect("a name");
                let io = tokio_rustls::TlsConnector::from(config.clone()).connect(name, near).await;
                client_of(builder, io.expect("a handshake")).await
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
    client_of(&Builder::new(TokioExecutor::new()), io).await
}

pub(crate) async fn client_of<T>(builder: &Builder<TokioExecutor>, io: T) -> SendRequest<AnyBody>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = builder.handshake(TokioIo::new(io)).await.expect("a handshake");
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

/// A pipe whose reads and writes come in pieces of random sizes, and now and then not at all, if it has a
/// state.
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
