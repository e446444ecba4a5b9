//! Connections on either stack, all on one thread.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use sluice_http2::adapter::Adapter;
use sluice_http2::drive::{Driver, Plain, Tls, Wire};
use sluice_http2::emit::EmitMode;
use sluice_http2::{Connection, Limits};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::files::Files;

/// What serves a connection.
#[derive(Clone)]
pub(super) enum Stack {
    Ours(EmitMode, Arc<Limits>),
    Hyper,
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
        (Stack::Ours(mode, limits), None) => Ok(ours(Plain::new(io), mode, limits, files).await?),
        (Stack::Ours(mode, limits), Some(config)) => {
            let tls = rustls::ServerConnection::new(config)?;
            Ok(ours(Tls::new(io, tls, &limits), mode, limits, files).await?)
        }
        (Stack::Hyper, None) => Ok(hyper(io, files).await?),
        (Stack::Hyper, Some(config)) => Ok(hyper(TlsAcceptor::from(config).accept(io).await?, files).await?),
    }
}

async fn ours<W: Wire + Unpin>(wire: W, mode: EmitMode, limits: Arc<Limits>, files: Files) -> io::Result<()> {
    let adapter = Adapter::new(files, &limits);
    Driver::new(wire, adapter, |now_us| Connection::new(limits, mode, now_us)).await
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
        let modes = [EmitMode::Auto, EmitMode::Copy, EmitMode::Gather, EmitMode::Naive];
        let ours = modes.map(|mode| Stack::Ours(mode, Arc::new(Limits::default())));
        for stack in ours.into_iter().chain([Stack::Hyper]) {
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
