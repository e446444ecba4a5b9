//! Events of the log, against which feeds are checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use sluice_engine::Engine;
use sluice_engine::event::{Event, EventDetail, EventKind};
use sluice_engine::id::{MessageId, NamespaceId, QueueId};

/// Index of a record, and number of its events before the position.
pub(super) type EventPlace = (u64, u32);

/// Subject of a feed: a namespace, or one queue of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct About {
    pub(super) namespace: NamespaceId,
    pub(super) queue: Option<Box<str>>,
}

/// An event.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    /// Position after the event.
    place: EventPlace,
    namespace: NamespaceId,
    pub(super) kind: EventKind,
    pub(super) id: Option<MessageId>,
    pub(super) attempt: u16,
    pub(super) queue: Arc<str>,
    /// Queue that the message came from.
    from: Option<Arc<str>>,
}

/// All events of a log.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    events: Vec<Logged>,
    /// Names of queues, including deleted ones.
    names: BTreeMap<QueueId, Arc<str>>,
}

impl EventLog {
    /// Adds the events of a record that `engine` has just applied.
    pub(super) fn note(&mut self, index: u64, events: &[Event], engine: &Engine) {
        for (number, event) in (1..).zip(events) {
            let (queue, from) = match &event.detail {
                EventDetail::Many { name, .. } => (Arc::from(&**name), None),
                EventDetail::From(from) => {
                    (self.name_of(event.queue, engine), Some(self.name_of(*from, engine)))
                }
                EventDetail::None
                | EventDetail::Until(_)
                | EventDetail::Lease { .. }
                | EventDetail::Why(_) => (self.name_of(event.queue, engine), None),
            };
            let Event { kind, namespace, id, attempt, .. } = *event;
            self.events.push(Logged { place: (index, number), namespace, kind, id, attempt, queue, from });
        }
    }

    fn name_of(&mut self, queue: QueueId, engine: &Engine) -> Arc<str> {
        let known = || Arc::from(engine.queue_name(queue).unwrap_or_default());
        Arc::clone(self.names.entry(queue).or_insert_with(known))
    }

    /// Events of a subject between two positions, in order.
    pub(super) fn between<'a>(
        &'a self,
        from: EventPlace,
        to: EventPlace,
        about: &'a About,
    ) -> impl Iterator<Item = &'a Logged> {
        let first = self.events.partition_point(|event| event.place <= from);
        let here = self.events[first..].iter().take_while(move |event| event.place <= to);
        here.filter(move |event| event.is_about(about))
    }
}

impl Logged {
    fn is_about(&self, about: &About) -> bool {
        let of_queue = |name: &str| *self.queue == *name || self.from.as_deref() == Some(name);
        self.namespace == about.namespace && about.queue.as_deref().is_none_or(of_queue)
    }
}
