//! Memory of a session whose client does not read.

use serde_json::json;
use sluice_proto::v1::client_frame::Frame;
use sluice_proto::v1::*;

use super::session::{Session, attach};
use super::support::{Client, start, until};

const MESSAGES: u32 = 40;
const PAYLOAD_BYTES: usize = 900 << 10;

/// Bytes of answers in memory, as the metrics have them.
async fn answer_bytes(client: &mut Client) -> usize {
    let metrics = client.get_bytes("/metrics").await;
    let metrics = String::from_utf8_lossy(&metrics).into_owned();
    let line = metrics.lines().find_map(|line| line.strip_prefix("sluice_http_answer_bytes "));
    line.unwrap().parse().unwrap()
}

#[tokio::test]
async fn however_many_consumers_a_session_has_it_takes_one_delivery_after_the_other() {
    let address = start(|_, _| {}).await;
    let mut session = Session::open(address).await;
    for _ in 0..MESSAGES {
        let message = Message { payload: vec![7; PAYLOAD_BYTES].into(), ..Message::default() };
        let messages = vec![message];
        session.ok(Frame::Send(SendMany { queue: "q".into(), messages, ..SendMany::default() })).await;
    }
    // From here on nothing is read.
    session
        .send_together((1..=MESSAGES).map(|consumer| Frame::Attach(Attach { consumer, ..attach("q", 1) })))
        .await;
    let mut client = Client::connect(address).await;
    until(async || client.get("/v1/queues/q").await["counts"]["leased"] == MESSAGES).await;
    // What the client's windows do not take.
    until(async || answer_bytes(&mut client).await >= 256 << 10).await;
    let mut most = 0;
    for _ in 0..50 {
        most = most.max(answer_bytes(&mut client).await);
    }
    assert!(most < 2 << 20, "{most}");
}

#[tokio::test]
async fn an_answer_that_only_shows_something_needs_memory_for_it() {
    let address = start(|http, _| http.connection_answers_bytes_max = 16 << 10).await;
    let mut client = Client::connect(address).await;
    for number in 0..100 {
        let put = json!({"queue": format!("q{number}"), "description": "d".repeat(255)});
        client.call("Queues/Put", put).await.unwrap();
    }
    client.call("Queues/List", json!({"limit": 10})).await.unwrap();
    let (code, ..) = client.call("Queues/List", json!({"limit": 100})).await.unwrap_err();
    assert_eq!(code, "batch_too_large");
}

#[tokio::test]
async fn a_call_that_may_wait_has_a_small_message() {
    let mut client = Client::connect(start(|_, _| {}).await).await;
    let request = json!({"queues": [{"name": "q"}], "consumer": "c".repeat(70_000), "wait_ms": 60_000});
    let (code, ..) = client.call("Messages/Receive", request).await.unwrap_err();
    assert_eq!(code, "body_too_large");
}
