//! Counts of requests: fixed tables of atomics, one row per operation, and one for requests that ask for
//! none.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sluice_calls::Operation;
use sluice_calls::access::Turned;

/// Statuses that are counted each on its own; any other counts as the last.
pub(crate) const STATUSES: &[u16] = &[
    200, 201, 204, 206, 304, 400, 401, 403, 404, 405, 408, 409, 412, 413, 415, 416, 429, 500, 501, 503, 507,
    0,
];

/// Upper bounds of the latency buckets, in microseconds.
pub(crate) const BUCKETS_US: &[u64] =
    &[100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 1_000_000, 10_000_000, 60_000_000];

/// Figures of all requests since the start.
#[derive(Debug)]
pub(crate) struct HttpMetrics {
    routes: Vec<RouteMetrics>,
    /// Connections that were taken.
    pub(crate) connections: AtomicU64,
    /// Connections that were refused because there were too many.
    pub(crate) connections_refused: AtomicU64,
    /// Connections that were cut because the client was slow.
    pub(crate) connections_cut: AtomicU64,
    /// Answers over HTTP/2 that were cut because the client did not read them.
    pub(crate) answers_cut: AtomicU64,
    /// Bodies of requests over HTTP/2 that were cut because the client did not go on with them.
    pub(crate) bodies_cut: AtomicU64,
    /// Connections that came to no TLS.
    pub(crate) handshakes_failed: AtomicU64,
    /// Connections that were turned away because their address has too many.
    pub(crate) address_full: AtomicU64,
    /// Connections that were turned away because their address has failed too often.
    pub(crate) address_banned: AtomicU64,
}

#[derive(Debug)]
struct RouteMetrics {
    name: &'static str,
    statuses: [AtomicU64; STATUSES.len()],
    buckets: [AtomicU64; BUCKETS_US.len()],
    count: AtomicU64,
    sum_us: AtomicU64,
}

/// Figures of one route, read.
#[derive(Clone, Debug)]
pub(crate) struct RouteFigures {
    pub(crate) route: &'static str,
    /// Requests per status that occurred.
    pub(crate) statuses: Vec<(u16, u64)>,
    /// Requests up to each bound of [`BUCKETS_US`], cumulated.
    pub(crate) buckets: Vec<u64>,
    pub(crate) count: u64,
    pub(crate) sum_us: u64,
}

impl HttpMetrics {
    /// Counts that begin at zero.
    pub(crate) fn new() -> HttpMetrics {
        let names = Operation::ALL.iter().map(|operation| operation.name());
        HttpMetrics {
            routes: names.chain(["none"]).map(RouteMetrics::new).collect(),
            connections: AtomicU64::new(0),
            connections_refused: AtomicU64::new(0),
            connections_cut: AtomicU64::new(0),
            answers_cut: AtomicU64::new(0),
            bodies_cut: AtomicU64::new(0),
            handshakes_failed: AtomicU64::new(0),
            address_full: AtomicU64::new(0),
            address_banned: AtomicU64::new(0),
        }
    }
}

impl HttpMetrics {
    /// Counts a request for an operation, or for none.
    pub(crate) fn count(&self, operation: Option<Operation>, status: u16, elapsed: Duration) {
        let row = &self.routes[operation.map_or(Operation::ALL.len(), |operation| operation as usize)];
        let status = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len() - 1);
        row.statuses[status].fetch_add(1, Ordering::Relaxed);
        let us = elapsed.as_micros() as u64;
        if let Some(bucket) = BUCKETS_US.iter().position(|bound| us <= *bound) {
            row.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        row.count.fetch_add(1, Ordering::Relaxed);
        row.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Counts a connection that was turned away.
    pub(crate) fn turned_away(&self, turned: Turned) {
        let count = match turned {
            Turned::TooMany => &self.address_full,
            Turned::Banned => &self.address_banned,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The figures of routes that were called.
    pub(crate) fn figures(&self) -> Vec<RouteFigures> {
        let called = |row: &&RouteMetrics| row.count.load(Ordering::Relaxed) > 0;
        self.routes.iter().filter(called).map(RouteMetrics::read).collect()
    }
}

impl RouteMetrics {
    fn new(name: &'static str) -> RouteMetrics {
        RouteMetrics {
            name,
            statuses: Default::default(),
            buckets: Default::default(),
            count: AtomicU64::new(0),
            sum_us: AtomicU64::new(0),
        }
    }

    fn read(&self) -> RouteFigures {
        let mut sum = 0;
        let buckets = self.buckets.iter().map(|bucket| {
            sum += bucket.load(Ordering::Relaxed);
            sum
        });
        let statuses = STATUSES.iter().zip(&self.statuses);
        let statuses = statuses.map(|(status, count)| (*status, count.load(Ordering::Relaxed)));
        RouteFigures {
            route: self.name,
            buckets: buckets.collect(),
            statuses: statuses.filter(|(_, count)| *count > 0).collect(),
            count: self.count.load(Ordering::Relaxed),
            sum_us: self.sum_us.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_status_and_time() {
        let metrics = HttpMetrics::new();
        metrics.count(Some(Operation::Send), 201, Duration::from_micros(300));
        metrics.count(Some(Operation::Send), 400, Duration::from_micros(90));
        metrics.count(None, 418, Duration::from_secs(100));
        let figures = metrics.figures();
        assert_eq!(figures[0].route, "send");
        assert_eq!(figures[0].statuses, [(201, 1), (400, 1)]);
        assert_eq!(figures[0].buckets[..3], [1, 1, 2]);
        assert_eq!(figures[1].route, "none");
        assert_eq!(figures[1].statuses, [(0, 1)]);
        assert_eq!((figures[1].count, *figures[1].buckets.last().unwrap()), (1, 0));
    }
}
