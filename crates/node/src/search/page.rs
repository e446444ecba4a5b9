//! A page of a queue as a search reads it, with the locations of the bytes that its filter needs.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use sluice_engine::id::{BlobRef, MessageId, NamespaceId};
use sluice_engine::query::{MessageView, State};
use sluice_engine::search::SearchKind;
use sluice_engine::{Engine, Error, QueueId};
use sluice_journal::BlobRead;

use super::fields::Content;
use super::filter::MessageFilter;
use super::terms::Terms;
use crate::blobs::ReadFailure;
use crate::shard::request::ShardView;
use crate::shard::store;

/// Blobs that one page asks for, so that no page delays the shard; a single message may have more.
const BLOBS_MAX: usize = 256;

/// A page of a queue to read.
#[derive(Clone, Debug)]
pub struct Page {
    /// Namespace of the queue.
    pub namespace: NamespaceId,
    /// Name of the queue.
    pub queue: Arc<str>,
    /// Filter of the messages.
    pub filter: Arc<MessageFilter>,
    /// Time by which the filter is evaluated, in milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// End of the previous page.
    pub cursor: Option<u64>,
    /// The last message to look at.
    pub last: Option<MessageId>,
    /// Most messages.
    pub messages_max: usize,
}

/// A page as it was read.
#[derive(Debug)]
pub struct PageSeen {
    /// Messages that match, or may match by their bytes.
    pub(crate) messages: VecDeque<SeenMessage>,
    /// Number of messages looked at.
    pub(crate) scanned: u64,
    /// Place at which the next page begins; `None`: this is the last one.
    pub(crate) next: Option<u64>,
    /// The index that has found the messages; `None`: none has, they are those that follow each other.
    pub(crate) index: Option<SearchKind>,
}

/// A message, with the locations of the bytes that decide.
#[derive(Debug)]
pub(crate) struct SeenMessage {
    view: MessageView,
    /// Its number in the page, from 1.
    number: u64,
    /// `None`: its index has decided that it matches.
    undecided: Option<Locations>,
}

#[derive(Debug)]
struct Locations {
    blob: Option<BlobRead>,
    tags: Option<BlobRead>,
    /// `None`: none are needed; of each attempt the error, if it has one.
    errors: Option<Vec<Option<BlobRead>>>,
}

/// Messages of a page whose bytes are read together.
#[derive(Debug)]
pub(crate) struct Portion {
    messages: Vec<Reading>,
    bytes: u64,
}

/// A message whose bytes are being read.
#[derive(Debug)]
struct Reading {
    view: MessageView,
    number: u64,
    undecided: Option<Shape>,
}

/// The blobs that are read of a message.
#[derive(Debug)]
struct Shape {
    has_blob: bool,
    has_tags: bool,
    errors: Option<Vec<bool>>,
}

/// A message that matches.
#[derive(Clone, Debug)]
pub struct Hit {
    /// State of the message when it was looked at.
    pub view: MessageView,
    /// Number of messages that were looked at up to this one.
    pub scanned: u64,
}

impl Page {
    /// Reads the page on the shard's thread, in bounded time.
    ///
    /// # Errors
    /// `queue_not_found`.
    pub fn see(&self, at: &mut ShardView<'_>) -> Result<PageSeen, Error> {
        let queue = find(at.engine, self.namespace, &self.queue)?;
        let (items, next, index) = self.next(at.engine, queue);
        let mut seen = PageSeen { messages: VecDeque::new(), scanned: 0, next, index };
        let (mut blobs, mut looked_at) = (0, self.cursor);
        for view in items {
            if self.last.is_some_and(|last| view.id > last) {
                seen.next = None;
                break;
            }
            if blobs >= BLOBS_MAX {
                seen.next = looked_at;
                break;
            }
            looked_at = Some(view.id.sequence);
            seen.scanned += 1;
            let undecided = match self.filter.matches_index(&view, self.now_ms) {
                Some(false) => continue,
                Some(true) => None,
                None => match self.locations(at, &view) {
                    // A message without errors has nothing to read of them.
                    none if none.count() == 0 => {
                        if !self.filter.matches(&view, &none.content(), self.now_ms) {
                            continue;
                        }
                        None
                    }
                    some => Some(some),
                },
            };
            blobs += undecided.as_ref().map_or(0, Locations::count);
            seen.messages.push_back(SeenMessage { view, number: seen.scanned, undecided });
        }
        Ok(seen)
    }

    /// The messages to look at, where the next page begins, and the index that has found them, if one has.
    fn next(&self, engine: &Engine, queue: QueueId) -> (Vec<MessageView>, Option<u64>, Option<SearchKind>) {
        let (state, cursor, most) = (self.filter.state(), self.cursor, self.messages_max);
        let by_index = !self.has_short_list(engine, queue);
        for Terms { kind, terms } in self.filter.terms().iter().filter(|_| by_index) {
            if let Some(found) = engine.search_page(queue, (*kind, terms), state, cursor, most) {
                return (found.items, found.next, Some(*kind));
            }
        }
        let page = engine.messages(queue, state, cursor, most);
        (page.items, page.next, None)
    }

