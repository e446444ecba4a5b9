//! TLS: who gets through, who is told what, and what happens when files change.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use sluice_calls::access::{Access, AccessOptions, Guard, GuardOptions};
use sluice_front::AlpnHandler;
use sluice_front::tls::Tls;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::client::Bare;
use crate::support::Server;
use crate::tls_support::{Ca, Pair, TlsClient, Valid, send};
use crate::waits::{soon, until};

async fn start(tls: Arc<Tls>) -> Server {
    Server::start_with(|http, _| http.tls = Some(tls)).await
}

/// A server that asks everybody, and lets everybody observe who shows a certificate.
async fn start_asking(ca: &Ca) -> Server {
    let policy =
        ca.policy("[[rule]]\nname = 'all'\nidentities = ['*']\nrole = 'observer'\nnamespaces = ['*']\n");
    let options = AccessOptions { policy: Some(policy), certificates: true, rate: None };
    let access = Access::new(options).unwrap();
    let tls = ca.tls();
    Server::start_with(|http, _| {
        http.tls = Some(tls);
        http.access = access;
    })
    .await
}

#[tokio::test]
async fn both_versions_of_http_are_spoken_over_tls() {
    let ca = Ca::new();
    let server = start(ca.tls()).await;
    let client = TlsClient::new(&ca, None, "http/1.1");
    assert_eq!(client.call(server.address, "GET", "/v1/queues").await.unwrap().status, 200);
    let stream = TlsClient::new(&ca, None, "h2").connect(server.address).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    assert_eq!(stream.get_ref().1.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
    let io = hyper_util::rt::TokioIo::new(stream);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    let request = crate::client::build("https://localhost/v1/queues".to_owned(), "GET", &[], b"");
    assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
}

#[tokio::test]
async fn clear_text_is_told_that_this_is_tls() {
    let ca = Ca::new();
    let server = start(ca.tls()).await;
    let mut bare = Bare::connect(server.address).await;
    bare.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let told = bare.read_to_end().await;
    assert!(told.starts_with("HTTP/1.1 400 ") && told.contains("this port speaks TLS"), "{told}");
    assert!(told.contains("\"code\":\"tls_required\""), "{told}");
    let mut garbage = Bare::connect(server.address).await;
    garbage.0.write_all(&[0xff; 64]).await.unwrap();
    assert_eq!(garbage.read_to_end().await, "");
    let client = TlsClient::new(&ca, None, "http/1.1");
    assert_eq!(
        client.call(server.address, "GET", "/healthz").await.unwrap().status,
        200,
        "others are undisturbed"
    );
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_cut() {
    let ca = Ca::new();
    let files = ca.files(&ca.server(Valid::Now));
    let server = start(Arc::new(Tls::load(files, None, Duration::from_millis(300)).unwrap())).await;
    for first in [&[][..], &[0x16, 3, 1][..], b"GET / HTTP"] {
        let mut bare = Bare::connect(server.address).await;
        bare.0.write_all(first).await.unwrap();
        soon(bare.read_to_end()).await;
    }
}

#[tokio::test]
async fn a_client_certificate_has_to_be_right() {
    let (ca, stranger) = (Ca::new(), Ca::new());
    let server = start_asking(&ca).await;
    let uri = &["sluice://client/billing"][..];
    let good = ca.client(uri, Valid::Now);
    let status = |shown: &Pair| {
        let (client, address) = (TlsClient::new(&ca, Some(shown), "http/1.1"), server.address);
        async move { client.call(address, "GET", "/v1/queues").await.map(|answer| answer.status) }
    };
    assert_eq!(status(&good).await.unwrap(), 200);
    for (what, pair, alert) in [
        ("expired", ca.client(uri, Valid::Past), "CertificateExpired"),
        ("not yet valid", ca.client(uri, Valid::Future), "CertificateExpired"),
        ("of a stranger of the same name", stranger.client(uri, Valid::Now), "DecryptError"),
        ("of a server", ca.server(Valid::Now), "UnsupportedCertificate"),
    ] {
        let error = status(&pair).await.unwrap_err();
        assert!(error.contains("AlertReceived"), "{what}: {error}");
        assert!(error.contains(alert), "{what}: {error}");
    }
    assert_eq!(status(&good).await.unwrap(), 200, "others are undisturbed");
}

#[tokio::test]
async fn a_certificate_may_be_of_use_to_nobody() {
    let ca = Ca::new();
    let server = start_asking(&ca).await;
    for (uris, told) in [
        (&["sluice://ns/shop?perm=rw"][..], "no name that could be an identity"),
        (&["sluice://client/a", "sluice://ns/shop?perm=everything"], "not a permission"),
    ] {
        let pair = ca.client(uris, Valid::Now);
        let client = TlsClient::new(&ca, Some(&pair), "http/1.1");
        let answer = client.call(server.address, "GET", "/v1/queues").await.unwrap();
        assert_eq!((answer.status, answer.code().as_str()), (401, "unauthenticated"));
        assert!(answer.message().contains(told), "{}", answer.message());
    }
}

#[tokio::test]
async fn sessions_resume_and_bring_their_certificate() {
    let ca = Ca::new();
    let server = start_asking(&ca).await;
    let pair = ca.client(&["sluice://client/billing"], Valid::Now);
    let client = TlsClient::new(&ca, Some(&pair), "http/1.1");
    for expected in [rustls::HandshakeKind::Full, rustls::HandshakeKind::Resumed] {
        let stream = client.connect(server.address).await.unwrap();
        let kind = stream.get_ref().1.handshake_kind();
        assert_eq!(send(stream, "GET", "/v1/queues", &[], "").await.unwrap().status, 200);
        assert_eq!(kind, Some(expected));
    }
}

#[tokio::test]
async fn new_files_are_taken_up_and_open_connections_go_on() {
    let (ca, other) = (Ca::new(), Ca::new());
    let tls = ca.tls();
    let server = start(Arc::clone(&tls)).await;
    let old = TlsClient::new(&ca, None, "http/1.1");
    let mut open = old.connect(server.address).await.unwrap();
    assert_eq!(tls.reload(), Ok(false));
    let pair = other.server(Valid::Now);
    ca.write("server.pem", &pair.cert);
    let error = tls.reload().unwrap_err().to_string();
    assert!(error.contains("is not that of the first certificate"), "half of a change: {error}");
    assert_eq!(tls.reload(), Ok(false), "told once");
    ca.write("server.key", &pair.key);
    assert_eq!(tls.reload(), Ok(true));
    open.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let _ = open.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let new = TlsClient::new(&other, None, "http/1.1");
    assert_eq!(new.call(server.address, "GET", "/healthz").await.unwrap().status, 200);
    let stranger = TlsClient::new(&ca, None, "http/1.1");
    assert!(stranger.call(server.address, "GET", "/healthz").await.is_err());
}

#[tokio::test]
async fn a_client_ca_that_is_removed_ends_the_connections_of_its_clients() {
    const ASK: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let (ca, other) = (Ca::new(), Ca::new());
    let tls = ca.tls();
    ca.write("ca.pem", &[ca.pem.as_str(), &other.pem].concat());
    assert_eq!(tls.reload(), Ok(true));
    let server = start(Arc::clone(&tls)).await;
    let mut open = Vec::new();
    for shown in [None, Some(ca.client(&[], Valid::Now)), Some(other.client(&[], Valid::Now))] {
        let mut stream =
            TlsClient::new(&ca, shown.as_ref(), "http/1.1").connect(server.address).await.unwrap();
        stream.write_all(ASK).await.unwrap();
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
        open.push(stream);
    }
    ca.write("ca.pem", &ca.pem);
    assert_eq!(tls.reload(), Ok(true));
    let mut rest = Vec::new();
    // Cut or closed: it is over.
    let _ = soon(open.pop().unwrap().read_to_end(&mut rest)).await;
    for mut stream in open {
        stream.write_all(&[&ASK[..ASK.len() - 2], b"Connection: close\r\n\r\n"].concat()).await.unwrap();
        let mut rest = String::new();
        let _ = soon(stream.read_to_string(&mut rest)).await;
        assert!(rest.contains("HTTP/1.1 200 OK"), "others go on: {rest}");
    }
}

#[test]
fn files_that_cannot_be_used_are_refused_with_the_cause() {
    let ca = Ca::new();
    let good = ca.files(&ca.server(Valid::Now));
    let load = |files| Tls::load(files, None, Duration::from_secs(1)).unwrap_err().to_string();
    let (past, future, other) = (ca.server(Valid::Past), ca.server(Valid::Future), ca.server(Valid::Now));
    for (name, text, told) in [
        ("server.pem", past.cert.as_str(), "has expired at"),
        ("server.pem", &future.cert, "is not valid before"),
        ("server.pem", &other.cert, "is not that of the first certificate"),
        ("server.pem", "rubbish", "holds no certificate"),
        ("server.pem", "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", "cannot be read"),
        ("server.key", "rubbish", "holds no private key"),
        ("server.key", &other.cert, "holds no private key"),
        ("ca.pem", "", "holds no certificate"),
    ] {
        let path = ca.dir.path().join(name);
        let before = crate::tls_support::read(&path);
        ca.write(name, text);
        let error = load(good.clone());
        assert!(error.contains(told) && error.contains(name), "{name}: expected {told}: {error}");
        ca.write(name, &before);
    }
    std::fs::remove_file(&good.cert).unwrap();
    assert!(load(good).contains("cannot read the certificate"));
}

#[tokio::test]
async fn an_address_that_keeps_failing_is_turned_away() {
    let ca = Ca::new();
    let client = TlsClient::new(&ca, None, "http/1.1");
    let (long, short) = (Duration::from_secs(60), Duration::from_millis(300));
    let banning = server_that_bans_us_for(&ca, long).await;
    assert!(client.call(banning.address, "GET", "/healthz").await.is_err());
    let forgiving = server_that_bans_us_for(&ca, short).await;
    until(async || {
        client.call(forgiving.address, "GET", "/healthz").await.is_ok_and(|answer| answer.status == 200)
    })
    .await;
}

async fn server_that_bans_us_for(ca: &Ca, ban: Duration) -> Server {
    let options = GuardOptions { failures_max: 3, ban, own_machine: true, ..GuardOptions::default() };
    let tls = ca.tls();
    let server = Server::start_with(|http, _| {
        http.tls = Some(tls);
        http.guard = Arc::new(Guard::new(options));
    })
    .await;
    for _ in 0..3 {
        let mut garbage = Bare::connect(server.address).await;
        garbage.0.write_all(&[0xff; 8]).await.unwrap();
        garbage.read_to_end().await;
    }
    server
}

#[tokio::test]
async fn half_open_handshakes_do_not_hinder_others() {
    let ca = Ca::new();
    let files = ca.files(&ca.server(Valid::Now));
    let server = start(Arc::new(Tls::load(files, None, Duration::from_millis(1_500)).unwrap())).await;
    let address: SocketAddr = server.address;
    let mut half_open = Vec::new();
    for n in 0..300u32 {
        let mut bare = Bare::connect(address).await;
        bare.0.write_all(if n % 2 == 0 { &[0x16, 3, 1, 2, 0] } else { &[] }).await.unwrap();
        half_open.push(bare);
    }
    let client = TlsClient::new(&ca, None, "http/1.1");
    assert_eq!(client.call(address, "GET", "/healthz").await.unwrap().status, 200);
    for bare in &mut half_open {
        soon(bare.read_to_end()).await;
    }
}

#[tokio::test]
async fn a_stop_does_not_wait_for_handshakes() {
    let ca = Ca::new();
    let files = ca.files(&ca.server(Valid::Now));
    let mut server = start(Arc::new(Tls::load(files, None, Duration::from_secs(60)).unwrap())).await;
    let _half_open = Bare::connect(server.address).await;
    // Connections are taken in their order.
    let client = TlsClient::new(&ca, None, "http/1.1");
    assert_eq!(client.call(server.address, "GET", "/healthz").await.unwrap().status, 200);
    server.begin_stop();
    assert_eq!(soon(server.stopped()).await.connections_cut, 0);
}

/// Answers with the certificate of its client, if there is one, and goes on until its client ends.
#[derive(Debug)]
struct Echo;

impl AlpnHandler for Echo {
    fn name(&self) -> &'static [u8] {
        b"echo/1"
    }

    fn serve(&self, mut stream: TlsStream<TcpStream>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let shown = stream.get_ref().1.peer_certificates().map_or(0, <[_]>::len) as u8;
            stream.write_all(&[shown]).await.unwrap();
            let _ = stream.read_u8().await;
        })
    }
}

