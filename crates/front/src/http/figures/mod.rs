//! The figures of a server, for whoever takes them: `text` the page for Prometheus, `telemetry` the export by
//! OTLP, `pushes` those of pushes to endpoints. Both have the same figures under the same names.

mod pushes;
mod telemetry;
mod text;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use sluice_calls::CallError;
use sluice_calls::figures::{Figures, Follower, ReplicaMetrics, ShardMetrics};
use sluice_calls::queues::Totals;
use sluice_engine::id::NamespaceId;
use sluice_engine::query::{ConsumerState, ConsumerTotals, QueueView, State};
use sluice_telemetry::metrics::{Buckets, Kind};
use sluice_telemetry::queue::Counts;

use crate::net::context::Context;
use crate::net::metrics::BUCKETS_US;

pub(crate) use telemetry::keep_telling;
pub(crate) use text::metrics;

/// Consumers that one page reads.
const CONSUMERS_MAX: usize = 10_000;

/// The taker of figures, family by family.
trait Sink {
    /// Begins a family, to which the figures that follow belong.
    fn family(&mut self, name: &str, kind: Kind, help: &str);
    /// A figure of the family.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: u64);
    /// A histogram of the family.
    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], buckets: Buckets<'_>);
}

/// Where the figures come from.
struct Source<'c> {
    context: &'c Context,
    figures: Figures<'c>,
}

impl Source<'_> {
    /// Hands over all figures.
    ///
    /// # Errors
    /// Those of the node.
    async fn write(&self, page: &mut impl Sink) -> Result<(), CallError> {
        write_http(page, self.context);
        write_telemetry(page, self.context);
        pushes::write(page, self.context.calls.pushes());
        if let Some(allocations) = self.context.options.allocations {
            page.family("sluice_allocations_total", Kind::Counter, "Blocks taken from the allocator.");
            page.sample("sluice_allocations_total", &[], allocations());
        }
        let metrics = self.figures.all().await;
        write_shards(page, &metrics.shards);
        write_replicas(page, self.context, &metrics.shards);
        write_queues(page, self, &metrics.shards).await
    }
}

fn write_http(page: &mut impl Sink, context: &Context) {
    write_requests(page, context);
    write_gauges(page, context);
    write_connections(page, context);
}

fn write_requests(page: &mut impl Sink, context: &Context) {
    let figures = context.metrics.figures();
    page.family("sluice_http_requests_total", Kind::Counter, "Requests answered, by route and status.");
    for row in &figures {
        for (status, count) in &row.statuses {
            let status = if *status == 0 { "other".to_owned() } else { status.to_string() };
            page.sample("sluice_http_requests_total", &[("route", row.route), ("status", &status)], *count);
        }
    }
    let name = "sluice_http_request_seconds";
    page.family(
        name,
        Kind::Histogram,
        "Time from the head of a request to its answer; waits of receives included.",
    );
    let bounds: Vec<f64> = BUCKETS_US.iter().map(|bound| *bound as f64 / 1e6).collect();
    for row in &figures {
        let (cumulated, count, sum) = (&row.buckets[..], row.count, row.sum_us as f64 / 1e6);
        let buckets = Buckets { bounds: &bounds, cumulated, count, sum };
        page.histogram(name, &[("route", row.route)], buckets);
    }
}

fn write_gauges(page: &mut impl Sink, context: &Context) {
    for (name, kind, help, value) in [
        ("sluice_http_requests_in_flight", Kind::Gauge, "Requests in flight.", context.requests() as u64),
        (
            "sluice_http_connections",
            Kind::Gauge,
            "Open connections.",
            context.connections.load(Ordering::Relaxed) as u64,
        ),
        (
            "sluice_http_body_bytes",
            Kind::Gauge,
            "Bytes of request bodies in memory.",
            context.body_budget.used() as u64,
        ),
        (
            "sluice_http_answer_bytes",
            Kind::Gauge,
            "Bytes of answers in memory.",
            context.answers.budget.used() as u64,
        ),
    ] {
        page.family(name, kind, help);
        page.sample(name, &[], value);
    }
}

