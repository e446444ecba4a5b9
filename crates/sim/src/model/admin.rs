//! Namespaces, queues, and damaged payloads.

use std::collections::BTreeSet;

use sluice_engine::command::Command;
use sluice_engine::id::{BlobRef, MessageId, NamespaceId, QueueId};
use sluice_engine::outcome::Reply;
use sluice_engine::query::Counters;
use sluice_engine::settings::{QueuePatch, Quotas};

use super::item::valid_name;
use super::queues::change;
use super::{Apply, Checked, ensure};
use super::{MessagePlace, Namespace, Queue};

impl Apply<'_> {
    pub(super) fn administer(&mut self, command: &Command<'_>) -> Checked {
        match command {
            Command::NamespaceCreate { number, name, shard, quotas } => {
                self.namespace_create(*number, name, *shard, *quotas)
            }
            Command::NamespaceSet { namespace, quotas } => self.namespace_set(*namespace, *quotas),
            Command::NamespaceDelete { namespace, force } => self.namespace_delete(*namespace, *force),
            Command::QueueSet { namespace, queue, patch, create } => {
                self.queue_set(*namespace, queue, patch, *create)
            }
            Command::QueuePurge { namespace, queue } => self.queue_purge(*namespace, queue),
            Command::QueueDelete { namespace, queue } => self.queue_delete(*namespace, queue),
            Command::DeadRedrive { namespace, queue, ids } => self.dead_redrive(*namespace, queue, ids),
            Command::DeadDelete { namespace, queue, ids } => self.dead_delete(*namespace, queue, ids),
            Command::HoldDamaged { id, blob } => self.hold_damaged(*id, *blob),
            other => Err(format!("the model does not know {other:?}")),
        }
    }

    fn namespace_create(
        &mut self,
        number: Option<NamespaceId>,
        name: &str,
        shard: u32,
        quotas: Quotas,
    ) -> Checked {
        let existing = self.world.namespaces.iter().find(|(_, ns)| ns.name == name).map(|(id, _)| *id);
        if let Some(existing) = existing {
            if number == Some(existing) {
                return self.succeeds();
            }
            return self.fails("namespace_exists");
        }
        let sweeping = number.is_some_and(|number| self.world.deleted_namespaces.contains(&number));
        if sweeping && self.outcome.error.is_some() {
            return self.fails("namespace_exists");
        }
        self.succeeds()?;
        let Reply::Namespace { namespace } = self.outcome.reply else {
            return Err(format!("a new namespace got {:?}", self.outcome.reply));
        };
        ensure!(
            namespace.0 > self.world.last_namespace || number == Some(namespace),
            "namespace number {namespace:?} was given before"
        );
        self.world.last_namespace = self.world.last_namespace.max(namespace.0);
        self.world.namespaces.insert(namespace, Namespace::new(name, shard, quotas));
        Ok(())
    }

    fn namespace_set(&mut self, namespace: NamespaceId, quotas: Quotas) -> Checked {
        match self.world.namespaces.get_mut(&namespace) {
            None => self.fails("namespace_not_found"),
            Some(found) => {
                found.quotas = quotas;
                self.succeeds()
            }
        }
    }

    fn namespace_delete(&mut self, namespace: NamespaceId, force: bool) -> Checked {
        if !self.world.namespaces.contains_key(&namespace) {
            return self.fails("namespace_not_found");
        }
        if namespace == NamespaceId::DEFAULT || namespace == NamespaceId::SYS {
            return self.fails("invalid_argument");
        }
        let queues: Vec<QueueId> =
            self.world.queues.iter().filter(|(_, q)| q.namespace == namespace).map(|(id, _)| *id).collect();
        let has_documents = self.world.documents.values().any(|of| *of == namespace);
        if (!queues.is_empty() || has_documents) && !force {
            return self.fails("namespace_not_empty");
        }
        for queue in queues {
            self.forget_queue(queue);
        }
        self.world.queue_limits.retain(|(of, _), _| *of != namespace);
        self.world.schedules.retain(|(of, _), _| *of != namespace);
        self.world.queue_defaults.retain(|(of, _), _| *of != namespace);
        self.world.forget_consumers(namespace);
        self.world.namespaces.remove(&namespace);
        self.world.deleted_namespaces.insert(namespace);
        let world = &mut self.world;
        let old = world.given.extract_if(.., |receipt| receipt.id.namespace == namespace);
        world.outlived.extend(old);
        world.settled.retain(|receipt| receipt.id.namespace != namespace);
        self.succeeds()
    }

    fn queue_set(&mut self, namespace: NamespaceId, name: &str, patch: &QueuePatch, create: bool) -> Checked {
        if !self.world.namespaces.contains_key(&namespace) {
            return self.fails("namespace_not_found");
        }
        if !valid_name(name) {
            return self.fails("invalid_name");
        }
        if self.names_no_limit(namespace, patch) {
            return self.fails("limit_not_found");
        }
        let target = patch.dead_letter_queue.as_deref().filter(|target| !target.is_empty());
        if target.is_some_and(|target| self.world.leads_back(namespace, name, target)) {
            return self.fails("invalid_argument");
        }
        let existing = self.world.queue_named(namespace, name);
        if existing.is_none() && !create {
            return self.fails("queue_not_found");
        }
        if existing.is_none() && self.queue_quota_is_full(namespace) {
            return self.fails("quota_exceeded");
        }
        self.succeeds()?;
        let Reply::Queue { queue, created } = self.outcome.reply else {
            return Err(format!("a queue that was set got {:?}", self.outcome.reply));
        };
        ensure!(created == existing.is_none(), "queue {name:?}: created is {created}");
        ensure!(existing.is_none_or(|id| id == queue), "queue {name:?} is {existing:?}, not {queue:?}");
        if created {
            self.remember_queue(queue, namespace, name)?;
        }
        if let Some(queue) = self.world.queues.get_mut(&queue) {
            change(&mut queue.settings, patch);
        }
        self.world.let_step_aside(queue, patch);
        Ok(())
    }

    pub(super) fn queue_quota_is_full(&self, namespace: NamespaceId) -> bool {
        let quota = self.world.namespaces.get(&namespace).map_or(0, |ns| ns.quotas.queues);
        let queues = self.world.queues.values().filter(|q| q.namespace == namespace).count() as u64;
        quota > 0 && queues >= quota
    }

    /// The queue of this name; created if there is none, and the command may create one.
    pub(super) fn queue_for(&mut self, namespace: NamespaceId, name: &str) -> Result<QueueId, String> {
        if let Some(queue) = self.world.queue_named(namespace, name) {
            return Ok(queue);
        }
        let Some(queue) = self.engine.queue_id(namespace, name) else {
            return Err(format!("queue {name:?} was not created by its first use"));
        };
        self.remember_queue(queue, namespace, name)?;
        Ok(queue)
    }

    fn remember_queue(&mut self, id: QueueId, namespace: NamespaceId, name: &str) -> Checked {
        ensure!(self.world.last_queue.is_none_or(|last| id > last), "queue number {id:?} was given before");
        self.world.last_queue = Some(id);
        let queue = Queue {
            namespace,
            name: name.to_owned(),
            settings: self.world.settings_of_new(namespace, name),
            totals: Counters::default(),
            created_us: self.now_us,
            keyed: false,
            blocks: false,
            ends: false,
            makes_room: false,
        };
        self.world.queues.insert(id, queue);
        Ok(())
    }

    /// The queue of this name; `None`: there is none, and the engine has refused for that.
    pub(super) fn existing(&self, namespace: NamespaceId, name: &str) -> Result<Option<QueueId>, String> {
        if !self.world.namespaces.contains_key(&namespace) {
            return self.fails("namespace_not_found").map(|()| None);
        }
        match self.world.queue_named(namespace, name) {
            Some(queue) => Ok(Some(queue)),
            None => self.fails("queue_not_found").map(|()| None),
        }
    }

    fn queue_purge(&mut self, namespace: NamespaceId, name: &str) -> Checked {
        let Some(queue) = self.existing(namespace, name)? else { return Ok(()) };
        self.succeeds()?;
        let waiting = |place: MessagePlace| {
            matches!(
                place,
                MessagePlace::Ready { .. } | MessagePlace::Delayed { .. } | MessagePlace::Held { .. }
            )
        };
        let gone: BTreeSet<MessageId> = self
            .world
            .messages_of(queue)
            .filter(|(_, message)| waiting(message.place))
            .map(|(id, _)| *id)
            .collect();
        self.drop_all(&gone);
        self.counted(gone.len())
    }

    pub(super) fn drop_all(&mut self, ids: &BTreeSet<MessageId>) {
        for id in ids {
            self.total(*id, |totals| totals.dropped += 1);
            self.remove(*id);
        }
    }

    pub(super) fn counted(&self, messages: usize) -> Checked {
        let expected = Reply::Count { messages: messages as u64 };
        ensure!(self.outcome.reply == expected, "got {:?}, not {expected:?}", self.outcome.reply);
        Ok(())
    }

    fn queue_delete(&mut self, namespace: NamespaceId, name: &str) -> Checked {
        let Some(queue) = self.existing(namespace, name)? else { return Ok(()) };
        self.succeeds()?;
        let messages = self.forget_queue(queue);
        self.counted(messages)
    }

    fn forget_queue(&mut self, queue: QueueId) -> usize {
        let messages: Vec<MessageId> = self.world.messages_of(queue).map(|(id, _)| *id).collect();
        messages.iter().for_each(|id| self.remove(*id));
        self.world.queues.remove(&queue);
        self.world.redrives.remove(&queue);
        self.world.sweeps.remove(&queue);
        messages.len()
    }

    /// Holds a message whose payload is damaged, for an operator to see; a cancelled one is removed.
    fn hold_as_damaged(&mut self, id: MessageId) {
        if self.is_cancelled(id) {
            self.remove_cancelled(id);
        } else {
            self.put(id, MessagePlace::Held { reason: "payload_damaged" });
            self.forget_end(id);
        }
    }

    fn hold_damaged(&mut self, id: MessageId, blob: BlobRef) -> Checked {
        match self.world.messages.get(&id) {
            None if self.world.namespaces.contains_key(&id.namespace) => self.fails("message_not_found"),
            None => self.fails("namespace_not_found"),
            Some(message) => {
                if message.blob == blob
                    && !matches!(message.place, MessagePlace::Held { .. } | MessagePlace::Done { .. })
                {
                    self.hold_as_damaged(id);
                }
                self.succeeds()
            }
        }
    }
}
