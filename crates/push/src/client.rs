//! Connections to an endpoint: kept between pushes, each used by one push at a time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use sluice_https::Connection;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::answer::EXCERPT_CHARS_MAX;
use crate::options::Options;
use crate::target::Target;

/// Longest time for a connection to one address, its TLS included.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Time after which a connection without a push is closed: endpoints close idle ones.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Age at which a connection is closed once it has no push, so that another address of the endpoint is found.
const AGE_MAX: Duration = Duration::from_secs(300);
/// Most bytes of the body of an answer that are kept: the characters that an error tells, of any length.
const KEPT_BYTES_MAX: usize = EXCERPT_CHARS_MAX * 4;
/// Most bytes of it that are read, so that the connection can go on; with more it is closed.
const READ_BYTES_MAX: usize = 64 << 10;
/// Longest time for the body of an answer, whose head has told what became of the push.
const BODY_TIME_MAX: Duration = Duration::from_secs(1);
/// Addresses of a host that are tried.
const ADDRESSES_MAX: usize = 4;

/// The connections to an endpoint.
#[derive(Debug)]
pub(crate) struct Client {
    target: Target,
    options: Arc<Options>,
    /// Connections without a push, the one that was used last at the end.
    idle: Mutex<Vec<Kept>>,
}

#[derive(Debug)]
struct Kept {
    connection: Connection,
    since: Instant,
    used: Instant,
}

/// An answer: its head, and the first bytes of its body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Client {
    pub(crate) fn new(target: Target, options: Arc<Options>) -> Client {
        Client { target, options, idle: Mutex::default() }
    }

    /// Sends a request, over a connection that is kept or a new one. The head of its answer has to be there
    /// within a time.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        within: Duration,
    ) -> Result<Answer, String> {
        let late = |_| format!("no answer within {} ms", within.as_millis());
        let (mut kept, response) =
            timeout(within, self.send_once_or_again(request)).await.map_err(late)??;
        let (answer, is_whole) = read(response).await;
        if is_whole && !kept.connection.is_closed() {
            kept.used = Instant::now();
            self.idle().push(kept);
        }
        Ok(answer)
    }

    /// An endpoint may close a kept connection at the moment at which a request is on its way. Such a request
    /// is sent once more, over a new connection: whoever got both knows them by their id.
    async fn send_once_or_again(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(Kept, Response<Incoming>), String> {
        if let Some(mut kept) = self.kept() {
            match kept.connection.send(request.clone()).await {
                Ok(response) => return Ok((kept, response)),
                Err(error) if was_closed(&error) => {}
                Err(error) => return Err(told(&error)),
            }
        }
        let now = Instant::now();
        let mut new = Kept { connection: self.connect().await?, since: now, used: now };
        let response = new.connection.send(request).await.map_err(|error| told(&error))?;
        Ok((new, response))
    }

    fn kept(&self) -> Option<Kept> {
        self.close_idle();
        self.idle().pop()
    }

    /// Closes the connections without a push whose time is over.
    pub(crate) fn close_idle(&self) {
        self.idle().retain(|kept| {
            let in_time = kept.used.elapsed() < IDLE_MAX && kept.since.elapsed() < AGE_MAX;
            in_time && !kept.connection.is_closed()
        });
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects with the first address that is allowed and answers. No name is looked up between the check of
    /// an address and its use.
    async fn connect(&self) -> Result<Connection, String> {
        let (host, port) = (self.target.host(), self.target.port());
        let addresses = self.addresses(host, port).await?;
        let mut failed = format!("{host} has no address");
        for address in addresses.iter().copied().take(ADDRESSES_MAX) {
            if let Err(refused) = self.target.check_address(address.ip(), &self.options.allowed) {
                failed = refused;
                continue;
            }
            let connecting = timeout(CONNECT_TIME_MAX, self.connect_with(address));
            match connecting.await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(reason)) => failed = format!("cannot connect with {address}: {reason}"),
                Err(_) => {
                    failed = format!("cannot connect with {address}: nothing within {CONNECT_TIME_MAX:?}");
                }
            }
        }
        Err(failed)
    }

    async fn addresses(&self, host: &str, port: u16) -> Result<Arc<[SocketAddr]>, String> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok([SocketAddr::new(address, port)].into());
        }
        let found = self.options.look_ups.find(&self.options.resolver, host, port).await;
        found.map_err(|error| format!("cannot resolve {host}: {error}"))
    }

    async fn connect_with(&self, address: SocketAddr) -> Result<Connection, String> {
        let socket = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        socket.set_nodelay(true).map_err(|error| error.to_string())?;
        match self.target.is_tls {
            true => self.options.tls.connect(self.target.host(), socket).await,
            false => Connection::over(socket).await,
        }
    }
}

