//! The pusher of the messages of one queue: how one is pushed, and what becomes of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use sluice_engine::command::Settlement;
use sluice_engine::push::PushView;
use sluice_engine::settings::QueuePatch;
use sluice_engine::{Error, MessageId};
use sluice_node::{Delivered, Node};
use tokio::time::Instant;

use crate::answer::{Verdict, cut};
use crate::client::Client;
use crate::held::Held;
use crate::hold::Hold;
use crate::log::{Attempt, Log, Outcome};
use crate::request::Template;
use crate::secret::Signer;
use crate::shared::Shared;
use crate::target::Target;

/// Longest time by which pushes may be behind their rate and catch up: clocks wake late.
const BEHIND_MAX: Duration = Duration::from_millis(10);

/// The pushes of a queue, as its settings say.
#[derive(Debug)]
pub(crate) struct Pusher {
    pub(crate) node: Node,
    pub(crate) view: PushView,
    pub(crate) hold: Arc<Hold>,
    pub(crate) shared: Arc<Shared>,
    log: Arc<Log>,
    client: Client,
    template: Template,
    /// When the next push may begin, by the rate.
    next: Mutex<Instant>,
}

/// A push that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) verdict: Verdict,
    message: MessageId,
    attempt: u16,
    /// When it began, in milliseconds since the Unix epoch, by the server's clock.
    at_ms: u64,
    took: Duration,
    status: Option<u16>,
}

impl Pusher {
    pub(crate) fn new(
        node: Node,
        shared: Arc<Shared>,
        (log, hold): (Arc<Log>, Arc<Hold>),
        view: PushView,
        target: Target,
    ) -> Pusher {
        let signer = Signer::new(&view.secrets);
        let options = &shared.options;
        Pusher {
            template: Template::new(&target, signer, &view.headers, &options.agent),
            client: Client::new(target, Arc::clone(options)),
            next: Mutex::new(Instant::now()),
            node,
            hold,
            shared,
            log,
            view,
        }
    }

    /// Longest time for a push.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.view.timeout_ms.into())
    }

    /// Closes connections that nothing has been pushed over for long.
    pub(crate) fn close_idle(&self) {
        self.client.close_idle();
    }

    /// Time until the next look at the endpoint's hold, where nothing may be pushed now.
    pub(crate) fn hold_pause(&self) -> Option<Duration> {
        self.hold.pause(self.node.clock())
    }

    /// Takes the place of a push that begins now; or when the rate has one.
    pub(crate) fn pace(&self) -> Result<(), Instant> {
        if self.view.rate == 0 {
            return Ok(());
        }
        let (mut next, now) = (self.next.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        if *next > now {
            return Err(*next);
        }
        *next = (*next).max(now - BEHIND_MAX) + Duration::from_secs(1) / self.view.rate;
        Ok(())
    }

    /// Pushes a message.
    pub(crate) async fn push(&self, message: Delivered) -> Ended {
        let counts = &self.shared.counts;
        let in_flight = InFlight::new(&counts.in_flight);
        let (began, at_ms) = (Instant::now(), self.node.clock().now_ms());
        let (verdict, status) = self.verdict(&message).await;
        drop(in_flight);
        let took = began.elapsed();
        counts.add(Outcome::of(&verdict), took);
        let (message, attempt) = (message.delivery.receipt.id, message.delivery.attempt);
        Ended { verdict, message, attempt, at_ms, took, status }
    }

    /// Sends a message; gives what becomes of it, and the status of the answer. Its time stamp is by the
    /// clock of the machine: a receiver compares it with its own, which a test of the server does not move.
    async fn verdict(&self, message: &Delivered) -> (Verdict, Option<u16>) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let Some(request) = self.template.request(message, since.unwrap_or_default().as_secs()) else {
            return (Verdict::Failed { error: "the message cannot be sent by HTTP".to_owned() }, None);
        };
        match self.client.send(request, self.timeout()).await {
            Ok(answer) => {
                let verdict = Verdict::of(answer.status, &answer.headers, &answer.body, SystemTime::now());
                (verdict, Some(answer.status.as_u16()))
            }
            Err(error) => (Verdict::Failed { error: cut(error) }, None),
        }
    }

    /// Settles a message that was pushed.
    pub(crate) async fn settle(self: Arc<Self>, ended: Ended, held: Held) {
        let Ended { verdict, message, attempt, at_ms, took, status } = ended;
        let (settlement, delay_ms, error) = meaning(&verdict);
        let unsettled = held.settle(settlement, error).await;
        self.log.add(Attempt {
            message,
            attempt,
            at_ms,
            took_ms: took.as_millis() as u64,
            status,
            outcome: Outcome::of(&verdict),
            error: error.into(),
            delay_ms,
            unsettled: unsettled.map(|error| error.to_string()).unwrap_or_default().into(),
        });
    }

    /// Pauses the queue's pushes, since its endpoint is gone. True: nothing is pushed to that any more, since
    /// they are paused, or the queue has another endpoint or none by now. False: that was not possible now.
    pub(crate) async fn pause(&self) -> bool {
        let PushView { namespace, queue, name, url, .. } = &self.view;
        let patch = QueuePatch { push_paused: Some(true), ..QueuePatch::default() };
        let is_own = self.node.queue(*namespace, name).await;
        let is_own = is_own.map(|found| found.id == *queue && found.settings.push_url == *url);
        let paused = match is_own {
            Ok(false) => return true,
            Ok(true) => self.node.queue_set(*namespace, name, patch, false).await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = paused {
            tracing::warn!(queue = %name, %error, "an endpoint is gone, and its queue cannot be paused");
            return matches!(error, Error::QueueNotFound { .. } | Error::NamespaceNotFound { .. });
        }
        tracing::warn!(queue = %name, "the endpoint of a queue answers 410 Gone: its pushes are paused");
        if let Some(auditor) = &self.shared.options.auditor {
            auditor.paused(&self.node, *namespace, name).await;
        }
        true
    }
}

/// Settlement of a message, the delay that it tells, and its error.
fn meaning(verdict: &Verdict) -> (Settlement, Option<u64>, &str) {
    match verdict {
        Verdict::Taken => (Settlement::Ack, None, ""),
        Verdict::Failed { error } => (Settlement::Nack { delay_ms: None }, None, error),
        Verdict::Later { delay, error } => {
            let delay_ms = delay.as_millis() as u64;
            (Settlement::Release { delay_ms }, Some(delay_ms), error)
        }
        Verdict::Gone { error } => (Settlement::Release { delay_ms: 0 }, None, error),
    }
}

/// A push on its way, as long as this is there.
struct InFlight<'c>(&'c AtomicU64);

impl InFlight<'_> {
    fn new(count: &AtomicU64) -> InFlight<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        InFlight(count)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
