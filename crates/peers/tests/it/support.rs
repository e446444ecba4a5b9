//! Nodes with certificates on the loopback interface, and messages for them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use sluice_peers::hello::Formats;
use sluice_peers::{
    ALPN, Answering, ClusterId, Identity, Local, NodeTable, PeerFiles, Peers, PeersOptions, Receiver,
};
use sluice_replica::{
    Body, Content, Descriptor, Entry, Envelope, Message, NodeId, Position, Protocols, StateBody, StateHead,
    StateMessage,
};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

pub(crate) const CLUSTER: ClusterId = ClusterId(0xc1);
/// The cluster from which this one was recovered.
pub(crate) const FORMER: ClusterId = ClusterId(0xc0);

pub(crate) fn node(number: u64) -> NodeId {
    NodeId::new(number).unwrap()
}

pub(crate) fn heartbeat(from: u64, to: u64, term: u64) -> Envelope {
    let body = Body::Heartbeat { commit: 0, read: None };
    let message = Message { from: node(from), to: node(to), term, body };
    Envelope::new(message, Vec::new())
}

/// Entries with batches of these lengths.
pub(crate) fn append(from: u64, to: u64, term: u64, lengths: &[usize]) -> Envelope {
    let batches: Vec<Bytes> = lengths.iter().map(|len| Bytes::from(vec![*len as u8; *len])).collect();
    let entry = |(index, batch): (u64, &Bytes)| {
        let checksum = crc32fast::hash(batch);
        let bytes = batch.len() as u32;
        let batch = Descriptor { first_record: index, records: 1, time_us: 1, bytes, checksum };
        Entry { position: Position { term, index }, content: Content::Batch(batch) }
    };
    let entries = (1..).zip(&batches).map(entry).collect();
    let body = Body::Append { previous: Position::default(), commit: 0, entries };
    Envelope::new(Message { from: node(from), to: node(to), term, body }, batches)
}

/// The first part of a state, of this length.
pub(crate) fn part(from: u64, to: u64, len: usize) -> StateMessage {
    let state = Position { term: 3, index: 17 };
    let label = b"members".to_vec();
    let head = StateHead { applied_index: 40, number: 17, term: 3, time_us: 1, behaviour: 2, label };
    let body = StateBody::Content { head, offset: 0, bytes: vec![7; len].into(), end: None };
    StateMessage { from: node(from), to: node(to), state, body }
}

/// A CA, and a folder for files.
pub(crate) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    dir: TempDir,
}

impl Ca {
    pub(crate) fn new() -> Ca {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.pem"), pem).unwrap();
        Ca { issuer: Issuer::new(params, key), dir }
    }

    /// The files of a node whose certificate has these URIs.
    pub(crate) fn files(&self, name: &str, uris: &[String]) -> PeerFiles {
        let mut params = CertificateParams::default();
        let uri = |uri: &String| SanType::URI(uri.as_str().try_into().unwrap());
        params.subject_alt_names = uris.iter().map(uri).collect();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap().pem();
        let path = |end: &str| self.dir.path().join(format!("{name}.{end}"));
        std::fs::write(path("pem"), cert).unwrap();
        std::fs::write(path("key"), key.serialize_pem()).unwrap();
        PeerFiles { cert: path("pem"), key: path("key"), ca: self.dir.path().join("ca.pem") }
    }

    /// The files of a member of [`CLUSTER`].
    pub(crate) fn member(&self, number: u64) -> PeerFiles {
        let identity = Identity { cluster: CLUSTER, node: node(number) };
        self.files(&number.to_string(), &[identity.to_string()])
    }
}

/// What has come to a node.
#[derive(Debug, Default)]
pub(crate) struct Came {
    pub(crate) envelopes: Mutex<Vec<(u16, Envelope)>>,
    pub(crate) states: Mutex<Vec<(u16, StateMessage)>>,
    pub(crate) doubts: Mutex<Vec<NodeId>>,
    pub(crate) lost: Mutex<Vec<NodeId>>,
    pub(crate) is_removed: AtomicBool,
}

impl Receiver for Came {
    fn envelope(&self, shard: u16, envelope: Envelope) {
        self.envelopes.lock().unwrap().push((shard, envelope));
    }