async fn start_with_echo(ca: &Ca) -> Server {
    let files = ca.files(&ca.server(Valid::Now));
    let tls = Arc::new(Tls::load(files, Some(Echo.name()), Duration::from_secs(5)).unwrap());
    Server::start_with(|http, _| {
        http.tls = Some(tls);
        http.further = Some(Arc::new(Echo));
    })
    .await
}

#[tokio::test]
async fn a_further_protocol_gets_the_connections_that_choose_it() {
    let ca = Ca::new();
    let server = start_with_echo(&ca).await;
    let pair = ca.client(&["sluice://client/billing"], Valid::Now);
    for (shown, certificates) in [(Some(&pair), 1), (None, 0)] {
        let mut stream = TlsClient::new(&ca, shown, "echo/1").connect(server.address).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), certificates);
    }
    for alpn in ["http/1.1", "h2"] {
        let stream = TlsClient::new(&ca, None, alpn).connect(server.address).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(alpn.as_bytes()));
    }
    let client = TlsClient::new(&ca, None, "http/1.1");
    assert_eq!(client.call(server.address, "GET", "/v1/queues").await.unwrap().status, 200);
}

#[tokio::test]
async fn a_connection_of_a_further_protocol_outlives_the_listener_and_delays_no_stop() {
    let ca = Ca::new();
    let mut server = start_with_echo(&ca).await;
    let mut stream = TlsClient::new(&ca, None, "echo/1").connect(server.address).await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), 0);
    let began = std::time::Instant::now();
    server.begin_stop();
    assert_eq!(server.stopped().await.connections_cut, 0);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let still = tokio::time::timeout(Duration::from_millis(100), stream.read_u8()).await;
    assert!(still.is_err(), "{still:?}");
    stream.write_u8(1).await.unwrap();
    assert!(stream.read_u8().await.is_err());
}

#[tokio::test]
async fn a_listener_without_it_refuses_a_further_protocol() {
    let ca = Ca::new();
    let server = start(ca.tls()).await;
    let refused = TlsClient::new(&ca, None, "echo/1").connect(server.address).await.err().unwrap();
    assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");
}
