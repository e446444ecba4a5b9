//! Two nodes of a cluster, each with a node of its own: one is asked, and takes the other for the leader.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::CertificateDer;
use sluice_calls::access::{Access, AccessOptions, ClientCertificate};
use sluice_front::nodes::{Connecting, Nodes, Wire};
use sluice_node::shard::store::Standing;
use sluice_proto::framing::frame_with;

use crate::client::{Answer, build, collect};
use crate::support::{Front, Server};
use crate::tls_support::{Ca, Pair, TlsClient, Valid};

/// Number of the node that is asked.
pub(crate) const ASKED: u64 = 1;
/// Number of the node that leads.
pub(crate) const LEADER: u64 = 2;

const POLICY: &str = r#"
    [[rule]]
    name = "ops"
    identities = ["ops"]
    role = "admin"
    namespaces = ["*"]
    [[rule]]
    name = "producers"
    identities = ["billing"]
    role = "producer"
    queues = ["jobs"]
"#;

type Dial = dyn Fn() -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Wire>>> + Send>> + Send + Sync;

/// The nodes, and how each is reached.
pub(crate) struct Others {
    dials: Mutex<HashMap<u64, Arc<Dial>>>,
}

impl std::fmt::Debug for Others {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Others").finish_non_exhaustive()
    }
}

impl Others {
    pub(crate) fn reach<F>(&self, node: u64, dial: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = io::Result<Box<dyn Wire>>> + Send + 'static,
    {
        self.dials.lock().unwrap().insert(node, Arc::new(move || Box::pin(dial())));
    }
}

impl Nodes for Others {
    fn connect(&self, node: u64) -> Connecting<'_> {
        let dial = self.dials.lock().unwrap().get(&node).cloned();
        Box::pin(async move {
            match dial {
                None => Err(io::Error::other("it is not there")),
                Some(dial) => dial().await,
            }
        })
    }

    fn address(&self, node: u64) -> Option<String> {
        (node == LEADER).then(|| "leader.example:7070".to_owned())
    }

    fn is_node(&self, certificates: &[CertificateDer<'_>]) -> bool {
        let named = certificates.first().and_then(|leaf| ClientCertificate::read(leaf).ok());
        named.is_some_and(|named| named.name.starts_with("sluice://node/test/"))
    }
}

/// Two nodes, and clients.
pub(crate) struct Cluster {
    pub(crate) ca: Ca,
    pub(crate) others: Arc<Others>,
    pub(crate) asked: Server,
    pub(crate) leader: Server,
    pub(crate) ops: Pair,
    pub(crate) billing: Pair,
}

impl Cluster {
    pub(crate) async fn new() -> Cluster {
        Cluster::with(|_| {}).await
    }

    /// `change` is made to the node that is asked.
    pub(crate) async fn with(change: impl FnOnce(&mut Front)) -> Cluster {
        let ca = Ca::new();
        let others = Arc::new(Others { dials: Mutex::default() });
        let policy = ca.policy(POLICY);
        let in_cluster = |http: &mut Front| {
            http.tls = Some(ca.tls());
            let policy = Some(policy.clone());
            http.access = Access::new(AccessOptions { policy, certificates: true, rate: None }).unwrap();
            http.nodes = Some(Arc::clone(&others) as _);
        };
        let leader = Server::start_with(|http, _| in_cluster(http)).await;
        let asked = Server::start_with(|http, _| {
            in_cluster(http);
            change(http);
        });
        let asked = asked.await;
        let client = |name: &str| ca.client(&[&format!("sluice://client/{name}")], Valid::Now);
        let (ops, billing) = (client("ops"), client("billing"));
        let cluster = Cluster { ops, billing, others, asked, leader, ca };
        cluster.leader_is(Some(LEADER));
        cluster.reach(LEADER);
        cluster
    }

    /// Sets the leader of all shards, as the node knows it that is asked.
    pub(crate) fn leader_is(&self, leader: Option<u64>) {
        for of_shard in self.asked.node.leaders() {
            of_shard.set(leader.map_or(Standing::Alone, |node| Standing::Follower { leader: Some(node) }));
        }
    }

    /// Lets a node be reached, by a certificate of the other one.
    pub(crate) fn reach(&self, node: u64) {
        let (from, to) = if node == LEADER { (ASKED, &self.leader) } else { (LEADER, &self.asked) };
        let own = self.ca.client(&[&format!("sluice://node/test/{from}")], Valid::Now);
        let (client, address) = (TlsClient::new(&self.ca, Some(&own), "h2"), to.address);
        self.others.reach(node, move || {
            let client = client.clone();
            async move { Ok(Box::new(client.connect(address).await?) as Box<dyn Wire>) }
        });
    }

    /// A request over HTTP/1.1 to one of the servers.
    pub(crate) async fn ask(
        &self,
        server: &Server,
        by: Option<&Pair>,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let client = TlsClient::new(&self.ca, by, "http/1.1");
        client.call_with(server.address, method, path, headers, body).await.unwrap()
    }

    /// A request by `ops` over HTTP/1.1 to the node that does not lead.
    pub(crate) async fn ops(&self, method: &str, path: &str, body: &str) -> Answer {
        self.ask(&self.asked, Some(&self.ops), (method, path), &[], body).await
    }

    /// A request by `ops` over HTTP/1.1 to the leader.
    pub(crate) async fn ops_at_leader(&self, method: &str, path: &str, body: &str) -> Answer {
        self.ask(&self.leader, Some(&self.ops), (method, path), &[], body).await
    }

    /// A client over HTTP/2 of the node that is asked.
    pub(crate) async fn http2(&self, by: &Pair) -> Http2 {
        let stream = TlsClient::new(&self.ca, Some(by), "h2").connect(self.asked.address).await.unwrap();
        let (sender, driver) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(driver);
        Http2 { sender, address: self.asked.address }
    }

    /// Numbers of messages that the two nodes were sent: the one that is asked, and the leader.
    pub(crate) async fn sent(&self) -> [u64; 2] {
        let sent = async |server: &Server| {
            server.node.metrics().await.shards.iter().map(|shard| shard.counters.sent).sum()
        };
        [sent(&self.asked).await, sent(&self.leader).await]
    }
}

/// A client over HTTP/2.
#[derive(Clone)]
pub(crate) struct Http2 {
    sender: SendRequest<Full<Bytes>>,
    address: SocketAddr,
}

impl Http2 {
    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Answer {
        self.call("POST", path, body).await
    }

    pub(crate) async fn call(&mut self, method: &str, path: &str, body: &str) -> Answer {
        collect(self.begin(method, path, body).await).await
    }

    /// An answer of which only the head has come.
    pub(crate) async fn get(&mut self, path: &str) -> http::Response<hyper::body::Incoming> {
        self.begin("GET", path, "").await
    }

    /// An answer over gRPC of which only the head has come.
    pub(crate) async fn grpc(&mut self, name: &str, message: &[u8]) -> http::Response<hyper::body::Incoming> {
        let mut body = Vec::new();
        frame_with(&mut body, |out| out.extend_from_slice(message));
        let uri = format!("https://{}/sluice.v1.{name}", self.address);
        let request = build(uri, "POST", &[("content-type", "application/grpc")], &body);
        self.sender.send_request(request).await.unwrap()
    }

    async fn begin(&mut self, method: &str, path: &str, body: &str) -> http::Response<hyper::body::Incoming> {
        let uri = format!("https://{}{path}", self.address);
        let headers = [("content-type", "application/json")];
        let request: Request<Full<Bytes>> = build(uri, method, &headers, body.as_bytes());
        self.sender.send_request(request).await.unwrap()
    }
}
