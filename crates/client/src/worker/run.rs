//! The worker loop: one task owns the state; handlers, the receive, the extend and the settler are tasks that
//! it starts.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use sluice_proto::v1::client_frame::Frame;
use sluice_proto::v1::{ExtendMany, Extension};
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use crate::answers::{Delivered, ItemResult};
use crate::error::{ClientError, TransportKind};
use crate::message::{Receive, Settle};
use crate::stop::Stop;
use crate::worker::leases::{Leases, Loss};
use crate::worker::link::{AttachTerms, Link, SessionEvent};
use crate::worker::options::{Job, Summary, Worker, WorkerEvent, WorkerTransport};
use crate::worker::settler::{self, Ending, Settled, Settling, Unsettled};

/// Most messages of one receive; the server's default limit.
const RECEIVE_MAX: usize = 1_000;
/// Most messages that a consumer may hold; the server's limit.
const CREDIT_MAX: usize = 10_000;
/// Pause after a receive that failed for good, before the next.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Shortest time that one try of an extend gets.
const EXTEND_LEAST: Duration = Duration::from_secs(1);
/// Time without a message after which a queue counts as empty, with `until_empty`.
const EMPTY_AFTER: Duration = Duration::from_millis(500);

type Received = (Instant, Result<(Vec<Delivered>, bool), ClientError>);
type Extended = (Instant, Vec<String>, Option<Vec<ItemResult>>);

impl Worker {
    /// Terms of the session; `None`: messages come by receives.
    fn terms(&self) -> Option<AttachTerms> {
        let options = &self.options;
        let [(queue, _)] = options.queues.as_slice() else { return None };
        if options.transport == WorkerTransport::Http {
            return None;
        }
        let credit = options.concurrency.max(1).saturating_add(options.prefetch).min(CREDIT_MAX);
        Some(AttachTerms {
            queue: queue.clone(),
            credit: credit as u32,
            lease: options.lease.max(Duration::from_secs(1)),
            name: options.consumer.clone(),
            may_fall_back: options.transport == WorkerTransport::Auto,
        })
    }

    /// Runs until `stop` is given, then finishes what has started, gives back what has not, and tells what
    /// was done. With `until_empty` it also ends when there is nothing left.
    ///
    /// A server that cannot be reached is tried again for ever; `events` hears of it. An error that a retry
    /// cannot cure (a name that is not valid, a namespace that does not exist) ends the worker, after what
    /// runs has finished.
    ///
    /// # Errors
    /// The error that ended it.
    pub async fn run<F, Fut>(
        &self,
        stop: Stop,
        handler: F,
        events: mpsc::UnboundedSender<WorkerEvent>,
    ) -> Result<Summary, ClientError>
    where
        F: Fn(Job) -> Fut,
        Fut: Future<Output = Settle> + Send + 'static,
    {
        let to_end = |job| {
            let settle = handler(job);
            async move { Ending::Settle(settle.await) }
        };
        self.run_to_end(stop, to_end, events).await
    }

    /// The same with a handler that may have settled its message itself.
    pub(super) async fn run_to_end<F, Fut>(
        &self,
        stop: Stop,
        handler: F,
        events: mpsc::UnboundedSender<WorkerEvent>,
    ) -> Result<Summary, ClientError>
    where
        F: Fn(Job) -> Fut,
        Fut: Future<Output = Ending> + Send + 'static,
    {
        let (settle, settled) = mpsc::channel(RECEIVE_MAX);
        let settling = Settling::new(settle);
        let leases = Leases::new(self.options.lease.max(Duration::from_secs(1)));
        let (stream, keeping) = match self.terms() {
            Some(terms) => {
                let begun = Link::begin(&self.client, terms, leases.to_resume(), settling.unanswered());
                (Some(Stream::new(begun.link, begun.heard)), Some(begun.keeping))
            }
            None => (None, None),
        };
        let settler = tokio::spawn(settler::run(
            self.client.clone(),
            stream.as_ref().map(|stream| stream.link.clone()),
            settled,
            settling.unanswered(),
            events.clone(),
            self.options.lease,
        ));
        let mut state = WorkerState::new(self, handler, settling, events, leases, stream);
        state.run(&stop).await;
        let (failed, settled) = (state.failed.take(), state.summary);
        drop(state);
        let summary = settler.await.map_err(|e| broken(&self.client, &e))?.and(&settled);
        if let Some(keeping) = keeping {
            // What came too late goes back before the process may end; a session that hangs is left behind.
            let _ = timeout(PAUSE_MAX, keeping).await;
        }
        failed.map_or(Ok(summary), Err)
    }
}

