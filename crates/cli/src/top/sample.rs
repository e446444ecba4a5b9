//! The figures of a namespace, and the rates between two samples.

use std::collections::HashMap;
use std::time::Instant;

use serde::Serialize;
use sluice_client::{Consumer, Limit, Queue, Totals};

use crate::connect::Connection;
use crate::terminal::Result;

/// One sample of a namespace.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Sample {
    pub(super) queues: Vec<QueueRow>,
    pub(super) limits: Vec<Limit>,
    /// Empty if they were not requested: there may be very many.
    pub(super) consumers: Vec<Consumer>,
}

/// A queue with its rates.
#[derive(Clone, Debug, Serialize)]
pub(super) struct QueueRow {
    #[serde(flatten)]
    pub(super) queue: Queue,
    /// Messages per second since the sample before.
    pub(super) sent_per_s: f64,
    pub(super) delivered_per_s: f64,
    pub(super) acked_per_s: f64,
}

/// Takes samples, and keeps the totals of the last one.
#[derive(Debug)]
pub(super) struct Sampler {
    prefix: String,
    before: HashMap<String, Totals>,
    at: Option<Instant>,
}

impl Sampler {
    pub(super) fn new(prefix: String) -> Sampler {
        Sampler { prefix, before: HashMap::new(), at: None }
    }

    /// Takes a sample, with the rates since the last one.
    pub(super) async fn sample(&mut self, connection: &Connection, consumers: bool) -> Result<Sample> {
        let client = &connection.client;
        let queues = client.queues(&self.prefix).await.map_err(|e| connection.error(&e))?;
        let limits = client.limits().await.map_err(|e| connection.error(&e))?;
        let consumers = if consumers { client.consumers().await } else { Ok(Vec::new()) };
        let consumers = consumers.map_err(|e| connection.error(&e))?;
        let now = Instant::now();
        let elapsed = self.at.replace(now).map(|before| (now - before).as_secs_f64());
        Ok(Sample { queues: self.rates(queues, elapsed), limits, consumers })
    }

    fn rates(&mut self, queues: Vec<Queue>, elapsed_s: Option<f64>) -> Vec<QueueRow> {
        let mut totals = HashMap::with_capacity(queues.len());
        let rows = queues.into_iter().map(|queue| {
            totals.insert(queue.name.clone(), queue.totals);
            let before = self.before.get(&queue.name);
            let rate = |of: fn(&Totals) -> u64| match (before, elapsed_s) {
                // A queue that was deleted and created again counts from zero.
                (Some(before), Some(elapsed)) if elapsed > 0.0 => {
                    of(&queue.totals).saturating_sub(of(before)) as f64 / elapsed
                }
                _ => 0.0,
            };
            QueueRow {
                sent_per_s: rate(|totals| totals.sent),
                delivered_per_s: rate(|totals| totals.delivered),
                acked_per_s: rate(|totals| totals.acked),
                queue,
            }
        });
        let rows = rows.collect();
        self.before = totals;
        rows
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::top) fn queue(name: &str, ready: u64, sent: u64) -> Queue {
        serde_json::from_value(serde_json::json!({
            "name": name, "namespace": "default", "bytes": 10, "created_at_ms": 1,
            "settings": {"lease_ms": 30_000, "max_attempts": 5, "max_deliveries": 100,
                "backoff": {"kind": "none", "base_ms": 1, "cap_ms": 2, "jitter_percent": 0}},
            "counts": {"delayed": 0, "ready": ready, "leased": 0, "held": 0, "dead": 0, "blocked": 0, "done": 0},
            "totals": {"sent": sent, "delivered": 0, "acked": 0, "nacked": 0, "released": 0, "rejected": 0,
                "expired": 0, "died": 0, "redriven": 0, "dropped": 0},
        }))
        .unwrap()
    }

    #[test]
    fn rates_are_averages_between_two_looks() {
        let mut sampler = Sampler::new(String::new());
        let first = sampler.rates(vec![queue("a", 1, 100)], None);
        assert_eq!(first[0].sent_per_s, 0.0);
        let second = sampler.rates(vec![queue("a", 1, 300), queue("new", 0, 50)], Some(2.0));
        assert_eq!(second.iter().map(|row| row.sent_per_s).collect::<Vec<_>>(), [100.0, 0.0]);
        let again = sampler.rates(vec![queue("a", 1, 5)], Some(1.0));
        assert_eq!(again[0].sent_per_s, 0.0, "it was deleted and made anew");
    }
}
