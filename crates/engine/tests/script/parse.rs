//! From lines to commands.

use sluice_engine::Command;
use sluice_engine::change::{Change, ChangeAction, NewFields};
use sluice_engine::command::{
    Content, Deliver, Group, Progress, QueueItem, Receive, ReportItem, ScheduleFire, SchedulePut, Send,
    SendItem, SettleItem, Settlement,
};
use sluice_engine::id::Receipt;
use sluice_engine::item::{Chain, DependsMode, DependsOn, OnParentFailed, SendOptions, Step, Steps};

use super::line::{Line, backoff, chain, cost, deliver, options, words};
use super::{Player, START_US};

/// Ids of parents, and places in the send.
pub(super) type Parents = (Vec<[u8; 12]>, Vec<[u8; 4]>);

fn add_cost(line: &Line<'_>) -> u32 {
    line.number("add_cost").unwrap_or(0) as u32
}

pub(super) fn depends_on<'a>(line: &Line<'_>, (ids, places): &'a Parents) -> DependsOn<'a> {
    DependsOn {
        ids,
        places,
        mode: if line.get("depends_mode") == Some("any") { DependsMode::Any } else { DependsMode::All },
        on_parent_failed: match line.get("on_parent_failed") {
            Some("hold") => OnParentFailed::Hold,
            Some("run") => OnParentFailed::Run,
            _ => OnParentFailed::Cancel,
        },
    }
}

pub(super) fn steps<'a>((steps, on_failure): &'a (Vec<Step<'a>>, Option<Step<'a>>)) -> Steps<'a> {
    Steps { steps, on_failure: on_failure.as_ref() }
}

pub(super) fn given<'a>(steps: &'a Steps<'a>) -> Chain<'a> {
    if steps.steps.is_empty() && steps.on_failure.is_none() { Chain::None } else { Chain::Given(steps) }
}

impl Player {
    pub(super) fn command(&mut self, line: &Line<'_>) -> Vec<String> {
        let namespace = self.namespace(line);
        match (line.verb, line.words.as_slice()) {
            ("send", [queue, payloads @ ..]) => self.send(line, queue, payloads),
            ("group", members) => self.group(line, members),
            ("receive", queues) => self.receive(line, queues),
            ("ack" | "nack" | "release" | "give-back" | "reject" | "settle", items) => {
                self.settle(line, items)
            }
            ("extend", receipts) => {
                let lease_ms = line.number("lease_ms").unwrap_or(0);
                let items: Vec<_> =
                    receipts.iter().map(|receipt| (self.receipt(receipt), lease_ms)).collect();
                self.run(&Command::Extend { namespace, items: &items })
            }
            ("report", receipts) => self.report(line, receipts),
            ("change", [verb, ids @ ..]) => self.change(line, verb, ids),
            ("schedule", [what, words @ ..]) => self.schedule(line, what, words),
            ("queue" | "dead" | "defaults" | "limit" | "namespace", _) => self.manage(line),
            ("doc", _) => self.document(line),
            ("index", _) => self.index(line),
            ("search", ["fill"]) => self.search_fill(line),
            ("upload", _) => self.upload(line),
            ("file", _) => self.file(line),
            ("lock", _) => self.lock(line),
            ("attach" | "credit" | "detach" | "resume", _) => self.consumer(line),
            ("finish" | "ask" | "forget", _) => self.phase(line),
            _ => self.whole(line),
        }
    }

