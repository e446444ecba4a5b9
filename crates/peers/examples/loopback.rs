//! Speed of one connection over the loopback interface, with both nodes in this process:
//! `cargo run --release -p sluice-peers --example loopback`.

use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use sluice_peers::hello::Formats;
use sluice_peers::{
    ALPN, Answering, ClusterId, Identity, Local, NodeTable, PeerFiles, Peers, PeersOptions, Receiver,
};
use sluice_replica::{
    Body, Content, Descriptor, Entry, Envelope, Message, NodeId, Position, Protocols, StateMessage,
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Small messages that are on their way at a time, so that none is dropped.
const AHEAD: u64 = 4_000;

#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Receiver for Count {
    fn envelope(&self, _shard: u16, _envelope: Envelope) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn state(&self, _shard: u16, _message: StateMessage) {}

    fn request(&self, _from: NodeId, content: Bytes) -> Answering {
        Box::pin(async { content })
    }

    fn removed(&self, _by: NodeId) {}

    fn doubt(&self, _node: NodeId) {}

    fn lost(&self, _node: NodeId) {}
}

fn node(number: u64) -> NodeId {
    NodeId::new(number).expect("it is not 0")
}

fn identity(number: u64) -> Identity {
    Identity { cluster: ClusterId(1), node: node(number) }
}

fn write_certificates(dir: &Path) -> Result<()> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    std::fs::write(dir.join("ca.pem"), params.self_signed(&key)?.pem())?;
    let issuer = Issuer::new(params, key);
    for number in [1, 2] {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::URI(identity(number).to_string().as_str().try_into()?)];
        let key = KeyPair::generate()?;
        std::fs::write(dir.join(format!("{number}.pem")), params.signed_by(&key, &issuer)?.pem())?;
        std::fs::write(dir.join(format!("{number}.key")), key.serialize_pem())?;
    }
    Ok(())
}

fn files(dir: &Path, number: u64) -> PeerFiles {
    let path = |end: &str| dir.join(format!("{number}.{end}"));
    PeerFiles { cert: path("pem"), key: path("key"), ca: dir.join("ca.pem") }
}

fn start(dir: &Path, number: u64, reached: Option<SocketAddr>, receiver: Arc<Count>) -> Result<Peers> {
    let formats = Formats { highest: 1, in_force: 1 };
    let (identity, protocols) = (identity(number), Protocols::OWN);
    let local = Local { identity, start: number, protocols, formats, recovered_from: None };
    let reached = reached.map_or_else(|| "127.0.0.1:0".to_owned(), |address| address.to_string());
    let nodes = NodeTable::of([(node(1), reached), (node(2), "127.0.0.1:0".to_owned())].into());
    Ok(Peers::start(PeersOptions { local, nodes, files: files(dir, number) }, receiver))
}

fn server_config(files: &PeerFiles) -> Result<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files.ca)?)?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let chain = vec![CertificateDer::from_pem_file(&files.cert)?];
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(clients.build()?)
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(&files.key)?)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(config)
}

async fn listen(dir: &Path, peers: Peers) -> Result<SocketAddr> {
    let acceptor = TlsAcceptor::from(Arc::new(server_config(&files(dir, 1))?));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            match acceptor.accept(stream).await {
                Ok(stream) => peers.accept(stream).await,
                Err(error) => println!("{error}"),
            }
        }
    });
    Ok(address)
}

/// A heartbeat, or entries with batches of these lengths.
fn envelope(lengths: &[usize]) -> Envelope {
    let batches: Vec<Bytes> = lengths.iter().map(|len| Bytes::from(vec![1; *len])).collect();
    let entry = |(index, batch): (u64, &Bytes)| {
        let (bytes, checksum) = (batch.len() as u32, 0);
        let batch = Descriptor { first_record: index, records: 1, time_us: 1, bytes, checksum };
        Entry { position: Position { term: 1, index }, content: Content::Batch(batch) }
    };
    let entries: Vec<Entry> = (1..).zip(&batches).map(entry).collect();
    let body = if entries.is_empty() {
        Body::Heartbeat { commit: 1, read: None }
    } else {
        Body::Append { previous: Position::default(), commit: 0, entries }
    };
    Envelope::new(Message { from: node(2), to: node(1), term: 1, body }, batches)
}

/// Sends so many messages from this thread, at most `ahead` more than have come.
fn measure(name: &str, peers: &Peers, came: &Count, messages: u64, ahead: u64, lengths: &[usize]) {
    let envelope = envelope(lengths);
    let (began, mut sending) = (Instant::now(), Duration::ZERO);
    let first = came.0.load(Ordering::Relaxed);
    let arrived = || came.0.load(Ordering::Relaxed) - first;
    for sent in 0..messages {
        while sent - arrived() >= ahead {
            std::thread::yield_now();
        }
        let copy = envelope.clone();
        let before = Instant::now();
        peers.send(0, copy);
        sending += before.elapsed();
    }
    while arrived() < messages {
        std::thread::yield_now();
    }
    let seconds = began.elapsed().as_secs_f64();
    let bytes = lengths.iter().sum::<usize>() as f64 * messages as f64;
    println!(
        "{name:<24} {:>9.0} frames/s {:>7.0} MB/s {:>6.0} ns a send",
        messages as f64 / seconds,
        bytes / seconds / 1e6,
        sending.as_nanos() as f64 / messages as f64,
    );
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir()?;
    write_certificates(dir.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (came, none) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let two = runtime.block_on(async {
        let one = start(dir.path(), 1, None, Arc::clone(&came))?;
        let address = listen(dir.path(), one).await?;
        start(dir.path(), 2, Some(address), none)
    })?;
    while two.connected().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..3 {
        measure("heartbeats", &two, &came, 400_000, AHEAD, &[]);
        measure("one heartbeat at a time", &two, &came, 20_000, 1, &[]);
        measure("entries of 200 B", &two, &came, 400_000, AHEAD, &[200]);
        measure("entries of 16 KiB", &two, &came, 40_000, 100, &[16 << 10]);
        measure("16 entries of 16 KiB", &two, &came, 4_000, 50, &[16 << 10; 16]);
        measure("entries of 4 MiB", &two, &came, 200, 6, &[4 << 20]);
    }
    Ok(())
}
