//! Transactions that are open on this node. They are memory and nothing else: one whose node ends, or whose
//! time is over, leaves nothing behind but the leases of the messages that it has received.
//!
//! Map: `staged` the operations that are staged, and the documents as a transaction sees them, `held` the
//! memory and the room for them, `named` what operations name, `enlisted` the messages that it has received,
//! `waits` receives that wait in it, `in_flight` its commit before there is an outcome, `ending` the end of
//! its time.

mod ending;
mod enlisted;
mod held;
mod in_flight;
mod named;
mod staged;
mod waits;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use data_encoding::HEXLOWER;
use ring::rand::{SecureRandom as _, SystemRandom};
use sluice_engine::Error;
use sluice_engine::id::NamespaceId;
use sluice_node::{AgreedClock, Node};
use tokio::sync::OwnedMutexGuard;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::access::Caller;
use crate::error::CallError;
use crate::fault::clip;
pub(crate) use enlisted::Enlisted;
use held::{Figures, Memory};
pub(crate) use held::{Held, staged_at_most};
pub(crate) use in_flight::InFlight;
pub(crate) use named::Name;
pub(crate) use staged::{Change, Place, Seen, Shown, Staged};
pub use staged::{Kept, Protocol};
pub(crate) use waits::{Reserved, Waits};

/// Most transactions that are open on a node.
const OPEN_MAX: usize = 10_000;
/// Most of them that one identity has begun: a quarter.
const OF_CALLER_MAX: usize = OPEN_MAX / 4;
/// Shortest time between two sweeps: a sweep looks at all of them.
const SWEEP_PAUSE: Duration = Duration::from_millis(100);
/// Bytes of an id; in text each is two hexadecimal digits.
const ID_BYTES: usize = 16;
/// Bytes of the digest in a name.
const NAME_BYTES: usize = 4;

/// The open transactions of a node.
#[derive(Clone)]
pub(crate) struct OpenTransactions(Arc<Shared>);

struct Shared {
    open: Mutex<All>,
    memory: Arc<Memory>,
    /// Tells whether this node leads the namespace in that epoch.
    is_led: Box<dyn Fn(Led) -> bool + Send + Sync>,
    /// Clock by which they are dated.
    clock: AgreedClock,
    swept_at: Mutex<Option<Instant>>,
}

/// All of them.
#[derive(Default)]
struct All {
    by_id: HashMap<String, Arc<Open>>,
    /// Number of those that each caller has begun.
    of_callers: HashMap<Arc<str>, usize>,
}

impl All {
    /// Checks that a caller may begin one more.
    fn expect_room(&self, caller: &str) -> Result<(), Error> {
        if self.by_id.len() >= OPEN_MAX {
            return Err(Error::Overloaded { what: "open transactions", retry_after_ms: 1_000 });
        }
        let of_caller = self.of_callers.get(caller).copied().unwrap_or_default();
        // Where nobody has to say who they are, callers cannot be told apart.
        let is_anybody = *caller == *Caller::Anybody.name();
        if of_caller >= OF_CALLER_MAX && !is_anybody {
            let (what, limit) = ("open transactions of one caller", OF_CALLER_MAX as u64);
            return Err(Error::LimitExceeded { what, limit });
        }
        Ok(())
    }

    /// Adds one, unless there are too many.
    fn insert(&mut self, open: Arc<Open>) -> Result<(), Error> {
        self.expect_room(&open.about.caller)?;
        let of_caller = self.of_callers.entry(Arc::clone(&open.about.caller)).or_default();
        *of_caller += 1;
        self.by_id.insert(open.id.clone(), open);
        Ok(())
    }

    fn remove(&mut self, id: &str) -> Option<Arc<Open>> {
        let open = self.by_id.remove(id)?;
        if let Entry::Occupied(mut of_caller) = self.of_callers.entry(Arc::clone(&open.about.caller)) {
            *of_caller.get_mut() -= 1;
            if *of_caller.get() == 0 {
                of_caller.remove();
            }
        }
        open.waits.end();
        Some(open)
    }
}

/// A namespace under one leader. Of the next one, transactions are lost, also if that is the same node again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Led {
    pub(crate) namespace: NamespaceId,
    /// Number of the epoch, which begins with each leadership.
    pub(crate) epoch: u64,
}

