//! Bulks: one change to all messages of a queue that match a filter, made in the background.
//!
//! A bulk goes through the messages of its queue in the order of their ids, a page at a time. It reads the
//! index of a page between two batches of the shard, reads the bytes that its filter needs off the shard's
//! thread, and proposes a change of the matching messages as one record, with the version of each message, so
//! that messages changed meanwhile are left alone. It has at most one record in flight, and rests between
//! pages; with a rate a page takes several records, each at its time. It exists in the node only: a restart
//! ends it, after whichever page was changed last.
//!
//! `steps` is all of this as a state machine, with its rate in `pace`, `bulk_calls` the task that drives one;
//! pages and filters are those of `search`.

mod pace;
mod steps;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sluice_engine::Error;
use sluice_engine::change::{Change, ChangeAction, NewFields, Verb};
use sluice_engine::command::{Command, Deliver};
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::limit::Cost;
use sluice_engine::limits::Limits;
use sluice_engine::query::State;
use tokio::sync::watch;

pub use crate::blobs::ReadFailure;
use crate::search::MessageFilter;
pub use steps::{Next, Portions, StepInput, Steps};

/// Bulks of a node that run at once.
pub const BULKS_RUNNING_MAX: usize = 8;
/// Fastest rate of a bulk that has one, in messages per second.
pub const BULK_PER_SECOND_MAX: u32 = 100_000;
/// Bulks of a node that are remembered after their end.
pub const BULKS_ENDED_MAX: usize = 100;
/// Time for which a bulk is remembered after its end.
const ENDED_TIME: Duration = Duration::from_secs(3600);
/// Time after which a caller may try again while too many bulks run, in milliseconds.
const RETRY_AFTER_MS: u64 = 5_000;

/// The id of a bulk as callers see it.
pub fn id_text(id: u64) -> String {
    format!("{id:016x}")
}

/// A bulk as requested.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkRequest {
    /// Namespace of the queue.
    pub namespace: NamespaceId,
    /// Name of the queue.
    pub queue: Arc<str>,
    /// Filter of the messages.
    pub filter: Arc<MessageFilter>,
    /// Change of each message.
    pub action: BulkAction,
    /// Name of the person who requested it; may be empty.
    pub by: String,
    /// Reason; may be empty.
    pub why: String,
    /// True when nothing is changed, and only counted what would be.
    pub dry_run: bool,
    /// Upper limit of messages changed in a second, 1 to [`BULK_PER_SECOND_MAX`]; `None`: as fast as others
    /// allow.
    pub per_second: Option<u32>,
}

impl BulkRequest {
    /// Refuses what is wrong whatever the state is.
    ///
    /// # Errors
    /// `invalid_argument` for a filter that cannot match, or fields out of range.
    pub fn check(&self, limits: &Limits) -> Result<(), Error> {
        if let BulkAction::Move { to } = &self.action
            && **to == *self.queue
        {
            let reason = format!("the messages are in queue {to:?} already");
            return Err(Error::InvalidArgument { field: "to".to_owned(), reason });
        }
        // As for a single message; which one does not matter.
        let items = [(MessageId { namespace: self.namespace, sequence: 1 }, 0)];
        self.with_change(&items, |command| command.check(limits))?;
        self.check_states()
    }

    /// Refuses a filter that matches no message to which this change can be made.
    fn check_states(&self) -> Result<(), Error> {
        let verb = self.action.verb();
        match self.filter.states() {
            Some(states @ [_, ..]) if !states.iter().any(|state| verb.states().contains(state)) => {
                let names =
                    |states: &[State]| states.iter().map(|it| it.name()).collect::<Vec<_>>().join(", ");
                let reason = format!(
                    "{} is possible for {}, not for {}",
                    verb.name(),
                    names(verb.states()),
                    names(states)
                );
                Err(Error::InvalidArgument { field: "filter.where./state".to_owned(), reason })
            }
            _ => Ok(()),
        }
    }

    /// Lends the command that changes these messages, each if it has this version.
    pub fn with_change<T>(&self, items: &[(MessageId, u64)], take: impl FnOnce(&Command<'_>) -> T) -> T {
        let BulkRequest { namespace, by, why, .. } = self;
        let namespace = *namespace;
        self.action.lend(|action| take(&Command::Change(Change { namespace, items, action, by, why })))
    }
}

/// A [`ChangeAction`] that owns its texts.
#[derive(Clone, PartialEq, Debug)]
pub enum BulkAction {
    /// See [`ChangeAction::Cancel`].
    Cancel,
    /// See [`ChangeAction::Hold`].
    Hold,
    /// See [`ChangeAction::Approve`].
    Approve,
    /// See [`ChangeAction::Deny`].
    Deny,
    /// See [`ChangeAction::Retry`].
    Retry,
    /// Moves messages to another queue.
    Move {
        /// Name of that queue.
        to: String,
    },
    /// Sets other fields.
    Set {
        /// See [`NewFields::priority`].
        priority: Option<u8>,
        /// See [`NewFields::deliver`].
        deliver: Option<Deliver>,
        /// See [`NewFields::max_attempts`].
        max_attempts: Option<u16>,
        /// See [`NewFields::cost`].
        cost: Option<Cost>,
        /// See [`NewFields::tags`].
        tags: Option<Vec<String>>,
    },
}

impl BulkAction {
    /// Name of the action.
    pub fn verb(&self) -> Verb {
        match self {
            BulkAction::Cancel => Verb::Cancel,
            BulkAction::Hold => Verb::Hold,
            BulkAction::Approve => Verb::Approve,
            BulkAction::Deny => Verb::Deny,
            BulkAction::Retry => Verb::Retry,
            BulkAction::Move { .. } => Verb::Move,
            BulkAction::Set { .. } => Verb::Change,
        }
    }

