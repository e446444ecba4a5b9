//! Figures as metrics (`opentelemetry/proto/metrics/v1/metrics.proto`): each with the name that it has for
//! Prometheus.

use sluice_proto::wire::{put_bytes, put_fixed64, put_number};

use crate::trace::now_ns;
use crate::wire::{Value, put_attribute, put_double};

/// `AggregationTemporality` of figures that count from a start on.
const CUMULATIVE: u64 = 2;

/// The kind of a family of figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A figure of the moment.
    Gauge,
    /// A count since the start of the process.
    Counter,
    /// A count since another, earlier moment.
    OlderCounter,
    /// Counts of what was up to some bounds, since the start of the process.
    Histogram,
}

/// The figures of a moment, on their way into a request.
#[derive(Debug)]
pub struct Figures {
    metrics: Vec<Vec<u8>>,
    family: Option<Family>,
    started_ns: u64,
    now_ns: u64,
}

#[derive(Debug)]
struct Family {
    kind: Kind,
    /// The metric without its points.
    head: Vec<u8>,
    points: Vec<u8>,
}

/// The counts of a histogram.
#[derive(Clone, Copy, Debug)]
pub struct Buckets<'b> {
    /// Upper bounds, each included.
    pub bounds: &'b [f64],
    /// For each bound, how many were up to it.
    pub cumulated: &'b [u64],
    /// Number of all of them.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

impl Figures {
    /// No figures yet, of a process that started then, in milliseconds since the Unix epoch.
    pub fn new(started_at_ms: u64) -> Figures {
        let started_ns = started_at_ms.saturating_mul(1_000_000);
        Figures { metrics: Vec::new(), family: None, started_ns, now_ns: now_ns() }
    }

    /// Begins a family, to which the points that follow belong.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        self.end_family();
        let mut head = Vec::with_capacity(name.len() + help.len() + 8);
        put_bytes(&mut head, 1, name.as_bytes());
        put_bytes(&mut head, 2, help.as_bytes());
        self.family = Some(Family { kind, head, points: Vec::new() });
    }

    /// Adds a figure of the family.
    pub fn point(&mut self, labels: &[(&str, &str)], value: u64) {
        let mut point = self.begin_point();
        put_fixed64(&mut point, 6, value);
        labels.iter().for_each(|(key, text)| put_attribute(&mut point, 7, key, Value::Text(text)));
        self.end_point(&point);
    }

    /// Adds a histogram of the family.
    pub fn buckets(&mut self, labels: &[(&str, &str)], buckets: Buckets<'_>) {
        let mut point = self.begin_point();
        put_fixed64(&mut point, 4, buckets.count);
        put_double(&mut point, 5, buckets.sum);
        // The counts were read one after the other, while they went on.
        let mut before = 0;
        let mut own = |upto: u64| {
            let count = upto.saturating_sub(before);
            before = before.max(upto);
            count.to_le_bytes()
        };
        let counts: Vec<u8> =
            buckets.cumulated.iter().chain([&buckets.count]).flat_map(|upto| own(*upto)).collect();
        put_bytes(&mut point, 6, &counts);
        let bounds: Vec<u8> = buckets.bounds.iter().flat_map(|bound| bound.to_le_bytes()).collect();
        put_bytes(&mut point, 7, &bounds);
        labels.iter().for_each(|(key, text)| put_attribute(&mut point, 9, key, Value::Text(text)));
        self.end_point(&point);
    }

    /// The metrics, each encoded.
    pub(crate) fn finish(mut self) -> Vec<Vec<u8>> {
        self.end_family();
        self.metrics
    }

    /// A point with its times, which all kinds have under the same numbers.
    fn begin_point(&self) -> Vec<u8> {
        let mut point = Vec::with_capacity(128);
        if matches!(&self.family, Some(family) if matches!(family.kind, Kind::Counter | Kind::Histogram)) {
            put_fixed64(&mut point, 2, self.started_ns);
        }
        put_fixed64(&mut point, 3, self.now_ns);
        point
    }

    fn end_point(&mut self, point: &[u8]) {
        if let Some(family) = &mut self.family {
            put_bytes(&mut family.points, 1, point);
        }
    }

    /// A family without points says nothing.
    fn end_family(&mut self) {
        let Some(Family { kind, head: mut metric, points: mut data }) = self.family.take() else { return };
        if data.is_empty() {
            return;
        }
        let field = match kind {
            Kind::Gauge => 5,
            Kind::Counter | Kind::OlderCounter => {
                put_number(&mut data, 2, CUMULATIVE);
                put_number(&mut data, 3, 1);
                7
            }
            Kind::Histogram => {
                put_number(&mut data, 2, CUMULATIVE);
                9
            }
        };
        put_bytes(&mut metric, field, &data);
        self.metrics.push(metric);
    }
}