/// A transaction as those see it who look: it does not tell the id, by which it is used.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// Its name: the time of its beginning and a digest of its id, so that names are in the order of time.
    pub(crate) name: String,
    /// Name of who has begun it, as in the audit log.
    pub(crate) caller: Arc<str>,
    /// When it was begun, in milliseconds since the Unix epoch.
    pub(crate) begun_at_ms: u64,
    /// When it ends, in milliseconds since the Unix epoch.
    pub(crate) expires_at_ms: u64,
}

/// A transaction that is open.
pub(crate) struct Open {
    pub(crate) id: String,
    pub(crate) about: About,
    of: Led,
    ends_at: Mutex<Instant>,
    /// True from the beginning of a commit on until it is known to have done nothing: it may take effect.
    is_closing: AtomicBool,
    /// A commit that has no outcome yet. It goes on when its caller is gone: a repeat gets its outcome.
    pub(crate) in_flight: tokio::sync::Mutex<Option<InFlight>>,
    staged: Arc<tokio::sync::Mutex<Held>>,
    figures: Arc<Figures>,
    /// Ends it when its time is over.
    end: Mutex<Option<AbortHandle>>,
    /// Receives that wait in it.
    pub(crate) waits: Arc<Waits>,
}

impl fmt::Debug for OpenTransactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenTransactions").field("open", &self.0.open().by_id.len()).finish_non_exhaustive()
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, All> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends those of which no call can come any more: their namespace is gone, or the leadership under which
    /// they were begun has ended. They would count until their time is over.
    fn sweep(&self) {
        let now = Instant::now();
        let mut swept_at = self.swept_at.lock().unwrap_or_else(PoisonError::into_inner);
        if swept_at.is_some_and(|before| now < before + SWEEP_PAUSE) {
            return;
        }
        *swept_at = Some(now);
        drop(swept_at);
        let mut all = self.open();
        let orphaned = all.by_id.values().filter(|open| !(self.is_led)(open.of));
        let orphaned: Vec<_> = orphaned.map(|open| open.id.clone()).collect();
        let ended: Vec<_> = orphaned.iter().filter_map(|id| all.remove(id)).collect();
        drop(all);
        ended.iter().for_each(|open| open.forget_end());
    }
}

impl OpenTransactions {
    /// The open transactions of a node.
    pub(crate) fn of(node: Node) -> OpenTransactions {
        let clock = node.clock().clone();
        OpenTransactions::led(clock, move |led| node.leads_in(led.namespace, led.epoch))
    }

    /// The open transactions under leaders of which `is_led` tells.
    fn led(clock: AgreedClock, is_led: impl Fn(Led) -> bool + Send + Sync + 'static) -> OpenTransactions {
        OpenTransactions(Arc::new_cyclic(|shared: &Weak<Shared>| {
            let shared = Weak::clone(shared);
            let sweep = move || {
                if let Some(shared) = shared.upgrade() {
                    shared.sweep();
                }
            };
            Shared {
                open: Mutex::default(),
                memory: Arc::new(Memory::new(sweep)),
                is_led: Box::new(is_led),
                clock,
                swept_at: Mutex::default(),
            }
        }))
    }

    /// Begins a transaction that is open for `ttl`.
    ///
    /// # Errors
    /// `overloaded`: too many are open; `limit_exceeded`: too many of this caller; `internal`: the system has
    /// no random bytes.
    pub(crate) fn begin(&self, of: Led, ttl: Duration, caller: &str) -> Result<Arc<Open>, Error> {
        let mut bytes = [0; ID_BYTES];
        let no_bytes = |_| Error::Internal { reason: "the system has no random bytes".into() };
        SystemRandom::new().fill(&mut bytes).map_err(no_bytes)?;
        let (figures, waits) = (Arc::new(Figures::default()), Arc::new(Waits::default()));
        let held = Held::new(Arc::clone(&figures), Arc::clone(&waits), Arc::clone(&self.0.memory));
        let open = Arc::new(Open {
            id: HEXLOWER.encode(&bytes),
            about: About::new(&bytes, caller, self.0.clock.now_ms(), ttl),
            of,
            ends_at: Mutex::new(Instant::now() + ttl),
            is_closing: AtomicBool::new(false),
            in_flight: tokio::sync::Mutex::default(),
            staged: Arc::new(tokio::sync::Mutex::new(held)),
            figures,
            end: Mutex::default(),
            waits,
        });
        self.insert(&open)?;
        self.end_after(&open, ttl);
        Ok(open)
    }

    fn insert(&self, open: &Arc<Open>) -> Result<(), Error> {
        let inserted = self.0.open().insert(Arc::clone(open));
        if inserted.is_ok() {
            return Ok(());
        }
        self.0.sweep();
        self.0.open().insert(Arc::clone(open))
    }

