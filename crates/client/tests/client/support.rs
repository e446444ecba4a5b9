//! A server that answers as told, on a real socket, one task a connection.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sluice_client::{Client, Options};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until the condition holds; panics if it does not hold soon.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    let looking = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("it comes to that");
}

/// What came in.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) body: String,
}

/// What goes out.
pub(crate) enum Reply {
    Json(u16, String),
    /// A status with a Retry-After in seconds.
    Later(u16, &'static str, u32),
    /// The connection is closed without an answer.
    Break,
    /// An answer, after which the connection is closed without notice to the client; with notice to the test.
    JsonThenClose(String, Arc<Notify>),
}

/// Starts the server; its port is free again when the runtime ends.
pub(crate) async fn serve<F, Fut>(answer: F) -> SocketAddr
where
    F: Fn(Request) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Reply> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = Arc::clone(&answer);
            tokio::spawn(async move { while_open(stream, answer).await });
        }
    });
    address
}

pub(crate) fn client(address: SocketAddr) -> Client {
    let retry_for = Duration::from_secs(5);
    let options = Options { retry_for, connect_retry_for: Duration::from_millis(300), ..Options::default() };
    Client::with_options(&format!("http://{address}"), options).unwrap()
}

async fn while_open<F, Fut>(stream: TcpStream, answer: Arc<F>)
where
    F: Fn(Request) -> Fut,
    Fut: Future<Output = Reply>,
{
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let (text, close) = match answer(request).await {
            Reply::Json(status, body) => (response(status, "", &body), None),
            Reply::Later(status, code, seconds) => {
                let body = format!("{{\"error\":{{\"code\":\"{code}\",\"message\":\"later\"}}}}");
                (response(status, &format!("retry-after: {seconds}\r\n"), &body), None)
            }
            Reply::JsonThenClose(body, closed) => (response(200, "", &body), Some(closed)),
            Reply::Break => return,
        };
        if stream.get_mut().write_all(text.as_bytes()).await.is_err() {
            return;
        }
        if let Some(closed) = close {
            drop(stream);
            closed.notify_one();
            return;
        }
    }
}

fn response(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|n| *n > 0)?;
    let (method, rest) = line.split_once(' ')?;
    let (method, path) = (method.to_owned(), rest.split(' ').next()?.to_owned());
    let (mut length, mut idempotency_key) = (0, None);
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.ok().filter(|n| *n > 0)?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "idempotency-key" => idempotency_key = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request { method, path, idempotency_key, body: String::from_utf8(body).unwrap() })
}
