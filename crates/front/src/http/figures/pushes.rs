//! The figures of pushes to endpoints.

use std::sync::atomic::Ordering;

use sluice_calls::pushes::{BUCKETS_MS, Outcome, Pushes};
use sluice_telemetry::metrics::{Buckets, Kind};

use super::Sink;

/// Writes the figures of a node's pushes.
pub(super) fn write(page: &mut impl Sink, pushes: &Pushes) {
    let counts = pushes.counts();
    page.family(
        "sluice_pushes_total",
        Kind::Counter,
        "Pushes of messages to endpoints, by what became of them.",
    );
    for outcome in Outcome::ALL {
        page.sample("sluice_pushes_total", &[("outcome", outcome.name())], counts.of(outcome));
    }
    for (name, help, value) in [
        ("sluice_pushes_in_flight", "Pushes on their way.", &counts.in_flight),
        ("sluice_push_queues", "Queues that this node pushes.", &counts.queues),
    ] {
        page.family(name, Kind::Gauge, help);
        page.sample(name, &[], value.load(Ordering::Relaxed));
    }
    let (cumulated, count, sum_us) = counts.times();
    let bounds = BUCKETS_MS.map(|ms| ms as f64 / 1e3);
    page.family("sluice_push_seconds", Kind::Histogram, "Time of a push, its connection included.");
    let buckets = Buckets { bounds: &bounds, cumulated: &cumulated, count, sum: sum_us as f64 / 1e6 };
    page.histogram("sluice_push_seconds", &[], buckets);
}