    fn send(&mut self, line: &Line<'_>, queue: &str, payloads: &[&str]) -> Vec<String> {
        let sized = line.number("size").map(|size| vec![b'x'; size as usize]);
        let header = line.get("header").map(|header| [header.split_once(':').unwrap_or((header, ""))]);
        let tags: Vec<&str> = line.get("tags").map(words).unwrap_or_default();
        let parents = self.parents(line);
        let depends_on = parents.as_ref().map(|parents| depends_on(line, parents));
        // Of several unique keys each item has its own; `-`: none. What depends on others of its send is the
        // last one of it.
        let keys: Vec<&str> = line.get("unique").map_or_else(|| vec!["-"], |keys| keys.split(',').collect());
        let within = depends_on.is_some_and(|depends_on| !depends_on.places.is_empty());
        let first_line = line.preferring("first_");
        let step_options = options(&line.under("step_"), "-");
        let chains = [&first_line, line].map(|line| chain(line, &step_options));
        let chains = [&chains[0], &chains[1]].map(steps);
        let options_at = |at: usize| {
            let (line, chain) = if at == 0 { (&first_line, &chains[0]) } else { (line, &chains[1]) };
            let key = keys.get(at).unwrap_or(&keys[0]);
            let waits = !within || at + 1 == payloads.len();
            SendOptions {
                depends_on: depends_on.filter(|_| waits),
                chain: given(chain),
                ..options(line, key)
            }
        };
        let copies = line.number("copies").unwrap_or(0) as usize;
        let all_options: Vec<SendOptions<'_>> = (0..payloads.len() + copies.min(1)).map(options_at).collect();
        let item = |at: usize| {
            let of = if at == 0 { &first_line } else { line };
            SendItem {
                content_type: line.get("type").unwrap_or(""),
                tags: &tags,
                headers: header.as_ref().map_or(&[], |header| header),
                priority: of.number("priority").unwrap_or(0) as u8,
                deliver: deliver(of).unwrap_or_default(),
                max_attempts: of.number("max_attempts").unwrap_or(0) as u16,
                backoff: of.get("backoff").map(backoff),
                payload: sized.as_deref().unwrap_or(payloads.get(at).map_or(b"", |text| text.as_bytes())),
                options: all_options[at].given(),
            }
        };
        let mut items: Vec<SendItem<'_>> = (0..payloads.len()).map(item).collect();
        items.extend((0..copies).map(|_| item(payloads.len())));
        self.run(&Command::Send(Send {
            namespace: self.namespace(line),
            queue,
            idempotency_key: line.get("key").unwrap_or("").as_bytes(),
            request_digest: line.number("digest").unwrap_or(0),
            items: &items,
        }))
    }

    /// Times are milliseconds since the beginning; `fire NUMBER at=... next=...`, `sent=no` lets the instant
    /// go by.
    fn schedule(&mut self, line: &Line<'_>, what: &str, words: &[&str]) -> Vec<String> {
        let namespace = self.namespace(line);
        let time = |key: &str| line.number(key).map_or(0, |ms| START_US + ms * 1_000);
        let next_at_us = time("next");
        match (what, words) {
            ("put", [schedule, queue, payload]) => {
                let options = options(line, line.get("unique").unwrap_or("-"));
                let item = SendItem {
                    payload: payload.as_bytes(),
                    priority: line.number("priority").unwrap_or(0) as u8,
                    deliver: match (line.number("delay_ms"), line.number("at_ms")) {
                        (Some(delay_ms), _) => Deliver::AfterMs(delay_ms),
                        (_, Some(at_ms)) => Deliver::AtUs(START_US + at_ms * 1_000),
                        _ => Deliver::Now,
                    },
                    max_attempts: line.number("max_attempts").unwrap_or(0) as u16,
                    backoff: line.get("backoff").map(backoff),
                    options: options.given(),
                    ..SendItem::default()
                };
                let spec = line.get("spec").unwrap_or("each").as_bytes();
                let put = SchedulePut { namespace, schedule, queue, spec, next_at_us, item: &item };
                self.run(&Command::SchedulePut(put))
            }
            ("fire", [number]) => self.run(&Command::ScheduleFire(ScheduleFire {
                number: number.parse().unwrap(),
                instant_us: time("at"),
                send: line.get("sent") != Some("no"),
                next_at_us,
            })),
            ("delete", [schedule]) => self.run(&Command::ScheduleDelete { namespace, schedule }),
            ("trigger", [schedule]) => self.run(&Command::ScheduleTrigger { namespace, schedule }),
            ("pause" | "resume", [schedule]) => {
                let paused = what == "pause";
                self.run(&Command::SchedulePause { namespace, schedule, paused, next_at_us })
            }
            _ => panic!("{line:?} is no command"),
        }
    }

