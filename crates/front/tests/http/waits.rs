//! How tests wait: for what they want, and never for a time.

use std::future::Future;
use std::time::Duration;

use crate::client::request;
use crate::support::Server;

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// The output of a future; panics if it does not come soon.
pub(crate) async fn soon<T>(coming: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, coming).await.expect("it comes")
}

/// Waits until the condition holds; panics if it does not hold soon.
pub(crate) async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    soon(async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Returns when the metrics have this line.
pub(crate) async fn until_metrics_say(server: &Server, line: &str) {
    until(async || {
        let metrics = request(server.address, "GET", "/metrics", &[], b"").await;
        String::from_utf8_lossy(&metrics.body).lines().any(|found| found == line)
    })
    .await;
}

/// Returns when so many requests are in flight.
pub(crate) async fn until_in_flight(server: &Server, count: u64) {
    // Besides the one for the metrics.
    until_metrics_say(server, &format!("sluice_http_requests_in_flight {}", count + 1)).await;
}

/// Returns when so many receives wait.
pub(crate) async fn until_receives_wait(server: &Server, count: u64) {
    until(async || {
        let metrics = server.node.metrics().await;
        metrics.shards.iter().map(|shard| shard.waiting_receives).sum::<u64>() == count
    })
    .await;
}