fn broken(client: &crate::Client, error: &JoinError) -> ClientError {
    let (server, reason) = (client.server().to_owned(), error.to_string());
    ClientError::Transport { kind: TransportKind::Broken, server, tried: 1, reason }
}

struct WorkerState<'a, F> {
    worker: &'a Worker,
    handler: F,
    settling: Settling,
    events: mpsc::UnboundedSender<WorkerEvent>,
    waiting: VecDeque<Delivered>,
    leases: Leases,
    running: JoinSet<Ending>,
    /// Message of each running handler, so that the message of a handler that panics is settled too.
    jobs: Vec<(Id, String)>,
    receive: Option<JoinHandle<Received>>,
    extend: Option<JoinHandle<Extended>>,
    failures: u32,
    /// True when the server has answered at least once.
    ever_reached: bool,
    receive_after: Instant,
    /// Nothing was in hand when the receive under way began: if it brings nothing, the queue is empty.
    began_idle: bool,
    /// Until then a receive whose answer was lost may hold messages that nobody works on.
    lost_until: Instant,
    /// The last receive brought nothing and nothing is in hand any more: the next look need not wait.
    look_again: bool,
    stopping: bool,
    failed: Option<ClientError>,
    /// Messages come over a session; `None`: by receives.
    stream: Option<Stream>,
    /// Counts of the messages that their handlers have settled.
    summary: Summary,
}

/// The session that messages come over.
struct Stream {
    link: Link,
    heard: mpsc::UnboundedReceiver<SessionEvent>,
    is_attached: bool,
    /// Time since which no message is held and none has come.
    idle_since: Option<Instant>,
}

impl Stream {
    fn new(link: Link, heard: mpsc::UnboundedReceiver<SessionEvent>) -> Stream {
        Stream { link, heard, is_attached: false, idle_since: None }
    }
}

/// The next thing that is heard of a session that may not be there.
async fn hear(stream: &mut Option<Stream>) -> SessionEvent {
    let heard = match stream {
        Some(stream) => stream.heard.recv().await,
        None => None,
    };
    match heard {
        Some(event) => event,
        // It has ended, and has said why.
        None => std::future::pending().await,
    }
}

