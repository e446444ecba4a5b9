//! One connection to the collector, made anew when it is gone: HTTP/1.1, a request at a time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

use crate::Options;
use crate::endpoint::{Endpoint, Headers};

/// Longest time for a request, its connection included.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Most bytes of an answer that are read, so that the connection can go on.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The way to the collector.
pub(crate) struct Client {
    endpoint: Endpoint,
    headers: Headers,
    /// `None`: in clear text.
    tls: Option<TlsConnector>,
    agent: String,
    connection: Option<Connection>,
}

/// A connection, which ends when this is dropped.
struct Connection {
    requests: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The reason why a request has failed.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Failed {
    /// The same may be sent again later.
    ForNow(String),
    /// The collector will not take it.
    ForGood(String),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failed::ForNow(reason) | Failed::ForGood(reason)) = self;
        f.write_str(reason)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Client {
    /// A client without a connection yet.
    pub(crate) fn new(options: &Options) -> Result<Client, String> {
        let tls = options.endpoint.is_tls.then(|| connector(options.ca.as_deref())).transpose()?;
        let (endpoint, headers) = (options.endpoint.clone(), options.headers.clone());
        Ok(Client { endpoint, headers, tls, agent: format!("sluice/{}", options.version), connection: None })
    }

    /// Posts an export of a signal.
    pub(crate) async fn post(&mut self, signal: &str, body: Bytes) -> Result<(), Failed> {
        let done = tokio::time::timeout(TIME_MAX, self.post_once(signal, body)).await;
        let done = done.unwrap_or_else(|_| Err(Failed::ForNow(format!("no answer within {TIME_MAX:?}"))));
        if done.is_err() {
            // What is left of the request and its answer goes with it.
            self.connection = None;
        }
        done
    }

    async fn post_once(&mut self, signal: &str, body: Bytes) -> Result<(), Failed> {
        let for_now = |error: hyper::Error| Failed::ForNow(error.to_string());
        let mut request = Request::post(self.endpoint.path(signal))
            .header(HOST, self.endpoint.authority())
            .header(USER_AGENT, &self.agent)
            .header(CONTENT_TYPE, "application/x-protobuf")
            .header(CONTENT_LENGTH, body.len());
        for (name, value) in self.headers.iter() {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body)).map_err(|error| Failed::ForGood(error.to_string()))?;
        let mut connection = match self.connection.take().filter(|kept| !kept.requests.is_closed()) {
            Some(kept) => kept,
            None => self.connect().await.map_err(Failed::ForNow)?,
        };
        connection.requests.ready().await.map_err(for_now)?;
        let response = connection.requests.send_request(request).await.map_err(for_now)?;
        if read(response).await? {
            self.connection = Some(connection);
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Connection, String> {
        let (host, port) = self.endpoint.host();
        let socket = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
        let Some(tls) = &self.tls else { return connection(socket).await };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        connection(tls.connect(name, socket).await.map_err(|error| error.to_string())?).await
    }
}

async fn connection<S>(socket: S) -> Result<Connection, String>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (requests, driver) = handshake(TokioIo::new(socket)).await.map_err(|error| error.to_string())?;
    // Its errors are those of the requests.
    let driver = tokio::spawn(async move { drop(driver.await) }).abort_handle();
    Ok(Connection { requests, driver })
}

/// Reads an answer; tells whether its connection can go on.
async fn read(response: Response<Incoming>) -> Result<bool, Failed> {
    let status = response.status();
    let is_whole = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.is_ok();
    match status {
        _ if status.is_success() => Ok(is_whole),
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Err(Failed::ForNow(format!("it answers {status}"))),
        _ => Err(Failed::ForGood(format!("it answers {status}"))),
    }
}

fn connector(ca: Option<&[u8]>) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    match ca {
        // What the system has and cannot be used is not ours to judge; an empty store trusts nobody.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| format!("the CA is no PEM: {error}"))?;
                roots.add(certificate).map_err(|error| format!("the CA cannot be used: {error}"))?;
            }
            if roots.is_empty() {
                return Err("the CA is no PEM of a certificate".to_owned());
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
