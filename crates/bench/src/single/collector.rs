//! A collector of telemetry: an HTTP server on the runtime of the load, that takes what comes and counts it.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Path of exports of traces, by OTLP over HTTP.
const TRACES: &str = "/v1/traces";

/// The collector, which runs until it is dropped.
#[derive(Debug)]
pub(super) struct Collector {
    endpoint: String,
    traces: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Collector {
    pub(super) async fn start() -> Result<Collector, String> {
        let failed = |error: std::io::Error| format!("cannot serve a collector: {error}");
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let endpoint = format!("http://{}", listener.local_addr().map_err(failed)?);
        let traces = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(serve(listener, Arc::clone(&traces)));
        Ok(Collector { endpoint, traces, task })
    }

    /// Flag of a server that exports its telemetry to this collector.
    pub(super) fn flag(&self) -> String {
        format!("--telemetry-endpoint={}", self.endpoint)
    }

    /// Exports of traces that have come.
    pub(super) fn traces(&self) -> u64 {
        self.traces.load(Ordering::Relaxed)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, traces: Arc<AtomicU64>) {
    while let Ok((io, _)) = listener.accept().await {
        tokio::spawn(connection(io, Arc::clone(&traces)));
    }
}

async fn connection(io: TcpStream, traces: Arc<AtomicU64>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let traces = Arc::clone(&traces);
        async move {
            let is_trace = request.uri().path() == TRACES;
            if request.into_body().collect().await.is_ok() && is_trace {
                traces.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    // A server that stops closes its connections as it likes; what has come is counted.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(io), service).await;
}