fn write_connections(page: &mut impl Sink, context: &Context) {
    let metrics = &context.metrics;
    for (name, kind, help, value) in [
        (
            "sluice_http_connections_total",
            Kind::Counter,
            "Connections taken.",
            metrics.connections.load(Ordering::Relaxed),
        ),
        (
            "sluice_http_connections_refused_total",
            Kind::Counter,
            "Connections refused because there were too many.",
            metrics.connections_refused.load(Ordering::Relaxed),
        ),
        (
            "sluice_http_connections_cut_total",
            Kind::Counter,
            "Connections cut because the client was slow.",
            metrics.connections_cut.load(Ordering::Relaxed),
        ),
        (
            "sluice_http_answers_cut_total",
            Kind::Counter,
            "Answers over HTTP/2 cut because the client did not read them, while its connection went on.",
            metrics.answers_cut.load(Ordering::Relaxed),
        ),
        (
            "sluice_http_bodies_cut_total",
            Kind::Counter,
            "Bodies of requests over HTTP/2 cut because the client did not send them, while its connection went on.",
            metrics.bodies_cut.load(Ordering::Relaxed),
        ),
        (
            "sluice_http_handshakes_failed_total",
            Kind::Counter,
            "Connections that came to no TLS: late, in clear text, or with something wrong.",
            metrics.handshakes_failed.load(Ordering::Relaxed),
        ),
        (
            "sluice_http_connections_over_address_limit_total",
            Kind::Counter,
            "Connections turned away because their address had too many.",
            metrics.address_full.load(Ordering::Relaxed),
        ),
        (
            "sluice_http_connections_banned_total",
            Kind::Counter,
            "Connections turned away because their address had failed too often.",
            metrics.address_banned.load(Ordering::Relaxed),
        ),
    ] {
        page.family(name, kind, help);
        page.sample(name, &[], value);
    }
}

/// A count of telemetry: name, help, and the count.
type TelemetryFigure = (&'static str, &'static str, fn(&Counts) -> &AtomicU64);

const TELEMETRY_FIGURES: &[TelemetryFigure] = &[
    ("sluice_telemetry_sent_total", "Spans, metrics and log records that the collector has taken.", |of| {
        &of.sent
    }),
    (
        "sluice_telemetry_dropped_total",
        "Those that were dropped: there was no room for them, or the collector did not take them.",
        |of| &of.dropped,
    ),
    ("sluice_telemetry_failed_total", "Requests to the collector that failed.", |of| &of.failed),
];

/// Writes what has become of telemetry; nothing if none is exported.
fn write_telemetry(page: &mut impl Sink, context: &Context) {
    let Some(exports) = &context.options.telemetry else { return };
    for (name, help, count) in TELEMETRY_FIGURES {
        page.family(name, Kind::Counter, help);
        for (signal, counts) in &exports.counts {
            page.sample(name, &[("signal", signal)], count(counts).load(Ordering::Relaxed));
        }
    }
}

/// A figure of a shard: name, kind, help, how to read it.
type ShardFigure = (&'static str, Kind, &'static str, fn(&ShardMetrics) -> u64);

