//! Telemetry: traces, metrics and logs, exported by OTLP (OpenTelemetry's protocol) over HTTP with protobuf.
//!
//! What lives here: which messages are traced, the encoding, and the way to the collector. What does not:
//! the moments in the life of a message that are spans (`sluice-calls`), and the figures (the front).
//!
//! Fault model: the collector may be away, hang, be slow, or answer with anything. Nothing here waits for it
//! but tasks of its own: items go into a [`queue`] with a bound, beyond which they are dropped and counted,
//! and the log has a line about it once a minute at most.
//!
//! Map: [`Telemetry`] the whole, from its [`Options`]; [`trace`] contexts of traces, and the choice of those
//! that are recorded; [`spans`] spans, [`held`] the deliveries whose work is being traced; [`metrics`]
//! figures; [`logs`] events of the log; [`wire`] the fields that all of them have; `export` the tasks that
//! send, `client` their connection, [`endpoint`] where to.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod client;
pub mod endpoint;
mod export;
pub mod held;
pub mod logs;
pub mod metrics;
pub mod queue;
pub mod spans;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod wire;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use endpoint::{Endpoint, Headers};
use export::Export;
use queue::{Counts, Queue};
use spans::Traces;

/// Most bytes of spans, and of events of the log, that wait to be sent.
pub const WAITING_BYTES_MAX: usize = 4 << 20;
/// Longest time for the last of it to be sent when the server stops.
const LAST: Duration = Duration::from_secs(2);

/// The settings of telemetry.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the collector is.
    pub endpoint: Endpoint,
    /// CAs that may have signed its certificate, as PEM; `None`: those that the system trusts.
    pub ca: Option<Vec<u8>>,
    /// Fields that each request to it gets.
    pub headers: Headers,
    /// Part of the messages without a trace that begin one, in millionths.
    pub sampled_ppm: u32,
    /// Time between two exports of metrics.
    pub interval: Duration,
    /// The signals that are exported.
    pub signals: Signals,
    /// Version of the program.
    pub version: String,
    /// Name of this server among others: its address.
    pub instance: String,
}

/// The signals (kinds of telemetry) that are exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signals {
    /// Lives of messages.
    pub traces: bool,
    /// Figures.
    pub metrics: bool,
    /// Events of the log.
    pub logs: bool,
}

/// Telemetry that runs.
#[derive(Debug)]
pub struct Telemetry {
    traces: Option<Arc<Traces>>,
    metrics: Option<Metrics>,
    logs: Option<Arc<Queue>>,
    tasks: JoinSet<()>,
    stop: tokio::sync::watch::Sender<bool>,
}

/// The export of metrics: whoever has the figures encodes and sends them.
#[derive(Clone, Debug)]
pub struct Metrics {
    export: Arc<Export>,
    /// Time between two exports.
    pub interval: Duration,
    /// Counts of what has become of them.
    pub counts: Arc<Counts>,
}

/// The part of telemetry that the front exports, and shows in `/metrics`.
#[derive(Clone, Debug)]
pub struct Exports {
    /// The export of metrics; `None`: they are not exported.
    pub metrics: Option<Metrics>,
    /// Counts of what has become of all that was to be exported, by signal.
    pub counts: Vec<(&'static str, Arc<Counts>)>,
}

impl Metrics {
    /// Sends figures. They are dropped when the collector does not take them: later ones say more.
    pub async fn send(&self, figures: metrics::Figures) {
        self.export.send_once(figures.finish(), &self.counts).await;
    }
}

impl Telemetry {
    /// Begins the exports. `logs`: the queue into which a [`logs::Layer`] puts events, if they are exported.
    ///
    /// # Errors
    /// A CA that cannot be used.
    pub fn start(options: &Options, logs: Option<Arc<Queue>>) -> Result<Telemetry, String> {
        let (stop, stopping) = tokio::sync::watch::channel(false);
        let mut tasks = JoinSet::new();
        let export = |signal: &'static str| Export::new(options, signal);
        let traces = match options.signals.traces {
            true => {
                let traces = Arc::new(Traces::new(options.sampled_ppm));
                tasks.spawn(export("traces")?.run(Arc::clone(traces.queue()), stopping.clone()));
                Some(traces)
            }
            false => None,
        };
        if let Some(logs) = &logs {
            tasks.spawn(export("logs")?.run(Arc::clone(logs), stopping));
        }
        let metrics = match options.signals.metrics {
            true => Some(Metrics {
                export: Arc::new(export("metrics")?),
                interval: options.interval,
                counts: Arc::default(),
            }),
            false => None,
        };
        Ok(Telemetry { traces, metrics, logs, tasks, stop })
    }

    /// Traces; `None`: they are not exported.
    pub fn traces(&self) -> Option<&Arc<Traces>> {
        self.traces.as_ref()
    }

    /// The part that the front needs.
    pub fn exports(&self) -> Exports {
        let traces = self.traces.iter().map(|traces| ("traces", Arc::clone(&traces.queue().counts)));
        let metrics = self.metrics.iter().map(|metrics| ("metrics", Arc::clone(&metrics.counts)));
        let logs = self.logs.iter().map(|logs| ("logs", Arc::clone(&logs.counts)));
        let counts = traces.chain(metrics).chain(logs).collect();
        Exports { metrics: self.metrics.clone(), counts }
    }

    /// Ends it, after the last of what waits was sent, for which there are two seconds.
    pub async fn finish(mut self) {
        self.stop.send_replace(true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        // What is not gone by then is lost: the collector does not hold up the end of the server.
        let _ = tokio::time::timeout(LAST, all).await;
    }
}
