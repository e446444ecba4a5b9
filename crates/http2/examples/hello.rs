//! A small HTTP/2 server in clear text: `cargo run -p sluice-http2 --example hello [ADDR]`, and then
//! `curl --http2-prior-knowledge http://127.0.0.1:8080/`.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use sluice_http2::adapter::{Adapter, RequestBody};
use sluice_http2::drive::{Driver, Plain};
use sluice_http2::emit::EmitMode;
use sluice_http2::{Connection, Limits};
use tokio::net::{TcpListener, TcpStream};
use tower_service::Service;

/// Answers each request with a line that names its path.
#[derive(Clone)]
struct Hello;

impl Service<Request<RequestBody>> for Hello {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        ready(Ok(Response::new(format!("Hello from {}\n", request.uri().path()))))
    }
}

async fn serve(io: TcpStream, limits: Arc<Limits>) -> io::Result<()> {
    // A connection answers small frames at once; waiting to gather them is the adapter's business, not TCP's.
    io.set_nodelay(true)?;
    let adapter = Adapter::new(Hello, &limits);
    Driver::new(Plain::new(io), adapter, |now_us| Connection::new(limits, EmitMode::Auto, now_us)).await
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let limits = Arc::new(Limits::default());
    loop {
        let (io, peer) = listener.accept().await?;
        let limits = limits.clone();
        tokio::spawn(async move {
            if let Err(error) = serve(io, limits).await {
                eprintln!("{peer}: {error}");
            }
        });
    }
}
