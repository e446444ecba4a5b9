//! How tests wait: for what they want, and never for a time.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use sluice_node::Node;
use tokio::task::JoinHandle;

/// How long a test waits for what has to come: less than the waits that it asks the node for.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// A wait that has to end early, in milliseconds.
pub const LONG_MS: u64 = 60_000;
/// A wait that has to end early.
pub const LONG: Duration = Duration::from_millis(LONG_MS);

/// The output of a future; panics if it does not come soon.
pub async fn soon<T>(coming: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, coming).await.expect("it comes")
}

/// Waits until the condition holds; panics if it does not hold soon.
pub async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    soon(async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// Returns when so many receives wait.
pub async fn until_receives_wait(node: &Node, count: u64) {
    until(async || {
        node.metrics().await.shards.iter().map(|shard| shard.waiting_receives).sum::<u64>() == count
    })
    .await;
}

/// Returns when the shards have taken in what they were asked before, and have told what came of it.
pub async fn until_taken_in(node: &Node) {
    node.metrics().await;
}

/// Polls a future once and spawns it: what it first asks of a shard comes before whatever is asked later.
pub async fn begin<T: Send + 'static>(asking: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    let mut asking = Box::pin(asking);
    match poll_fn(|waker| Poll::Ready(asking.as_mut().poll(waker))).await {
        Poll::Ready(answer) => tokio::spawn(async { answer }),
        Poll::Pending => tokio::spawn(asking),
    }
}
