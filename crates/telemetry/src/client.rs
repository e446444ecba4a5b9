//! One connection to the collector, made anew when it is gone: HTTP/1.1, a request at a time.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use sluice_https::{Connection, Tls};
use sluice_proto::wire::{Raw, next_field};
use tokio::net::TcpStream;

use crate::Options;
use crate::endpoint::{Endpoint, Headers};

/// Longest time for a request until its answer begins, the connection included.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Longest time for the rest of an answer, whose status has decided already.
const BODY_TIME_MAX: Duration = Duration::from_secs(2);
/// Most bytes of an answer that are read, so that the connection can go on.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The way to the collector.
pub(crate) struct Client {
    endpoint: Endpoint,
    headers: Headers,
    /// `None`: in clear text.
    tls: Option<Tls>,
    agent: String,
    connection: Option<Connection>,
}

/// The reason why a request has failed.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Failed {
    /// The same may be sent again later.
    ForNow(String),
    /// The collector will not take it.
    ForGood(String),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failed::ForNow(reason) | Failed::ForGood(reason)) = self;
        f.write_str(reason)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Client {
    /// A client without a connection yet.
    pub(crate) fn new(options: &Options) -> Result<Client, String> {
        let tls = options.endpoint.is_tls.then(|| Tls::new(options.ca.as_deref())).transpose()?;
        let (endpoint, headers) = (options.endpoint.clone(), options.headers.clone());
        Ok(Client { endpoint, headers, tls, agent: format!("sluice/{}", options.version), connection: None })
    }

    /// Posts an export of a signal. Returns how many of its items the collector has rejected
    /// (`partial_success` of the answers in `opentelemetry/proto/collector`).
    pub(crate) async fn post(&mut self, signal: &str, body: Bytes) -> Result<u64, Failed> {
        // A connection whose request or answer is not whole ends here.
        let begun = tokio::time::timeout(TIME_MAX, self.begin(signal, body)).await;
        let begun = begun.unwrap_or_else(|_| Err(Failed::ForNow(format!("no answer within {TIME_MAX:?}"))));
        let (connection, response) = begun?;
        let (is_whole, rejected) = read(response).await?;
        self.connection = is_whole.then_some(connection);
        Ok(rejected)
    }

    /// Sends a request, and waits until its answer begins.
    async fn begin(&mut self, signal: &str, body: Bytes) -> Result<(Connection, Response<Incoming>), Failed> {
        let for_now = |error: hyper::Error| Failed::ForNow(error.to_string());
        let mut request = Request::post(self.endpoint.path(signal))
            .header(HOST, self.endpoint.authority())
            .header(USER_AGENT, &self.agent)
            .header(CONTENT_TYPE, "application/x-protobuf")
            .header(CONTENT_LENGTH, body.len());
        for (name, value) in self.headers.iter() {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body)).map_err(|error| Failed::ForGood(error.to_string()))?;
        let mut connection = match self.connection.take().filter(|kept| !kept.is_closed()) {
            Some(kept) => kept,
            None => self.connect().await.map_err(Failed::ForNow)?,
        };
        let response = connection.send(request).await.map_err(for_now)?;
        Ok((connection, response))
    }

    async fn connect(&self) -> Result<Connection, String> {
        let (host, port) = self.endpoint.host();
        let socket = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
        match &self.tls {
            Some(tls) => tls.connect(host, socket).await,
            None => Connection::over(socket).await,
        }
    }
}

/// Reads an answer; tells whether its connection can go on, and how many items were rejected. A body that
/// does not end changes nothing about what the status said: what was taken is not sent again.
async fn read(response: Response<Incoming>) -> Result<(bool, u64), Failed> {
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect();
    let body = match tokio::time::timeout(BODY_TIME_MAX, body).await {
        Ok(Ok(body)) => Some(body.to_bytes()),
        _ => None,
    };
    match status {
        _ if status.is_success() => {
            let rejected = body.as_deref().and_then(rejected).unwrap_or(0);
            Ok((body.is_some(), rejected))
        }
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Err(Failed::ForNow(format!("it answers {status}"))),
        _ => Err(Failed::ForGood(format!("it answers {status}"))),
    }
}

/// The items that an answer tells as rejected: in traces, metrics and logs field 1 of field 1.
fn rejected(answer: &[u8]) -> Option<u64> {
    let Raw::Bytes(partial) = field_1(answer)? else { return None };
    let Raw::Number(rejected) = field_1(partial)? else { return None };
    Some(rejected)
}

fn field_1(mut message: &[u8]) -> Option<Raw<'_>> {
    std::iter::from_fn(|| next_field(&mut message).ok()?)
        .find_map(|(number, value)| (number == 1).then_some(value))
}
