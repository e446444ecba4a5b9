//! Frames that come together: each takes effect in its turn, and none answers for another.

use serde_json::json;
use sluice_proto::v1::client_frame::Frame;
use sluice_proto::v1::server_frame::Frame as Told;
use sluice_proto::v1::*;

use super::session::{Session, attach};
use super::support::{Client, start};

fn credit(credit: u32) -> Frame {
    Frame::Credit(SetCredit { consumer: 7, credit })
}

fn detach() -> Frame {
    Frame::Detach(Detach { consumer: 7, grace_ms: None })
}

impl Session {
    /// The codes of so many answers, in the order of their frames; empty: it went well.
    async fn codes(&mut self, count: usize) -> Vec<String> {
        let mut results = Vec::new();
        while results.len() < count {
            if let Told::Result(result) = self.next().await.unwrap() {
                let code = result.error.map(|error| String::from_utf8(error.code.to_vec()).unwrap());
                results.push((result.number, code.unwrap_or_default()));
            }
        }
        results.sort();
        results.into_iter().map(|(_, code)| code).collect()
    }
}

#[tokio::test]
async fn frames_for_a_consumer_wait_for_the_attach_before_them() {
    let address = start(|_| {}).await;
    let mut session = Session::open(address).await;
    let attached = || Frame::Attach(attach("q", 0));
    session.send_together([attached(), credit(3), detach()]).await;
    assert_eq!(session.codes(3).await, ["", "", ""]);
    let mut client = Client::connect(address).await;
    let consumers = client.call("Consumers/List", json!({})).await.unwrap();
    assert_eq!(consumers, json!({}), "it was detached");

    // The same number again, while its Detach is on its way; and frames that come too late, or twice.
    session.send_together([attached(), attached(), detach(), credit(1), attached(), credit(2)]).await;
    let expected = ["", "invalid_argument", "", "consumer_not_found", "", ""];
    assert_eq!(session.codes(6).await, expected);
    let consumers = client.call("Consumers/List", json!({})).await.unwrap();
    assert_eq!(consumers["consumers"][0]["credit"], 2);

    // What is refused has done nothing: it is attached still, and was not attached.
    let too_long = Frame::Detach(Detach { consumer: 7, grace_ms: Some(3_600_001) });
    session.send_together([too_long, credit(1)]).await;
    assert_eq!(session.codes(2).await, ["invalid_argument", ""]);
    let bad = Frame::Attach(Attach { consumer: 8, ..attach("no such name", 1) });
    let late = Frame::Credit(SetCredit { consumer: 8, credit: 1 });
    session.send_together([bad, late]).await;
    assert_eq!(session.codes(2).await, ["invalid_name", "consumer_not_found"]);
}
