//! Indexes of one namespace: slots of queues, limits, schedules and messages. All of it is derived.

use std::collections::BTreeMap;

use crate::core::namespace::NamespaceSlot;
use crate::queue::state::message::Message;
use crate::queue::state::{DefaultsSlot, LimitSlot, QueueSlot, ScheduleSlot};
use crate::store::arena::Arena;
use crate::store::directory::Directory;

/// Slots of what one namespace holds. Derived.
#[derive(Debug, Default)]
pub(crate) struct NamespaceIndex {
    /// Slots of queues by name, without those that are deleted.
    pub(crate) queues: BTreeMap<Box<str>, QueueSlot>,
    /// Slots of queue limits by name, without those that are deleted.
    pub(crate) limits: BTreeMap<Box<str>, LimitSlot>,
    /// Slots of schedules by name.
    pub(crate) schedules: BTreeMap<Box<str>, ScheduleSlot>,
    /// Slots of queue defaults by pattern.
    pub(crate) defaults: BTreeMap<Box<str>, DefaultsSlot>,
    /// Slots of messages by sequence number.
    pub(crate) directory: Directory<Message>,
}

/// Indexes of all namespaces, by the slot of the namespace.
#[derive(Debug, Default)]
pub(crate) struct NamespaceIndexes(Arena<NamespaceIndex, 64>);

impl NamespaceIndexes {
    #[inline]
    pub(crate) fn get(&self, namespace: NamespaceSlot) -> &NamespaceIndex {
        self.0.get(namespace.index())
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, namespace: NamespaceSlot) -> &mut NamespaceIndex {
        self.0.get_mut(namespace.index())
    }

    /// Adds empty indexes until there are as many as slots of namespaces.
    pub(crate) fn cover(&mut self, slots: u32) {
        while self.0.len() < slots as usize {
            self.0.push(NamespaceIndex::default());
        }
    }

    /// Empties the index of a namespace that is gone.
    pub(crate) fn clear(&mut self, namespace: NamespaceSlot) {
        *self.0.get_mut(namespace.index()) = NamespaceIndex::default();
    }
}
