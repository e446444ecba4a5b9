//! What the servers of all tests do: on this stack and on hyper's, in process and for clients of others
//! (`examples/serve`).
//!
//! - `/` says hello, once the request is whole;
//! - `/echo` gives back the body as it comes, and its trailers; so does every CONNECT, which tells its
//!   `protocol`, too;
//! - `/upload` tells how long the body was, whether it was the [`pattern`], and its trailers; `/sip` does so,
//!   and reads slowly;
//! - `/size/N` gives N bytes of the pattern, in one piece;
//! - `/pieces/N` gives N pieces of 8 KiB, each filled with its number, a millisecond apart;
//! - `/trailers` gives a body and trailers;
//! - `/fields/N` gives N fields of a KiB each;
//! - `/head` tells what the head of the request was;
//! - `/status/N` gives an empty answer, at once: of the body of the request nothing is read;
//! - `/lies/N` gives an empty answer that says it has 5 bytes;
//! - `/fails` breaks off in the middle of its body;
//! - `/hold` reads the body and never answers;
//! - `/ignore` does not read it, and answers with a body that never ends.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use sluice_http2::adapter::{Protocol, RequestBody};

pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type AnyBody = BoxBody<Bytes, Error>;

/// Between pieces that come slowly, and reads that are slow.
const PAUSE: Duration = Duration::from_millis(1);

/// The byte at each place of a body that the service makes.
pub(crate) fn pattern(bytes: usize) -> Bytes {
    (0..bytes).map(pattern_byte).collect()
}

fn pattern_byte(at: usize) -> u8 {
    (at / 251 + at) as u8
}

/// Answers a request.
pub(crate) async fn serve_test<B>(request: Request<B>) -> Result<Response<AnyBody>, Error>
where
    B: Body<Data = Bytes> + Send + Sync + 'static,
    B::Error: Into<Error>,
{
    let path = request.uri().path().to_string();
    let place = path.strip_prefix('/').unwrap_or_default();
    let (route, argument) = place.split_once('/').unwrap_or((place, ""));
    let number = || argument.parse::<usize>().map_err(Error::from);
    Ok(Response::new(match route {
        _ if request.method() == Method::CONNECT => return Ok(tunnel(request)),
        "" => {
            request.into_body().collect().await.map_err(Into::into)?;
            text("Hello from Sluice.\n".into())
        }
        "echo" => request.into_body().map_err(Into::into).boxed(),
        "upload" => text(tell_body(request.into_body(), None).await?),
        "sip" => text(tell_body(request.into_body(), Some(PAUSE)).await?),
        "size" => Full::new(pattern(number()?)).map_err(|never| match never {}).boxed(),
        "pieces" => pieces(number()?),
        "trailers" => {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", "0".parse()?);
            frames(vec![Ok(Frame::data(Bytes::from_static(b"body"))), Ok(Frame::trailers(trailers))])
        }
        "fields" => {
            let mut response = Response::new(text("fields".into()));
            for number in 0..number()? {
                let name = HeaderName::try_from(format!("x-{number}"))?;
                response.headers_mut().insert(name, HeaderValue::try_from("~".repeat(1_024))?);
            }
            return Ok(response);
        }
        "head" => text(tell_head(&request)),
        "status" => {
            let status = StatusCode::from_u16(number()? as u16)?;
            let body = Empty::new().map_err(|never| match never {}).boxed();
            return Ok(Response::builder().status(status).body(body)?);
        }
        "lies" => {
            let body = Empty::new().map_err(|never| match never {}).boxed();
            return Ok(Response::builder()
                .status(number()? as u16)
                .header("content-length", 5)
                .body(body)?);
        }
        "hold" => {
            request.into_body().collect().await.map_err(Into::into)?;
            std::future::pending().await
        }
        "ignore" => {
            drop(request);
            StreamBody::new(futures_util::stream::pending()).boxed()
        }
        "fails" => frames(vec![Ok(Frame::data(Bytes::from_static(b"half"))), Err("on purpose".into())]),
        _ => {
            let response = Response::builder().status(StatusCode::NOT_FOUND);
            return Ok(response.body(text(format!("there is no {path}")))?);
        }
    }))
}

fn tunnel<B>(request: Request<B>) -> Response<AnyBody>
where
    B: Body<Data = Bytes> + Send + Sync + 'static,
    B::Error: Into<Error>,
{
    let protocol = request.extensions().get::<Protocol>().map(|protocol| protocol.0.clone());
    let mut response = Response::new(request.into_body().map_err(Into::into).boxed());
    if let Some(protocol) = protocol {
        response.headers_mut().insert("protocol", protocol);
    }
    response
}

fn text(text: String) -> AnyBody {
    Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed()
}

fn frames(frames: Vec<Result<Frame<Bytes>, Error>>) -> AnyBody {
    StreamBody::new(futures_util::stream::iter(frames)).boxed()
}

fn pieces(count: usize) -> AnyBody {
    let pieces = futures_util::stream::unfold(0..count, |mut left| async {
        let number = left.next()?;
        tokio::time::sleep(PAUSE).await;
        Some((Ok(Frame::data(Bytes::from(vec![number as u8; 8 << 10]))), left))
    });
    StreamBody::new(pieces).boxed()
}

async fn tell_body<B>(body: B, pause: Option<Duration>) -> Result<String, Error>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Error>,
{
    let (mut bytes, mut is_pattern, mut trailers) = (0, true, String::new());
    let mut body = pin!(body);
    while let Some(frame) = body.frame().await {
        match frame.map_err(Into::into)?.into_data() {
            Ok(data) => {
                is_pattern &= data.iter().zip(bytes..).all(|(byte, at)| *byte == pattern_byte(at));
                bytes += data.len();
            }
            Err(frame) => trailers = frame.trailers_ref().map(tell_fields).unwrap_or_default(),
        }
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    }
    let what = if is_pattern { "of the pattern" } else { "of something else" };
    Ok(format!("{bytes} bytes {what}, trailers: {trailers}"))
}

fn tell_head<B>(request: &Request<B>) -> String {
    format!("{} {} {}", request.method(), request.uri(), tell_fields(request.headers()))
}

fn tell_fields(fields: &HeaderMap) -> String {
    let mut fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    fields.sort();
    fields.join(" ")
}

/// The service for this stack.
#[derive(Clone)]
pub(crate) struct TestService;

impl tower_service::Service<Request<RequestBody>> for TestService {
    type Response = Response<AnyBody>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<AnyBody>, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        Box::pin(serve_test(request))
    }
}
