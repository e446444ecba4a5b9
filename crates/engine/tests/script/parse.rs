//! From lines to commands.

use sluice_engine::chain::{Chain, Step, Steps};
use sluice_engine::change::{Change, ChangeAction, NewFields};
use sluice_engine::command::{
    Attach, Content, DETACH_GRACE_MS, Deliver, Group, Progress, QueueItem, Receive, ReportItem, ScheduleFire,
    SchedulePut, Send, SendItem, SettleItem, Settlement,
};
use sluice_engine::id::{ConsumerId, EPOCH_SHIFT, MessageId, NamespaceId, Receipt};
use sluice_engine::limit::{LimitRules, Rate};
use sluice_engine::options::{
    DependsMode, DependsOn, Expires, OnDuplicate, OnParentFailed, SendOptions, Unique, UniqueUntil,
};
use sluice_engine::settings::{
    Backoff, BackoffKind, FairWeights, OnExpire, OrderingRetry, Overflow, Placement, QueuePatch, Quotas,
};
use sluice_engine::{BEHAVIOUR_VERSION, BlobRef, Command, Limits};

use super::{Player, START_US};

/// One command: a verb, words and options.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) verb: &'a str,
    pub(super) words: Vec<&'a str>,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    pub(super) fn new(text: &'a str) -> Line<'a> {
        let mut words = text.split_whitespace();
        let verb = words.next().expect("a verb");
        let (options, words): (Vec<_>, Vec<_>) = words.partition(|word| word.contains('='));
        let options = options.into_iter().filter_map(|option| option.split_once('=')).collect();
        Line { verb, words, options }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        self.options.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.get(key).map(|value| value.parse().unwrap_or_else(|_| panic!("{key}={value} is no number")))
    }

    fn quotas(&self) -> Quotas {
        let number = |key| self.number(key).unwrap_or(0);
        Quotas { queues: number("queues"), messages: number("messages"), bytes: number("bytes") }
    }
}

pub(super) fn epoch_and_count(text: &str) -> u64 {
    let (epoch, count) = text.split_once('.').unwrap_or_else(|| panic!("{text} is not EPOCH.COUNT"));
    epoch.parse::<u64>().unwrap() << EPOCH_SHIFT | count.parse::<u64>().unwrap()
}

/// `KIND:BASE:CAP:JITTER`
fn backoff(text: &str) -> Backoff {
    let parts: Vec<&str> = text.split(':').collect();
    let kind = match parts[0] {
        "none" => BackoffKind::None,
        "fixed" => BackoffKind::Fixed,
        "linear" => BackoffKind::Linear,
        _ => BackoffKind::Exponential,
    };
    let number = |at: usize| parts.get(at).map_or(0, |part| part.parse().unwrap());
    Backoff { kind, base_ms: number(1), cap_ms: number(2), jitter_percent: number(3) as u8 }
}

