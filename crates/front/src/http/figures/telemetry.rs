//! The export of figures, from time to time, while the server runs.

use std::sync::Arc;

use sluice_calls::figures::Figures;
use sluice_telemetry::metrics::{Buckets, Figures as Told, Kind};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::{Sink, Source};
use crate::net::context::Context;

/// Tells the figures at intervals until the server stops, if it is set to.
pub(crate) async fn keep_telling(context: Arc<Context>) {
    let exports = context.options.telemetry.as_ref();
    let Some(metrics) = exports.and_then(|exports| exports.metrics.clone()) else { return };
    let mut ticks = interval_at(Instant::now() + metrics.interval, metrics.interval);
    // One that took long holds up the next, and is not made up for.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = context.calls.stopping() => return,
            _ = ticks.tick() => {}
        }
        let mut told = Told::new(context.calls.started_at_ms());
        let source = Source { context: &context, figures: Figures::own(&context.calls) };
        match source.write(&mut told).await {
            Ok(()) => metrics.send(told).await,
            // The node is about to end.
            Err(error) => tracing::debug!("no figures to tell: {}", error.message()),
        }
    }
}

impl Sink for Told {
    fn family(&mut self, name: &str, kind: Kind, help: &str) {
        Told::family(self, name, kind, help);
    }

    fn sample(&mut self, _: &str, labels: &[(&str, &str)], value: u64) {
        self.point(labels, value);
    }

    fn histogram(&mut self, _: &str, labels: &[(&str, &str)], buckets: Buckets<'_>) {
        self.buckets(labels, buckets);
    }
}
