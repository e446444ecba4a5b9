//! The server itself: status, health, backup.

use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use http::response::Response;
use sluice_calls::CallError;
use sluice_node::api::ShardMetrics;

use super::queues::write_counts;
use crate::http::route::call::Call;
use crate::json::{Object, object};
use crate::net::body::Body;
use crate::net::context::now_ms;
use crate::net::respond;

/// `GET /v1/status`
pub(crate) async fn status(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let metrics = call.node().metrics().await;
    let context = call.context;
    let mut out = Vec::with_capacity(1_024);
    object(&mut out, |o| {
        o.text("version", &context.options.version);
        o.number("started_at_ms", context.started_at_ms);
        o.number("uptime_ms", now_ms().saturating_sub(context.started_at_ms));
        o.text("durability", &context.options.durability);
        o.boolean("ready", call.node().ready());
        o.list("shards", metrics.shards.iter().enumerate(), |out, (shard, figures)| {
            object(out, |o| write_shard(o, shard as u64, figures));
        });
    });
    Ok(respond::json(StatusCode::OK, out))
}

fn write_shard(o: &mut Object<'_>, shard: u64, figures: &ShardMetrics) {
    o.number("shard", shard);
    o.number("epoch", figures.epoch);
    o.number("queues", figures.queues);
    write_counts(o, &figures.counters);
    o.number("bytes", figures.counters.bytes);
    o.number("waiting_receives", figures.waiting_receives);
    o.number("mailbox", figures.mailbox);
    o.number("records", figures.journal.records);
    o.number("batches", figures.journal.batches);
    o.number("log_bytes", figures.journal.log_bytes);
    o.number("fsyncs", figures.journal.fsyncs);
    o.number("disk_bytes", figures.journal.disk_bytes);
    o.number("disk_free_bytes", figures.journal.disk_free_bytes);
    o.boolean("disk_full", figures.journal.full);
    o.boolean("disk_low", figures.journal.low);
    o.number("late_segments", figures.journal.late_segments);
    o.number("segments", figures.journal.segments);
    o.number("snapshots", figures.journal.snapshots);
    o.boolean("snapshot_running", figures.journal.snapshot_running);
    o.number("compacted_bytes", figures.journal.compacted_bytes);
    o.number("damaged_blobs", figures.journal.damaged_blobs);
    o.number("cache_bytes", figures.journal.cache_bytes);
    o.number("cache_misses", figures.journal.cache_misses);
}

/// `GET /v1/admin/backup`
pub(crate) async fn backup(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let stream = call.node().backup().await?;
    let mut response = Response::new(Body::stream(stream));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"sluice.backup\""));
    Ok(response)
}

/// `GET /healthz`: whoever can answer is alive.
pub(crate) fn health() -> Response<Body> {
    respond::content(StatusCode::OK, "text/plain; charset=utf-8", &b"ok\n"[..])
}

/// `GET /readyz`
pub(crate) fn ready(call: &Call<'_>) -> Response<Body> {
    let (status, text) = match call.node().ready() {
        true => (StatusCode::OK, &b"ready\n"[..]),
        false => (StatusCode::SERVICE_UNAVAILABLE, &b"not ready\n"[..]),
    };
    respond::content(status, "text/plain; charset=utf-8", text)
}
