//! What a simulated client asks: a command with everything it borrows.

use sluice_engine::command::{Command, Deliver, Receive, Send, SendItem, SettleItem, Settlement};
use sluice_engine::id::{BlobRef, MessageId, NamespaceId, Receipt};
use sluice_engine::limit::LimitRules;
use sluice_engine::limits::Limits;
use sluice_engine::options::SendOptions;
use sluice_engine::settings::{Backoff, QueuePatch, Quotas};

/// One message to send.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    /// Unique among all messages of the run.
    pub payload: Vec<u8>,
    /// May be empty.
    pub content_type: &'static str,
    /// May be empty.
    pub headers: Vec<(&'static str, &'static str)>,
    /// 0 to 9; beyond that the send must be refused.
    pub priority: u8,
    /// When it becomes ready.
    pub deliver: Deliver,
    /// 0: the queue's.
    pub max_attempts: u16,
    /// `None`: the queue's.
    pub backoff: Option<Backoff>,
    /// Keys; `None`: none.
    pub options: Option<SendOptions<'static>>,
}

/// A command that owns its parts.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // The fields are those of the command of the same name.
pub enum Op {
    Send { namespace: NamespaceId, queue: String, key: Vec<u8>, digest: u64, items: Vec<Item> },
    Settle { namespace: NamespaceId, items: Vec<(Receipt, Settlement, String)> },
    Extend { namespace: NamespaceId, items: Vec<(Receipt, u64)> },
    NamespaceCreate { number: Option<NamespaceId>, name: String, shard: u32, quotas: Quotas },
    NamespaceSet { namespace: NamespaceId, quotas: Quotas },
    NamespaceDelete { namespace: NamespaceId, force: bool },
    QueueSet { namespace: NamespaceId, queue: String, patch: QueuePatch, create: bool },
    QueuePurge { namespace: NamespaceId, queue: String },
    QueueDelete { namespace: NamespaceId, queue: String },
    DeadRedrive { namespace: NamespaceId, queue: String, ids: Vec<MessageId> },
    LimitSet { namespace: NamespaceId, limit: String, rules: LimitRules },
    LimitDelete { namespace: NamespaceId, limit: String },
    DeadDelete { namespace: NamespaceId, queue: String, ids: Vec<MessageId> },
    Node(NodeOp),
}

/// A command that the node makes by itself.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum NodeOp {
    Epoch {
        number: u32,
        behaviour: u16,
    },
    Configure(Limits),
    Tick,
    Receive {
        namespace: NamespaceId,
        queues: Vec<(String, u16)>,
        max_messages: u32,
        max_bytes: u32,
        lease_ms: u64,
    },
    HoldDamaged {
        id: MessageId,
        blob: BlobRef,
    },
}

impl Op {
    /// Whether it changes a namespace, which concerns several shards.
    pub fn is_of_namespaces(&self) -> bool {
        matches!(self, Op::NamespaceCreate { .. } | Op::NamespaceSet { .. } | Op::NamespaceDelete { .. })
    }

    /// Lends the command.
    pub fn with<R>(&self, f: impl FnOnce(&Command<'_>) -> R) -> R {
        match self {
            Op::Send { namespace, queue, key, digest, items } => {
                let items: Vec<SendItem<'_>> = items.iter().map(Item::lend).collect();
                f(&Command::Send(Send {
                    namespace: *namespace,
                    queue,
                    idempotency_key: key,
                    request_digest: *digest,
                    items: &items,
                }))
            }
            Op::Settle { namespace, items } => {
                let items: Vec<SettleItem<'_>> = items
                    .iter()
                    .map(|(receipt, settlement, error)| SettleItem {
                        receipt: *receipt,
                        settlement: *settlement,
                        error,
                        result: None,
                    })
                    .collect();
                f(&Command::Settle { namespace: *namespace, items: &items })
            }
            Op::Extend { namespace, items } => f(&Command::Extend { namespace: *namespace, items }),
            _ => self.with_plain(f),
        }
    }

    fn with_plain<R>(&self, f: impl FnOnce(&Command<'_>) -> R) -> R {
        match self {
            Op::NamespaceCreate { number, name, shard, quotas } => {
                f(&Command::NamespaceCreate { number: *number, name, shard: *shard, quotas: *quotas })
            }
            Op::NamespaceSet { namespace, quotas } => {
                f(&Command::NamespaceSet { namespace: *namespace, quotas: *quotas })
            }
            Op::NamespaceDelete { namespace, force } => {
                f(&Command::NamespaceDelete { namespace: *namespace, force: *force })
            }
            Op::QueueSet { namespace, queue, patch, create } => {
                f(&Command::QueueSet { namespace: *namespace, queue, patch: patch.clone(), create: *create })
            }
            Op::LimitSet { namespace, limit, rules } => {
                f(&Command::LimitSet { namespace: *namespace, limit, rules: *rules })
            }
            Op::LimitDelete { namespace, limit } => f(&Command::LimitDelete { namespace: *namespace, limit }),
            Op::QueuePurge { namespace, queue } => f(&Command::QueuePurge { namespace: *namespace, queue }),
            Op::QueueDelete { namespace, queue } => f(&Command::QueueDelete { namespace: *namespace, queue }),
            Op::DeadRedrive { namespace, queue, ids } => {
                f(&Command::DeadRedrive { namespace: *namespace, queue, ids })
            }
            Op::DeadDelete { namespace, queue, ids } => {
                f(&Command::DeadDelete { namespace: *namespace, queue, ids })
            }
            Op::Node(op) => op.with(f),
            Op::Send { .. } | Op::Settle { .. } | Op::Extend { .. } => self.with(f),
        }
    }
}

impl NodeOp {
    fn with<R>(&self, f: impl FnOnce(&Command<'_>) -> R) -> R {
        match self {
            NodeOp::Epoch { number, behaviour } => {
                f(&Command::Epoch { number: *number, behaviour: *behaviour })
            }
            NodeOp::Configure(limits) => f(&Command::Configure(limits.clone())),
            NodeOp::Tick => f(&Command::Tick),
            NodeOp::Receive { namespace, queues, max_messages, max_bytes, lease_ms } => {
                let queues: Vec<(&str, u16)> =
                    queues.iter().map(|(name, weight)| (&**name, *weight)).collect();
                f(&Command::Receive(Receive {
                    namespace: *namespace,
                    queues: &queues,
                    max_messages: *max_messages,
                    max_bytes: *max_bytes,
                    lease_ms: *lease_ms,
                    consumer: "",
                }))
            }
            NodeOp::HoldDamaged { id, blob } => f(&Command::HoldDamaged { id: *id, blob: *blob }),
        }
    }
}

impl Item {
    fn lend(&self) -> SendItem<'_> {
        SendItem {
            options: self.options.as_ref(),
            payload: &self.payload,
            content_type: self.content_type,
            headers: &self.headers,
            tags: &[],
            priority: self.priority,
            deliver: self.deliver,
            max_attempts: self.max_attempts,
            backoff: self.backoff,
        }
    }
}
