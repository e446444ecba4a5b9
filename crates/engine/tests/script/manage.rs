//! From lines to commands about queues and namespaces, about consumers, and about the engine as a whole.

use sluice_engine::command::{Attach, DETACH_GRACE_MS};
use sluice_engine::id::{ConsumerId, MessageId, NamespaceId};
use sluice_engine::{BEHAVIOUR_VERSION, BlobRef, Command, Limits, ReceiptKey};

use super::Player;
use super::line::{Line, patch, rules};

impl Player {
    /// Queues, their dead letters, defaults and limits, and namespaces.
    pub(super) fn manage(&mut self, line: &Line<'_>) -> Vec<String> {
        let namespace = self.namespace(line);
        match (line.verb, line.words.as_slice()) {
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

    /// Consumers that are attached.
    pub(super) fn consumer(&mut self, line: &Line<'_>) -> Vec<String> {
        let namespace = self.namespace(line);
        match (line.verb, line.words.as_slice()) {
            ("attach", [name, queues @ ..]) => self.run(&Command::Attach(Attach {
                namespace,
                name,
                queues,
                credit: line.number("credit").unwrap_or(1) as u32,
                lease_ms: line.number("lease_ms").unwrap_or(0),
                grace_ms: line.number("grace_ms").unwrap_or(DETACH_GRACE_MS),
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
            _ => panic!("{line:?} is no command"),
        }
    }

    /// What concerns the whole engine, and damaged messages.
    pub(super) fn whole(&mut self, line: &Line<'_>) -> Vec<String> {
        match (line.verb, line.words.as_slice()) {
            ("watch", [what]) => {
                self.driver.engine.watch_ends(*what == "on");
                Vec::new()
            }
            ("events", [what]) => {
                self.driver.engine.watch_events(*what == "on");
                Vec::new()
            }
            ("tick", []) => self.run(&Command::Tick),
            ("receipt_key", [byte]) => {
                self.run(&Command::ReceiptKey(ReceiptKey([byte.parse().unwrap(); 16])))
            }
            ("consensus", [entry]) => self.run(&Command::Consensus { entry: entry.as_bytes() }),
            ("epoch", [number]) => self.run(&Command::Epoch {
                number: number.parse().unwrap(),
                behaviour: line.number("behaviour").map_or(BEHAVIOUR_VERSION, |number| number as u16),
            }),
            ("raise", [behaviour]) => self.run(&Command::Raise { behaviour: behaviour.parse().unwrap() }),
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
            _ => panic!("{line:?} is no command"),
        }
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
}
