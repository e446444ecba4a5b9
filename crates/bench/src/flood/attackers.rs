//! Connections that come to no TLS. They live on a thread of their own, so that they do not wait for the
//! load, nor it for them.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::endpoint::Endpoint;
use crate::load::runtime;

/// Maximum time for making such a connection: the system may have to ask again when too many come at once.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);
/// Time between two bytes of a slow hello.
const DRIP: Duration = Duration::from_millis(500);

/// A kind of bad handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A connection that sends nothing.
    Silent,
    /// A connection that sends half of a hello.
    HalfHello,
    /// A whole hello, for which the server does its part, and no more.
    Hello,
    /// A hello, byte by byte.
    Drip,
    /// Bytes that begin like a hello, and go on at random.
    Garbage,
    /// A request in clear text.
    ClearText,
    /// Bytes of no protocol.
    Noise,
}

impl Kind {
    pub(super) const ALL: [Kind; 7] =
        [Kind::Silent, Kind::HalfHello, Kind::Hello, Kind::Drip, Kind::Garbage, Kind::ClearText, Kind::Noise];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Silent => "silent",
            Kind::HalfHello => "half_hello",
            Kind::Hello => "hello_and_no_more",
            Kind::Drip => "dripping",
            Kind::Garbage => "garbage",
            Kind::ClearText => "clear_text",
            Kind::Noise => "noise",
        }
    }

    /// The bytes that it sends first.
    fn opening(self, hello: &[u8]) -> Vec<u8> {
        match self {
            Kind::Silent | Kind::Drip => Vec::new(),
            Kind::HalfHello => hello[..hello.len() / 2].to_vec(),
            Kind::Hello => hello.to_vec(),
            Kind::Garbage => hello.iter().take(5).copied().chain((0..=255).cycle().take(512)).collect(),
            Kind::ClearText => b"GET /readyz HTTP/1.1\r\nhost: sluice\r\n\r\n".to_vec(),
            Kind::Noise => (1..=255).cycle().take(4_096).collect(),
        }
    }
}

/// The end of one bad connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) kind: Kind,
    /// Time from connecting until the server closed it; `None`: the server did not within its deadline.
    pub(super) closed_after: Option<Duration>,
}

/// Bad connections that are there.
#[derive(Debug)]
pub(super) struct Flooding(JoinHandle<Result<Vec<Ended>, String>>);

impl Flooding {
    /// Waits until each is closed, or has not been in time.
    pub(super) fn join(self) -> Result<Vec<Ended>, String> {
        self.0.join().map_err(|_| "the flood has failed".to_owned())?
    }
}

/// Begins with so many of them, of each kind as many, which wait so long for their end.
pub(super) fn start(
    server: &Endpoint,
    connections: u32,
    closed_within: Duration,
) -> Result<Flooding, String> {
    let (address, hello) = (server.address().to_owned(), hello()?);
    let flood = async move {
        let mut tasks = JoinSet::new();
        for (_, kind) in (0..connections).zip(Kind::ALL.into_iter().cycle()) {
            tasks.spawn(one(kind, address.clone(), hello.clone(), closed_within));
        }
        let mut all = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            all.push(ended.map_err(|error| format!("a bad connection failed: {error}"))??);
        }
        Ok(all)
    };
    let runtime = runtime(1)?;
    Ok(Flooding(std::thread::spawn(move || runtime.block_on(flood))))
}

async fn one(kind: Kind, address: String, hello: Vec<u8>, closed_within: Duration) -> Result<Ended, String> {
    let stream = timeout(CONNECT_WITHIN, TcpStream::connect(&address)).await;
    let stream = stream.map_err(|_| format!("no connection within {CONNECT_WITHIN:?}"))?;
    let stream = stream.map_err(|error| format!("cannot connect: {error}"))?;
    let since = Instant::now();
    let (mut reading, mut writing) = stream.into_split();
    let talk = async {
        // Whoever is closed upon cannot write, which is what is waited for.
        let _ = writing.write_all(&kind.opening(&hello)).await;
        if kind == Kind::Drip {
            for byte in hello {
                sleep(DRIP).await;
                if writing.write_all(&[byte]).await.is_err() {
                    break;
                }
            }
        }
        std::future::pending::<()>().await
    };
    let closed = async {
        let mut sink = [0; 1_024];
        // An error is a reset: closed as well.
        while reading.read(&mut sink).await.is_ok_and(|bytes| bytes > 0) {}
    };
    let closed = async {
        tokio::select! {
            () = talk => {}
            () = closed => {}
        }
    };
    let in_time = timeout(closed_within, closed).await.is_ok();
    Ok(Ended { kind, closed_after: in_time.then(|| since.elapsed()) })
}

/// The first bytes of a real client.
fn hello() -> Result<Vec<u8>, String> {
    let told = |error: rustls::Error| format!("no TLS hello can be made: {error}");
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(told)?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").map_err(|error| error.to_string())?;
    let mut connection = ClientConnection::new(std::sync::Arc::new(config), name).map_err(told)?;
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).map_err(|error| error.to_string())?;
    Ok(hello)
}