    /// Calls `take` with the action as the engine takes it.
    fn lend<T>(&self, take: impl FnOnce(ChangeAction<'_>) -> T) -> T {
        match self {
            BulkAction::Cancel => take(ChangeAction::Cancel),
            BulkAction::Hold => take(ChangeAction::Hold),
            BulkAction::Approve => take(ChangeAction::Approve),
            BulkAction::Deny => take(ChangeAction::Deny),
            BulkAction::Retry => take(ChangeAction::Retry),
            BulkAction::Move { to } => take(ChangeAction::Move { to }),
            BulkAction::Set { priority, deliver, max_attempts, cost, tags } => {
                let tags: Option<Vec<&str>> =
                    tags.as_ref().map(|tags| tags.iter().map(String::as_str).collect());
                take(ChangeAction::Set(NewFields {
                    priority: *priority,
                    deliver: *deliver,
                    max_attempts: *max_attempts,
                    cost: *cost,
                    tags: tags.as_deref(),
                }))
            }
        }
    }
}

/// State of a bulk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BulkState {
    /// Not at its end.
    Running,
    /// All messages were gone through.
    Done,
    /// Cancelled by a caller.
    Cancelled,
    /// Ended by an error: see [`BulkView::error`].
    Failed,
}

impl BulkState {
    /// The word used in every API.
    pub fn name(self) -> &'static str {
        match self {
            BulkState::Running => "running",
            BulkState::Done => "done",
            BulkState::Cancelled => "cancelled",
            BulkState::Failed => "failed",
        }
    }
}

/// A bulk as clients see it. Its counts are exact after its end: each matched message is either changed or
/// skipped.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkView {
    /// Id of the bulk; never given twice.
    pub id: u64,
    /// The bulk as requested.
    pub request: Arc<BulkRequest>,
    /// State of the bulk.
    pub state: BulkState,
    /// Number of messages in the queue when it began, in the state of its filter.
    pub total: u64,
    /// Number of messages read.
    pub scanned: u64,
    /// Number of scanned messages that match the filter.
    pub matched: u64,
    /// Number of matched messages changed; in a dry run: that would be changed.
    pub changed: u64,
    /// Number of matched messages not changed, since their state does not allow it, or because they were
    /// changed or removed meanwhile.
    pub skipped: u64,
    /// Time of the begin, in microseconds since the Unix epoch.
    pub started_at_us: u64,
    /// Time of the end, in microseconds since the Unix epoch.
    pub ended_at_us: Option<u64>,
    /// Error that has ended it.
    pub error: Option<Error>,
}

impl BulkView {
    /// The view of a bulk that begins; it has no id yet.
    fn new(request: Arc<BulkRequest>, total: u64, started_at_us: u64) -> BulkView {
        BulkView {
            id: 0,
            request,
            state: BulkState::Running,
            total,
            scanned: 0,
            matched: 0,
            changed: 0,
            skipped: 0,
            started_at_us,
            ended_at_us: None,
            error: None,
        }
    }
}

/// A bulk, shared by its task and its readers.
#[derive(Debug)]
pub(crate) struct Bulk {
    view: Mutex<BulkView>,
    pub(crate) cancelled: AtomicBool,
    /// Time of the end.
    pub(crate) ended: watch::Sender<Option<Instant>>,
}

impl Bulk {
    pub(crate) fn view(&self) -> MutexGuard<'_, BulkView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails the bulk, of which no step goes on.
    pub(crate) fn fail(&self, error: Error, now_us: u64) {
        let mut view = self.view();
        view.state = BulkState::Failed;
        view.error = Some(error);
        view.ended_at_us = Some(now_us.max(view.started_at_us));
    }

    pub(crate) fn ended(&self) -> Option<Instant> {
        *self.ended.borrow()
    }
}

/// All bulks of a node.
#[derive(Debug, Default)]
pub(crate) struct Bulks {
    by_id: Mutex<BTreeMap<u64, Arc<Bulk>>>,
}

impl Bulks {
    /// All remembered bulks; the oldest of those that have ended are dropped first.
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Bulk>>> {
        let mut all = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, bulk| bulk.ended().is_none_or(|ended| ended.elapsed() < ENDED_TIME));
        let mut ended: Vec<_> = all.iter().filter_map(|(id, bulk)| Some((bulk.ended()?, *id))).collect();
        ended.sort_unstable();
        for (_, id) in ended.iter().take(ended.len().saturating_sub(BULKS_ENDED_MAX)) {
            all.remove(id);
        }
        all
    }

    /// Adds a bulk that begins now. Its id is its time, so that no id is given twice, across restarts too.
    pub(crate) fn begin(&self, view: &mut BulkView) -> Result<Arc<Bulk>, Error> {
        let mut all = self.lock();
        if all.values().filter(|bulk| bulk.ended().is_none()).count() >= BULKS_RUNNING_MAX {
            return Err(Error::Overloaded { what: "bulks", retry_after_ms: RETRY_AFTER_MS });
        }
        let last = all.last_key_value().map_or(0, |(id, _)| *id);
        view.id = view.started_at_us.max(last + 1);
        let id = view.id;
        let bulk = Arc::new(Bulk {
            view: Mutex::new(view.clone()),
            cancelled: AtomicBool::new(false),
            ended: watch::Sender::new(None),
        });
        all.insert(id, Arc::clone(&bulk));
        Ok(bulk)
    }

    pub(crate) fn find(&self, namespace: NamespaceId, id: u64) -> Result<Arc<Bulk>, Error> {
        let found = self.lock().get(&id).cloned();
        found
            .filter(|bulk| bulk.view().request.namespace == namespace)
            .ok_or_else(|| Error::BulkNotFound { bulk: id_text(id) })
    }
}
