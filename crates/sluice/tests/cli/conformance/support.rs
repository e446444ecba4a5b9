//! Short words for what the scenarios do.

use std::future::Future;
use std::time::Duration;

use sluice_client::{
    Client, ClientError, Counts, Delivered, Job, Message, Receive, Settle, Stop, Summary, Worker,
    WorkerOptions,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::support::PATIENCE;

/// A wait that ends as soon as there is a message.
pub(super) const LONG: Duration = Duration::from_secs(20);

pub(super) fn message(payload: &str) -> Message<'_> {
    Message::new(payload.as_bytes())
}

/// Sends one message; tells its id.
pub(super) async fn send(client: &Client, queue: &str, message: Message<'_>) -> String {
    let (ids, _) = send_all(client, queue, &[message]).await.unwrap();
    ids.into_iter().next().unwrap()
}

/// Sends messages; their ids, and whether the send was a repeat.
pub(super) async fn send_all(
    client: &Client,
    queue: &str,
    messages: &[Message<'_>],
) -> Result<(Vec<String>, bool), ClientError> {
    let sent = client.send(queue, messages).await?;
    let sent = sent.decode()?;
    Ok((sent.ids.iter().map(ToString::to_string).collect(), sent.duplicate))
}

/// Receives what is ready, up to so many messages.
pub(super) async fn receive(client: &Client, queue: &str, max: u32) -> Vec<Delivered> {
    client.receive(&Receive::from_queue(queue).max(max)).await.unwrap()
}

/// Waits for a message.
pub(super) async fn next(client: &Client, queue: &str) -> Delivered {
    let got = client.receive(&Receive::from_queue(queue).wait(LONG)).await.unwrap();
    got.into_iter().next().unwrap()
}

pub(super) fn text(message: &Delivered) -> &str {
    std::str::from_utf8(&message.payload.0).unwrap()
}

pub(super) fn texts(messages: &[Delivered]) -> Vec<&str> {
    messages.iter().map(text).collect()
}

pub(super) async fn counts(client: &Client, queue: &str) -> Counts {
    client.queue(queue).await.unwrap().counts
}

pub(super) async fn is_empty(client: &Client, queue: &str) -> bool {
    counts(client, queue).await == Counts::default()
}

/// Waits until something holds.
pub(super) async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    let until = Instant::now() + 3 * PATIENCE;
    while !holds().await {
        assert!(Instant::now() < until, "waited in vain until {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

pub(super) fn code<T>(outcome: Result<T, ClientError>) -> String {
    let error = outcome.err().expect("the call is refused");
    error.code().unwrap_or_else(|| panic!("{error}")).to_owned()
}

/// The options of a worker of one queue.
pub(super) fn on(queue: &str) -> WorkerOptions {
    WorkerOptions::new(vec![(queue.to_owned(), 0)])
}

/// A worker in a task of its own.
pub(super) struct Working {
    pub(super) stop: Stop,
    task: JoinHandle<Summary>,
}

impl Working {
    pub(super) fn begin<Fut>(
        client: &Client,
        options: WorkerOptions,
        handler: impl Fn(Job) -> Fut + Send + Sync + 'static,
    ) -> Working
    where
        Fut: Future<Output = Settle> + Send + 'static,
    {
        let (stop, worker) = (Stop::new(), Worker::new(client.clone(), options));
        let until = stop.clone();
        let (events, _) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move { worker.run(until, handler, events).await.unwrap() });
        Working { stop, task }
    }

    /// Tells it to stop, and waits for its end.
    pub(super) async fn end(self) -> Summary {
        self.stop.stop();
        self.task.await.unwrap()
    }
}
