//! Receipts: each settles its own delivery, and nobody makes one but the server.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod common;

use sluice_engine::command::{Receive, Send, SendItem, SettleItem, Settlement};
use sluice_engine::id::{NamespaceId, Receipt};
use sluice_engine::{BEHAVIOUR_VERSION, Command, Engine, Error, ReceiptKey};

use common::Driver;

const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;

fn begun() -> Driver {
    let mut driver = Driver::new();
    driver.apply(0, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    driver.apply(0, &Command::ReceiptKey(ReceiptKey([7; 16])));
    assert!(driver.out.error.is_none());
    driver
}

/// Sends so many messages and takes them.
fn taken(driver: &mut Driver, messages: usize) -> Vec<Receipt> {
    let items = vec![SendItem::default(); messages];
    let send =
        Send { namespace: NAMESPACE, queue: "q", idempotency_key: b"", request_digest: 0, items: &items };
    driver.apply(0, &Command::Send(send));
    driver.apply(
        0,
        &Command::Receive(Receive {
            namespace: NAMESPACE,
            queues: &[("q", 0)],
            max_messages: messages as u32,
            max_bytes: 1 << 20,
            lease_ms: 30_000,
            consumer: "",
        }),
    );
    driver.out.deliveries.iter().map(|delivery| delivery.receipt).collect()
}

fn acked(driver: &mut Driver, receipt: Receipt) -> Result<(), Error> {
    let items = [SettleItem { receipt, settlement: Settlement::Ack, error: "", result: None, add_cost: 0 }];
    driver.apply(0, &Command::Settle { namespace: NAMESPACE, items: &items });
    driver.out.results.remove(0)
}

#[test]
fn a_receipt_computed_from_another_is_worth_nothing() {
    let mut driver = begun();
    let receipts = taken(&mut driver, 2);
    let guess = Receipt { id: receipts[1].id, token: receipts[0].token + 1, tag: receipts[0].tag };
    assert_eq!(guess.token, receipts[1].token, "the counter is no secret");
    assert!(matches!(acked(&mut driver, guess), Err(Error::LeaseLost { .. })));
    assert_eq!(acked(&mut driver, receipts[1]), Ok(()));
}

#[test]
fn an_id_and_a_token_that_do_not_belong_together_are_no_lease() {
    let mut driver = begun();
    let receipts = taken(&mut driver, 2);
    acked(&mut driver, receipts[0]).unwrap();
    for tag in [receipts[0].tag, receipts[1].tag] {
        let mixed = Receipt { id: receipts[1].id, token: receipts[0].token, tag };
        assert!(matches!(acked(&mut driver, mixed), Err(Error::LeaseLost { .. })));
    }
    assert!(matches!(acked(&mut driver, receipts[0]), Err(Error::AlreadySettled { .. })));
}

#[test]
fn a_log_keeps_its_key_through_a_snapshot_and_takes_no_other() {
    let mut driver = begun();
    let receipts = taken(&mut driver, 1);
    driver.apply(0, &Command::ReceiptKey(ReceiptKey([8; 16])));
    assert!(matches!(driver.out.error, Some(Error::Internal { .. })));
    let mut bytes = Vec::new();
    driver.engine.snapshot_begin();
    while !driver.engine.snapshot_step(1_000, &mut bytes) {}
    let mut pieces = bytes.chunks(100).map(<[u8]>::to_vec);
    driver.engine = Engine::restore(&mut || pieces.next()).unwrap();
    assert!(driver.engine.has_receipt_key());
    assert_eq!(acked(&mut driver, receipts[0]), Ok(()));
}