    /// Checks that a caller may begin one more. Returns for how many messages there is memory in it: `max` at
    /// most.
    ///
    /// # Errors
    /// Those of [`OpenTransactions::begin`], and of [`Held::reserve`].
    pub(crate) fn room_for(&self, caller: &str, max: usize) -> Result<usize, Error> {
        let fitting = held::fitting(&self.0.memory, max)?;
        if self.0.open().expect_room(caller).is_err() {
            self.0.sweep();
            self.0.open().expect_room(caller)?;
        }
        Ok(fitting)
    }

    /// The open transaction with an id.
    ///
    /// # Errors
    /// `transaction_lost`: it is not open here.
    pub(crate) fn find(&self, namespace: NamespaceId, id: &str) -> Result<Arc<Open>, CallError> {
        let found = self.0.open().by_id.get(id).cloned();
        let found = found.filter(|open| open.of.namespace == namespace && open.is_there());
        found.ok_or_else(|| lost(id))
    }

    /// Transactions that are open under a leader, by name after `after`, at most `limit`.
    pub(crate) fn list(&self, of: Led, after: Option<&str>, limit: usize) -> Vec<Arc<Open>> {
        let is_behind = |open: &&Arc<Open>| after.is_none_or(|after| open.about.name.as_str() > after);
        let all = self.0.open();
        let of_leader = all.by_id.values().filter(|open| open.of == of && open.is_there());
        let mut found: Vec<_> = of_leader.filter(is_behind).cloned().collect();
        drop(all);
        found.sort_unstable_by(|one, other| one.about.name.cmp(&other.about.name));
        found.truncate(limit);
        found
    }

    /// The open transaction with a name.
    ///
    /// # Errors
    /// `transaction_lost`: there is none.
    pub(crate) fn named(&self, of: Led, name: &str) -> Result<Arc<Open>, CallError> {
        let all = self.0.open();
        let is_it = |open: &&Arc<Open>| open.about.name == name && open.of == of && open.is_there();
        let found = all.by_id.values().find(is_it).cloned();
        found.ok_or_else(|| lost(name))
    }

    /// Ends a transaction; nothing if it has ended.
    pub(crate) fn end(&self, id: &str) {
        let ended = self.0.open().remove(id);
        ended.iter().for_each(|open| open.forget_end());
    }

    /// Notes that a commit has done nothing, and may be repeated. False: the time of the transaction is over,
    /// and it has ended.
    pub(crate) fn go_on(&self, open: &Open) -> bool {
        open.set_closing(false);
        let is_there = open.is_there();
        if !is_there {
            self.end(&open.id);
        }
        is_there
    }

    /// Ends all: the server stops. The messages that they have received go back.
    pub(crate) fn end_all(&self) {
        let all = std::mem::take(&mut *self.0.open());
        for open in all.by_id.values() {
            open.waits.end();
        }
    }

    /// True if a transaction has not ended.
    fn is_open(&self, id: &str) -> bool {
        self.0.open().by_id.contains_key(id)
    }
}

/// The error for a transaction that is not open.
#[cold]
pub(crate) fn lost(id: &str) -> CallError {
    let id = clip(id);
    let message = format!(
        "transaction {id:?} is not open: it has ended, its time is over, or another node leads by now. Nothing \
         of it is done unless its commit has said so: begin a new one"
    );
    CallError::new("transaction_lost", message).with(|it| it.text("transaction", &id))
}

impl About {
    fn new(id: &[u8], caller: &str, begun_at_ms: u64, ttl: Duration) -> About {
        let digest = ring::digest::digest(&ring::digest::SHA256, id);
        let expires_at_ms = begun_at_ms + ttl.as_millis() as u64;
        let name = format!("{begun_at_ms:011x}-{}", HEXLOWER.encode(&digest.as_ref()[..NAME_BYTES]));
        About { name, caller: caller.into(), begun_at_ms, expires_at_ms }
    }
}

impl Open {
    /// Number of operations that its commit has, and of bytes that are staged.
    pub(crate) fn figures(&self) -> (usize, usize) {
        self.figures.get()
    }

    /// Forgets the end of its time: it has ended before.
    fn forget_end(&self) {
        if let Some(end) = self.end.lock().unwrap_or_else(PoisonError::into_inner).take() {
            end.abort();
        }
    }

