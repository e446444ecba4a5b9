//! The state of a shard that clients and operators can see, from which they choose their next request.

use sluice_engine::Engine;
use sluice_engine::id::{BlobRef, ConsumerId, MessageId, NamespaceId};
use sluice_engine::query::{ConsumerState, MessageView, QueueView, State};

use super::times::Times;

/// Number of messages in a page.
const PAGE: usize = 200;
/// Limit above the number of anything else.
const ALL: usize = 1_000;

/// Reads of one engine.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a>(pub &'a Engine);

impl Seen<'_> {
    /// Time of the last record.
    pub fn now_us(&self) -> u64 {
        self.0.time_us()
    }

    /// Namespaces that live on this shard and that clients may use.
    pub fn namespaces(&self, shard: u32) -> Vec<NamespaceId> {
        let all = self.0.namespaces().into_iter();
        all.filter(|view| view.shard == shard && view.id != NamespaceId::SYS).map(|view| view.id).collect()
    }

    /// The shard on which a namespace lives; `None`: this shard does not know it.
    pub fn shard_of(&self, namespace: NamespaceId) -> Option<u32> {
        self.0.namespace(namespace).map(|view| view.shard)
    }

    fn queues(&self) -> impl Iterator<Item = QueueView> + '_ {
        self.0.namespaces().into_iter().flat_map(|view| self.0.queues(view.id, "", None, ALL))
    }

    /// Messages in this state, or all, in the order of ids.
    pub fn messages(&self, state: Option<State>) -> Vec<MessageView> {
        let mut messages: Vec<MessageView> = self.queues().flat_map(|queue| self.of(&queue, state)).collect();
        messages.sort_unstable_by_key(|view| view.id);
        messages
    }

    fn of(&self, queue: &QueueView, state: Option<State>) -> Vec<MessageView> {
        let (mut messages, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.0.messages(queue.id, state, cursor, PAGE);
            messages.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                return messages;
            }
        }
    }

    /// Messages of one queue, with their histories; none if the queue does not exist.
    pub fn in_queue(&self, namespace: NamespaceId, queue: &str) -> Vec<MessageView> {
        let queue = self.0.queue_id(namespace, queue).and_then(|queue| self.0.queue(queue));
        let listed = queue.map_or(Vec::new(), |queue| self.of(&queue, None));
        listed.into_iter().map(|view| self.0.message(view.id).unwrap_or(view)).collect()
    }

    /// Messages in one of these states.
    pub fn messages_in(&self, states: &[State]) -> Vec<MessageId> {
        let all = self.messages(None).into_iter();
        all.filter(|view| states.contains(&view.state)).map(|view| view.id).collect()
    }

    /// The queue that a message is in.
    pub fn queue_of(&self, id: MessageId) -> Option<String> {
        self.0.message(id).ok().and_then(|view| self.0.queue_name(view.queue)).map(str::to_owned)
    }

    /// Ids of all messages of a namespace, in any state.
    pub fn ids_of(&self, namespace: NamespaceId) -> Vec<MessageId> {
        let all = self.messages(None).into_iter().map(|view| view.id);
        all.filter(|id| id.namespace == namespace).collect()
    }

    /// All dead letters, with namespace and queue.
    pub fn dead_letters(&self) -> Vec<(NamespaceId, String, MessageId)> {
        let name = |view: &MessageView| self.0.queue_name(view.queue).unwrap_or_default().to_owned();
        let dead = self.messages(Some(State::Dead)).into_iter();
        dead.map(|view| (view.id.namespace, name(&view), view.id)).collect()
    }

    /// Attached consumers.
    pub fn attached(&self) -> Vec<(NamespaceId, ConsumerId)> {
        let mut attached = Vec::new();
        for namespace in self.0.namespaces() {
            let views = self.0.consumers(namespace.id, None, ALL).into_iter();
            let here = views.filter(|view| view.state == ConsumerState::Attached);
            attached.extend(here.map(|view| (namespace.id, view.id)));
        }
        attached.sort_unstable_by_key(|(_, consumer)| *consumer);
        attached
    }

    /// Times of this schedule.
    pub fn times_of(&self, namespace: NamespaceId, schedule: &str) -> Option<Times> {
        Times::of(&self.0.schedule(namespace, schedule)?.spec)
    }

    /// Schedules that fire by themselves, with the next instant of each.
    pub fn firing_schedules(&self) -> Vec<(NamespaceId, String, u64)> {
        let mut firing = Vec::new();
        for namespace in self.0.namespaces() {
            let views = self.0.schedules(namespace.id, None, ALL).into_iter();
            firing.extend(views.filter_map(|view| Some((namespace.id, view.name, view.next_at_us?))));
        }
        firing
    }

    /// Paused queues.
    pub fn paused_queues(&self) -> Vec<(NamespaceId, String)> {
        let paused = self.queues().filter(|queue| queue.settings.paused);
        paused.map(|queue| (queue.namespace, queue.name)).collect()
    }

    /// Amount of work until all messages are done or dead. Each ack lowers it, also one that brings a reply
    /// or the next step of a chain.
    pub fn work_left(&self) -> usize {
        let work = |view: &MessageView| {
            let follows = self
                .0
                .flow_view(view.id)
                .map_or(0, |flow| flow.node.chain.len() + usize::from(flow.node.on_failure.is_some()));
            1 + follows + usize::from(!view.reply_to.is_empty())
        };
        self.messages(None).iter().filter(|view| view.state != State::Done).map(work).sum()
    }

    /// Messages that are neither done nor dead for good.
    pub fn open_messages(&self) -> Vec<MessageView> {
        let redriven = |view: &MessageView| self.0.queue(view.queue).is_some_and(|it| it.redriving.is_some());
        let mut all = self.messages(None);
        all.retain(|view| match view.state {
            State::Done => false,
            State::Dead => redriven(view),
            _ => true,
        });
        all
    }

    /// Blobs in the log of messages and schedules, as far as they can be seen.
    pub fn blobs(&self) -> Vec<(String, BlobRef)> {
        let mut blobs = Vec::new();
        for view in self.messages(None) {
            let note = view.progress.and_then(|progress| progress.note);
            let plain = [Some(view.blob), view.checkpoint, view.result, note, view.tags];
            let changes = view.changes.iter().map(|changed| changed.note);
            let all = plain.into_iter().flatten().chain(changes).filter(|blob| *blob != BlobRef::EMPTY);
            blobs.extend(all.map(|blob| (view.id.to_string(), blob)));
        }
        for namespace in self.0.namespaces() {
            let views = self.0.schedules(namespace.id, None, ALL).into_iter();
            blobs.extend(views.map(|view| (view.name, view.blob)));
            for document in self.0.documents_after(namespace.id, "", None, ALL) {
                let versions = self.0.document_versions(namespace.id, &document.key).into_iter();
                blobs.extend(versions.map(|view| (view.key, view.blob)));
                blobs.extend(self.chunks_of(namespace.id, &document.key));
            }
        }
        blobs
    }

    /// Chunks of the attachments of a document, each with the name of its attachment.
    fn chunks_of(&self, namespace: NamespaceId, key: &str) -> Vec<(String, BlobRef)> {
        let attachments = self.0.attachments_after(namespace, key, None, ALL).unwrap_or_default();
        let chunks = attachments.into_iter().flat_map(|view| {
            let revision = view.version.revision;
            let found = self.0.attachment_chunks(namespace, (key, &view.name), revision, 0, usize::MAX);
            found.into_iter().flatten().map(move |chunk| (view.name.clone(), chunk.blob))
        });
        chunks.collect()
    }
}
