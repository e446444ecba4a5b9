//! A client's request: a command with everything that it borrows.

use sluice_engine::Engine;
use sluice_engine::command::{
    Command, Content, Progress, Receive, ReportItem, Send, SendItem, SettleItem, Settlement,
};
use sluice_engine::id::Receipt;
use sluice_engine::item::SendOptions;
use sluice_engine::limits::PRIORITY_MAX;

use super::flows::{blob_of, with_items};
use super::names::wrong_name;
use super::{Item, Lend, NodeOp, Op, SentBlob, Settled, WorkReport};

impl Op {
    /// A settlement without its texts and results, alone or in a transaction that brings nothing else, or a
    /// report without its notes if it has no checkpoint; as a full disk makes the node strip them.
    pub fn without_texts(&self) -> Option<Op> {
        if let Op::Transaction(whole) = self {
            return whole.without_texts().map(Op::Transaction);
        }
        if let Op::Report { namespace, items } = self {
            let bare = |told: &WorkReport| {
                let progress = told.progress.as_ref().map(|(percent, _)| (*percent, String::new()));
                WorkReport { progress, ..told.clone() }
            };
            let brings = items.iter().any(|told| told.blobs().next().is_some());
            let may = brings && items.iter().all(|told| told.checkpoint.is_none());
            return may
                .then(|| Op::Report { namespace: *namespace, items: items.iter().map(bare).collect() });
        }
        let Op::Settle { namespace, items } = self else { return None };
        let brings = |item: &Settled| !item.error.is_empty() || item.result.is_some();
        let bare = |item: &Settled| Settled { error: String::new(), result: None, ..item.clone() };
        items
            .iter()
            .any(brings)
            .then(|| Op::Settle { namespace: *namespace, items: items.iter().map(bare).collect() })
    }

    /// The request as one of the features that have types of their own.
    fn feature(&self) -> Option<&dyn Lend> {
        match self {
            Op::Limit(op) => Some(op),
            Op::Schedule(op) => Some(op),
            Op::Change(op) => Some(op),
            Op::Bulk(op) => Some(op),
            Op::Queue(op) => Some(op),
            Op::Group(op) => Some(op),
            Op::Consumer(op) => Some(op),
            Op::Lock(op) => Some(op),
            Op::Document(op) => Some(op),
            Op::Attachment(op) => Some(op),
            Op::Index(op) => Some(op),
            Op::Search(op) => Some(op),
            Op::Transaction(op) => Some(op),
            Op::TwoPhase(op) => Some(op),
            _ => None,
        }
    }

    /// True when the generator meant this to be refused by the check of the request.
    pub fn is_wrong(&self) -> bool {
        match self {
            Op::Send { queue, items, .. } => wrong_name(queue) || items.iter().any(Item::is_wrong),
            Op::QueueSet { queue, .. }
            | Op::QueuePurge { queue, .. }
            | Op::QueueDelete { queue, .. }
            | Op::DeadRedrive { queue, .. }
            | Op::DeadDelete { queue, .. } => wrong_name(queue),
            _ => self.feature().is_some_and(Lend::is_wrong),
        }
    }

    /// Reads the engine's state before the call, where the request depends on it.
    pub fn look(&mut self, engine: &Engine) {
        if let Op::Change(op) = self {
            op.look(engine);
        }
    }

    /// True for a change of a namespace, which concerns several shards.
    pub fn is_of_namespaces(&self) -> bool {
        matches!(self, Op::NamespaceCreate { .. } | Op::NamespaceSet { .. } | Op::NamespaceDelete { .. })
    }

