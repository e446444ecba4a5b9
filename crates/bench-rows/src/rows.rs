//! The rows: what is done once per step, and on how many messages.

use sluice_engine::command::{SendItem, SettleItem};
use sluice_engine::item::{OnDuplicate, SendOptions, Unique, UniqueUntil};
use sluice_engine::limit::{LimitRules, Rate};

use crate::rig::{PAYLOAD_BYTES_MAX, QUEUES, Rig, ack_of, message, usual_message};

/// Messages that a round moves unless the row says otherwise.
const ROUND_MESSAGES: u64 = 100_000;
/// Names of the consumers that take turns.
const CONSUMERS: [&str; 10] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"];

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name of the row in JSON.
    pub name: &'static str,
    /// Title of the row in the table.
    pub title: &'static str,
    /// Messages of one step.
    pub messages: u64,
    /// Messages of one round.
    round_messages: u64,
    work: Work,
}

/// The operation of one step.
#[derive(Clone, Copy, Debug)]
enum Work {
    Send {
        queues: usize,
        payload_bytes: usize,
        header: bool,
    },
    Receive {
        consumers: usize,
    },
    ReceiveOver {
        queues: usize,
    },
    Ack,
    ReceiveAndAck,
    EndToEnd,
    /// With every key there is.
    EndToEndFull,
}

const fn row(name: &'static str, title: &'static str, messages: u64, work: Work) -> Row {
    Row { name, title, messages, round_messages: ROUND_MESSAGES, work }
}

const fn send(
    name: &'static str,
    title: &'static str,
    queues: usize,
    payload_bytes: usize,
    header: bool,
) -> Row {
    let round_messages = if payload_bytes == PAYLOAD_BYTES_MAX { 2_000 } else { ROUND_MESSAGES };
    Row { name, title, messages: 1, round_messages, work: Work::Send { queues, payload_bytes, header } }
}

const SEND_BATCH: Work = Work::Send { queues: 1, payload_bytes: 25, header: true };

/// Every row that runs on one thread.
pub const ROWS: &[Row] = &[
    send("send", "send, 25 B, one header", 1, 25, true),
    send("send_plain", "send, 25 B, no header", 1, 25, false),
    send("send_10_queues", "send, 25 B, to 10 queues in turn", 10, 25, false),
    send("send_4_b", "send, 4 B", 1, 4, false),
    send("send_64_kib", "send, 64 KiB", 1, PAYLOAD_BYTES_MAX, false),
    row("send_batch_1", "send, batch of 1", 1, SEND_BATCH),
    row("send_batch_10", "send, batch of 10", 10, SEND_BATCH),
    row("send_batch_100", "send, batch of 100", 100, SEND_BATCH),
    row("send_batch_1000", "send, batch of 1,000", 1_000, SEND_BATCH),
    row("receive_batch_1", "receive, batch of 1", 1, Work::Receive { consumers: 1 }),
    row("receive_batch_10", "receive, batch of 10", 10, Work::Receive { consumers: 1 }),
    row("receive_batch_100", "receive, batch of 100", 100, Work::Receive { consumers: 1 }),
    row("receive_batch_1000", "receive, batch of 1,000", 1_000, Work::Receive { consumers: 1 }),
    row("ack_batch_1", "ack, batch of 1", 1, Work::Ack),
    row("ack_batch_10", "ack, batch of 10", 10, Work::Ack),
    row("ack_batch_100", "ack, batch of 100", 100, Work::Ack),
    row("ack_batch_1000", "ack, batch of 1,000", 1_000, Work::Ack),
    row("receive_1_consumer", "receive, 1 consumer", 1, Work::Receive { consumers: 1 }),
    row("receive_2_consumers", "receive, 2 consumers in turn", 1, Work::Receive { consumers: 2 }),
    row("receive_5_consumers", "receive, 5 consumers in turn", 1, Work::Receive { consumers: 5 }),
    row("receive_10_consumers", "receive, 10 consumers in turn", 1, Work::Receive { consumers: 10 }),
    row("receive_over_1", "receive over 1 queue", 1, Work::ReceiveOver { queues: 1 }),
    row("receive_over_5", "receive over 5 queues, the last has messages", 1, Work::ReceiveOver { queues: 5 }),
    row(
        "receive_over_10",
        "receive over 10 queues, the last has messages",
        1,
        Work::ReceiveOver { queues: 10 },
    ),
    row(
        "receive_over_20",
        "receive over 20 queues, the last has messages",
        1,
        Work::ReceiveOver { queues: 20 },
    ),
    row("receive_ack", "receive + ack", 1, Work::ReceiveAndAck),
    row("e2e", "send, receive, ack, one at a time", 1, Work::EndToEnd),
    row("e2e_full", "send, receive, ack, with ordering, fair, limit and unique key", 1, Work::EndToEndFull),
];

/// The row with this name, or an error that lists them.
///
/// # Errors
/// A name that is none of a row.
pub fn find(name: &str) -> Result<Row, String> {
    ROWS.iter().find(|row| row.name == name).copied().ok_or_else(|| {
        let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        format!(
            "there is no row {name:?}; there are: {}, and beside them send_parallel, sustained, backlog, expiry, blocked, \
             fair, delayed, feature_bytes",
            names.join(", ")
        )
    })
}

impl Row {
    /// Steps of a round that is a `divisor`th of the usual.
    pub fn steps(&self, divisor: u64) -> u64 {
        (self.round_messages / divisor / self.messages).max(2)
    }

