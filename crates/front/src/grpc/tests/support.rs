//! A server in memory and a client on one HTTP/2 connection, whose messages are written and read as JSON.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use sluice_calls::Calls;
use sluice_calls::access::Access;
use sluice_calls::server::About;
use sluice_calls::testing::node;
use sluice_proto::framing::{Deframer, frame_with};
use tokio::net::{TcpListener, TcpStream};

use crate::grpc::from_json;
use crate::grpc::rows::read_rows;
use crate::grpc::schema::schema;
use crate::grpc::tests::to_json::write_object;
use crate::http::HttpOptions;
use crate::serve;

/// End of a call: its answer, or code and message of its error with all trailers.
pub(crate) type Ended = Result<Value, (String, String, HeaderMap)>;

/// Maximum time for which a test waits.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until the condition holds; panics if it does not hold soon.
pub(crate) async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("it comes to that");
}

/// Starts a server with the defaults.
pub(crate) async fn start(change: impl FnOnce(&mut HttpOptions, &mut Access)) -> SocketAddr {
    start_until(change, std::future::pending()).await
}

/// The same, until `stop` resolves.
pub(crate) async fn start_until(
    change: impl FnOnce(&mut HttpOptions, &mut Access),
    stop: impl Future<Output = ()> + Send + 'static,
) -> SocketAddr {
    let mut http = HttpOptions { shutdown_grace: Duration::from_secs(5), ..HttpOptions::default() };
    let mut access = Access::default();
    change(&mut http, &mut access);
    let node = node();
    let calls = Calls::new(node.clone(), access, About::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, calls, http, async move {
        stop.await;
        node.drain();
    }));
    address
}

/// A connection.
pub(crate) struct Client {
    connection: SendRequest<Full<Bytes>>,
    address: SocketAddr,
    /// Sent with each call; empty: none.
    pub(crate) token: String,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).await.unwrap();
        let (connection, driver) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(driver);
        Client { connection, address, token: String::new() }
    }

    /// Makes the call `Messages/Send` and the like.
    pub(crate) async fn call(&mut self, name: &str, request: Value) -> Ended {
        let path = format!("/sluice.v1.{name}");
        let (input, _) = schema().call(&path).unwrap();
        let message = from_json::encode(input, request.to_string().as_bytes()).unwrap();
        self.post(&path, framed(&[&message])).await
    }

    /// Makes a call that answers with a stream.
    pub(crate) async fn stream(&mut self, name: &str, request: Value) -> Frames {
        let path = format!("/sluice.v1.{name}");
        let (input, output) = schema().call(&path).unwrap();
        let message = from_json::encode(input, request.to_string().as_bytes()).unwrap();
        Frames { messages: self.open(&path, framed(&[&message])).await, output }
    }

    /// Posts these bytes to any path, for a stream of messages.
    pub(crate) async fn open(&mut self, path: &str, body: Bytes) -> Messages {
        let request = self.request(path).body(Full::new(body)).unwrap();
        Messages::of(self.connection.send_request(request).await.unwrap())
    }

    fn request(&self, path: &str) -> http::request::Builder {
        let request = Request::post(format!("http://{}{path}", self.address));
        self.authorize(request.header("content-type", "application/grpc").header("te", "trailers"))
    }

    fn authorize(&self, request: http::request::Builder) -> http::request::Builder {
        if self.token.is_empty() {
            return request;
        }
        request.header("authorization", format!("Bearer {}", self.token))
    }

    /// Makes a token, over HTTP.
    pub(crate) async fn make_token(&mut self, name: &str, scope: &str) -> String {
        let body = serde_json::json!({"name": name, "scopes": [scope]}).to_string();
        let request = Request::post(format!("http://{}/v1/tokens", self.address));
        let request = self.authorize(request.header("content-type", "application/json"));
        let request = request.body(Full::new(body.into())).unwrap();
        let response = self.connection.send_request(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let made: Value = serde_json::from_slice(&body).unwrap();
        made["token"].as_str().unwrap().to_owned()
    }

    /// Asks for something over HTTP.
    pub(crate) async fn get(&mut self, path: &str) -> Value {
        serde_json::from_slice(&self.get_bytes(path).await).unwrap()
    }

    /// Asks for something over HTTP that is not JSON.
    pub(crate) async fn get_bytes(&mut self, path: &str) -> Bytes {
        let request = self
            .authorize(Request::get(format!("http://{}{path}", self.address)))
            .body(Full::default())
            .unwrap();
        let response = self.connection.send_request(request).await.unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    }

    /// Takes a token away, over HTTP.
    pub(crate) async fn revoke_token(&mut self, name: &str) {
        let request = Request::delete(format!("http://{}/v1/tokens/{name}", self.address))
            .header("authorization", format!("Bearer {}", self.token))
            .body(Full::default())
            .unwrap();
        assert_eq!(self.connection.send_request(request).await.unwrap().status(), 200);
    }

    /// Posts these bytes as a call.
    pub(crate) async fn post(&mut self, path: &str, body: Bytes) -> Ended {
        let (messages, trailers) = self.open(path, body).await.all().await;
        if trailers["grpc-status"] != "0" {
            let text = |name: &str| trailers[name].to_str().unwrap().to_owned();
            return Err((text("sluice-code"), text("grpc-message"), trailers));
        }
        Ok(read(schema().call(path).unwrap().1, &messages[0]))
    }
}

/// Messages, each with its prefix.
pub(crate) fn framed(messages: &[&[u8]]) -> Bytes {
    let mut out = Vec::new();
    messages.iter().for_each(|message| frame_with(&mut out, |out| out.extend_from_slice(message)));
    out.into()
}

fn read(output: usize, message: &[u8]) -> Value {
    let output = schema().message(output);
    let mut json = Vec::new();
    write_object(output, &read_rows(output, message).unwrap(), &mut json).unwrap();
    serde_json::from_slice(&json).unwrap()
}

/// A stream of answers.
pub(crate) struct Frames {
    messages: Messages,
    output: usize,
}

impl Frames {
    /// The next message; at the end the trailers.
    pub(crate) async fn next(&mut self) -> Result<Value, HeaderMap> {
        self.messages.next().await.map(|message| read(self.output, &message))
    }
}

/// A stream of messages.
pub(crate) struct Messages {
    head: HeaderMap,
    body: Incoming,
    deframer: Deframer,
}

impl Messages {
    /// The messages of an answer.
    pub(crate) fn of(response: Response<Incoming>) -> Messages {
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &"application/grpc".parse().unwrap())
        );
        let (head, body) = response.into_parts();
        Messages { head: head.headers, body, deframer: Deframer::new(usize::MAX) }
    }

    /// The next message; at the end the trailers, which are in the head of an answer without messages.
    pub(crate) async fn next(&mut self) -> Result<Bytes, HeaderMap> {
        loop {
            if let Some(message) = self.deframer.next().unwrap() {
                return Ok(message);
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.unwrap();
            let Some(frame) = frame else { return Err(self.head.clone()) };
            match frame.unwrap().into_data() {
                Ok(data) => self.deframer.push(data),
                Err(trailers) => return Err(trailers.into_trailers().unwrap()),
            }
        }
    }

    /// All messages, and the trailers.
    pub(crate) async fn all(mut self) -> (Vec<Bytes>, HeaderMap) {
        let mut messages = Vec::new();
        loop {
            match self.next().await {
                Ok(message) => messages.push(message),
                Err(trailers) => return (messages, trailers),
            }
        }
    }
}
