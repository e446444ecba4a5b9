//! Feeds of figures: what is sampled, and the samples that are kept.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sluice_engine::query::{Counters, QueueView};
use sluice_engine::{Error, NamespaceId};
use sluice_node::Node;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::time::now_ms;

/// Time between two samples.
pub(crate) const STEP: Duration = Duration::from_secs(1);
/// Time for which samples are kept, and for which a feed is sampled that nobody watches.
const KEPT: Duration = Duration::from_secs(15 * 60);
const SAMPLES_MAX: usize = (KEPT.as_secs() / STEP.as_secs()) as usize;
/// Most feeds of a node; each takes some 250 KB at most.
const FEEDS_MAX: usize = 64;
/// Queues that are looked at together.
const PAGE_QUEUES: usize = 200;

/// The figures of a namespace or a queue at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// When they were taken, in milliseconds since the Unix epoch.
    pub(crate) at_ms: u64,
    pub(crate) queues: u64,
    /// Counters of all queues together.
    pub(crate) counters: Counters,
    /// When the oldest of the messages that stand first in line was sent, in microseconds since the Unix
    /// epoch.
    pub(crate) oldest_ready_at_us: Option<u64>,
}

impl Figures {
    fn add(&mut self, queues: &[QueueView]) {
        for queue in queues {
            self.queues += 1;
            self.counters.add(&queue.counters);
            let oldest = self.oldest_ready_at_us.into_iter().chain(queue.oldest_ready_at_us);
            self.oldest_ready_at_us = oldest.min();
        }
    }

    /// Takes the figures of a namespace or a queue. Queues are looked at some at a time, so the figures of
    /// many are of no one moment.
    ///
    /// # Errors
    /// `namespace_not_found`, `queue_not_found`.
    pub(crate) async fn take(node: &Node, (namespace, queue): &About) -> Result<Figures, Error> {
        let mut figures = Figures::default();
        if let Some(name) = queue {
            figures.add(&[node.queue(*namespace, name).await?]);
        } else {
            let mut after: Option<String> = None;
            loop {
                let page = node.queues(*namespace, "", after.as_deref(), PAGE_QUEUES).await?;
                figures.add(&page);
                after = page.into_iter().nth(PAGE_QUEUES - 1).map(|last| last.name);
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(Figures { at_ms: now_ms(), ..figures })
    }
}

/// Subject of a feed: a namespace, or one of its queues.
pub(crate) type About = (NamespaceId, Option<Box<str>>);

/// The feeds of a node.
#[derive(Debug, Default)]
pub(crate) struct Statistics(Arc<Mutex<BTreeMap<About, Arc<Feed>>>>);

/// The samples of a feed.
#[derive(Debug)]
struct Feed {
    kept: Mutex<VecDeque<Figures>>,
    /// Number of samples that there were; [`ENDED`] behind the last one.
    taken: watch::Sender<u64>,
    watchers: AtomicUsize,
}

const ENDED: u64 = u64::MAX;

/// Locks what no panic leaves half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Statistics {
    /// Begins to watch something; with the figures as they are now, if nobody does so far.
    ///
    /// # Errors
    /// `overloaded`: there are too many feeds.
    pub(crate) fn watch(&self, node: &Node, about: About, first: Figures) -> Result<Watching, Error> {
        let mut feeds = lock(&self.0);
        if !feeds.contains_key(&about) {
            if feeds.len() >= FEEDS_MAX {
                return Err(Error::Overloaded { what: "feeds of statistics", retry_after_ms: 10_000 });
            }
            let (taken, watchers) = (watch::Sender::new(1), AtomicUsize::new(0));
            let feed = Arc::new(Feed { kept: Mutex::new([first].into()), taken, watchers });
            feeds.insert(about.clone(), Arc::clone(&feed));
            let of = Sampling { feeds: Arc::downgrade(&self.0), feed, about: about.clone() };
            tokio::spawn(of.run(node.clone()));
        }
        let feed = feeds.get(&about).ok_or(Error::ShuttingDown {})?;
        feed.watchers.fetch_add(1, Ordering::Relaxed);
        Ok(Watching { news: feed.taken.subscribe(), feed: Arc::clone(feed), told: 0 })
    }
}

/// The task that samples a feed.
struct Sampling {
    feeds: Weak<Mutex<BTreeMap<About, Arc<Feed>>>>,
    feed: Arc<Feed>,
    about: About,
}

impl Sampling {
    async fn run(self, node: Node) {
        let mut ticks = interval(STEP);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        ticks.tick().await;
        let mut watched = Instant::now();
        while self.feeds.strong_count() > 0 && watched.elapsed() <= KEPT {
            ticks.tick().await;
            if self.feed.watchers.load(Ordering::Relaxed) > 0 {
                watched = Instant::now();
            }
            let Ok(figures) = Figures::take(&node, &self.about).await else { break };
            self.feed.add(figures);
        }
        if let Some(feeds) = self.feeds.upgrade() {
            lock(&feeds).remove(&self.about);
        }
        self.feed.taken.send_replace(ENDED);
    }
}

impl Feed {
    fn add(&self, figures: Figures) {
        let mut kept = lock(&self.kept);
        if kept.len() == SAMPLES_MAX {
            kept.pop_front();
        }
        kept.push_back(figures);
        self.taken.send_modify(|taken| *taken += 1);
    }

    /// Samples behind the first `told` of all that there were, and the number of all.
    fn behind(&self, told: u64) -> (Vec<Figures>, u64) {
        let kept = lock(&self.kept);
        let taken = *self.taken.borrow();
        let count = taken.saturating_sub(told).min(kept.len() as u64) as usize;
        (kept.iter().skip(kept.len() - count).copied().collect(), taken)
    }
}

/// A feed that is watched, and the number of its samples that were told.
#[derive(Debug)]
pub(crate) struct Watching {
    feed: Arc<Feed>,
    news: watch::Receiver<u64>,
    told: u64,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.feed.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Watching {
    /// The samples that were not told, as soon as there are some; none after a wait. `None`: the feed has
    /// ended.
    pub(crate) async fn next(&mut self, wait: Duration) -> Option<Vec<Figures>> {
        let told = self.told;
        let news = timeout(wait, self.news.wait_for(|taken| *taken > told)).await;
        let taken = match news {
            Err(_) => return Some(Vec::new()),
            Ok(taken) => taken.map_or(ENDED, |taken| *taken),
        };
        if taken == ENDED {
            return None;
        }
        let (samples, told) = self.feed.behind(told);
        self.told = told;
        Some(samples)
    }
}
