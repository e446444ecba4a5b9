//! How long the largest records take to apply.

use std::time::{Duration, Instant};

use sluice_engine::command::{Command, Receive, Send, SendItem, SettleItem, Settlement};
use sluice_engine::id::NamespaceId;
use sluice_engine::{Engine, Outcome};
use sluice_record::write_record;

fn timed(engine: &mut Engine, index: u64, command: &Command<'_>, outcome: &mut Outcome) -> Duration {
    let mut batch = sluice_journal::Batch::new();
    write_record(&mut batch, command);
    let (bytes, _) = batch.take();
    let record = sluice_journal::Records::new(&bytes).next().unwrap();
    let began = Instant::now();
    engine.apply(1_000_000 + index, index, record.body, outcome);
    let took = began.elapsed();
    assert!(outcome.error.is_none(), "{outcome:?}");
    took
}

/// Rounds of records. Of each kind the median time counts.
const ROUNDS: usize = 20;
/// Longest median.
const BAR: Duration = Duration::from_millis(if cfg!(debug_assertions) { 50 } else { 5 });

/// `cargo test --release -p sluice-node -- --nocapture largest` measures.
#[test]
fn the_largest_records_are_short_to_apply() {
    let mut engine = Engine::new();
    let mut outcome = Outcome::default();
    let items = vec![SendItem { payload: b"x", ..SendItem::default() }; 10_000];
    let namespace = NamespaceId::DEFAULT;
    let (mut send, mut receive, mut settle, mut small) = (vec![], vec![], vec![], vec![]);
    let mut index = 0;
    for _ in 0..ROUNDS {
        index += 1;
        let command = Command::Send(Send {
            namespace,
            queue: "jobs",
            idempotency_key: b"",
            request_digest: 0,
            items: &items,
        });
        send.push(timed(&mut engine, index, &command, &mut outcome));
        let mut receipts = Vec::new();
        for _ in 0..10 {
            index += 1;
            let command = Command::Receive(Receive {
                namespace,
                queues: &[("jobs", 0)],
                max_messages: 1_000,
                max_bytes: 1 << 30,
                lease_ms: 60_000,
                consumer: "",
            });
            receive.push(timed(&mut engine, index, &command, &mut outcome));
            receipts.extend(outcome.deliveries.iter().map(|delivery| delivery.receipt));
        }
        assert_eq!(receipts.len(), 10_000);
        let settlement =
            if send.len() % 2 == 0 { Settlement::Ack } else { Settlement::Nack { delay_ms: Some(1) } };
        let items: Vec<_> = receipts
            .iter()
            .map(|receipt| SettleItem { receipt: *receipt, settlement, error: "", result: None, add_cost: 0 })
            .collect();
        index += 1;
        settle.push(timed(
            &mut engine,
            index,
            &Command::Settle { namespace, items: &items[512..] },
            &mut outcome,
        ));
        index += 1;
        small.push(timed(
            &mut engine,
            index,
            &Command::Settle { namespace, items: &items[..512] },
            &mut outcome,
        ));
    }
    for (what, mut times) in
        [("send 10,000", send), ("receive 1,000", receive), ("settle 9,488", settle), ("settle 512", small)]
    {
        times.sort();
        let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
        println!("{what}: median {median:?}, longest {longest:?}");
        assert!(median <= BAR, "{what} took {median:?}");
    }
}