const SHARD_FIGURES: &[ShardFigure] = &[
    ("sluice_shard_queues", Kind::Gauge, "Queues.", |s| s.queues),
    ("sluice_shard_waiting_receives", Kind::Gauge, "Receives that wait for messages.", |s| {
        s.waiting_receives
    }),
    ("sluice_shard_consumers", Kind::Gauge, "Consumers attached.", |s| s.consumers.attached),
    ("sluice_shard_consumer_credit", Kind::Gauge, "Messages that they may hold.", |s| s.consumers.credit),
    ("sluice_shard_consumer_in_flight", Kind::Gauge, "Messages that they hold.", |s| s.consumers.in_flight),
    ("sluice_shard_event_readers", Kind::Gauge, "Readers of events.", |s| s.event_readers),
    (
        "sluice_shard_in_doubt_transactions",
        Kind::Gauge,
        "Transactions over several namespaces that are prepared or decided, and not finished.",
        |s| s.in_doubt.count,
    ),
    ("sluice_shard_in_doubt_oldest_seconds", Kind::Gauge, "Age of the oldest of them.", |s| {
        s.in_doubt_oldest_ms().unwrap_or_default() / 1_000
    }),
    ("sluice_shard_mailbox_requests", Kind::Gauge, "Requests that wait for the shard.", |s| s.mailbox),
    ("sluice_shard_records_total", Kind::Counter, "Records committed.", |s| s.journal.records),
    ("sluice_shard_batches_total", Kind::Counter, "Batches committed.", |s| s.journal.batches),
    ("sluice_shard_log_bytes_total", Kind::Counter, "Bytes written to the log.", |s| s.journal.log_bytes),
    ("sluice_shard_fsyncs_total", Kind::Counter, "Syncs of the log.", |s| s.journal.fsyncs),
    ("sluice_shard_disk_bytes", Kind::Gauge, "Bytes on disk.", |s| s.journal.disk_bytes),
    ("sluice_shard_disk_free_bytes", Kind::Gauge, "Bytes free on the disk.", |s| s.journal.disk_free_bytes),
    ("sluice_shard_disk_full", Kind::Gauge, "1 while sends are refused for lack of room.", |s| {
        u64::from(s.journal.full)
    }),
    ("sluice_shard_disk_low", Kind::Gauge, "1 while less than low_water is free.", |s| {
        u64::from(s.journal.low)
    }),
    ("sluice_shard_late_segments_total", Kind::Counter, "Segments that the log had to wait for.", |s| {
        s.journal.late_segments
    }),
    ("sluice_shard_segments", Kind::Gauge, "Segments on disk.", |s| s.journal.segments),
    ("sluice_shard_snapshots_total", Kind::Counter, "Snapshots taken.", |s| s.journal.snapshots),
    ("sluice_shard_snapshot_running", Kind::Gauge, "1 while a snapshot is taken.", |s| {
        u64::from(s.journal.snapshot_running)
    }),
    ("sluice_shard_compacted_bytes_total", Kind::Counter, "Bytes that compaction copied.", |s| {
        s.journal.compacted_bytes
    }),
    ("sluice_shard_damaged_blobs_total", Kind::Counter, "Blobs that did not verify.", |s| {
        s.journal.damaged_blobs
    }),
    ("sluice_shard_cache_bytes", Kind::Gauge, "Bytes of blobs in the cache.", |s| s.journal.cache_bytes),
    (
        "sluice_shard_cache_misses_total",
        Kind::Counter,
        "Blobs that were read and not in the cache: from disk, or with what was read of it before.",
        |s| s.journal.cache_misses,
    ),
    ("sluice_shard_epoch", Kind::Gauge, "Epoch of this start.", |s| s.epoch),
];

/// A figure of a shard with replicas: name, kind, help, how to read it.
type ReplicaFigure = (&'static str, Kind, &'static str, fn(&ReplicaMetrics) -> u64);

const REPLICA_FIGURES: &[ReplicaFigure] = &[
    ("sluice_replica_leader", Kind::Gauge, "Number of the node that leads; 0: none is known.", |r| {
        r.leader.unwrap_or(0)
    }),
    ("sluice_replica_term", Kind::Gauge, "Term of the replica.", |r| r.term),
    ("sluice_replica_elections_total", Kind::Counter, "Leaders that this node has known.", |r| r.elections),
    ("sluice_replica_leaderless_ms", Kind::Gauge, "Milliseconds since which no leader is known.", |r| {
        r.leaderless_ms
    }),
    ("sluice_replica_stalled", Kind::Gauge, "1 while the disk does not finish a write.", |r| {
        u64::from(r.is_stalled)
    }),
    (
        "sluice_replica_repairs_asked_total",
        Kind::Counter,
        "Damaged blobs that other nodes were asked for.",
        |r| r.repairs.asked,
    ),
    ("sluice_replica_repairs_done_total", Kind::Counter, "Those of which a whole copy came.", |r| {
        r.repairs.done
    }),
    ("sluice_replica_repairs_lost_total", Kind::Counter, "Those that all nodes have lost.", |r| {
        r.repairs.lost
    }),
    (
        "sluice_replica_repairs_unanswered_total",
        Kind::Counter,
        "Those for which not all nodes answered.",
        |r| r.repairs.unanswered,
    ),
    ("sluice_replica_repairs_written_total", Kind::Counter, "Damaged blobs replaced on the disk.", |r| {
        r.repaired
    }),
    ("sluice_replica_states_sent_total", Kind::Counter, "Whole states that followers took over.", |r| {
        r.states.sent
    }),
    ("sluice_replica_states_received_total", Kind::Counter, "Whole states taken over from a leader.", |r| {
        r.states.received
    }),
];

