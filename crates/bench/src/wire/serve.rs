//! Connections on either stack, all on one thread.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use sluice_alloc_count::counts;
use sluice_http2::adapter::Adapter;
use sluice_http2::drive::{Driver, Handler, Plain, Tls, Wire};
use sluice_http2::emit::EmitMode;
use sluice_http2::{Connection, Limits};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::files::Files;

/// The HTTP/2 implementation that serves a connection.
#[derive(Clone)]
pub(super) enum Stack {
    Ours(Ours),
    Hyper,
}

/// Options of Sluice's HTTP/2.
#[derive(Clone)]
pub(super) struct Ours {
    pub(super) mode: EmitMode,
    pub(super) limits: Arc<Limits>,
    /// True when requests are passed to the service as types of `http`, rather than as direct calls.
    pub(super) through_http: bool,
}

/// Accepts connections until something fails.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    stack: Stack,
    files: Files,
) -> io::Result<Infallible> {
    loop {
        let (io, _) = listener.accept().await?;
        io.set_nodelay(true)?;
        let (tls, stack, files) = (tls.clone(), stack.clone(), files.clone());
        tokio::spawn(async move {
            // Load generators close in the middle of things; what matters is what they have got.
            let _ = connection(io, tls, stack, files).await;
        });
    }
}

async fn connection(
    io: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    stack: Stack,
    files: Files,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    match (stack, tls) {
        (Stack::Ours(ours), None) => Ok(ours.serve(Plain::new(io), files).await?),
        (Stack::Ours(ours), Some(config)) => {
            let tls = Tls::new(io, rustls::ServerConnection::new(config)?, &ours.limits);
            Ok(ours.serve(CountedTls(tls), files).await?)
        }
        (Stack::Hyper, None) => Ok(hyper(io, files).await?),
        (Stack::Hyper, Some(config)) => Ok(hyper(TlsAcceptor::from(config).accept(io).await?, files).await?),
    }
}

impl Ours {
    async fn serve<W: Wire + Unpin>(self, wire: W, files: Files) -> io::Result<()> {
        if self.through_http {
            let adapter = Adapter::new(files, &self.limits);
            return self.drive(wire, adapter).await;
        }
        let adapter = Adapter::with_direct(files.clone(), files, &self.limits);
        self.drive(wire, adapter).await
    }

    async fn drive<W: Wire + Unpin, H: Handler + Unpin>(self, wire: W, handler: H) -> io::Result<()> {
        Driver::new(wire, handler, |now_us| Connection::new(self.limits, self.mode, now_us)).await
    }
}

/// Allocations of all [`CountedTls`], while they are counted.
static TLS_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// Allocations that TLS has made so far, with its handshakes.
pub(super) fn tls_allocations() -> u64 {
    TLS_ALLOCATIONS.load(Ordering::Relaxed)
}

/// TLS, whose allocations are counted apart from those of what is above it: they are rustls'.
struct CountedTls<W>(W);

impl<W: Wire> CountedTls<W> {
    fn counted<V>(&mut self, call: impl FnOnce(&mut W) -> V) -> V {
        let before = counts();
        let value = call(&mut self.0);
        TLS_ALLOCATIONS.fetch_add(counts().since(&before).allocations, Ordering::Relaxed);
        value
    }
}

impl<W: Wire> Wire for CountedTls<W> {
    fn poll_read(&mut self, context: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        self.counted(|wire| wire.poll_read(context, bytes))
    }

    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        connection: &mut Connection,
        now_us: u64,
    ) -> Poll<io::Result<()>> {
        self.counted(|wire| wire.poll_write(context, connection, now_us))
    }

    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_shutdown(context)
    }

    fn written(&self) -> u64 {
        self.0.written()
    }
}

async fn hyper<T>(io: T, files: Files) -> hyper::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| ready(Ok::<_, Infallible>(files.answer(&request))));
    hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(io), service)
        .await
}

#[cfg(test)]
mod tests {
    use sluice_http2::frame::{FrameHeader, PREFACE, flag, kind, write};
    use sluice_http2::hpack::Encoder;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::files::BODIES;
    use super::*;

    /// Our stack in each way, and hyper's.
    fn stacks() -> Vec<Stack> {
        let limits = Arc::new(Limits::default());
        let ours = |mode, through_http| Stack::Ours(Ours { mode, limits: limits.clone(), through_http });
        let modes = [EmitMode::Auto, EmitMode::Copy, EmitMode::Gather, EmitMode::Naive];
        let direct = modes.map(|mode| ours(mode, false));
        direct.into_iter().chain([ours(EmitMode::Auto, true), Stack::Hyper]).collect()
    }

    /// Requests each body once, and gives the bytes that came on each stream.
    async fn ask(mut io: TcpStream) -> [usize; BODIES.len()] {
        let mut bytes = PREFACE.to_vec();
        write::settings(&mut bytes, &[]);
        write::window_update(&mut bytes, 0, 1 << 20);
        let mut encoder = Encoder::new();
        for (stream, (path, _)) in (1..).step_by(2).zip(BODIES) {
            let head = [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "bench")];
            let mut block = Vec::new();
            encoder.encode(head.map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut block);
            write::header(
                &mut bytes,
                block.len(),
                kind::HEADERS,
                flag::END_HEADERS | flag::END_STREAM,
                stream,
            );
            bytes.extend(block);
            write::window_update(&mut bytes, stream, 1 << 20);
        }
        io.write_all(&bytes).await.unwrap();
        let (mut received, mut ended) = ([0; BODIES.len()], 0);
        while ended < BODIES.len() {
            let mut header = [0; FrameHeader::BYTES];
            io.read_exact(&mut header).await.unwrap();
            let header = FrameHeader::parse(&header).unwrap();
            let mut payload = vec![0; header.length as usize];
            io.read_exact(&mut payload).await.unwrap();
            if header.kind == kind::DATA {
                received[header.stream as usize / 2] += payload.len();
                ended += usize::from(header.has(flag::END_STREAM));
            }
        }
        received
    }

    #[test]
    fn both_stacks_serve_every_body() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for stack in stacks() {
            let files = Files::new();
            let received = runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                tokio::spawn(serve(listener, None, stack, files.clone()));
                ask(TcpStream::connect(address).await.unwrap()).await
            });
            assert_eq!(received, BODIES.map(|(_, bytes)| bytes));
            assert_eq!(files.served(), BODIES.len() as u64);
        }
    }
}
