//! A worker that runs until Ctrl-C. What fails is tried again after the queue's backoff; what can never
//! succeed becomes a dead letter; work whose lease was lost is abandoned.
//!
//!     sluice serve                                      # in another terminal
//!     cargo run -p sluice-client --example retries [URL]
//!     sluice send numbers 84; sluice send numbers 0; sluice send numbers many
//!     sluice dead list numbers

use std::time::Duration;

use sluice_client::{Client, Job, QueueChange, Settle, Stop, Worker, WorkerEvent, WorkerOptions};
use tokio::sync::mpsc;

const QUEUE: &str = "numbers";

/// Why a message could not be handled.
enum Failure {
    /// Another attempt may succeed.
    Transient(String),
    /// No attempt can succeed.
    Permanent(String),
}

async fn divide(payload: &[u8]) -> Result<u32, Failure> {
    let text = String::from_utf8_lossy(payload);
    let number: u32 = text.parse().map_err(|error| Failure::Permanent(format!("{text:?}: {error}")))?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    1_000u32.checked_div(number).ok_or_else(|| Failure::Transient("division by 0".to_owned()))
}

async fn handle(job: Job) -> Settle {
    let divided = tokio::select! {
        divided = divide(&job.message.payload.0) => divided,
        // The message may be with another worker by now: a settlement would be refused, and so does not
        // matter.
        () = job.lost.stopped() => return Settle::Release { delay: None },
    };
    match divided {
        Ok(quotient) => {
            println!("{}: {quotient}", job.message.id);
            Settle::Ack
        }
        Err(Failure::Transient(error)) => Settle::Nack { error, delay: None },
        Err(Failure::Permanent(error)) => Settle::Reject { error },
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:7070".to_owned());
    let client = Client::new(&url)?;
    // Three attempts, with the server's default backoff between them; then a dead letter.
    let change = QueueChange { max_attempts: Some(3), ..QueueChange::default() };
    client.queue_set(QUEUE, &change, true).await?;

    let (events, mut heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(event) = heard.recv().await {
            match event {
                WorkerEvent::ReceiveFailed(error) => eprintln!("the server cannot be reached: {error}"),
                WorkerEvent::ReceiveRecovered => eprintln!("the server answers again"),
                other => eprintln!("{other:?}"),
            }
        }
    });

    let stop = Stop::new();
    let on_signal = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            on_signal.stop();
        }
    });
    let options = WorkerOptions { concurrency: 4, ..WorkerOptions::new(vec![(QUEUE.to_owned(), 0)]) };
    let summary = Worker::new(client, options).run(stop, handle, events).await?;
    println!("{} acked, {} nacked, {} rejected", summary.acked, summary.nacked, summary.rejected);
    Ok(())
}