/// A figure of a follower, which its leader has: name, help, how to read it at a time of the log.
type FollowerFigure = (&'static str, &'static str, fn(&Follower, u64) -> u64);

const FOLLOWER_FIGURES: &[FollowerFigure] = &[
    ("sluice_replica_behind_records", "Records that a follower has not acknowledged.", |f, _| f.records),
    ("sluice_replica_behind_bytes", "Bytes of these records.", |f, _| f.bytes),
    ("sluice_replica_behind_ms", "Age of the oldest of these records, in milliseconds.", |f, now_us| {
        f.missing_since_us.map_or(0, |since_us| now_us.saturating_sub(since_us) / 1_000)
    }),
];

/// Writes the figures of a cluster; nothing for a server alone.
fn write_replicas(page: &mut impl Sink, context: &Context, shards: &[ShardMetrics]) {
    let replicas: Vec<_> =
        (0..).zip(shards).filter_map(|(at, shard)| Some((at, shard, shard.replicas.as_ref()?))).collect();
    if replicas.is_empty() {
        return;
    }
    for (name, kind, help, read) in REPLICA_FIGURES {
        page.family(name, *kind, help);
        for (shard, _, replica) in &replicas {
            page.sample(name, &[("shard", &shard.to_string())], read(replica));
        }
    }
    for (name, help, read) in FOLLOWER_FIGURES {
        page.family(name, Kind::Gauge, help);
        for (shard, metrics, replica) in &replicas {
            let shard = shard.to_string();
            for follower in &replica.followers {
                let node = follower.node.get().to_string();
                page.sample(name, &[("shard", &shard), ("node", &node)], read(follower, metrics.time_us));
            }
        }
    }
    page.family("sluice_replica_damaged", Kind::Gauge, "1 while a damaged shard lacks what the others have.");
    for (shard, metrics, _) in &replicas {
        page.sample(
            "sluice_replica_damaged",
            &[("shard", &shard.to_string())],
            u64::from(metrics.damage.is_some()),
        );
    }
    let (answered, unanswered) = context.calls.passed().totals();
    page.family("sluice_passed_on_total", Kind::Counter, "Requests passed on to the leader of their shard.");
    for (outcome, total) in [("answered", answered), ("unanswered", unanswered)] {
        page.sample("sluice_passed_on_total", &[("outcome", outcome)], total);
    }
}

fn write_shards(page: &mut impl Sink, shards: &[ShardMetrics]) {
    for (name, kind, help, read) in SHARD_FIGURES {
        page.family(name, *kind, help);
        for (shard, figures) in shards.iter().enumerate() {
            page.sample(name, &[("shard", &shard.to_string())], read(figures));
        }
    }
    page.family("sluice_shard_messages", Kind::Gauge, "Messages, by state.");
    for (shard, figures) in shards.iter().enumerate() {
        for (state, count) in State::ALL.into_iter().zip(figures.counters.states) {
            let labels = [("shard", shard.to_string()), ("state", state.name().to_owned())];
            let labels = labels.each_ref().map(|(label, text)| (*label, text.as_str()));
            page.sample("sluice_shard_messages", &labels, count);
        }
    }
}

/// A queue that has figures of its own.
struct QueueFigures {
    namespace: String,
    namespace_id: NamespaceId,
    queue: QueueView,
}

impl QueueFigures {
    fn labels(&self) -> [(&str, &str); 2] {
        [("namespace", &self.namespace), ("queue", &self.queue.name)]
    }

    fn labels_with<'a>(&'a self, name: &'a str, value: &'a str) -> [(&'a str, &'a str); 3] {
        let [namespace, queue] = self.labels();
        [namespace, queue, (name, value)]
    }
}

