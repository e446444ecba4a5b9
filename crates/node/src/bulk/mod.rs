//! Bulks: one change to all messages of a queue that match a filter, made in the background.
//!
//! A bulk goes through the messages of its queue by id, a page at a time. It looks at a page between two
//! batches of the shard, reads the bytes that its filter needs off the shard's thread, and proposes a change
//! of what matches as one record, with the version of each message, so that what has changed meanwhile is
//! left alone. It never has more than one record in flight, and rests between pages. It lives in the node
//! only: a restart ends it, after whichever page was changed last.
//!
//! `steps` is all of this as a state machine, `bulk_calls` the task that drives one, `page` what a look
//! shows, `filter` what matches.

mod filter;
mod page;
mod steps;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sluice_engine::Error;
use sluice_engine::change::{Change, ChangeAction, NewFields, Verb};
use sluice_engine::command::{Command, Deliver};
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::limits::Limits;
use tokio::sync::watch;

pub use crate::blobs::ReadFailure;
pub use filter::{Filter, HeaderIs};
pub use page::{Page, PageSeen};
pub use steps::{Next, Portions, StepInput, Steps};

/// Bulks of a node that run at once.
pub const BULKS_RUNNING_MAX: usize = 8;
/// Bulks of a node that are remembered after their end.
pub const BULKS_ENDED_MAX: usize = 100;
/// How long a bulk is remembered after its end.
const ENDED_TIME: Duration = Duration::from_secs(3600);
/// Wait after which a caller may come back who found too many running.
const RETRY_AFTER_MS: u64 = 5_000;

/// What a bulk is to do.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkRequest {
    /// Namespace of the queue.
    pub namespace: NamespaceId,
    /// To which messages.
    pub filter: Filter,
    /// What becomes of each.
    pub action: BulkAction,
    /// Name of the person who asked for it; may be empty.
    pub by: String,
    /// Why; may be empty.
    pub why: String,
    /// Whether nothing is changed, and only counted what would be.
    pub dry_run: bool,
}

impl BulkRequest {
    /// Refuses what is wrong whatever the state is.
    ///
    /// # Errors
    /// `invalid_argument` for a filter that cannot match, or fields out of range.
    pub fn check(&self, limits: &Limits) -> Result<(), Error> {
        if let BulkAction::Move { to } = &self.action
            && *to == self.filter.queue
        {
            let reason = format!("the messages are in queue {to:?} already");
            return Err(Error::InvalidArgument { field: "to".to_owned(), reason });
        }
        // As for a single message; which one does not matter.
        let items = [(MessageId { namespace: self.namespace, sequence: 1 }, 0)];
        self.with_change(&items, |command| command.check(limits))?;
        self.filter.check(self.action.verb())
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
    /// To another queue.
    Move {
        /// Its name.
        to: String,
    },
    /// Other fields.
    Set {
        /// See [`NewFields::priority`].
        priority: Option<u8>,
        /// See [`NewFields::deliver`].
        deliver: Option<Deliver>,
        /// See [`NewFields::max_attempts`].
        max_attempts: Option<u16>,
        /// See [`NewFields::tags`].
        tags: Option<Vec<String>>,
    },
}

impl BulkAction {
    /// Its name.
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

    /// Gives the action as the engine takes it.
    fn lend<T>(&self, take: impl FnOnce(ChangeAction<'_>) -> T) -> T {
        match self {
            BulkAction::Cancel => take(ChangeAction::Cancel),
            BulkAction::Hold => take(ChangeAction::Hold),
            BulkAction::Approve => take(ChangeAction::Approve),
            BulkAction::Deny => take(ChangeAction::Deny),
            BulkAction::Retry => take(ChangeAction::Retry),
            BulkAction::Move { to } => take(ChangeAction::Move { to }),
            BulkAction::Set { priority, deliver, max_attempts, tags } => {
                let tags: Option<Vec<&str>> =
                    tags.as_ref().map(|tags| tags.iter().map(String::as_str).collect());
                take(ChangeAction::Set(NewFields {
                    priority: *priority,
                    deliver: *deliver,
                    max_attempts: *max_attempts,
                    tags: tags.as_deref(),
                }))
            }
        }
    }
}

/// How far a bulk is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BulkState {
    /// The bulk goes on.
    Running,
    /// The bulk has come to the end.
    Done,
    /// Somebody has ended it.
    Cancelled,
    /// The bulk could not go on: see [`BulkView::error`].
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

/// A bulk as seen from outside. What it counts is exact when it has ended: of the messages that matched, each
/// is either changed or skipped.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkView {
    /// Names it; never given twice.
    pub id: u64,
    /// What it is to do.
    pub request: Arc<BulkRequest>,
    /// How far it is.
    pub state: BulkState,
    /// Messages that were in the queue when it began, in the state of its filter.
    pub total: u64,
    /// Messages that it has looked at.
    pub scanned: u64,
    /// Scanned messages that match the filter.
    pub matched: u64,
    /// Matched messages that are changed; of a dry run: that would be.
    pub changed: u64,
    /// Matched messages that are not, since their state does not allow it, or because they have changed or
    /// gone meanwhile.
    pub skipped: u64,
    /// When it began, in microseconds since the Unix epoch.
    pub started_at_us: u64,
    /// When it ended.
    pub ended_at_us: Option<u64>,
    /// Why it has failed.
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

/// One bulk, shared by its task and those who look.
#[derive(Debug)]
pub(crate) struct Bulk {
    view: Mutex<BulkView>,
    pub(crate) cancelled: AtomicBool,
    /// When it ended.
    pub(crate) ended: watch::Sender<Option<Instant>>,
}

impl Bulk {
    pub(crate) fn view(&self) -> MutexGuard<'_, BulkView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// All that are remembered; the oldest of those that have ended are forgotten first.
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

    /// Enters a bulk that begins now; its id is its time, so that none is given twice, across restarts too.
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
            .ok_or_else(|| Error::BulkNotFound { bulk: id.to_string() })
    }
}
