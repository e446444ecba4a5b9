//! A client over one connection per request, in either version of HTTP.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The code of an error.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap().to_owned()
    }

    pub(crate) fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

pub(crate) fn build(
    target: String,
    method: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(Bytes::copy_from_slice(body))).unwrap()
}

pub(crate) async fn collect(response: http::Response<hyper::body::Incoming>) -> Answer {
    let (head, body) = response.into_parts();
    Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body: body.collect().await.unwrap().to_bytes(),
    }
}

/// A request over HTTP/1.1.
pub(crate) async fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = build(path.to_owned(), method, headers, body);
    request.headers_mut().entry("host").or_insert(address.to_string().parse().unwrap());
    collect(sender.send_request(request).await.unwrap()).await
}

async fn connect_http2(address: SocketAddr) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// Requests over one HTTP/2 connection, all at once.
pub(crate) async fn requests_http2(address: SocketAddr, requests: &[(&str, &str, &str)]) -> Vec<Answer> {
    let sender = connect_http2(address).await;
    let mut answers = Vec::new();
    for (method, path, body) in requests {
        let mut sender = sender.clone();
        let request = build(format!("http://{address}{path}"), method, &[], body.as_bytes());
        let answer = async move { collect(sender.send_request(request).await.unwrap()).await };
        answers.push(AbortOnDrop(tokio::spawn(answer)));
    }
    let mut collected = Vec::new();
    for answer in &mut answers {
        collected.push((&mut answer.0).await.unwrap());
    }
    collected
}

/// A request over HTTP/2.
pub(crate) async fn request_http2(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let request = build(format!("http://{address}{path}"), method, headers, body);
    collect(connect_http2(address).await.send_request(request).await.unwrap()).await
}

/// A task that ends with its owner, as a client that goes away does.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A bare connection, for what no client library would send.
pub(crate) struct Bare(pub(crate) TcpStream);

impl Bare {
    pub(crate) async fn connect(address: SocketAddr) -> Bare {
        Bare(TcpStream::connect(address).await.unwrap())
    }

    pub(crate) async fn write(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Everything until the server closes.
    pub(crate) async fn read_to_end(&mut self) -> String {
        let mut all = Vec::new();
        // A reset after the answer is an end as well.
        let _ = self.0.read_to_end(&mut all).await;
        String::from_utf8_lossy(&all).into_owned()
    }

    /// Reads until `end` has come.
    pub(crate) async fn read_until(&mut self, end: &str) -> String {
        let mut all = String::new();
        let mut buffer = [0; 4_096];
        while !all.contains(end) {
            let read = self.0.read(&mut buffer).await.unwrap();
            assert!(read > 0, "the connection ended after {all:?}");
            all.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        all
    }
}