    /// True if there is a list of all messages in the state that the filter names, which has room in one
    /// page: an index may have to look at more.
    fn has_short_list(&self, engine: &Engine, queue: QueueId) -> bool {
        const LISTED: [State; 2] = [State::Dead, State::Held];
        if self.filter.terms().is_empty() || !self.filter.state().is_some_and(|state| LISTED.contains(&state))
        {
            return false;
        }
        let counters = engine.queue(queue).map(|view| view.counters).unwrap_or_default();
        let listed: u64 = LISTED.map(|state| counters.in_state(Some(state))).iter().sum();
        listed <= self.messages_max as u64
    }

    fn locations(&self, at: &mut ShardView<'_>, view: &MessageView) -> Locations {
        let needs = self.filter.needs();
        let full = needs.errors.then(|| at.engine.message(view.id).ok());
        let errors = full.map(|full| full.map_or_else(Vec::new, |full| full.history));
        let mut read = |blob: BlobRef| store::read(at.journal, blob);
        Locations {
            blob: (needs.blob || needs.tags && view.tags.is_none()).then(|| read(view.blob)),
            tags: view.tags.filter(|_| needs.tags).map(&mut read),
            errors: errors.map(|all| all.iter().map(|attempt| attempt.error.map(&mut read)).collect()),
        }
    }
}

impl Locations {
    /// The content that there is without the bytes of any blob.
    fn content(&self) -> Content {
        let errors = self.errors.as_ref().map(|errors| vec![None; errors.len()]);
        Content { errors, ..Content::default() }
    }

    /// Number of blobs.
    fn count(&self) -> usize {
        let of_errors = self.errors.iter().flatten().flatten().count();
        usize::from(self.blob.is_some()) + usize::from(self.tags.is_some()) + of_errors
    }
}

impl SeenMessage {
    /// Number of bytes to read, without those of errors and other tags.
    fn bytes(&self) -> u64 {
        let has_blob = self.undecided.as_ref().is_some_and(|locations| locations.blob.is_some());
        if has_blob { u64::from(self.view.blob.len) } else { 0 }
    }

    /// Adds the message's blobs to `reads`.
    fn ask(self, reads: &mut Vec<BlobRead>) -> Reading {
        let SeenMessage { view, number, undecided } = self;
        let undecided = undecided.map(|Locations { blob, tags, errors }| {
            let shape = Shape {
                has_blob: blob.is_some(),
                has_tags: tags.is_some(),
                errors: errors.as_ref().map(|errors| errors.iter().map(Option::is_some).collect()),
            };
            reads.extend(blob.into_iter().chain(tags).chain(errors.into_iter().flatten().flatten()));
            shape
        });
        Reading { view, number, undecided }
    }
}

impl Portion {
    /// Takes the first messages: as many as have at most so many bytes to read, and one at least. Tells the
    /// blobs to read.
    pub(crate) fn take(rest: &mut VecDeque<SeenMessage>, bytes_max: u64) -> (Portion, Vec<BlobRead>) {
        let mut reads = Vec::new();
        let mut portion = Portion { messages: Vec::new(), bytes: 0 };
        while let Some(next) = rest.front() {
            let bytes = portion.bytes + next.bytes();
            if bytes > bytes_max && !portion.messages.is_empty() {
                break;
            }
            portion.bytes = bytes;
            portion.messages.extend(rest.pop_front().map(|message| message.ask(&mut reads)));
        }
        (portion, reads)
    }

    /// Number of bytes that are read.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The last message, and the number of messages of the page up to it.
    pub(crate) fn last(&self) -> Option<(MessageId, u64)> {
        self.messages.last().map(|message| (message.view.id, message.number))
    }

    /// The messages that match, when these blobs were read. What is damaged matches nothing.
    pub(crate) fn matching(
        self,
        filter: &MessageFilter,
        now_ms: u64,
        read: Vec<Result<Bytes, ReadFailure>>,
    ) -> Vec<Hit> {
        let mut read = read.into_iter();
        let matching = |Reading { view, number, undecided }| {
            let matches =
                undecided.is_none_or(|shape: Shape| filter.matches(&view, &shape.take(&mut read), now_ms));
            matches.then_some(Hit { view, scanned: number })
        };
        self.messages.into_iter().filter_map(matching).collect()
    }
}

impl Shape {
    /// Takes the bytes that were read.
    fn take(self, read: &mut impl Iterator<Item = Result<Bytes, ReadFailure>>) -> Content {
        let mut next = |wanted: bool| if wanted { read.next().and_then(Result::ok) } else { None };
        let (blob, tags) = (next(self.has_blob), next(self.has_tags));
        let errors = self.errors.and_then(|shape| {
            let all: Vec<_> = shape.iter().map(|has_text| next(*has_text)).collect();
            let is_whole = all.iter().zip(&shape).all(|(text, has_text)| text.is_some() == *has_text);
            is_whole.then_some(all)
        });
        Content { blob, tags, errors }
    }
}

/// The queue of this name.
///
/// # Errors
/// `queue_not_found`.
pub(crate) fn find(engine: &Engine, namespace: NamespaceId, queue: &str) -> Result<QueueId, Error> {
    let found = engine.queue_id(namespace, queue);
    found.ok_or_else(|| Error::QueueNotFound { queue: queue.to_owned() })
}