impl Player {
    pub(super) fn command(&mut self, line: &Line<'_>) -> Vec<String> {
        let namespace = self.namespace(line);
        match (line.verb, line.words.as_slice()) {
            ("send", [queue, payloads @ ..]) => self.send(line, queue, payloads),
            ("group", members) => self.group(line, members),
            ("receive", queues) => self.receive(line, queues),
            ("ack" | "nack" | "release" | "reject" | "settle", items) => self.settle(line, items),
            ("extend", receipts) => {
                let lease_ms = line.number("lease_ms").unwrap_or(0);
                let items: Vec<_> =
                    receipts.iter().map(|receipt| (self.receipt(receipt), lease_ms)).collect();
                self.run(&Command::Extend { namespace, items: &items })
            }
            ("report", receipts) => self.report(line, receipts),
            ("watch", [what]) => {
                self.driver.engine.watch_ends(*what == "on");
                Vec::new()
            }
            ("events", [what]) => {
                self.driver.engine.watch_events(*what == "on");
                Vec::new()
            }
            ("change", [verb, ids @ ..]) => self.change(line, verb, ids),
            ("attach", [name, queues @ ..]) => self.run(&Command::Attach(Attach {
                namespace,
                name,
                queues,
                credit: line.number("credit").unwrap_or(1) as u32,
                lease_ms: line.number("lease_ms").unwrap_or(0),
            })),
            ("credit", [number, credit]) => self.run(&Command::Credit {
                namespace,
                consumer: ConsumerId(number.parse().unwrap()),
                credit: credit.parse().unwrap(),
            }),
            ("detach", [number]) => self.run(&Command::Detach {
                namespace,
                consumer: ConsumerId(number.parse().unwrap()),
                grace_ms: line.number("grace_ms").unwrap_or(DETACH_GRACE_MS),
                reached: line.get("reached").map_or(0, |delivery| self.receipt(delivery).token),
            }),
            ("resume", [number, receipts @ ..]) => {
                let receipts: Vec<_> = receipts.iter().map(|receipt| self.receipt(receipt)).collect();
                let consumer = ConsumerId(number.parse().unwrap());
                self.run(&Command::Resume { namespace, consumer, receipts: &receipts })
            }
            ("tick", []) => self.run(&Command::Tick),
            ("epoch", [number]) => self.run(&Command::Epoch {
                number: number.parse().unwrap(),
                behaviour: line.number("behaviour").map_or(BEHAVIOUR_VERSION, |number| number as u16),
            }),
            ("configure", []) => self.run(&Command::Configure(self.limits(line))),
            ("hold", [id]) => {
                let id = self.message_id(id);
                let blob = self
                    .driver
                    .engine
                    .message(id)
                    .map_or(BlobRef { index: 0, item: 0, len: 0 }, |view| view.blob);
                self.run(&Command::HoldDamaged { id, blob })
            }
            ("queue", [what, queue]) => {
                let command = match *what {
                    "purge" => Command::QueuePurge { namespace, queue },
                    "delete" => Command::QueueDelete { namespace, queue },
                    what => {
                        Command::QueueSet { namespace, queue, patch: patch(line), create: what == "create" }
                    }
                };
                self.run(&command)
            }
            ("dead", ["redrive", queue]) if line.get("per_second").is_some() => {
                let per_second = line.number("per_second").unwrap_or(0) as u32;
                self.run(&Command::DeadRedriveRate { namespace, queue, per_second })
            }
            ("dead", [what, queue, ids @ ..]) => {
                let ids: Vec<MessageId> = ids.iter().map(|id| self.message_id(id)).collect();
                let ids = ids.as_slice();
                self.run(&match *what {
                    "redrive" => Command::DeadRedrive { namespace, queue, ids },
                    _ => Command::DeadDelete { namespace, queue, ids },
                })
            }
            ("schedule", [what, words @ ..]) => self.schedule(line, what, words),
            ("defaults", ["set", pattern]) => {
                self.run(&Command::DefaultsSet { namespace, pattern, patch: patch(line) })
            }
            ("defaults", ["delete", pattern]) => self.run(&Command::DefaultsDelete { namespace, pattern }),
            ("limit", ["delete", limit]) => self.run(&Command::LimitDelete { namespace, limit }),
            ("limit", ["set", limit]) => {
                self.run(&Command::LimitSet { namespace, limit, rules: rules(line) })
            }
            ("namespace", [what, name, force @ ..]) => {
                let quotas = line.quotas();
                let command = match *what {
                    "create" => {
                        let number = line.number("number").map(|number| NamespaceId(number as u32));
                        let shard = line.number("shard").unwrap_or(0) as u32;
                        Command::NamespaceCreate { number, name, shard, quotas }
                    }
                    "set" => Command::NamespaceSet { namespace: self.namespace_named(name), quotas },
                    _ => {
                        let namespace = self.namespace_named(name);
                        Command::NamespaceDelete { namespace, force: force.first() == Some(&"force") }
                    }
                };
                self.run(&command)
            }
            _ => panic!("{line:?} is no command"),
        }
    }

