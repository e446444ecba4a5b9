//! The end of a shard: whoever asks at that moment gets an answer.

use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::command::{Command, SendItem};
use sluice_engine::id::NamespaceId;
use sluice_node::Node;
use sluice_node::shard::request::{Proposal, Pull, PullReply, ReplyTo, Request};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::support::{memory, options, sending};

const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn what_reaches_a_shard_after_its_end_is_told_so() {
    let node = memory();
    let shard = node.mailbox(NamespaceId::DEFAULT).unwrap();
    node.shutdown(SOON).await.unwrap();

    let (sender, answer) = oneshot::channel();
    let send = Command::Send(sending(NamespaceId::DEFAULT, "jobs", &[]));
    shard.push(Request::Propose(Proposal::new(&send, ReplyTo::Once(sender)))).unwrap();
    let answer = timeout(SOON, answer).await.expect("an answer in time").unwrap();
    assert_eq!(answer.result, Err(Error::ShuttingDown {}));

    let (sender, given) = oneshot::channel();
    let pull = Pull {
        ticket: 1,
        namespace: NamespaceId::DEFAULT,
        queues: [("jobs".into(), 0)].into(),
        max_messages: 1,
        max_bytes: 1,
        lease_ms: 0,
        wait_us: 60_000_000,
        consumer: "".into(),
        room: None,
        reply: PullReply::Once(sender),
    };
    shard.push(Request::Pull(Box::new(pull))).unwrap();
    let given = timeout(SOON, given).await.expect("an answer in time").unwrap();
    assert_eq!(given.unwrap_err(), Error::ShuttingDown {});
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_that_race_with_the_end_all_get_an_answer() {
    for _ in 0..50 {
        let node = Node::start(options(None)).unwrap();
        let callers: Vec<_> = (0..8)
            .map(|_| {
                let node = node.clone();
                tokio::spawn(async move {
                    loop {
                        let items = [SendItem::default()];
                        let send = sending(NamespaceId::DEFAULT, "jobs", &items);
                        match timeout(SOON, node.send(&send)).await.expect("an answer in time") {
                            Ok(_) | Err(Error::Overloaded { .. }) => {}
                            Err(error) => return error,
                        }
                    }
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(2)).await;
        node.shutdown(SOON).await.unwrap();
        for caller in callers {
            assert_eq!(caller.await.unwrap(), Error::ShuttingDown {});
        }
    }
}