    fn ends_at(&self) -> MutexGuard<'_, Instant> {
        self.ends_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_there(&self) -> bool {
        *self.ends_at() > Instant::now() || self.is_closing()
    }

    /// Time for which it is still open.
    pub(crate) fn time_left(&self) -> Duration {
        self.ends_at().saturating_duration_since(Instant::now())
    }

    /// True if a commit has begun, and may take effect.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Notes whether a commit may take effect.
    pub(crate) fn set_closing(&self, is_closing: bool) {
        self.is_closing.store(is_closing, Ordering::Relaxed);
    }

    /// Refuses what changes or ends it without a commit, while a commit may take effect.
    ///
    /// # Errors
    /// `wrong_state`.
    pub(crate) fn expect_no_commit(&self) -> Result<(), CallError> {
        if self.is_closing() {
            let message = "a commit of the transaction has begun, and may take effect: repeat the commit";
            return Err(CallError::new("wrong_state", message));
        }
        Ok(())
    }

    /// Refuses it under another leader than the one under which it was begun.
    ///
    /// # Errors
    /// `transaction_lost`.
    pub(crate) fn expect_led(&self, led: Led) -> Result<(), CallError> {
        if self.of == led { Ok(()) } else { Err(lost(&self.id)) }
    }

    /// Waits until it has ended, however long that takes.
    pub(crate) async fn has_ended(&self) {
        self.waits.have_ended().await;
    }

    /// Waits until no other call works on it.
    ///
    /// # Errors
    /// `transaction_lost`: it has ended meanwhile.
    pub(crate) async fn lock(&self, all: &OpenTransactions) -> Result<OwnedMutexGuard<Held>, CallError> {
        let held = Arc::clone(&self.staged).lock_owned().await;
        if all.is_open(&self.id) { Ok(held) } else { Err(lost(&self.id)) }
    }
}

