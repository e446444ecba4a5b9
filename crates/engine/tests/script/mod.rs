//! The language of the golden scripts.
//!
//! Each script begins with an engine on which epoch 1 has begun at time 0. Words are separated by spaces;
//! `key=value` words are options, `_` in a value stands for a space. `@250 ` before a command sets the clock,
//! in milliseconds since the beginning (decimals allowed). Queues are in the namespace `default` unless
//! `ns=NAME`. Messages are called `EPOCH.COUNT` (`NAMESPACE:EPOCH.COUNT` elsewhere than in `default`),
//! deliveries d1, d2, ... in the order in which they were made; a receipt may be spelt out as
//! `MESSAGE/EPOCH.COUNT`.
//!
//! A send has one message for each payload, all with the options of the line, and as many more without
//! payload as `copies=` says. `first_OPTION=` (`first_expires_at_ms=500`, `first_chain=next`) is for the
//! first of them alone; `unique=a,-` gives each its own key, `-` none. `step_OPTION=` is for every step of a
//! chain, `member_OPTION=` for every member of a group, of which the line's own options are the callback's.
//! Indexes of messages are in `search.rs`, documents in `documents.rs`, attachments in `attachments.rs`,
//! transactions in `transactions.rs`.
//! Grants of locks are called l1, l2, ..., claims that wait w1, w2, ...
//!
//! What a command brings about:
//!
//! - `refused CODE: ...` by the check before it is proposed, or `error CODE: ...` when it is applied;
//! - its reply, its results item by item, its deliveries, those to consumers with `to NUMBER`;
//! - after `watch on`, the messages that `ended`; after `events on`, the events;
//! - `released` the blobs let go of, as RECORD#ITEM; `ready` the queues in which messages became ready.

mod attachments;
mod documents;
mod indexes;
mod line;
mod locks;
mod look;
mod manage;
mod parse;
mod print;
mod search;
mod transactions;

use std::collections::HashMap;

use sluice_engine::id::{MessageId, NamespaceId, Receipt, UploadId};
use sluice_engine::{BEHAVIOUR_VERSION, Command, Engine};

use crate::common::Driver;
use line::{Line, epoch_and_count};

/// The beginning of every script, in microseconds since the Unix epoch.
const START_US: u64 = 1_700_000_000_000_000;

/// A script being played.
struct Player {
    driver: Driver,
    now_us: u64,
    deliveries: Vec<Receipt>,
    names: HashMap<String, Receipt>,
    locks: locks::Named,
    uploads: Vec<UploadId>,
}

/// Plays a script and returns it with what came of each command, and the log and the state that it gave.
pub(crate) fn play(script: &str) -> (String, Driver) {
    let mut player = Player {
        driver: Driver::new(),
        now_us: START_US,
        deliveries: Vec::new(),
        names: HashMap::new(),
        locks: locks::Named::default(),
        uploads: Vec::new(),
    };
    player.driver.apply(START_US, &Command::Epoch { number: 1, behaviour: BEHAVIOUR_VERSION });
    let mut text = String::new();
    for line in script.lines().filter(|line| !line.starts_with(' ')) {
        text.push_str(line);
        text.push('\n');
        let mut command = line.split('#').next().unwrap_or("").trim();
        if let Some((time, rest)) = command.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            let ms: f64 = time.parse().expect("a time after @");
            player.now_us = START_US + (ms * 1_000.0).round() as u64;
            command = rest;
        }
        if command.is_empty() {
            continue;
        }
        let lines = match command.split_once(' ') {
            Some(("txn", operations)) => player.transaction(operations),
            Some(("prepare", part)) => player.prepare(part),
            Some(("decide", part)) => player.decide(part),
            _ => player.play(&Line::new(command)),
        };
        for line in lines {
            text.push_str("  ");
            text.push_str(&line);
            text.push('\n');
        }
        player.driver.engine.recount().unwrap_or_else(|why| panic!("after {line:?}: {why}"));
    }
    (text, player.driver)
}

impl Player {
    fn play(&mut self, line: &Line<'_>) -> Vec<String> {
        match line.verb {
            "show" | "list" | "peek" | "deadline" | "due" => self.look(line),
            "ticks" => self.ticks(),
            "restart" => self.restart(),
            "raw" => self.raw(line),
            _ => self.command(line),
        }
    }

    /// Checks and applies.
    fn run(&mut self, command: &Command<'_>) -> Vec<String> {
        if let Err(error) = command.check(self.driver.engine.limits()) {
            return vec![format!("refused {}: {error}", error.code())];
        }
        self.driver.apply(self.now_us, command);
        self.outcome()
    }

    /// Ticks until nothing is due; tells of each.
    fn ticks(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut count = 0;
        while self.driver.engine.next_deadline().is_some_and(|due| due <= self.now_us) {
            lines.extend(self.run(&Command::Tick));
            count += 1;
        }
        lines.push(format!("{count} tick(s)"));
        lines
    }

    /// Goes on with an engine restored from a snapshot.
    fn restart(&mut self) -> Vec<String> {
        let mut bytes = Vec::new();
        self.driver.engine.snapshot_begin();
        while !self.driver.engine.snapshot_step(1_000, &mut bytes) {}
        let mut pieces = bytes.chunks(100);
        let restored = Engine::restore(&mut || pieces.next().map(<[u8]>::to_vec)).unwrap();
        assert_eq!(restored.digest(), self.driver.engine.digest());
        self.driver.engine = restored;
        Vec::new()
    }

    /// Applies a body given in hexadecimal digits.
    fn raw(&mut self, line: &Line<'_>) -> Vec<String> {
        let digits = line.words.concat();
        let body: Vec<u8> = (0..digits.len() / 2)
            .map(|at| u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).unwrap())
            .collect();
        let driver = &mut self.driver;
        driver.engine.apply(self.now_us, driver.log.len() as u64 + 1, &body, &mut driver.out);
        self.outcome()
    }

    fn namespace(&self, line: &Line<'_>) -> NamespaceId {
        line.get("ns").map_or(NamespaceId::DEFAULT, |name| self.namespace_named(name))
    }

    /// A namespace by name, or by `#NUMBER` where there is none.
    fn namespace_named(&self, name: &str) -> NamespaceId {
        let by_name = || self.driver.engine.namespace_by_name(name).expect("the script names a namespace");
        name.strip_prefix("no.").map_or_else(by_name, |number| NamespaceId(number.parse().unwrap()))
    }

    fn message_id(&self, text: &str) -> MessageId {
        let (namespace, sequence) = match text.split_once(':') {
            Some((namespace, sequence)) => (NamespaceId(namespace.parse().unwrap()), sequence),
            None => (NamespaceId::DEFAULT, text),
        };
        MessageId { namespace, sequence: epoch_and_count(sequence) }
    }

    fn receipt(&self, text: &str) -> Receipt {
        if let Some(receipt) = self.names.get(text) {
            return *receipt;
        }
        let (id, token) = text.split_once('/').unwrap_or_else(|| panic!("{text} is no delivery"));
        self.driver.engine.receipt(self.message_id(id), epoch_and_count(token))
    }
}
