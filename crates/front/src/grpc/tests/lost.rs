//! Sessions whose connection is lost: what had reached their clients counts as an attempt.

use bytes::Bytes;
use serde_json::json;
use sluice_proto::v1::client_frame::Frame;
use sluice_proto::v1::server_frame::Frame as Told;
use sluice_proto::v1::*;

use super::session::{Session, attach};
use super::support::{Client, start, until};

/// Gives back at once when it is lost.
fn ungraced(queue: &str, credit: u32) -> Frame {
    Frame::Attach(Attach { grace_ms: Some(0), ..attach(queue, credit) })
}

fn send(message: Message) -> Frame {
    Frame::Send(SendMany { queue: "q".into(), messages: vec![message], ..SendMany::default() })
}

#[tokio::test]
async fn a_message_that_ends_its_workers_comes_to_its_dead_letters() {
    let address = start(|_, _| {}).await;
    let poison = Message { payload: "poison".into(), max_attempts: Some(2), ..Message::default() };
    let sent = Session::open(address).await.ok(send(poison)).await;
    for attempt in 1..=2 {
        let mut worker = Session::open(address).await;
        worker.ok(ungraced("q", 1)).await;
        assert_eq!(worker.deliveries().await[0].attempt, attempt);
        worker.cut();
    }
    let mut client = Client::connect(address).await;
    let id = String::from_utf8(sent.ids[0].to_vec()).unwrap();
    let mut reason = json!(null);
    until(async || {
        let message = client.call("Messages/Get", json!({"id": id})).await.unwrap();
        reason = message["reason"].clone();
        message["state"] == "dead"
    })
    .await;
    assert_eq!(reason, "max_attempts");
}

#[tokio::test]
async fn what_was_not_written_to_the_connection_does_not_count() {
    const COUNT: usize = 12;
    let address = start(|_, _| {}).await;
    let mut other = Session::open(address).await;
    // More than the client's window takes.
    let payload = Bytes::from(vec![7; 500_000]);
    for _ in 0..COUNT {
        other.ok(send(Message { payload: payload.clone(), ..Message::default() })).await;
    }
    let mut worker = Session::open(address).await;
    worker.ok(ungraced("q", COUNT as u32)).await;
    let first = worker.deliveries().await[0].id.clone();
    worker.cut();
    other.ok(ungraced("q", COUNT as u32)).await;
    let mut again = Vec::new();
    while again.len() < COUNT {
        if let Told::Deliveries(deliveries) = other.next().await.unwrap() {
            again.extend(deliveries.messages);
        }
    }
    again.sort_by(|one, other| one.id.cmp(&other.id));
    let attempts: Vec<_> = again.iter().map(|message| (message.deliveries, message.attempt)).collect();
    assert_eq!((&again[0].id, attempts[0], attempts[COUNT - 1]), (&first, (2, 2), (2, 1)), "{attempts:?}");
}