impl<'a, F, Fut> WorkerState<'a, F>
where
    F: Fn(Job) -> Fut,
    Fut: Future<Output = Ending> + Send + 'static,
{
    fn new(
        worker: &'a Worker,
        handler: F,
        settling: Settling,
        events: mpsc::UnboundedSender<WorkerEvent>,
        leases: Leases,
        stream: Option<Stream>,
    ) -> Self {
        WorkerState {
            worker,
            handler,
            settling,
            events,
            waiting: VecDeque::new(),
            leases,
            stream,
            running: JoinSet::new(),
            jobs: Vec::new(),
            receive: None,
            extend: None,
            failures: 0,
            ever_reached: false,
            receive_after: Instant::now(),
            began_idle: false,
            lost_until: Instant::now(),
            look_again: false,
            stopping: false,
            failed: None,
            summary: Summary::default(),
        }
    }

    async fn run(&mut self, stop: &Stop) {
        while !(self.stopping && self.running.is_empty()) {
            self.start_handlers();
            self.start_receive();
            let extend_at = if self.extend.is_none() { self.leases.next_extend() } else { None };
            let ends_at = self.leases.next_end();
            let pulls = self.stream.is_none();
            let idle = pulls && self.receive.is_none() && !self.stopping && self.room() > 0;
            let look_at = self.look_whether_empty();
            tokio::select! {
                () = stop.stopped(), if !self.stopping => self.begin_stop().await,
                Some(done) = self.running.join_next_with_id() => self.finished(done).await,
                received = join(&mut self.receive) => self.received(received).await,
                extended = join(&mut self.extend) => self.extended(extended),
                () = sleep_until(extend_at.unwrap_or_else(Instant::now)), if extend_at.is_some() => self.start_extend(),
                () = sleep_until(ends_at.unwrap_or_else(Instant::now)), if ends_at.is_some() => self.end_leases(),
                () = sleep_until(self.receive_after), if idle => {}
                event = hear(&mut self.stream), if !pulls => self.heard(event).await,
                () = sleep_until(look_at.unwrap_or_else(Instant::now)), if look_at.is_some() => {}
            }
        }
    }

    /// Messages that may still be taken.
    fn room(&self) -> usize {
        let options = &self.worker.options;
        let want = options.concurrency.max(1).saturating_add(options.prefetch);
        want.saturating_sub(self.running.len() + self.waiting.len()).min(RECEIVE_MAX)
    }

    /// True when nothing is in hand: no handler runs, nothing waits for one, and every settle was answered.
    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty() && self.settling.is_done()
    }

    fn start_handlers(&mut self) {
        while self.running.len() < self.worker.options.concurrency.max(1) && !self.stopping {
            let Some(message) = self.waiting.pop_front() else { return };
            let receipt = message.receipt.clone();
            let Some(lost) = self.leases.lost(&receipt) else { continue };
            if lost.is_stopped() {
                self.leases.remove(&receipt);
                continue;
            }
            let task = self.running.spawn((self.handler)(Job { message, lost }));
            self.jobs.push((task.id(), receipt));
        }
    }

    fn start_receive(&mut self) {
        let room = self.room();
        if self.stream.is_some()
            || self.receive.is_some()
            || self.stopping
            || room == 0
            || Instant::now() < self.receive_after
        {
            return;
        }
        let options = &self.worker.options;
        let wait = match options.until_empty {
            true if self.look_again && Instant::now() >= self.lost_until => Duration::ZERO,
            true => {
                let lost = self.lost_until.saturating_duration_since(Instant::now());
                options.wait.min(EMPTY_AFTER + lost)
            }
            false => options.wait,
        };
        let mut receive = Receive::from_queues(options.queues.clone())
            .max(u32::try_from(room).unwrap_or(u32::MAX))
            .wait(wait)
            .lease(Some(options.lease.max(Duration::from_secs(1))));
        receive.consumer.clone_from(&options.consumer);
        let client = self.worker.client.clone();
        self.began_idle = self.is_idle();
        self.receive = Some(tokio::spawn(async move {
            let result = client.receive_anew(&receive).await;
            // The lease began when the server answered, at the earliest a moment ago.
            (Instant::now(), result)
        }));
    }

    async fn received(&mut self, received: Result<Received, JoinError>) {
        let (since, result) = match received {
            Ok(received) => received,
            Err(e) => (Instant::now(), Err(broken(&self.worker.client, &e))),
        };
        match result {
            Ok((messages, repeated)) => {
                self.ever_reached = true;
                if repeated {
                    self.answer_lost();
                }
                if std::mem::take(&mut self.failures) > 0 {
                    let _ = self.events.send(WorkerEvent::ReceiveRecovered);
                }
                self.after_success(messages, since);
            }
            Err(error) => self.receive_failed(error).await,
        }
    }

    fn after_success(&mut self, messages: Vec<Delivered>, since: Instant) {
        // What was in hand when the receive began may have gone back into the queue after the server had
        // looked; so an answer without messages is the end only when nothing was.
        self.look_again = messages.is_empty() && !self.began_idle && self.is_idle();
        let all_back = Instant::now() >= self.lost_until;
        self.stopping |=
            messages.is_empty() && self.began_idle && all_back && self.worker.options.until_empty;
        for message in messages {
            self.leases.add(&message.receipt, &message.id, since);
            self.waiting.push_back(message);
        }
    }

    /// Handles an event of the session.
    async fn heard(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::Delivered(since, messages) => {
                for message in messages {
                    self.leases.add(&message.receipt, &message.id, since);
                    if self.stopping {
                        self.settle(message.receipt, Settle::Release { delay: None }).await;
                    } else {
                        self.waiting.push_back(message);
                    }
                }
            }
            SessionEvent::Attached(lost) => {
                self.ever_reached = true;
                if let Some(stream) = &mut self.stream {
                    stream.is_attached = true;
                }
                self.lose(lost);
            }
            SessionEvent::Cancelled(receipts) => {
                self.lose(receipts.into_iter().map(|receipt| (receipt, Loss::Cancelled)));
            }
            SessionEvent::Failed(error) => {
                if let Some(stream) = &mut self.stream {
                    stream.is_attached = false;
                }
                self.answer_lost();
                let _ = self.events.send(WorkerEvent::ReceiveFailed(error));
            }
            SessionEvent::Recovered => {
                let _ = self.events.send(WorkerEvent::ReceiveRecovered);
            }
            SessionEvent::Refused(error) => {
                self.failed = Some(error);
                self.begin_stop().await;
            }
            SessionEvent::NoSessions => self.stream = None,
        }
    }

    /// Over a session nothing tells that a queue is empty but that nothing comes: the time of the next look,
    /// if one is wanted.
    fn look_whether_empty(&mut self) -> Option<Instant> {
        let is_idle = self.is_idle() && Instant::now() >= self.lost_until;
        let stream = self.stream.as_mut().filter(|_| self.worker.options.until_empty && !self.stopping)?;
        let now = Instant::now();
        if !(is_idle && stream.is_attached) {
            stream.idle_since = None;
        } else if now >= *stream.idle_since.get_or_insert(now) + EMPTY_AFTER {
            stream.link.stop();
            self.stopping = true;
            // At once: the loop is to see it.
            return Some(now);
        }
        Some(now + EMPTY_AFTER / 10)
    }

    fn lose(&mut self, lost: impl IntoIterator<Item = (String, Loss)>) {
        for (receipt, loss) in lost {
            if let Some(event) = self.leases.lose(&receipt, loss) {
                let _ = self.events.send(event);
            }
        }
    }

    /// Notes a lost answer: its messages come back when their leases end.
    fn answer_lost(&mut self) {
        self.lost_until = Instant::now() + self.worker.options.lease.max(Duration::from_secs(1));
    }

    async fn receive_failed(&mut self, error: ClientError) {
        let final_error = match &error {
            ClientError::Server { status, .. } => (400..500).contains(status) && *status != 429,
            // A certificate that does not do at the first call will not do at the next.
            ClientError::Transport { kind: TransportKind::Tls(_), .. } => !self.ever_reached,
            ClientError::Transport { .. } => false,
            ClientError::Protocol { .. }
            | ClientError::InvalidUrl { .. }
            | ClientError::Credentials { .. } => true,
        };
        if final_error {
            self.failed = Some(error);
            return self.begin_stop().await;
        }
        self.failures += 1;
        self.answer_lost();
        let pause = Duration::from_millis(100).saturating_mul(1 << self.failures.min(10)).min(PAUSE_MAX);
        self.receive_after = Instant::now() + pause;
        let _ = self.events.send(WorkerEvent::ReceiveFailed(error));
    }

    async fn finished(&mut self, done: Result<(Id, Ending), JoinError>) {
        let (task, ending) = match done {
            Ok(done) => done,
            Err(e) => {
                let error = format!("the handler did not end: {e}");
                (e.id(), Ending::Settle(Settle::Nack { error, delay: None }))
            }
        };
        let Some(at) = self.jobs.iter().position(|(id, _)| *id == task) else { return };
        let (_, receipt) = self.jobs.swap_remove(at);
        match ending {
            Ending::Settle(settle) => self.settle(receipt, settle).await,
            Ending::Settled(settle, result) => self.settled(receipt, settle, result),
            Ending::Cancelled => {
                self.lose([(receipt.clone(), Loss::Cancelled)]);
                self.settle(receipt, Settle::Release { delay: None }).await;
            }
        }
    }

    /// Notes what came of a message that its handler has settled, or tried to.
    fn settled(&mut self, receipt: String, settle: Settle, result: Result<(), Unsettled>) {
        let Some(lease) = self.leases.remove(&receipt) else { return };
        let settled = Settled { receipt, id: lease.id, settle, loss: lease.loss };
        settler::count(&settled, result, &self.events, &mut self.summary);
    }

    async fn settle(&mut self, receipt: String, settle: Settle) {
        // Counted before its receipt is no longer held: a session that is drained ends when neither is left.
        self.settling.count_in();
        let Some(lease) = self.leases.remove(&receipt) else { return self.settling.count_out() };
        self.settling.hand_over(Settled { receipt, id: lease.id, settle, loss: lease.loss }).await;
    }

    /// No new messages; what has not started goes back.
    async fn begin_stop(&mut self) {
        self.stopping = true;
        if let Some(stream) = &self.stream {
            stream.link.stop();
        }
        if let Some(receive) = self.receive.take() {
            if receive.is_finished() {
                if let Ok((since, Ok((messages, _)))) = receive.await {
                    self.after_success(messages, since);
                }
            } else {
                receive.abort();
            }
        }
        for message in std::mem::take(&mut self.waiting) {
            self.settle(message.receipt, Settle::Release { delay: None }).await;
        }
    }

    fn start_extend(&mut self) {
        let now = Instant::now();
        let due = self.leases.take_due(now);
        let (client, lease) = (self.worker.client.clone(), self.worker.options.lease);
        let link = self.stream.as_ref().filter(|stream| stream.is_attached).map(|stream| stream.link.clone());
        // A try that hangs must not outlast the leases: a later one may get through.
        let patience = (lease / 4).max(EXTEND_LEAST);
        self.extend = Some(tokio::spawn(async move {
            let extend = async {
                if let Some(link) = link
                    && let Some(results) = link.ask(extension(&due, lease), due.len()).await
                {
                    return results;
                }
                client.extend_many(due.iter().map(|r| (r.as_str(), Some(lease)))).await
            };
            let results = timeout(patience, extend).await.ok().and_then(Result::ok);
            (now, due, results)
        }));
    }

    /// Nobody can say any more whether another worker has these messages by now.
    fn end_leases(&mut self) {
        for id in self.leases.end_due(Instant::now()) {
            let _ = self.events.send(WorkerEvent::LeaseEnded(id));
        }
    }

    fn extended(&mut self, extended: Result<Extended, JoinError>) {
        // A failed extend is due again before the lease ends; nothing to do for it now.
        let Ok((since, receipts, Some(results))) = extended else { return };
        for (receipt, result) in receipts.iter().zip(results) {
            if result.ok {
                self.leases.extended(receipt, since);
            } else {
                let loss = Loss::of(result.error.as_ref().map(|error| error.code.as_bytes()));
                self.lose(loss.map(|loss| (receipt.clone(), loss)));
            }
        }
    }
}

/// Leases to be extended, as a frame.
fn extension(receipts: &[String], lease: Duration) -> Frame {
    let extension = |receipt: &String| Extension {
        receipt: Bytes::copy_from_slice(receipt.as_bytes()),
        lease_ms: Some(lease.as_millis() as u64),
        ..Extension::default()
    };
    Frame::Extend(ExtendMany { items: receipts.iter().map(extension).collect() })
}

/// Waits for a child that may not be there, and takes it away when it has ended.
async fn join<T>(child: &mut Option<JoinHandle<T>>) -> Result<T, JoinError> {
    match child {
        Some(handle) => {
            let result = handle.await;
            *child = None;
            result
        }
        None => std::future::pending().await,
    }
}