    /// Members are `QUEUE:PAYLOAD`, with the options `member_OPTION=`; so is `callback=`, which has the
    /// options of the line.
    fn group(&mut self, line: &Line<'_>, members: &[&str]) -> Vec<String> {
        let of_members = line.under("member_");
        let parents = self.parents(&of_members);
        let step_options = options(&line.under("step_"), "-");
        let chains = [&of_members, line].map(|line| chain(line, &step_options));
        let chains = [&chains[0], &chains[1]].map(steps);
        let member_options = SendOptions {
            depends_on: parents.as_ref().map(|parents| depends_on(&of_members, parents)),
            chain: given(&chains[0]),
            ..options(&of_members, "-")
        };
        let unique = line.get("unique").unwrap_or("-");
        let options = SendOptions { chain: given(&chains[1]), ..options(line, unique) };
        let item = |text: &str| -> (String, Vec<u8>) {
            let (queue, payload) = text.split_once(':').expect("QUEUE:PAYLOAD");
            (queue.to_owned(), payload.as_bytes().to_vec())
        };
        let members: Vec<_> = members.iter().map(|member| item(member)).collect();
        let (queue, payload) = item(line.get("callback").expect("a callback"));
        let members: Vec<QueueItem<'_>> = members
            .iter()
            .map(|(queue, payload)| {
                let deliver = deliver(&of_members).unwrap_or_default();
                let item =
                    SendItem { payload, deliver, options: member_options.given(), ..SendItem::default() };
                QueueItem { queue, item }
            })
            .collect();
        let item = SendItem {
            payload: &payload,
            options: options.given(),
            deliver: deliver(line).unwrap_or_default(),
            ..SendItem::default()
        };
        self.run(&Command::Group(Group {
            namespace: self.namespace(line),
            idempotency_key: line.get("key").unwrap_or("").as_bytes(),
            request_digest: line.number("digest").unwrap_or(0),
            members: &members,
            callback: &QueueItem { queue: &queue, item },
        }))
    }

    /// `depends_on=MESSAGE,^PLACE`: ids, and places in the send (`#` begins a comment), then for its last
    /// message alone.
    pub(super) fn parents(&self, line: &Line<'_>) -> Option<Parents> {
        let (mut ids, mut places) = (Vec::new(), Vec::new());
        for parent in line.get("depends_on")?.split(',') {
            match parent.strip_prefix('^') {
                Some(place) => places.push(place.parse::<u32>().unwrap().to_le_bytes()),
                None => ids.push(DependsOn::id_bytes(self.message_id(parent))),
            }
        }
        Some((ids, places))
    }

