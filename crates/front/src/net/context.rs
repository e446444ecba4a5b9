//! The context of a server: what all its requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use sluice_calls::Calls;
use sluice_calls::time::now_ms;
use sluice_engine::limits::UPLOAD_CHUNK_BYTES_MAX;
use tokio::sync::Semaphore;

use super::acts::Acts;
use super::compression::Compressor;
use super::error_log::ErrorLog;
use super::links::Links;
use super::memory::answers::AnswerMemory;
use super::memory::bodies::BodyBudget;
use super::metrics::HttpMetrics;
use super::options::http2_limits;
use super::options::{BodyLimits, HttpOptions};

/// Most streams of gRPC's own services (health and reflection), of all clients together.
pub(crate) const STANDARD_STREAMS_MAX: usize = 256;

/// Shared by all connections of one server.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) calls: Calls,
    pub(crate) options: HttpOptions,
    pub(crate) body_budget: BodyBudget,
    /// That of raw uploads of attachments, which wait for their turn: so bodies of other calls find room.
    pub(crate) upload_budget: BodyBudget,
    pub(crate) answers: Arc<AnswerMemory>,
    pub(crate) compressor: Compressor,
    pub(crate) http2_limits: Arc<sluice_http2::Limits>,
    /// Connections to other nodes of the cluster; `None`: there are none.
    pub(crate) links: Option<Links>,
    pub(crate) acts: Acts,
    pub(crate) error_log: ErrorLog,
    pub(crate) metrics: HttpMetrics,
    /// Places of streams of gRPC's own services, for which nobody has to say who they are.
    pub(crate) standard_streams: Arc<Semaphore>,
    pub(crate) connections: AtomicUsize,
    requests: AtomicUsize,
    request_number: AtomicU64,
}

impl Context {
    /// The context of a server that starts.
    pub(crate) fn new(calls: Calls, options: HttpOptions) -> Context {
        Context {
            body_budget: BodyBudget::new(options.bodies_bytes_max),
            upload_budget: BodyBudget::new((options.bodies_bytes_max / 4).max(UPLOAD_CHUNK_BYTES_MAX)),
            http2_limits: Arc::new(http2_limits(&options)),
            answers: Arc::new(AnswerMemory::new(options.answers_bytes_max)),
            compressor: Compressor::new(options.compression),
            links: options.nodes.clone().map(Links::new),
            acts: Acts::new(),
            error_log: ErrorLog::default(),
            metrics: HttpMetrics::new(),
            standard_streams: Arc::new(Semaphore::new(STANDARD_STREAMS_MAX)),
            connections: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            // Time in the high part tells the requests of two starts apart in one log.
            request_number: AtomicU64::new(now_ms() << 20),
            calls,
            options,
        }
    }

    /// The largest bodies, as the limits in force allow them.
    pub(crate) fn body_limits(&self) -> BodyLimits {
        BodyLimits::new(&self.calls.limits())
    }

    /// Requests in flight.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Counts a request that comes; tells how many there are with it.
    pub(crate) fn request_began(&self) -> usize {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a request that is over.
    pub(crate) fn request_ended(&self) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
    }

    /// A number for a request that brought no id.
    pub(crate) fn next_request_number(&self) -> u64 {
        self.request_number.fetch_add(1, Ordering::Relaxed)
    }
}
