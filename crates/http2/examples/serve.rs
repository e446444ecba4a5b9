//! A server to try the stack with, and to let conformance tests loose on: `serve [ADDR]` (default 127.0.0.1:8080), in clear text
//! with prior knowledge. `/echo` gives back the body of the request as it comes; other paths give a line of text, once the request
//! is whole.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Either, Full};
use sluice_http2::adapter::{Adapter, BodyError, RequestBody};
use sluice_http2::drive::{Driver, Plain};
use sluice_http2::emit::EmitMode;
use sluice_http2::{Connection, Limits};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone)]
struct Echo;

impl tower_service::Service<Request<RequestBody>> for Echo {
    type Response = Response<Either<RequestBody, Full<Bytes>>>;
    type Error = BodyError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BodyError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        Box::pin(async {
            if request.uri().path() == "/echo" {
                return Ok(Response::new(Either::Left(request.into_body())));
            }
            request.into_body().collect().await?;
            Ok(Response::new(Either::Right(Full::new(Bytes::from_static(b"Hello from Sluice.\n")))))
        })
    }
}

async fn serve(io: TcpStream, limits: Arc<Limits>) {
    let adapter = Adapter::new(Echo, &limits);
    let _ = io.set_nodelay(true);
    let make = |now_us| Connection::new(limits, EmitMode::Auto, now_us);
    if let Err(error) = Driver::new(Plain::new(io), adapter, make).await {
        eprintln!("a connection has failed: {error}");
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".into());
    let listener = TcpListener::bind(&address).await?;
    println!("listening on {}", listener.local_addr()?);
    let limits = Arc::new(Limits::default());
    loop {
        let (io, _) = listener.accept().await?;
        tokio::spawn(serve(io, limits.clone()));
    }
}