    fn send(&mut self, line: &Line<'_>, queue: &str, payloads: &[&str]) -> Vec<String> {
        let sized = line.number("size").map(|size| vec![b'x'; size as usize]);
        let header = line.get("header").map(|header| [header.split_once(':').unwrap_or((header, ""))]);
        let tags: Vec<&str> = line.get("tags").map(words).unwrap_or_default();
        let parents = self.parents(line);
        let depends_on = parents.as_ref().map(|(ids, places)| DependsOn {
            ids,
            places,
            mode: if line.get("depends_mode") == Some("any") { DependsMode::Any } else { DependsMode::All },
            on_parent_failed: match line.get("on_parent_failed") {
                Some("hold") => OnParentFailed::Hold,
                Some("run") => OnParentFailed::Run,
                _ => OnParentFailed::Cancel,
            },
        });
        // Of several unique keys each item has its own; `-`: none. What depends on others of its send is the last one of it.
        let keys: Vec<&str> = line.get("unique").map_or_else(Vec::new, |keys| keys.split(',').collect());
        let mut all_options: Vec<SendOptions<'_>> = match keys.as_slice() {
            [] => vec![options(line, "-")],
            keys => keys.iter().map(|key| options(line, key)).collect(),
        };
        let within = depends_on.is_some_and(|depends_on| !depends_on.places.is_empty());
        if within && keys.is_empty() {
            all_options = vec![all_options[0]; payloads.len()];
        }
        let skipped = if within { all_options.len() - 1 } else { 0 };
        all_options.iter_mut().skip(skipped).for_each(|options| options.depends_on = depends_on);
        let step_options =
            SendOptions { result_ttl_ms: line.number("step_ttl_ms").unwrap_or(0), ..SendOptions::default() };
        let (steps, on_failure) = chain(line, &step_options);
        let chain = Steps { steps: &steps, on_failure: on_failure.as_ref() };
        if !steps.is_empty() || on_failure.is_some() {
            all_options.iter_mut().for_each(|options| options.chain = Chain::Given(&chain));
        }
        let options = all_options[0];
        let item = SendItem {
            content_type: line.get("type").unwrap_or(""),
            tags: &tags,
            headers: header.as_ref().map_or(&[], |header| header),
            priority: line.number("priority").unwrap_or(0) as u8,
            deliver: deliver(line).unwrap_or_default(),
            max_attempts: line.number("max_attempts").unwrap_or(0) as u16,
            backoff: line.get("backoff").map(backoff),
            payload: sized.as_deref().unwrap_or(b""),
            options: options.given(),
        };
        let mut items: Vec<SendItem<'_>> = payloads
            .iter()
            .map(|payload| SendItem {
                payload: sized.as_deref().unwrap_or(payload.as_bytes()),
                ..item.clone()
            })
            .collect();
        for (item, options) in items.iter_mut().zip(&all_options) {
            item.options = options.given();
        }
        items.extend(std::iter::repeat_n(item, line.number("copies").unwrap_or(0) as usize));
        self.run(&Command::Send(Send {
            namespace: self.namespace(line),
            queue,
            idempotency_key: line.get("key").unwrap_or("").as_bytes(),
            request_digest: line.number("digest").unwrap_or(0),
            items: &items,
        }))
    }

    /// Times are milliseconds since the beginning; `fire NUMBER at=... next=...`, `sent=no` lets the instant go by.
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

    /// Members are `QUEUE:PAYLOAD`; so is `callback=`, which has the options of the line.
    fn group(&mut self, line: &Line<'_>, members: &[&str]) -> Vec<String> {
        let options = options(line, line.get("unique").unwrap_or("-"));
        let item = |text: &str| -> (String, Vec<u8>) {
            let (queue, payload) = text.split_once(':').expect("QUEUE:PAYLOAD");
            (queue.to_owned(), payload.as_bytes().to_vec())
        };
        let members: Vec<_> = members.iter().map(|member| item(member)).collect();
        let (queue, payload) = item(line.get("callback").expect("a callback"));
        let members: Vec<QueueItem<'_>> = members
            .iter()
            .map(|(queue, payload)| QueueItem { queue, item: SendItem { payload, ..SendItem::default() } })
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

    /// `depends_on=MESSAGE,^PLACE`: ids, and places in the send (`#` begins a comment), then for its last message alone.
    #[allow(clippy::type_complexity)]
    fn parents(&self, line: &Line<'_>) -> Option<(Vec<[u8; 12]>, Vec<[u8; 4]>)> {
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
        let delay_ms = line.number("delay_ms");
        let content_type = line.get("type").unwrap_or("");
        let result = line.get("result").map(|text| Content { content_type, bytes: text.as_bytes() });
        let item = |text: &&str| -> SettleItem<'_> {
            let (verb, receipt) = match line.verb {
                "settle" => text.split_once(':').expect("END:DELIVERY"),
                verb => (verb, *text),
            };
            let settlement = match verb {
                "ack" => Settlement::Ack,
                "nack" => Settlement::Nack { delay_ms },
                "release" => Settlement::Release { delay_ms: delay_ms.unwrap_or(0) },
                _ => Settlement::Reject,
            };
            let result = Some(settlement).filter(|end| *end == Settlement::Ack).and(result);
            SettleItem { receipt: self.receipt(receipt), settlement, error: &error, result }
        };
        let items: Vec<SettleItem<'_>> = items.iter().map(item).collect();
        self.run(&Command::Settle { namespace: self.namespace(line), items: &items })
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

    fn limits(&self, line: &Line<'_>) -> Limits {
        let mut limits = self.driver.engine.limits().clone();
        let small =
            |key: &str, place: &mut u32| *place = line.number(key).map_or(*place, |value| value as u32);
        small("payload_bytes", &mut limits.payload_bytes);
        small("headers", &mut limits.headers);
        small("headers_bytes", &mut limits.headers_bytes);
        small("batch_items", &mut limits.batch_items);
        small("batch_bytes", &mut limits.batch_bytes);
        small("receive_messages", &mut limits.receive_messages);
        small("queues", &mut limits.queues);
        small("namespaces", &mut limits.namespaces);
        small("idempotency_keys", &mut limits.idempotency_keys);
        limits.messages = line.number("messages").unwrap_or(limits.messages);
        limits.idempotency_window_ms =
            line.number("idempotency_window_ms").unwrap_or(limits.idempotency_window_ms);
        limits.auto_create = line.get("auto_create").map_or(limits.auto_create, |value| value == "true");
        limits
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

/// A list of words, separated by commas.
fn words(text: &str) -> Vec<&str> {
    text.split(',').filter(|word| !word.is_empty()).collect()
}

fn deliver(line: &Line<'_>) -> Option<Deliver> {
    match (line.number("delay_ms"), line.get("at_ms")) {
        (Some(delay_ms), _) => Some(Deliver::AfterMs(delay_ms)),
        (_, Some(at_ms)) => {
            Some(Deliver::AtUs(START_US.saturating_add_signed(at_ms.parse::<i64>().unwrap() * 1_000)))
        }
        _ => None,
    }
}

fn options<'a>(line: &Line<'a>, unique: &'a str) -> SendOptions<'a> {
    let key = |name: &str| line.get(name).unwrap_or("").as_bytes();
    let unique = (unique != "-").then(|| Unique {
        key: unique.as_bytes(),
        window_ms: line.number("window_ms").unwrap_or(60_000),
        until: match line.get("until") {
            Some("window") => UniqueUntil::Window,
            _ => UniqueUntil::Gone,
        },
        on_duplicate: match line.get("on_duplicate") {
            Some("replace_payload") => OnDuplicate::ReplacePayload,
            Some("debounce") => OnDuplicate::Debounce,
            _ => OnDuplicate::Keep,
        },
    });
    SendOptions {
        ordering_key: key("ordering_key"),
        fair_key: key("fair_key"),
        result_ttl_ms: line.number("result_ttl_ms").unwrap_or(0),
        correlation_id: key("correlation_id"),
        unique,
        expires: match (line.number("ttl_ms"), line.get("expires_at_ms")) {
            (Some(ttl_ms), _) => Expires::AfterMs(ttl_ms),
            (_, Some(at_ms)) => {
                Expires::AtUs(START_US.saturating_add_signed(at_ms.parse::<i64>().unwrap() * 1_000))
            }
            _ => Expires::Never,
        },
        reply_to: line.get("reply_to").unwrap_or(""),
        limit_key: key("limit_key"),
        hold: line.get("hold") == Some("true"),
        ..SendOptions::default()
    }
}

/// `chain=QUEUE,QUEUE:PAYLOAD` and `on_failure=QUEUE`: steps without and with a payload of their own, all with
/// `step_ttl_ms=`, which keeps their results; with `step_headers=yes` each has a header.
fn chain<'a>(line: &Line<'a>, options: &'a SendOptions<'a>) -> (Vec<Step<'a>>, Option<Step<'a>>) {
    let header: &[(&str, &str)] = if line.get("step_headers").is_some() { &[("step", "1")] } else { &[] };
    let step = |text: &'a str| {
        let (queue, payload) = text.split_once(':').map_or((text, None), |(queue, own)| (queue, Some(own)));
        let item = SendItem {
            payload: payload.unwrap_or("").as_bytes(),
            headers: header,
            options: options.given(),
            ..SendItem::default()
        };
        Step { queue, own_payload: payload.is_some(), item }
    };
    let steps = line.get("chain").map(words).unwrap_or_default();
    (steps.into_iter().map(step).collect(), line.get("on_failure").map(step))
}