/// True if a connection was closed before anything of an answer came.
fn was_closed(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    let is_reset = source.is_some_and(|error| {
        // That of TLS whose other end has closed without `close_notify`.
        let kinds = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe, io::ErrorKind::UnexpectedEof];
        kinds.contains(&error.kind())
    });
    is_reset || error.is_incomplete_message() || error.is_canceled() || error.is_closed()
}

/// An error with its cause.
fn told(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("the connection failed: {error}: {cause}"),
        None => format!("the connection failed: {error}"),
    }
}

/// Reads an answer; tells whether its connection can go on.
async fn read(response: Response<Incoming>) -> (Answer, bool) {
    let (head, mut body) = response.into_parts();
    let (mut kept, mut read) = (BytesMut::new(), 0);
    let whole = async {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            let Some(data) = frame.data_ref() else { continue };
            read += data.len();
            let fitting = data.len().min(KEPT_BYTES_MAX - kept.len());
            kept.extend_from_slice(&data[..fitting]);
            if read > READ_BYTES_MAX {
                return false;
            }
        }
        true
    };
    let is_whole = timeout(BODY_TIME_MAX, whole).await.unwrap_or(false);
    (Answer { status: head.status, headers: head.headers, body: kept.freeze() }, is_whole)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use sluice_https::Tls;
    use tokio::io::{
        AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf, duplex,
    };
    use tokio::net::TcpListener;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::address::Allowed;

    /// An endpoint that answers one request, and tells how many bytes it has got behind it when its
    /// connection ends.
    async fn endpoint() -> (Client, JoinHandle<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = Target::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let answering = tokio::spawn(async move {
            let mut socket = listener.accept().await.unwrap().0;
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                socket.read_buf(&mut request).await.unwrap();
            }
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            socket.read(&mut [0]).await.unwrap()
        });
        let allowed = Allowed::parse("127.0.0.0/8").unwrap();
        let options = Options::new(Tls::trusting_nobody(), allowed, "sluice/test".to_owned());
        (Client::new(target, Arc::new(options)), answering)
    }

    fn request() -> Request<Full<Bytes>> {
        Request::post("/").body(Full::default()).unwrap()
    }

    #[tokio::test]
    async fn a_connection_without_a_push_is_closed_when_its_time_is_over() {
        let (client, answering) = endpoint().await;
        client.send(request(), CONNECT_TIME_MAX).await.unwrap();
        client.close_idle();
        assert_eq!(client.idle().len(), 1);
        let past = Instant::now().checked_sub(IDLE_MAX).expect("this machine runs for longer");
        client.idle().iter_mut().for_each(|kept| kept.used = past);
        client.close_idle();
        assert_eq!(client.idle().len(), 0);
        let behind = timeout(CONNECT_TIME_MAX, answering).await.expect("the connection ends");
        assert_eq!(behind.unwrap(), 0);
    }

    /// A stream whose end is told as TLS tells one that came without a word.
    struct Abrupt(DuplexStream);

    impl AsyncRead for Abrupt {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let before = into.filled().len();
            match Pin::new(&mut self.0).poll_read(context, into) {
                Poll::Ready(Ok(())) if into.filled().len() == before => {
                    Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()))
                }
                polled => polled,
            }
        }
    }

    impl AsyncWrite for Abrupt {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(context)
        }
    }

    #[tokio::test]
    async fn a_kept_connection_that_ends_without_a_word_is_no_failure() {
        let (client, _answering) = endpoint().await;
        let (near, mut far) = duplex(1 << 10);
        let (connection, now) = (Connection::over(Abrupt(near)).await.unwrap(), Instant::now());
        client.idle().push(Kept { connection, since: now, used: now });
        tokio::spawn(async move { far.read_u8().await });
        let answer = client.send(request(), CONNECT_TIME_MAX).await.unwrap();
        assert_eq!(answer.status, StatusCode::OK);
    }
}
