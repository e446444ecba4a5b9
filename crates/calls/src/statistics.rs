//! Figures of a namespace or a queue, each second, for those who watch them, from `figure_feeds`.
//!
//! Somebody who watches begins a feed, which is sampled each second from then on until nobody has watched it
//! for 15 minutes. So who comes back sees what has happened meanwhile, and nobody who does not look pays.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::Error;

use crate::access::Right;
use crate::error::CallError;
use crate::figure_feeds::{About, Figures, STEP, Watching};
use crate::hot::AT_MS_EXAMPLE;
use crate::permit::Permit;
use crate::queues::{Counts, Totals};
use crate::server::Calls;
use crate::standing::{Standing, Waited};
use crate::value::given;

/// Figures to watch.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "StatisticsRequest")]
pub struct Wanted {
    /// Name of a queue; without one the figures of all queues of the namespace together.
    queue: Option<String>,
}

/// The figures at a time.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "StatisticsSample")]
pub struct Sample {
    /// When they were taken, in milliseconds since the Unix epoch.
    at_ms: u64,
    /// Number of queues.
    queues: u64,
    /// Messages by state.
    counts: Counts,
    /// Events since each queue was created.
    totals: Totals,
    /// Bytes of all messages.
    bytes: u64,
    /// Age of the oldest of the messages that stand first in line, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_ready_age_ms: Option<u64>,
}

impl From<Figures> for Sample {
    fn from(figures: Figures) -> Sample {
        let Figures { at_ms, queues, counters, oldest_ready_at_us } = figures;
        Sample {
            at_ms,
            queues,
            counts: Counts::from(&counters),
            totals: Totals::from(&counters),
            bytes: counters.bytes,
            oldest_ready_age_ms: oldest_ready_at_us.map(|at_us| at_ms.saturating_sub(at_us / 1_000)),
        }
    }
}

/// Samples, oldest first; none: the stream goes on.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "StatisticsEvent", example = json!({
    "step_ms": 1_000,
    "samples": [{
        "at_ms": AT_MS_EXAMPLE, "queues": 1, "counts": Counts::default(), "totals": Totals::default(), "bytes": 0,
    }],
}))]
pub struct Event {
    /// Time between two samples, in milliseconds.
    step_ms: u64,
    /// The samples: first those of the last 15 minutes, as far as there are any, then each as it is taken.
    samples: Vec<Sample>,
}

impl Event {
    /// True for one that says only that the stream goes on.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }
}

/// Somebody who watches figures, and their standing.
#[derive(Debug)]
pub struct Watch {
    about: About,
    /// Name of the namespace.
    name: Box<str>,
    /// `None`: nothing was told yet.
    watching: Option<Watching>,
    standing: Standing,
}

impl Watch {
    /// Begins to watch a namespace, or one of its queues.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub fn new(permit: &Permit<'_>, wanted: &Wanted) -> Result<Watch, CallError> {
        let queue = given(wanted.queue.as_deref());
        let standing = permit.standing(Right::Observe, || Waited::Whole);
        let (about, name) = ((permit.namespace_id()?, queue.map(Box::from)), permit.namespace_name().into());
        Ok(Watch { about, name, watching: None, standing })
    }

    /// The samples that there are, and then each as it is taken; an empty event after a wait.
    ///
    /// # Errors
    /// `namespace_not_found`, `queue_not_found`; `overloaded`: too many feeds are watched; why the caller may
    /// not look any more.
    pub async fn next(&mut self, calls: &Calls, wait: Duration) -> Result<Event, CallError> {
        let Watch { about, name, watching, standing } = self;
        let node = calls.stale_node();
        let looking = async {
            if watching.is_none() {
                let first = Figures::take(node, about).await?;
                *watching = Some(calls.statistics().watch(node, about.clone(), first)?);
            }
            let Some(known) = watching else { return Err(Error::ShuttingDown {}) };
            let samples = known.next(wait).await;
            if samples.is_none() {
                // What it is about may be gone, which is the reason then; else another feed begins.
                Figures::take(node, about).await?;
                *watching = None;
            }
            let samples = samples.unwrap_or_default().into_iter().map(Sample::from).collect();
            Ok(Event { step_ms: STEP.as_millis() as u64, samples })
        };
        tokio::select! {
            biased;
            denied = standing.lost() => Err(denied.into()),
            told = looking => told.map_err(|error: Error| CallError::from(error).naming(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;

    const WAIT: Duration = Duration::from_secs(5);

    async fn next(server: &Open, watch: &mut Watch) -> Vec<Value> {
        let event = serde_json::to_value(watch.next(server.calls(), WAIT).await.unwrap()).unwrap();
        assert_eq!(event["step_ms"], 1_000);
        event["samples"].as_array().unwrap().clone()
    }

    fn watch(server: &Open, queue: Option<&str>) -> Watch {
        let wanted = Wanted { queue: queue.map(str::to_owned) };
        Watch::new(&server.permit(Operation::Statistics, ""), &wanted).unwrap()
    }

    #[tokio::test]
    async fn figures_come_at_once_and_then_each_second_and_are_kept_for_others() {
        let server = Open::new();
        for queue in ["a", "b", "b"] {
            server.send(queue, b"xy").await;
        }
        let (mut all, mut one) = (watch(&server, None), watch(&server, Some("b")));
        for (watch, queues, messages) in [(&mut all, 2, 3), (&mut one, 1, 2)] {
            let samples = next(&server, watch).await;
            let [first] = &samples[..] else { panic!("{samples:?}") };
            let figures = [&first["queues"], &first["counts"]["ready"], &first["totals"]["sent"]];
            assert_eq!(figures, [&Value::from(queues), &Value::from(messages), &Value::from(messages)]);
            assert!(first["oldest_ready_age_ms"].is_u64() && first["bytes"].as_u64() > Some(0));
        }
        server.send("a", b"x").await;
        let mut sent = 3;
        while sent == 3 {
            sent = next(&server, &mut all).await.last().unwrap()["totals"]["sent"].as_u64().unwrap();
        }
        assert_eq!(sent, 4);
        let known = next(&server, &mut watch(&server, None)).await;
        assert!(known.len() > 1 && known[0]["totals"]["sent"] == 3, "{known:?}");
    }

    #[tokio::test]
    async fn who_watches_is_told_when_the_queue_is_gone() {
        let server = Open::new();
        server.send("q", b"x").await;
        let nothing = watch(&server, Some("nothing")).next(server.calls(), WAIT).await;
        assert_eq!(nothing.unwrap_err().code(), "queue_not_found");
        let mut watch = watch(&server, Some("q"));
        next(&server, &mut watch).await;
        let id = watch.about.0;
        server.node().queue_delete(id, "q").await.unwrap();
        let error = loop {
            if let Err(error) = watch.next(server.calls(), WAIT).await {
                break error;
            }
        };
        assert_eq!(error.code(), "queue_not_found");
    }
}
