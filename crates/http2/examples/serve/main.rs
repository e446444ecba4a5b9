//! A server to try the stack with, and to let conformance tests and clients of others loose on:
//!
//!     serve [ADDR [CERTIFICATE KEY [PAGE]]]
//!
//! On ADDR (default 127.0.0.1:8080), in clear text with prior knowledge, or over TLS with the certificate and
//! its key from PEM files. It does what `tests/service` says; for browsers, it gives the file PAGE as
//! `/page`, and messages of a WebSocket back at `/socket`.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use service::{AnyBody, Error, TestService};
use sluice_http2::adapter::{Adapter, RequestBody};
use sluice_http2::drive::{Driver, Plain, Tls, Wire};
use sluice_http2::emit::EmitMode;
use sluice_http2::{Connection, Limits};
use tokio::net::{TcpListener, TcpStream};
use websocket::Echo;

#[path = "../../tests/service/mod.rs"]
mod service;
mod websocket;

/// The service of the tests, with what browsers need.
#[derive(Clone)]
struct Pages {
    others: TestService,
    page: Bytes,
}

impl tower_service::Service<Request<RequestBody>> for Pages {
    type Response = Response<AnyBody>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.others.poll_ready(context)
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let response = match request.uri().path() {
            "/page" => {
                let mut page =
                    Response::new(Full::new(self.page.clone()).map_err(|never| match never {}).boxed());
                page.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
                page
            }
            "/socket" => Response::new(Echo::new(request.into_body()).map_err(Into::into).boxed()),
            _ => return self.others.call(request),
        };
        Box::pin(async { Ok(response) })
    }
}

fn tls(certificate: &str, key: &str) -> Result<Arc<ServerConfig>, Error> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<_, _>>()?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

async fn serve(io: TcpStream, tls: Option<Arc<ServerConfig>>, limits: Arc<Limits>, service: Pages) {
    let served = match tls.map(rustls::ServerConnection::new) {
        None => drive(Plain::new(io), limits, service).await,
        Some(Ok(tls)) => drive(Tls::new(io, tls, &limits), limits, service).await,
        Some(Err(error)) => Err(io::Error::other(error)),
    };
    if let Err(error) = served {
        eprintln!("a connection has failed: {error}");
    }
}

async fn drive<W: Wire + Unpin>(wire: W, limits: Arc<Limits>, service: Pages) -> io::Result<()> {
    let adapter = Adapter::new(service, &limits);
    Driver::new(wire, adapter, |now_us| Connection::new(limits, EmitMode::Auto, now_us)).await
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize| arguments.get(at).map(String::as_str);
    let tls = match (argument(1), argument(2)) {
        (Some(certificate), Some(key)) => Some(tls(certificate, key)?),
        _ => None,
    };
    let page = argument(3).map(std::fs::read).transpose()?.unwrap_or_default().into();
    let service = Pages { others: TestService, page };
    let listener = TcpListener::bind(argument(0).unwrap_or("127.0.0.1:8080")).await?;
    println!("listening on {}", listener.local_addr()?);
    let limits = Arc::new(Limits::default());
    loop {
        let (io, _) = listener.accept().await?;
        let _ = io.set_nodelay(true);
        tokio::spawn(serve(io, tls.clone(), limits.clone(), service.clone()));
    }
}