fn patch(line: &Line<'_>) -> QueuePatch {
    QueuePatch {
        lease_ms: line.number("lease_ms"),
        max_attempts: line.number("max_attempts").map(|value| value as u16),
        max_deliveries: line.number("max_deliveries").map(|value| value as u16),
        backoff: line.get("backoff").map(backoff),
        fair_weights: line.get("fair_weights").map(fair_weights),
        max_messages: line.number("max_messages"),
        max_bytes: line.number("max_bytes"),
        overflow: line.get("overflow").map(|value| match value {
            "refuse_new" => Overflow::RefuseNew,
            "dead_letter_oldest" => Overflow::DeadLetterOldest,
            other => panic!("{other:?} is no overflow"),
        }),
        max_age_ms: line.number("max_age_ms"),
        on_expire: line.get("on_expire").map(|value| match value {
            "drop" => OnExpire::Drop,
            _ => OnExpire::DeadLetter,
        }),
        ordering_retry: line.get("ordering_retry").map(|value| match value {
            "step_aside" => OrderingRetry::StepAside,
            _ => OrderingRetry::Block,
        }),
        placement: line.get("placement").map(|value| match value {
            "least_loaded" => Placement::LeastLoaded,
            "sticky" => Placement::Sticky,
            _ => Placement::Fair,
        }),
        limit: line.get("limit").map(Into::into),
        retain_done_ms: line.number("retain_done_ms"),
        retain_done_count: line.number("retain_done_count").map(|value| value as u32),
        paused: line.get("paused").map(|value| value == "true"),
        dead_letter_queue: line.get("dead_letter_queue").map(Into::into),
        closed: line.get("closed").map(|value| value == "true"),
    }
}

/// What a limit allows; a rate is `COUNT:PERIOD_MS:BURST`.
fn rules(line: &Line<'_>) -> LimitRules {
    let count = |name: &str| line.number(name).map(|count| count as u32);
    let rate = |name: &str| {
        let numbers: Vec<u64> = line.get(name)?.split(':').map(|number| number.parse().unwrap()).collect();
        Some(Rate { count: numbers[0] as u32, period_ms: numbers[1], burst: numbers[2] as u32 })
    };
    LimitRules {
        in_flight: count("in_flight"),
        in_flight_per_key: count("in_flight_per_key"),
        rate: rate("rate"),
        rate_per_key: rate("rate_per_key"),
    }
}

/// `KEY:WEIGHT,KEY:WEIGHT`
fn fair_weights(text: &str) -> FairWeights {
    let weights = text.split(',').filter_map(|pair| pair.split_once(':'));
    FairWeights::new(weights.map(|(key, weight)| (key.as_bytes().into(), weight.parse().unwrap())).collect())
}
