//! How connections begin and end, in virtual time.

use std::future::Future;
use std::io;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sluice_http2::drive::{Plain, Tls, Wire};
use sluice_http2::emit::EmitMode;
use sluice_http2::{Connection, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::Instant;

use super::support::*;

const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0";

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_told_and_cut() {
    let (mut near, far) = duplex(1 << 16);
    let begun = Instant::now();
    let server = tokio::spawn(driver(Plain::new(far), Limits::default(), EmitMode::Auto));
    let mut said = Vec::new();
    near.read_to_end(&mut said).await.expect("closed in order");
    assert_eq!(begun.elapsed().as_secs(), 10);
    assert!(said.ends_with(b"the preface and the first settings take too long"));
    let error = server.await.expect("no panic").expect_err("cut");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(begun.elapsed().as_secs(), 11, "a second for the peer to read our last words");
}

#[tokio::test(start_paused = true)]
async fn what_has_arrived_is_not_late_though_we_are() {
    let (mut near, far) = duplex(1 << 16);
    let mut server = Box::pin(driver(Plain::new(far), Limits::default(), EmitMode::Auto));
    let mut context = Context::from_waker(Waker::noop());
    assert!(server.as_mut().poll(&mut context).is_pending());
    near.write_all(HELLO).await.expect("open");
    // The server's thread is held up for longer than the preface may take.
    tokio::time::advance(Duration::from_secs(100)).await;
    assert!(server.as_mut().poll(&mut context).is_pending());
    let mut said = [0; 1_000];
    let bytes = near.read(&mut said).await.expect("open");
    assert!(said[..bytes].ends_with(b"\0\0\0\x04\x01\0\0\0\0"), "the settings are acknowledged");
}

/// A server over TLS whose client is still to begin.
fn before_handshake(far: DuplexStream) -> TestDriver<Tls<DuplexStream>> {
    let Transport::Tls(config, _) = Transport::tls() else { panic!("TLS") };
    let tls = rustls::ServerConnection::new(config).expect("a configuration");
    let limits = Limits::default();
    driver(Tls::new(far, tls, &limits), limits, EmitMode::Auto)
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_does_not_end_is_cut() {
    // Nothing at all, and the beginning of a ClientHello.
    for hello in [&b""[..], b"\x16\x03\x01\x02\0\x01\0"] {
        let (mut near, far) = duplex(1 << 16);
        let begun = Instant::now();
        let server = tokio::spawn(before_handshake(far));
        near.write_all(hello).await.expect("open");
        near.read_to_end(&mut Vec::new()).await.expect("closed in order");
        assert_eq!(begun.elapsed().as_secs(), 10);
        // The client stays, and says nothing.
        let error = server.await.expect("no panic").expect_err("cut");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), 11);
    }
}

#[tokio::test(start_paused = true)]
async fn a_graceful_end_does_not_wait_for_a_handshake() {
    let (near, far) = duplex(1 << 16);
    let begun = Instant::now();
    let mut server = before_handshake(far);
    server.shut_down();
    server.await.expect("an end in order");
    assert!(begun.elapsed().as_secs() <= 2, "{:?}", begun.elapsed());
    drop(near);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_cut() {
    let (mut near, far) = duplex(1_000);
    let server = tokio::spawn(driver(Plain::new(far), Limits::default(), EmitMode::Auto));
    near.write_all(HELLO).await.expect("open");
    let begun = Instant::now();
    // Answers to pings pile up, until nothing more is read.
    let ping = b"\0\0\x08\x06\0\0\0\0\0\0\0\0\0\0\0\0\0";
    while tokio::time::timeout(Duration::from_secs(100), near.write_all(ping))
        .await
        .is_ok_and(|done| done.is_ok())
    {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let error = server.await.expect("no panic").expect_err("cut");
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert!((30..40).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_byte_by_byte_is_cut() {
    let (mut near, far) = duplex(1_000);
    let server = tokio::spawn(driver(Plain::new(far), Limits::default(), EmitMode::Auto));
    near.write_all(HELLO).await.expect("open");
    let begun = Instant::now();
    let ping = b"\0\0\x08\x06\0\0\0\0\0\0\0\0\0\0\0\0\0".repeat(80);
    near.write_all(&ping).await.expect("open");
    while near.read_u8().await.is_ok() {
        assert!(begun.elapsed().as_secs() < 100, "not cut");
        tokio::time::sleep(Duration::from_secs(1)).await;
        if server.is_finished() {
            break;
        }
    }
    let error = server.await.expect("no panic").expect_err("cut");
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert!((30..40).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_graceful_end_serves_what_is_open() {
    let (near, far) = duplex(1 << 16);
    let mut server = driver(Plain::new(far), Limits::default(), EmitMode::Auto);
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(async move {
        tokio::select! {
            result = &mut server => return result,
            _ = &mut stopped => server.shut_down(),
        }
        server.await
    });
    let mut sender = client(near).await;
    let response = sender.send_request(request("GET", "/size/1000000", no_body())).await.expect("an answer");
    stop.send(()).expect("the server runs");
    let body = http_body_util::BodyExt::collect(response.into_body()).await.expect("a whole body").to_bytes();
    assert!(body == pattern(1_000_000));
    server.await.expect("no panic").expect("an end in order");
    assert!(sender.ready().await.is_err(), "the client knows");
}

/// Ends at once, and cannot be closed.
struct Stuck;

impl Wire for Stuck {
    fn poll_read(&mut self, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(0))
    }

    fn poll_write(&mut self, _: &mut Context<'_>, _: &mut Connection, _: u64) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn written(&self) -> u64 {
        0
    }
}

#[tokio::test(start_paused = true)]
async fn a_transport_that_cannot_be_closed_is_let_go() {
    let begun = Instant::now();
    driver(Stuck, Limits::default(), EmitMode::Auto).await.expect("an end in order");
    assert_eq!(begun.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends_in_order() {
    let (near, far) = duplex(1 << 16);
    let begun = Instant::now();
    let server = tokio::spawn(driver(Plain::new(far), Limits::default(), EmitMode::Auto));
    let _sender = client(near).await;
    server.await.expect("no panic").expect("an end in order");
    assert!((180..182).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}
