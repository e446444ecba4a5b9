//! Sends a message and waits for the result that its worker gives: a request and its reply, of which nothing
//! is lost when either side, or the server, starts again meanwhile.
//!
//!     sluice serve                                      # in another terminal
//!     cargo run -p sluice-client --example request_reply [URL]

use std::time::Duration;

use sluice_client::{Client, Job, Message, MessageOptions, Settle, Stop, WorkResult, Worker, WorkerOptions};
use tokio::sync::mpsc;

const QUEUE: &str = "upper";
const WAIT: Duration = Duration::from_secs(30);

/// Answers with the payload in capital letters.
async fn reply(job: Job) -> Settle {
    let bytes = job.message.payload.0.to_ascii_uppercase();
    Settle::AckWith(WorkResult { content_type: Some("text/plain".to_owned()), bytes })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:7070".to_owned());
    let client = Client::new(&url)?;

    // The result of an ack is kept for as long as the message says.
    let keep = MessageOptions { result_ttl_ms: Some(60_000), ..MessageOptions::default() };
    let request = Message { options: Some(Box::new(keep)), ..Message::new(b"hello") };
    let sent = client.send(QUEUE, &[request]).await?;
    let id = sent.decode()?.ids.first().ok_or("the server gave no id")?.to_string();

    let stop = Stop::new();
    let worker = Worker::new(client.clone(), WorkerOptions::new(vec![(QUEUE.to_owned(), 0)]));
    let (events, _) = mpsc::unbounded_channel();
    let working = tokio::spawn({
        let stop = stop.clone();
        async move { worker.run(stop, reply, events).await }
    });

    let awaited = client.result(&id, WAIT).await?;
    match awaited.result_bytes()? {
        Some(bytes) => println!("{}", String::from_utf8_lossy(&bytes)),
        None => println!("{id} has no result: it is {}", awaited.state),
    }
    stop.stop();
    working.await??;
    Ok(())
}
