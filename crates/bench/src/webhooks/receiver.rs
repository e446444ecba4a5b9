//! The endpoint: an HTTPS server by hand, on a thread of its own, that counts each message by its number.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::certificates::Pair;
use crate::load::{NUMBER_BYTES, read_number};
use crate::wire::tls::from_files;

/// Largest head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;
const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// Requests that have come to the endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    /// Messages that came exactly once.
    pub(super) once: u64,
    /// Requests without a signature, or of no message of this run.
    pub(super) wrong: u64,
    pub(super) connections: u64,
    /// Time from the first request to the last one.
    pub(super) took: Duration,
}

/// The endpoint, which runs until it is stopped.
#[derive(Debug)]
pub(super) struct Receiver {
    address: SocketAddr,
    counts: Arc<Counts>,
    thread: JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

#[derive(Debug)]
struct Counts {
    by_number: Vec<AtomicU8>,
    wrong: AtomicU64,
    connections: AtomicU64,
    /// When the first request came, and the last.
    times: Mutex<Option<(Instant, Instant)>>,
}

impl Receiver {
    pub(super) fn start(pair: &Pair, messages: u64) -> Result<Receiver, String> {
        let failed = |error: std::io::Error| format!("cannot serve an endpoint: {error}");
        let listener = StdListener::bind("127.0.0.1:0").map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let tls = TlsAcceptor::from(from_files(&pair.cert, &pair.key, None)?);
        let counts = Arc::new(Counts {
            by_number: (0..messages).map(|_| AtomicU8::new(0)).collect(),
            wrong: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            times: Mutex::default(),
        });
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let of_thread = Arc::clone(&counts);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = serve(listener, tls, of_thread) => {}
                }
            });
        });
        Ok(Receiver { address, counts, thread, stop })
    }

    pub(super) fn url(&self) -> String {
        format!("https://{}/hooks", self.address)
    }

    pub(super) fn stop(self) -> Result<Received, String> {
        let _ = self.stop.send(());
        self.thread.join().map_err(|_| "the endpoint has failed".to_owned())?;
        let counts = &self.counts;
        let times = *counts.times.lock().unwrap_or_else(PoisonError::into_inner);
        let once = counts.by_number.iter().filter(|count| count.load(Ordering::Relaxed) == 1);
        Ok(Received {
            once: once.count() as u64,
            wrong: counts.wrong.load(Ordering::Relaxed),
            connections: counts.connections.load(Ordering::Relaxed),
            took: times.map_or(Duration::ZERO, |(first, last)| last - first),
        })
    }
}

impl Counts {
    fn add(&self, is_signed: bool, body: &[u8]) {
        let number = read_number(body).and_then(|number| self.by_number.get(usize::try_from(number).ok()?));
        match number.filter(|_| is_signed) {
            Some(count) => _ = count.fetch_add(1, Ordering::Relaxed),
            None => _ = self.wrong.fetch_add(1, Ordering::Relaxed),
        }
        let now = Instant::now();
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        *times = Some((times.map_or(now, |(first, _)| first), now));
    }
}

async fn serve(listener: StdListener, tls: TlsAcceptor, counts: Arc<Counts>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    while let Ok((socket, _)) = listener.accept().await {
        counts.connections.fetch_add(1, Ordering::Relaxed);
        let (tls, counts) = (tls.clone(), Arc::clone(&counts));
        tokio::spawn(async move {
            let _ = socket.set_nodelay(true);
            if let Ok(stream) = tls.accept(socket).await {
                answer_all(stream, &counts).await;
            }
        });
    }
}

/// Answers the requests of a connection until it ends.
async fn answer_all(mut stream: impl AsyncRead + AsyncWrite + Unpin, counts: &Counts) {
    let mut bytes = Vec::with_capacity(HEAD_BYTES_MAX);
    loop {
        while let Some((is_signed, body_at, end)) = whole(&bytes) {
            counts.add(is_signed, &bytes[body_at..end]);
            bytes.drain(..end);
            if stream.write_all(ANSWER).await.is_err() || stream.flush().await.is_err() {
                return;
            }
        }
        match stream.read_buf(&mut bytes).await {
            Ok(read) if read > 0 => {}
            _ => return,
        }
    }
}

/// A request that is there as a whole: if it is signed, where its body begins, and where it ends.
fn whole(bytes: &[u8]) -> Option<(bool, usize, usize)> {
    let body_at = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..body_at]).ok()?;
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    let length: usize = field("content-length: ")?.parse().ok()?;
    let end = body_at + length;
    let is_signed = field("webhook-signature: ").is_some_and(|signature| signature.starts_with("v1,"));
    (length >= NUMBER_BYTES && bytes.len() >= end).then_some((is_signed, body_at, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart() {
        let request =
            b"POST / HTTP/1.1\r\nwebhook-signature: v1,x\r\ncontent-length: 16\r\n\r\n0123456789abcdefPOST";
        let (is_signed, body_at, end) = whole(request).unwrap();
        assert!(is_signed);
        assert_eq!((&request[body_at..end], &request[end..]), (&b"0123456789abcdef"[..], &b"POST"[..]));
        assert_eq!(whole(&request[..end - 1]), None);
        assert_eq!(whole(b"POST / HTTP/1.1\r\n"), None);
    }
}