    /// The blob with this number of the request's record.
    pub fn blob(&self, number: u32) -> Option<SentBlob<'_>> {
        let number = number as usize;
        match self {
            Op::Send { items, .. } => blob_of(&items.iter().collect::<Vec<_>>(), number),
            Op::Settle { items, .. } => items.iter().flat_map(Settled::blobs).nth(number),
            Op::Report { items, .. } => items.iter().flat_map(WorkReport::blobs).nth(number),
            _ => self.feature().and_then(|op| op.blob(number)),
        }
    }

    /// Calls `f` with the command.
    pub fn with<R>(&self, f: impl FnOnce(&Command<'_>) -> R) -> R {
        match self {
            Op::Send { namespace, queue, key, digest, items } => {
                let (namespace, request_digest) = (*namespace, *digest);
                with_items(&items.iter().collect::<Vec<_>>(), |items| {
                    f(&Command::Send(Send {
                        namespace,
                        queue,
                        idempotency_key: key,
                        request_digest,
                        items: &items,
                    }))
                })
            }
            Op::Settle { namespace, items } => {
                let items: Vec<SettleItem<'_>> = items.iter().map(Settled::lend).collect();
                f(&Command::Settle { namespace: *namespace, items: &items })
            }
            Op::Extend { namespace, items } => f(&Command::Extend { namespace: *namespace, items }),
            Op::Report { namespace, items } => {
                let items: Vec<ReportItem<'_>> = items.iter().map(WorkReport::lend).collect();
                f(&Command::Report { namespace: *namespace, items: &items })
            }
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
            Op::QueuePurge { namespace, queue } => f(&Command::QueuePurge { namespace: *namespace, queue }),
            Op::QueueDelete { namespace, queue } => f(&Command::QueueDelete { namespace: *namespace, queue }),
            Op::DeadRedrive { namespace, queue, ids } => {
                f(&Command::DeadRedrive { namespace: *namespace, queue, ids })
            }
            Op::DeadDelete { namespace, queue, ids } => {
                f(&Command::DeadDelete { namespace: *namespace, queue, ids })
            }
            Op::Node(op) => op.with(f),
            Op::Send { .. } | Op::Settle { .. } | Op::Extend { .. } | Op::Report { .. } => self.with(f),
            Op::Limit(_)
            | Op::Schedule(_)
            | Op::Change(_)
            | Op::Bulk(_)
            | Op::Queue(_)
            | Op::Group(_)
            | Op::Consumer(_)
            | Op::Lock(_)
            | Op::Document(_)
            | Op::Attachment(_)
            | Op::Index(_)
            | Op::Search(_)
            | Op::Transaction(_)
            | Op::TwoPhase(_) => self.with_feature(f),
        }
    }

    fn with_feature<R>(&self, f: impl FnOnce(&Command<'_>) -> R) -> R {
        let (mut f, mut given) = (Some(f), None);
        if let Some(op) = self.feature() {
            op.lend(&mut |command| given = f.take().map(|f| f(command)));
        }
        given.expect("a feature lends its command once")
    }
}

impl NodeOp {
    fn with<R>(&self, f: impl FnOnce(&Command<'_>) -> R) -> R {
        match self {
            NodeOp::Epoch { number, behaviour } => {
                f(&Command::Epoch { number: *number, behaviour: *behaviour })
            }
            NodeOp::Configure(limits) => f(&Command::Configure(limits.clone())),
            NodeOp::ReceiptKey(key) => f(&Command::ReceiptKey(*key)),
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
            NodeOp::Fire(fire) => f(&Command::ScheduleFire(*fire)),
            NodeOp::HoldDamaged { id, blob } => f(&Command::HoldDamaged { id: *id, blob: *blob }),
        }
    }
}

impl Settled {
    /// A settlement without further fields.
    pub fn plain(receipt: Receipt, settlement: Settlement) -> Settled {
        Settled { receipt, settlement, error: String::new(), result: None, add_cost: 0 }
    }

    fn lend(&self) -> SettleItem<'_> {
        let content = |bytes| Content { content_type: "", bytes };
        SettleItem {
            receipt: self.receipt,
            settlement: self.settlement,
            error: &self.error,
            result: self.result.as_deref().map(content),
            add_cost: self.add_cost,
        }
    }

    fn blobs(&self) -> impl Iterator<Item = SentBlob<'_>> {
        let error = (!self.error.is_empty()).then_some(SentBlob::Text(&self.error));
        let result = self.result.as_deref().map(SentBlob::payload);
        error.into_iter().chain(result)
    }
}

impl WorkReport {
    fn lend(&self) -> ReportItem<'_> {
        ReportItem {
            receipt: self.receipt,
            lease_ms: self.lease_ms,
            progress: self.progress.as_ref().map(|(percent, note)| Progress { percent: *percent, note }),
            checkpoint: self.checkpoint.as_deref(),
            add_cost: self.add_cost,
        }
    }

    fn blobs(&self) -> impl Iterator<Item = SentBlob<'_>> {
        let note = self.progress.as_ref().map(|(_, note)| note.as_str()).filter(|note| !note.is_empty());
        let checkpoint = self.checkpoint.as_deref().map(SentBlob::payload);
        note.map(SentBlob::Text).into_iter().chain(checkpoint)
    }
}

impl Item {
    /// All optional fields, including those that are kept beside them.
    pub(super) fn options(&self) -> SendOptions<'_> {
        self.options
    }

    pub(super) fn blob(&self) -> SentBlob<'_> {
        SentBlob::Message {
            content_type: self.content_type,
            headers: &self.headers,
            tags: &self.tags,
            payload: &self.payload,
        }
    }

    pub(super) fn is_wrong(&self) -> bool {
        self.priority > PRIORITY_MAX
    }

    pub(super) fn lend<'a>(&'a self, options: &'a SendOptions<'a>) -> SendItem<'a> {
        SendItem {
            options: options.given(),
            payload: &self.payload,
            content_type: self.content_type,
            headers: &self.headers,
            tags: &self.tags,
            priority: self.priority,
            deliver: self.deliver,
            max_attempts: self.max_attempts,
            backoff: self.backoff,
        }
    }
}