#[cfg(test)]
impl OpenTransactions {
    /// Leaves memory for so many messages, and no more.
    pub(crate) fn leave_memory_for(&self, messages: usize) {
        self.0.memory.leave(messages);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    /// Transactions whose leaderships never end.
    impl Default for OpenTransactions {
        fn default() -> OpenTransactions {
            OpenTransactions::led(AgreedClock::default(), |_| true)
        }
    }

    const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
    const LED: Led = Led { namespace: NAMESPACE, epoch: 1 };

    #[tokio::test(start_paused = true)]
    async fn one_ends_with_its_time_and_gives_its_memory_back() {
        let all = OpenTransactions::default();
        let open = all.begin(LED, Duration::from_secs(5), "ann").unwrap();
        let other = all.begin(LED, Duration::from_secs(50), "ann").unwrap();
        open.lock(&all).await.unwrap().replace(Staged::of_bytes(1_000)).unwrap();
        assert_eq!(all.0.memory.taken(), 1_000);
        assert!(all.find(NamespaceId(7), &open.id).is_err(), "of another namespace");
        assert!(open.expect_led(LED).is_ok() && open.expect_led(Led { epoch: 2, ..LED }).is_err());
        let id = all.find(NAMESPACE, &open.id).unwrap().id.clone();
        drop(open);
        sleep(Duration::from_secs(6)).await;
        assert_eq!(all.find(NAMESPACE, &id).err().unwrap().code(), "transaction_lost");
        assert_eq!(all.0.memory.taken(), 0);
        assert!(all.find(NAMESPACE, &other.id).is_ok());
        other.set_closing(true);
        assert_eq!(other.expect_no_commit().unwrap_err().code(), "wrong_state");
        sleep(Duration::from_secs(60)).await;
        assert!(all.find(NAMESPACE, &other.id).is_ok(), "a repeat of its commit comes to know");
        sleep(Duration::from_secs(60)).await;
        assert_eq!(other.lock(&all).await.err().unwrap().code(), "transaction_lost");
    }

    #[tokio::test(start_paused = true)]
    async fn one_whose_commit_has_done_nothing_goes_on_until_its_time_is_over() {
        let all = OpenTransactions::default();
        let open = all.begin(LED, Duration::from_secs(5), "ann").unwrap();
        open.set_closing(true);
        assert!(all.go_on(&open) && open.expect_no_commit().is_ok());
        assert!(all.find(NAMESPACE, &open.id).is_ok());
        open.set_closing(true);
        sleep(Duration::from_secs(6)).await;
        assert!(all.find(NAMESPACE, &open.id).is_ok(), "its commit may take effect");
        assert!(!all.go_on(&open));
        assert!(!all.is_open(&open.id) && open.waits.has_ended().await);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_nobody_leads_any_more_make_room_at_the_limit() {
        let epoch = Arc::new(std::sync::atomic::AtomicU64::new(1));
        let led = Arc::clone(&epoch);
        let is_led = move |of: Led| of.epoch == led.load(Ordering::Relaxed);
        let all = OpenTransactions::led(AgreedClock::default(), is_led);
        let begin = || all.begin(LED, Duration::from_secs(50), "ann");
        let first = begin().unwrap().id.clone();
        (1..OF_CALLER_MAX).for_each(|_| drop(begin().unwrap()));
        assert_eq!(begin().err().unwrap().code(), "limit_exceeded");
        epoch.store(2, Ordering::Relaxed);
        assert_eq!(all.room_for("ann", 1).err().unwrap().code(), "limit_exceeded", "it has just been swept");
        sleep(SWEEP_PAUSE).await;
        assert_eq!(all.room_for("ann", 5).unwrap(), 5);
        assert!(!all.is_open(&first) && all.0.open().by_id.is_empty());
        let next = Led { epoch: 2, ..LED };
        (0..OF_CALLER_MAX).for_each(|_| drop(all.begin(next, Duration::from_secs(50), "ann").unwrap()));
        epoch.store(3, Ordering::Relaxed);
        sleep(SWEEP_PAUSE).await;
        begin().unwrap();
        assert_eq!(all.0.open().by_id.len(), 1);
    }

    #[tokio::test]
    async fn the_memory_of_those_in_a_deleted_namespace_is_for_others() {
        let server = crate::testing::Open::new();
        let (all, node) = (server.calls().open_transactions(), server.node());
        let namespace = node.namespace_create("gone", None, Default::default()).await.unwrap().id;
        let begin = async |namespace| {
            let led = Led { namespace, epoch: node.epoch(namespace).await.unwrap() };
            all.begin(led, Duration::from_secs(50), "ann").unwrap()
        };
        let of_gone = begin(namespace).await;
        of_gone.lock(all).await.unwrap().replace(Staged::of_bytes(1_000)).unwrap();
        let open = begin(NAMESPACE).await;
        all.leave_memory_for(0);
        let mut held = open.lock(all).await.unwrap();
        assert_eq!(held.replace(Staged::of_bytes(1_000)).unwrap_err().code(), "overloaded");
        let id = of_gone.id.clone();
        drop(of_gone);
        node.namespace_delete("gone", true).await.unwrap();
        sleep(SWEEP_PAUSE).await;
        held.replace(Staged::of_bytes(1_000)).unwrap();
        assert!(!all.is_open(&id) && all.is_open(&open.id));
    }

    #[tokio::test]
    async fn callers_that_nobody_tells_apart_have_all() {
        let all = OpenTransactions::default();
        let begin = || all.begin(LED, Duration::from_secs(50), Caller::Anybody.name());
        (0..OPEN_MAX).for_each(|_| drop(begin().unwrap()));
        assert_eq!(begin().err().unwrap().code(), "overloaded");
    }

    #[tokio::test]
    async fn a_caller_has_a_part_of_all_and_others_the_rest() {
        let all = OpenTransactions::default();
        let ttl = Duration::from_secs(50);
        let first = all.begin(LED, ttl, "ann").unwrap();
        for _ in 1..OF_CALLER_MAX {
            all.begin(LED, ttl, "ann").unwrap();
        }
        assert_eq!(all.begin(LED, ttl, "ann").err().unwrap().code(), "limit_exceeded");
        assert_eq!(all.room_for("ann", 1).unwrap_err().code(), "limit_exceeded");
        all.begin(LED, ttl, "bob").unwrap();
        all.end(&first.id);
        all.begin(LED, ttl, "ann").unwrap();
        let names = |after, limit| -> Vec<String> {
            all.list(LED, after, limit).iter().map(|open| open.about.name.clone()).collect()
        };
        let every = names(None, usize::MAX);
        assert!(every.len() == OF_CALLER_MAX + 1 && every.is_sorted());
        assert_eq!(names(Some(&every[9]), 5), every[10..15]);
        assert!(all.list(Led { epoch: 2, ..LED }, None, 1).is_empty());
        assert_eq!(all.named(LED, &every[7]).unwrap().about.name, every[7]);
        assert!(all.named(LED, &first.about.name).is_err() && all.named(LED, &first.id).is_err());
    }
}
