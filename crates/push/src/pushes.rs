//! The pushes of a node: those of the queues whose shards it leads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice_engine::id::{NamespaceId, QueueId};
use sluice_engine::push::PushView;
use sluice_https::Tls;
use sluice_node::Node;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::address::Allowed;
use crate::hold::Hold;
use crate::log::{Attempt, Counts};
use crate::options::Options;
use crate::pusher::Pusher;
use crate::request::check_header;
use crate::session::push_all;
use crate::shared::{Key, Shared};
use crate::target::Target;

/// Time between two looks at which queues push.
const LOOK_PAUSE: Duration = Duration::from_millis(500);
/// Longest time for pushers to end when the server stops.
const STOP_TIME: Duration = Duration::from_secs(6);

/// The pushes of a node; clones share them.
#[derive(Clone, Debug)]
pub struct Pushes(Arc<Shared>);

/// The pushes of a server that pushes nothing.
impl Default for Pushes {
    fn default() -> Self {
        Pushes::new(Options::new(Tls::trusting_nobody(), Allowed::default(), String::new()))
    }
}

impl Pushes {
    /// The pushes by these settings; none begins before [`Pushes::start`].
    pub fn new(options: Options) -> Pushes {
        Pushes(Arc::new(Shared::new(options)))
    }

    /// Checks the address of an endpoint as far as it can be known before it is used.
    ///
    /// # Errors
    /// What would be right.
    pub fn check_url(&self, url: &str) -> Result<(), String> {
        Target::parse(url)?.check(&self.0.options.allowed)
    }

    /// Checks a header that pushes are to get.
    ///
    /// # Errors
    /// What would be right.
    pub fn check_header(&self, name: &str, value: &str) -> Result<(), String> {
        check_header(name, value).map(drop)
    }

    /// The latest pushes of a queue, the newest first, at most `most`; none of one that this node does not
    /// push.
    pub fn log(&self, namespace: NamespaceId, queue: &str, most: usize) -> Vec<Attempt> {
        let key: Key = (namespace, queue.into());
        let log = self.0.logs().get(&key).cloned();
        log.map_or_else(Vec::new, |log| log.newest(most))
    }

    /// Counts of all pushes since the start.
    pub fn counts(&self) -> &Counts {
        &self.0.counts
    }

    /// Begins to push the queues of a node, within a runtime.
    pub fn start(&self, node: Node) -> Pushing {
        let (stop, stopping) = watch::channel(false);
        let pushes = self.clone();
        let task = tokio::spawn(async move { pushes.run(node, stopping).await });
        Pushing { task, stop }
    }

    async fn run(&self, node: Node, mut stopping: watch::Receiver<bool>) {
        let mut running: Vec<BTreeMap<QueueId, Running>> =
            (0..node.shards()).map(|_| BTreeMap::new()).collect();
        loop {
            for (shard, running) in (0..).zip(&mut running) {
                // A shard that cannot be looked at now keeps its pushers.
                if let Ok(views) = node.pushes(shard).await {
                    self.follow(&node, running, views);
                }
            }
            running.iter().flat_map(BTreeMap::values).for_each(Running::close_idle);
            let queues = running.iter().map(BTreeMap::len).sum::<usize>();
            self.0.counts.queues.store(queues as u64, Ordering::Relaxed);
            // An error means that whoever stops it is gone.
            if timeout(LOOK_PAUSE, stopping.wait_for(|stopping| *stopping)).await.is_ok() {
                break;
            }
        }
        let all: Vec<Running> = running.into_iter().flat_map(BTreeMap::into_values).collect();
        all.iter().for_each(Running::stop);
        for running in all {
            let _ = running.task.await;
        }
    }

    /// Lets the pushers of a shard be those of the queues that push.
    fn follow(&self, node: &Node, running: &mut BTreeMap<QueueId, Running>, views: Vec<PushView>) {
        let wanted: BTreeMap<QueueId, PushView> = views.into_iter().map(|view| (view.queue, view)).collect();
        running.retain(|queue, running| {
            let is_wanted = wanted.contains_key(queue);
            if !is_wanted {
                running.stop();
                let key = (running.view.namespace, running.view.name.clone());
                self.0.logs().remove(&key);
            }
            is_wanted
        });
        for (queue, view) in wanted {
            if running.get(&queue).is_some_and(|running| running.pushes_as(&view)) {
                continue;
            }
            let before = running.remove(&queue).inspect(Running::stop);
            running.insert(queue, self.begin(node, view, before));
        }
    }

    /// Begins to push a queue once the pusher with its former settings has ended.
    fn begin(&self, node: &Node, view: PushView, before: Option<Running>) -> Running {
        let key = (view.namespace, view.name.clone());
        let log = Arc::clone(self.0.logs().entry(key).or_default());
        let is_same = |before: &&Running| before.view.url == view.url;
        let hold = before.as_ref().filter(is_same).map(|before| Arc::clone(&before.hold));
        let hold = hold.unwrap_or_default();
        let (stop, stopping) = watch::channel(false);
        // The address was checked when it was set; one that is none pushes nothing.
        let target = Target::parse(&view.url.0).ok().filter(|_| !view.paused);
        let pusher = target.map(|target| {
            let shared = Arc::clone(&self.0);
            Arc::new(Pusher::new(node.clone(), shared, (log, Arc::clone(&hold)), view.clone(), target))
        });
        let pushing = pusher.clone();
        let task = tokio::spawn(async move {
            if let Some(before) = before {
                let _ = before.task.await;
            }
            if let Some(pusher) = pushing {
                push_all(pusher, stopping).await;
            }
        });
        Running { view, hold, pusher, task, stop }
    }
}

/// The pusher of a queue.
#[derive(Debug)]
struct Running {
    view: PushView,
    hold: Arc<Hold>,
    /// `None` while nothing is pushed.
    pusher: Option<Arc<Pusher>>,
    task: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Running {
    /// True if it does what is wanted. One that has ended pushes no more: its queue was paused for an
    /// endpoint that is gone, and may have been resumed since, before anybody looked.
    fn pushes_as(&self, view: &PushView) -> bool {
        self.view == *view && (view.paused || !self.task.is_finished())
    }

    fn stop(&self) {
        self.stop.send_replace(true);
    }

    fn close_idle(&self) {
        self.pusher.iter().for_each(|pusher| pusher.close_idle());
    }
}

/// Pushes that go on until they are stopped.
#[derive(Debug)]
pub struct Pushing {
    task: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Pushing {
    /// Stops: what is on its way has some seconds to end, the rest goes back.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let _ = timeout(STOP_TIME, self.task).await;
    }
}