    fn receive(&mut self, line: &Line<'_>, queues: &[&str]) -> Vec<String> {
        let weighted = |queue: &&'_ str| -> (String, u16) {
            let (name, weight) = queue.split_once(':').unwrap_or((queue, "0"));
            (name.to_owned(), weight.parse().unwrap())
        };
        let queues: Vec<(String, u16)> = queues.iter().map(weighted).collect();
        let queues: Vec<(&str, u16)> = queues.iter().map(|(name, weight)| (name.as_str(), *weight)).collect();
        self.run(&Command::Receive(Receive {
            namespace: self.namespace(line),
            queues: &queues,
            max_messages: line.number("max").unwrap_or(1) as u32,
            max_bytes: line.number("bytes").unwrap_or(1 << 20) as u32,
            lease_ms: line.number("lease_ms").unwrap_or(0),
            consumer: line.get("consumer").unwrap_or(""),
        }))
    }

    /// Items are deliveries; of `settle`, each with its end: `ack:d1 nack:d2`.
    fn settle(&mut self, line: &Line<'_>, items: &[&str]) -> Vec<String> {
        let error = line.get("error").unwrap_or("").replace('_', " ");
        let item = |text: &&str| -> SettleItem<'_> {
            let (verb, receipt) = match line.verb {
                "settle" => text.split_once(':').expect("END:DELIVERY"),
                verb => (verb, *text),
            };
            self.settle_item(line, verb, receipt, &error)
        };
        let items: Vec<SettleItem<'_>> = items.iter().map(item).collect();
        self.run(&Command::Settle { namespace: self.namespace(line), items: &items })
    }

    pub(super) fn settle_item<'a>(
        &self,
        line: &Line<'a>,
        verb: &str,
        receipt: &str,
        error: &'a str,
    ) -> SettleItem<'a> {
        let delay_ms = line.number("delay_ms");
        let content_type = line.get("type").unwrap_or("");
        let result = line.get("result").map(|text| Content { content_type, bytes: text.as_bytes() });
        let settlement = match verb {
            "ack" => Settlement::Ack,
            "nack" => Settlement::Nack { delay_ms },
            "release" => Settlement::Release { delay_ms: delay_ms.unwrap_or(0) },
            "give-back" => Settlement::GiveBack { delay_ms: delay_ms.unwrap_or(0) },
            _ => Settlement::Reject,
        };
        let result = Some(settlement).filter(|end| *end == Settlement::Ack).and(result);
        SettleItem { receipt: self.receipt(receipt), settlement, error, result, add_cost: add_cost(line) }
    }

    /// Each of the deliveries reports the same.
    fn report(&mut self, line: &Line<'_>, receipts: &[&str]) -> Vec<String> {
        let note = line.get("note").unwrap_or("").replace('_', " ");
        let progress =
            line.number("progress").map(|percent| Progress { percent: percent as u8, note: &note });
        let items: Vec<ReportItem<'_>> = receipts
            .iter()
            .map(|receipt| ReportItem {
                receipt: self.receipt(receipt),
                lease_ms: line.number("lease_ms").unwrap_or(0),
                progress,
                checkpoint: line.get("checkpoint").map(str::as_bytes),
                add_cost: add_cost(line),
            })
            .collect();
        self.run(&Command::Report { namespace: self.namespace(line), items: &items })
    }

    /// `change VERB ID...`; each with the version of another message by `version=ID`.
    fn change(&mut self, line: &Line<'_>, verb: &str, ids: &[&str]) -> Vec<String> {
        let version = line.get("version").map_or(0, |id| {
            let view = self.driver.engine.message(self.message_id(id));
            view.map_or(1, |view| view.version)
        });
        let items: Vec<_> = ids.iter().map(|id| (self.message_id(id), version)).collect();
        let tags = line.get("tags").map(words);
        let fields = NewFields {
            priority: line.number("priority").map(|priority| priority as u8),
            deliver: deliver(line),
            max_attempts: line.number("max_attempts").map(|attempts| attempts as u16),
            tags: tags.as_deref(),
            cost: cost(line),
        };
        let action = match verb {
            "cancel" => ChangeAction::Cancel,
            "hold" => ChangeAction::Hold,
            "approve" => ChangeAction::Approve,
            "deny" => ChangeAction::Deny,
            "retry" => ChangeAction::Retry,
            "move" => ChangeAction::Move { to: line.get("to").expect("to=QUEUE") },
            _ => ChangeAction::Set(fields),
        };
        let why = line.get("why").unwrap_or("").replace('_', " ");
        let by = line.get("by").unwrap_or("");
        self.run(&Command::Change(Change {
            namespace: self.namespace(line),
            items: &items,
            action,
            by,
            why: &why,
        }))
    }

    /// Remembers the deliveries of the last command under their names.
    pub(super) fn name_deliveries(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        let out = &self.driver.out;
        let pushed = out.pushed.iter().map(|(_, delivery)| delivery);
        let receipts: Vec<Receipt> =
            out.deliveries.iter().chain(pushed).map(|delivery| delivery.receipt).collect();
        for receipt in receipts {
            self.deliveries.push(receipt);
            let name = format!("d{}", self.deliveries.len());
            self.names.insert(name.clone(), receipt);
            names.push(name);
        }
        names
    }
}
