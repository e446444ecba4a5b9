//! Sends three messages, then handles whatever waits in the queue, and ends when it is empty.
//!
//!     sluice serve                                      # in another terminal
//!     cargo run -p sluice-client --example send_and_work [URL]

use sluice_client::{Client, Message, Settle, Stop, Worker, WorkerOptions};
use tokio::sync::mpsc;

const QUEUE: &str = "emails";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:7070".to_owned());
    let client = Client::new(&url)?;

    let messages = [Message::new(b"to ann"), Message::new(b"to bob"), Message::new(b"to eve")];
    let sent = client.send(QUEUE, &messages).await?;
    println!("sent {}", sent.decode()?.ids.join(", "));

    let options = WorkerOptions {
        concurrency: 2,
        until_empty: true,
        ..WorkerOptions::new(vec![(QUEUE.to_owned(), 0)])
    };
    // What goes wrong on the way, a connection that breaks for one, is told here; nobody listens in this
    // example.
    let (events, _) = mpsc::unbounded_channel();
    let handler = |job: sluice_client::Job| async move {
        println!("{}: {}", job.message.id, String::from_utf8_lossy(&job.message.payload.0));
        Settle::Ack
    };
    let summary = Worker::new(client, options).run(Stop::new(), handler, events).await?;
    println!("{} acked", summary.acked);
    Ok(())
}