/// Figures per queue, for as many as the setting allows, by namespace and name; the rest is only counted.
async fn write_queues(
    page: &mut impl Sink,
    source: &Source<'_>,
    shards: &[ShardMetrics],
) -> Result<(), CallError> {
    let mut room = source.context.options.metrics_queues_max;
    let mut queues_total = 0;
    let mut shown: Vec<QueueFigures> = Vec::new();
    let namespaces = source.figures.namespaces().await?;
    for namespace in namespaces.into_iter().filter(|namespace| namespace.id != NamespaceId::SYS) {
        queues_total += namespace.queues;
        if room > 0 {
            let (name, namespace_id) = (namespace.name, namespace.id);
            let queues = source.figures.queues(namespace_id, room).await?;
            room -= queues.len().min(room);
            let show = |queue| QueueFigures { namespace: name.clone(), namespace_id, queue };
            shown.extend(queues.into_iter().map(show));
        }
    }
    page.family("sluice_queue_messages", Kind::Gauge, "Messages, by queue and state.");
    for of in &shown {
        for (state, count) in State::ALL.into_iter().zip(of.queue.counters.states) {
            page.sample("sluice_queue_messages", &of.labels_with("state", state.name()), count);
        }
    }
    page.family("sluice_queue_bytes", Kind::Gauge, "Bytes of content types, headers and payloads.");
    for of in &shown {
        page.sample("sluice_queue_bytes", &of.labels(), of.queue.counters.bytes);
    }
    page.family("sluice_queue_events_total", Kind::OlderCounter, "What happened to messages, by queue.");
    for of in &shown {
        for (event, count) in Totals::from(&of.queue.counters).by_name() {
            page.sample("sluice_queue_events_total", &of.labels_with("event", event), count);
        }
    }
    page.family(
        "sluice_queues_omitted",
        Kind::Gauge,
        "Queues without figures of their own, to bound this page.",
    );
    page.sample("sluice_queues_omitted", &[], queues_total.saturating_sub(shown.len() as u64));
    write_consumers(page, source, &shown, shards).await
}

/// A figure of all consumers attached to a queue: name, help, and its value.
type ConsumerFigure = (&'static str, &'static str, fn(&ConsumerTotals) -> u64);

const CONSUMER_FIGURES: &[ConsumerFigure] = &[
    ("sluice_queue_consumers", "Consumers attached, by queue.", |of| of.attached),
    ("sluice_queue_consumer_credit", "Credit of the consumers attached, by queue.", |of| of.credit),
    ("sluice_queue_consumer_in_flight", "Messages that the consumers attached hold, by queue.", |of| {
        of.in_flight
    }),
];

/// Figures of the consumers that are attached to these queues, for as many as one page may read.
async fn write_consumers(
    page: &mut impl Sink,
    source: &Source<'_>,
    shown: &[QueueFigures],
    shards: &[ShardMetrics],
) -> Result<(), CallError> {
    let mut room = CONSUMERS_MAX;
    let mut read = 0;
    let mut by_queue: HashMap<(NamespaceId, String), ConsumerTotals> = HashMap::new();
    for of_namespace in shown.chunk_by(|one, other| one.namespace_id == other.namespace_id) {
        let namespace = of_namespace[0].namespace_id;
        let consumers = source.figures.consumers(namespace, room).await?;
        room -= consumers.len();
        for consumer in consumers.into_iter().filter(|consumer| consumer.state == ConsumerState::Attached) {
            read += 1;
            for queue in consumer.queues {
                let of = by_queue.entry((namespace, queue)).or_default();
                of.attached += 1;
                of.credit += u64::from(consumer.credit);
                of.in_flight += u64::from(consumer.in_flight);
            }
        }
    }
    for (name, help, figure) in CONSUMER_FIGURES {
        page.family(name, Kind::Gauge, help);
        for of in shown {
            let key = (of.namespace_id, of.queue.name.clone());
            page.sample(name, &of.labels(), by_queue.get(&key).map_or(0, figure));
        }
    }
    let attached: u64 = shards.iter().map(|shard| shard.consumers.attached).sum();
    let help = "Consumers attached that the figures of queues leave out, to bound this page.";
    page.family("sluice_consumers_omitted", Kind::Gauge, help);
    page.sample("sluice_consumers_omitted", &[], attached.saturating_sub(read));
    Ok(())
}