    /// Brings an engine where so many steps can be taken.
    pub fn prepare(&self, steps: u64) -> Prepared {
        let mut rig = Rig::new();
        let messages = steps * self.messages;
        let mut acks = Vec::new();
        match self.work {
            Work::Send { .. } => {}
            Work::ReceiveOver { queues } => fill_last(&mut rig, queues, messages),
            Work::Receive { .. } | Work::ReceiveAndAck => rig.fill(QUEUES[0], messages),
            Work::Ack => {
                rig.fill(QUEUES[0], messages);
                acks = receive_everything(&mut rig, messages);
            }
            Work::EndToEndFull => {
                rig.follow_limit(QUEUES[0], FULL_LIMIT);
                for at in 0..1_000 {
                    end_to_end_full(&mut rig, at);
                }
            }
            Work::EndToEnd => {
                for _ in 0..1_000 {
                    end_to_end(&mut rig);
                }
            }
        }
        let items = match self.work {
            Work::Send { payload_bytes, header, .. } => {
                vec![message(payload_bytes, header); self.messages as usize]
            }
            _ => Vec::new(),
        };
        Prepared { work: self.work, batch: self.messages as usize, rig, items, acks, step: 0, moved: 0 }
    }
}

/// The queues before the last exist and are empty.
fn fill_last(rig: &mut Rig, queues: usize, messages: u64) {
    for queue in &QUEUES[..queues - 1] {
        rig.fill(queue, 1);
        rig.receive_and_ack(queue);
    }
    rig.fill(QUEUES[queues - 1], messages);
}

fn receive_everything(rig: &mut Rig, messages: u64) -> Vec<SettleItem<'static>> {
    let mut acks = Vec::with_capacity(messages as usize);
    while (acks.len() as u64) < messages {
        let delivered = rig.receive(&[(QUEUES[0], 0)], 1_000, "");
        if delivered.is_empty() {
            break;
        }
        acks.extend(delivered.iter().map(|delivery| ack_of(delivery.receipt)));
    }
    acks
}

/// Keys that messages have in turn.
const KEYS: [&str; 8] = ["ann", "bob", "carol", "dave", "eve", "frank", "grace", "heidi"];
/// A limit of every kind, which nothing comes near.
const FULL_LIMIT: LimitRules = LimitRules {
    in_flight: Some(1_000),
    in_flight_per_key: Some(100),
    rate: Some(FULL_RATE),
    rate_per_key: Some(FULL_RATE),
};
const FULL_RATE: Rate = Rate { count: 1_000_000, period_ms: 1_000, burst: 1_000 };

fn end_to_end_full(rig: &mut Rig, at: usize) -> bool {
    let key = KEYS[at % KEYS.len()].as_bytes();
    let unique = Unique { key, window_ms: 60_000, until: UniqueUntil::Gone, on_duplicate: OnDuplicate::Keep };
    let options = SendOptions {
        ordering_key: key,
        fair_key: key,
        limit_key: key,
        unique: Some(unique),
        ..SendOptions::default()
    };
    rig.send(QUEUES[0], &[SendItem { options: Some(&options), ..usual_message() }]);
    rig.receive_and_ack(QUEUES[0])
}

fn end_to_end(rig: &mut Rig) -> bool {
    rig.send(QUEUES[0], &[usual_message()]);
    rig.receive_and_ack(QUEUES[0])
}

/// A row that is ready to run.
#[derive(Debug)]
pub struct Prepared {
    work: Work,
    batch: usize,
    rig: Rig,
    items: Vec<SendItem<'static>>,
    acks: Vec<SettleItem<'static>>,
    step: usize,
    moved: u64,
}

impl Prepared {
    /// Takes one step.
    pub fn step(&mut self) {
        let at = self.step;
        self.step += 1;
        match self.work {
            Work::Send { queues, .. } => {
                self.rig.send(QUEUES[at % queues], &self.items);
                self.moved += self.batch as u64;
            }
            Work::Receive { consumers } => {
                self.rig.receive(&[(QUEUES[0], 0)], self.batch as u32, CONSUMERS[at % consumers]);
                self.take_delivered();
            }
            Work::ReceiveOver { queues } => {
                let mut names = [("", 0u16); QUEUES.len()];
                for (name, queue) in names.iter_mut().zip(QUEUES) {
                    name.0 = queue;
                }
                self.rig.receive(&names[..queues], 1, "");
                self.take_delivered();
            }
            Work::Ack => {
                let from = at * self.batch;
                self.rig.ack(&self.acks[from..from + self.batch]);
                self.moved += self.batch as u64;
            }
            Work::ReceiveAndAck => self.moved += u64::from(self.rig.receive_and_ack(QUEUES[0])),
            Work::EndToEnd => self.moved += u64::from(end_to_end(&mut self.rig)),
            Work::EndToEndFull => self.moved += u64::from(end_to_end_full(&mut self.rig, at)),
        }
    }

    fn take_delivered(&mut self) {
        self.rig.read_all();
        self.moved += self.rig.deliveries().len() as u64;
    }

    /// Checks that the steps have moved every message that they should have moved.
    ///
    /// # Errors
    /// The number of commands that were refused, or of messages that were not moved.
    pub fn verify(&self) -> Result<(), String> {
        let expected = (self.step * self.batch) as u64;
        if self.rig.failures() > 0 {
            return Err(format!("{} commands were refused", self.rig.failures()));
        }
        if self.moved != expected {
            return Err(format!("{} of {expected} messages were moved", self.moved));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_moves_its_messages() {
        for row in ROWS {
            let steps = 20;
            let mut prepared = row.prepare(steps);
            for _ in 0..steps {
                prepared.step();
            }
            assert_eq!(prepared.verify(), Ok(()), "{}", row.name);
        }
    }

    #[test]
    fn an_unknown_row_lists_those_there_are() {
        assert!(find("sned").unwrap_err().contains("send_4_b, send_64_kib"));
    }
}
