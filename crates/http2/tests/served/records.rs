//! How what is sent lies in TLS' records.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use rustls::pki_types::ServerName;
use sluice_http2::Limits;
use sluice_http2::drive::Tls;
use sluice_http2::emit::EmitMode;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

use super::support::*;

/// A pipe that keeps what was read from it.
struct Heard {
    inner: DuplexStream,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl AsyncRead for Heard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buf);
        self.bytes.lock().expect("no panic").extend_from_slice(&buf.filled()[before..]);
        polled
    }
}

impl AsyncWrite for Heard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// The sizes of the records in `bytes` that carry data, and forgets them.
fn take_records(bytes: &Mutex<Vec<u8>>) -> Vec<usize> {
    let bytes = std::mem::take(&mut *bytes.lock().expect("no panic"));
    let mut rest = &bytes[..];
    let mut sizes = Vec::new();
    while let Some((&[kind, _, _, high, low], after)) = rest.split_first_chunk() {
        let size = usize::from(u16::from_be_bytes([high, low]));
        if kind == 23 {
            sizes.push(size);
        }
        rest = &after[size..];
    }
    sizes
}

/// What TLS 1.3 adds to the bytes of a record: its kind and a tag.
const OVERHEAD: usize = 17;

#[tokio::test]
async fn records_are_short_at_first_and_full_then() {
    let Transport::Tls(server, config) = Transport::tls() else { panic!("TLS") };
    let (near, far) = duplex(1 << 20);
    let limits = Limits::default();
    let tls = rustls::ServerConnection::new(server).expect("a configuration");
    tokio::spawn(driver(Tls::new(far, tls, &limits), limits.clone(), EmitMode::Auto));
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let io = Heard { inner: near, bytes: bytes.clone() };
    let name = ServerName::try_from("localhost").expect("a name");
    let io = tokio_rustls::TlsConnector::from(config).connect(name, io).await.expect("a handshake");
    let mut sender = client(io).await;
    ask(&mut sender, request("GET", "/size/3", no_body())).await;
    take_records(&bytes);

    ask(&mut sender, request("GET", "/size/300000", no_body())).await;
    let records = take_records(&bytes);
    let short = limits.short_record_bytes as usize + OVERHEAD;
    let full = (16 << 10) - 64 + OVERHEAD;
    let begun = records.iter().take_while(|size| **size <= short).count();
    assert!((10..=14).contains(&begun), "about the first 16 KiB go in short records: {records:?}");
    let larger = &records[begun..];
    let count = larger.iter().filter(|size| **size == full).count();
    assert!(count >= 15, "the others are full: {records:?}");
    // Each plan may end with one, and the first has what the short ones left.
    assert!(larger.len() - count <= 3, "nothing is written in between: {records:?}");

    // The flight goes on: nothing begins anew.
    ask(&mut sender, request("GET", "/size/100000", no_body())).await;
    let records = take_records(&bytes);
    assert!(records.iter().filter(|size| **size == full).count() >= 5, "{records:?}");
}
