//! Messages that a caller may send only if a person approves them, over gRPC and in sessions.

use bytes::Bytes;
use serde_json::json;
use sluice_calls::access::{Access, AccessOptions};
use sluice_proto::v1::client_frame::Frame;
use sluice_proto::v1::{Message, Open, SendMany};

use super::session::Session;
use super::support::{Client, start};

const POLICY: &str =
    "[[rule]]\nname='proposes'\nidentities=['agent']\nrole='proposer'\nqueues=['payments']\n";

#[tokio::test]
async fn a_proposer_sends_what_is_held() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let options = AccessOptions { policy: Some(file.path().to_owned()), ..AccessOptions::default() };
    let access = Access::new(options).unwrap();
    let address = start(|_, own| *own = access.clone()).await;
    let mut client = Client::connect(address).await;
    client.token = client.make_token("root", "sluice://ns/*?perm=admin").await;
    let agent = client.make_token("agent", "sluice://ns/other?perm=w").await;
    std::fs::write(file.path(), POLICY).unwrap();
    assert_eq!(access.reload(), Ok(true));

    client.token = agent.clone();
    let send = |messages| json!({"queue": "payments", "messages": messages});
    let plain = client.call("Messages/Send", send(json!([{"payload": "a"}]))).await;
    let (code, message, trailers) = plain.unwrap_err();
    assert_eq!((code.as_str(), &trailers["grpc-status"]), ("approval_needed", &"7".parse().unwrap()));
    assert!(message.contains("\"agent\" may only propose messages in queue \"payments\""), "{message}");
    client.call("Messages/Send", send(json!([{"payload": "a", "hold": true}]))).await.unwrap();

    let mut session = Session::start(address).await;
    session.token = agent;
    session.restart().await;
    session.ok(Frame::Open(Open::default())).await;
    let message = |hold| Message { payload: Bytes::from("a"), hold, ..Message::default() };
    let send = |messages| Frame::Send(SendMany { queue: "payments".into(), messages, ..SendMany::default() });
    for refused in [vec![message(None)], vec![message(Some(true)), message(Some(false))]] {
        session.send(send(refused)).await;
        assert_eq!(&session.result().await.error.unwrap().code[..], b"approval_needed");
    }
    session.ok(send(vec![message(Some(true))])).await;
}