    fn state(&self, shard: u16, message: StateMessage) {
        self.states.lock().unwrap().push((shard, message));
    }

    /// `later` is answered after a second, anything else at once, by its opposite.
    fn request(&self, from: NodeId, content: Bytes) -> Answering {
        let answer: Vec<u8> = content.iter().rev().copied().chain([from.get() as u8]).collect();
        Box::pin(async move {
            if content == "later" {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Bytes::from(answer)
        })
    }

    fn removed(&self, _by: NodeId) {
        self.is_removed.store(true, Ordering::Relaxed);
    }

    fn doubt(&self, node: NodeId) {
        self.doubts.lock().unwrap().push(node);
    }

    fn lost(&self, node: NodeId) {
        self.lost.lock().unwrap().push(node);
    }
}

/// A node that listens; it stops when dropped.
pub(crate) struct TestNode {
    pub(crate) peers: Peers,
    pub(crate) came: Arc<Came>,
    pub(crate) address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Drop for TestNode {
    fn drop(&mut self) {
        self.peers.stop();
        self.accepting.abort();
    }
}

impl TestNode {
    /// Waits until the node is connected with this one, or is not any more.
    pub(crate) async fn until(&self, peer: u64, is_connected: bool) {
        let is = || self.peers.connected().iter().any(|state| state.node == node(peer));
        eventually(|| is() == is_connected).await;
    }
}

/// Waits until a condition holds, some seconds at most.
pub(crate) async fn eventually(mut holds: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it does not hold after 10 s");
}

/// Nodes of the cluster, by numbers, of which those that are reached have an address; 4 was removed.
pub(crate) fn nodes(numbers: &[u64], reached: &[(u64, SocketAddr)]) -> NodeTable {
    let address = |number| {
        let reached = reached.iter().find(|(reached, _)| *reached == number);
        // Nobody listens at port 0.
        reached.map_or_else(|| "127.0.0.1:0".to_owned(), |(_, address)| address.to_string())
    };
    NodeTable {
        addresses: numbers.iter().map(|number| (node(*number), address(*number))).collect(),
        highest: 4,
    }
}

/// Settings of a node among the nodes 1, 2 and 3, of which 4 was removed.
pub(crate) fn options(files: PeerFiles, number: u64, reached: &[(u64, SocketAddr)]) -> PeersOptions {
    let identity = Identity { cluster: CLUSTER, node: node(number) };
    let formats = Formats { highest: 1, in_force: 1 };
    let (start, protocols) = (number * 100, Protocols::OWN);
    let local = Local { identity, start, protocols, formats, recovered_from: Some(FORMER) };
    PeersOptions { local, nodes: nodes(&[1, 2, 3], reached), files }
}

/// The settings of a node that speaks these versions of the protocol.
pub(crate) fn speaking(options: PeersOptions, oldest: u8, newest: u8) -> PeersOptions {
    let protocols = Protocols::new(oldest, newest).unwrap();
    PeersOptions { local: Local { protocols, ..options.local }, ..options }
}

pub(crate) async fn start(options: PeersOptions) -> TestNode {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    start_on(options, listener)
}

/// Starts a node whose listener is there already.
pub(crate) fn start_on(options: PeersOptions, listener: TcpListener) -> TestNode {
    let address = listener.local_addr().unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(server_config(&options.files)));
    let came = Arc::new(Came::default());
    let receiver: Arc<dyn Receiver> = came.clone();
    let peers = Peers::start(options, receiver);
    let serving = peers.clone();
    let accepting = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, peers) = (acceptor.clone(), serving.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    peers.accept(stream).await;
                }
            });
        }
    });
    TestNode { peers, came, address, accepting }
}

/// A listener that takes any client, as that of a server does.
fn server_config(files: &PeerFiles) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files.ca).unwrap()).unwrap();
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let chain = vec![CertificateDer::from_pem_file(&files.cert).unwrap()];
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .unwrap()
        .with_client_cert_verifier(clients.allow_unauthenticated().build().unwrap())
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(&files.key).unwrap())
        .unwrap();
    config.alpn_protocols = vec![ALPN.to_vec(), b"h2".to_vec()];
    config
}
