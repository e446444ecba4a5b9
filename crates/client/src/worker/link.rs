//! Messages over a session: what comes goes to the worker, and its settlements and extensions go back as
//! frames. A session that breaks is begun again, with the receipts of what is still in hand.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use sluice_proto::v1::client_frame::Frame;
use sluice_proto::v1::server_frame::Frame as ServerSent;
use sluice_proto::v1::{Attach, Detach, FrameResult, SetCredit};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::answers::{Delivered, ItemResult};
use crate::client::Client;
use crate::error::{ClientError, TransportKind};
use crate::session::{Frames, Session, delivered, error_of, item_results};
use crate::worker::leases::{HeldReceipts, Loss};

/// Number of the worker's consumer within its session.
const CONSUMER: u32 = 1;
/// Longest pause between two tries to begin a session.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Nodes that may only name the leader at the beginning, before that is told as a failure.
const HOPS_MAX: u32 = 4;
/// Connections that may break before the first session has begun, until the server counts as one without
/// sessions.
const BREAKS_MAX: u32 = 3;
/// Time without a frame after which the session counts as broken; the server sends one every 20 s.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Interval of the checks whether messages are still held, while the server is stopping.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Timeout of ending a session.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// An event of the session, for the worker.
#[derive(Debug)]
pub(super) enum SessionEvent {
    /// Messages, with the time at which they came; their leases began a moment before.
    Delivered(Instant, Vec<Delivered>),
    /// The consumer is attached; the leases of these receipts are lost.
    Attached(Vec<(String, Loss)>),
    /// The messages behind these receipts were cancelled.
    Cancelled(Vec<String>),
    /// The session could not be opened, or broke; it is opened again.
    Failed(ClientError),
    /// The session works again.
    Recovered,
    /// The session was refused, and a retry cannot help.
    Refused(ClientError),
    /// The server has no sessions.
    NoSessions,
}

/// A frame to send, and who waits for its result.
#[derive(Debug)]
struct SessionRequest {
    frame: Frame,
    waiting: PendingReply,
}

/// A sender that waits for the results of a frame.
#[derive(Debug)]
struct PendingReply {
    items: usize,
    /// Dropped when the session breaks off before the answer.
    reply: oneshot::Sender<Result<Vec<ItemResult>, ClientError>>,
}

/// The terms with which the consumer is attached.
#[derive(Clone, Debug)]
pub(super) struct AttachTerms {
    pub(super) queue: String,
    pub(super) credit: u32,
    pub(super) lease: Duration,
    pub(super) name: String,
    /// True when a server without sessions is reported as [`SessionEvent::NoSessions`], and not as an error.
    pub(super) may_fall_back: bool,
}

/// A session of a worker.
#[derive(Debug)]
pub(super) struct WorkerSession {
    pub(super) link: Link,
    pub(super) heard: mpsc::UnboundedReceiver<SessionEvent>,
    /// Ends when the link and its clones are gone, and the server knows.
    pub(super) keeping: JoinHandle<()>,
}

/// The worker's handle of a session; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Link {
    to: mpsc::UnboundedSender<SessionRequest>,
}

impl Link {
    /// Begins a session and keeps it. It ends when the link and its clones are gone.
    pub(super) fn begin(
        client: &Client,
        terms: AttachTerms,
        held: &HeldReceipts,
        unanswered: Arc<AtomicUsize>,
    ) -> WorkerSession {
        // Credit bounds what is in it.
        let (events, heard) = mpsc::unbounded_channel();
        let (to, asked) = mpsc::unbounded_channel();
        let keeper = Keeper {
            client: client.clone(),
            terms,
            held: Arc::clone(held),
            unanswered,
            events,
            asked,
            pending: HashMap::new(),
            ever_begun: false,
            breaks: 0,
            untold: None,
        };
        let keeping = tokio::spawn(keeper.run());
        WorkerSession { link: Link { to }, heard, keeping }
    }

    /// Sends a frame and waits for its results. `None`: the session broke before they came.
    pub(super) async fn ask(
        &self,
        frame: Frame,
        items: usize,
    ) -> Option<Result<Vec<ItemResult>, ClientError>> {
        let (reply, answer) = oneshot::channel();
        self.to.send(SessionRequest { frame, waiting: PendingReply { items, reply } }).ok()?;
        answer.await.ok()
    }

    /// Sets the credit to 0, so that no further messages are delivered.
    pub(super) fn stop(&self) {
        let (reply, _) = oneshot::channel();
        let frame = Frame::Credit(SetCredit { consumer: CONSUMER, credit: 0 });
        let _ = self.to.send(SessionRequest { frame, waiting: PendingReply { items: 0, reply } });
    }
}

/// The task that keeps the session open.
struct Keeper {
    client: Client,
    terms: AttachTerms,
    held: HeldReceipts,
    /// Number of settlements that the server has not answered, those on their way to this task among them.
    unanswered: Arc<AtomicUsize>,
    events: mpsc::UnboundedSender<SessionEvent>,
    asked: mpsc::UnboundedReceiver<SessionRequest>,
    /// By the number of its frame.
    pending: HashMap<u64, PendingReply>,
    ever_begun: bool,
    /// Number of connections that broke before the first session had begun.
    breaks: u32,
    /// The latest such break, while it may be that of a server without sessions, at which nothing is held.
    untold: Option<ClientError>,
}

/// The reason why a session has ended.
enum SessionEnd {
    /// The worker has gone.
    Done,
    /// To be begun again.
    Broken(ClientError),
    /// For good.
    Refused(ClientError),
}

impl Keeper {
    async fn run(mut self) {
        let (mut failures, mut hops) = (0u32, 0);
        loop {
            let (server, breaks) = (self.client.server().to_owned(), self.breaks);
            let over = match self.client.session_once().await {
                Ok((session, frames)) => {
                    let began = Instant::now();
                    let over = self.keep(&session, frames, failures > 0).await;
                    if began.elapsed() > PAUSE_MAX {
                        failures = 0;
                    }
                    over
                }
                Err(error) => self.judge(error),
            };
            // Whoever waits for an answer has to find another way.
            self.pending.clear();
            let error = match over {
                SessionEnd::Done => return,
                SessionEnd::Refused(error) => {
                    let fallback = !self.ever_begun && self.terms.may_fall_back && is_foreign(&error);
                    let event =
                        if fallback { SessionEvent::NoSessions } else { SessionEvent::Refused(error) };
                    self.tell(event);
                    return;
                }
                SessionEnd::Broken(error) => error,
            };
            let passed_on = self.client.pass_on(&server, &error);
            if passed_on && !self.ever_begun && hops < HOPS_MAX && error.code() == Some("not_leader") {
                hops += 1;
                continue;
            }
            failures += 1;
            if self.terms.may_fall_back && self.breaks > breaks {
                self.untold = Some(error);
            } else {
                self.untold = None;
                self.tell(SessionEvent::Failed(error));
            }
            let pause = Duration::from_millis(50).saturating_mul(1 << failures.min(10)).min(PAUSE_MAX);
            let paused = Instant::now() + pause;
            // What is asked meanwhile has to find another way at once.
            loop {
                tokio::select! {
                    () = sleep_until(paused) => break,
                    asked = self.asked.recv() => match asked {
                        None => return,
                        Some(asked) => self.note_credit(&asked.frame),
                    },
                }
            }
        }
    }

    fn judge(&mut self, error: ClientError) -> SessionEnd {
        match &error {
            ClientError::Transport { kind: TransportKind::Connect, .. } => SessionEnd::Broken(error),
            ClientError::Transport { .. } if self.ever_begun => SessionEnd::Broken(error),
            // A certificate that does not do at the first call will not do at the next.
            ClientError::Transport { kind: TransportKind::Tls(_), .. } => SessionEnd::Refused(error),
            // A server that stops at this moment, or one that does not know what a session is.
            ClientError::Transport { .. } => {
                self.breaks += 1;
                if self.terms.may_fall_back && self.breaks == BREAKS_MAX {
                    return SessionEnd::Refused(error);
                }
                SessionEnd::Broken(error)
            }
            _ if is_passing(&error) => SessionEnd::Broken(error),
            _ => SessionEnd::Refused(error),
        }
    }

    async fn keep(&mut self, session: &Session, mut frames: Frames, again: bool) -> SessionEnd {
        let resume: Vec<String> =
            self.held.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        let attach = session.send(Frame::Attach(self.attach(&resume)));
        let (mut is_attached, mut is_draining) = (false, false);
        loop {
            let told = tokio::select! {
                told = timeout(SILENCE_MAX, frames.next()) => told,
                () = sleep(LOOK_EVERY), if is_draining => {
                    if self.has_nothing_in_hand() {
                        return SessionEnd::Broken(self.lost("the server is about to stop"));
                    }
                    continue;
                }
                asked = self.asked.recv(), if is_attached => {
                    let Some(asked) = asked else {
                        close(session, &mut frames).await;
                        return SessionEnd::Done;
                    };
                    self.note_credit(&asked.frame);
                    let number = session.send(asked.frame);
                    self.pending.insert(number, asked.waiting);
                    continue;
                }
            };
            let told = match told {
                Err(_) => return SessionEnd::Broken(self.lost("nothing came for a minute")),
                Ok(Err(error)) => return self.judge(error),
                Ok(Ok(None)) => return SessionEnd::Broken(self.lost("the server has ended the session")),
                Ok(Ok(Some(told))) => told,
            };
            let event = match told {
                ServerSent::Result(result) if result.number == attach => {
                    if let Some(error) = &result.error {
                        return self.judge(error_of(error));
                    }
                    is_attached = true;
                    self.attached(&result, &resume, again)
                }
                ServerSent::Result(result) => {
                    self.answered(&result);
                    continue;
                }
                ServerSent::Deliveries(deliveries) => SessionEvent::Delivered(
                    Instant::now(),
                    deliveries.messages.into_iter().map(delivered).collect(),
                ),
                ServerSent::Cancellations(told) => SessionEvent::Cancelled(
                    told.receipts.iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect(),
                ),
                // The server waits for the streams to end, each when all is settled.
                ServerSent::Draining(_) => {
                    is_draining = true;
                    continue;
                }
                ServerSent::KeepAlive(_) => continue,
                ServerSent::Detached(_) => return SessionEnd::Broken(self.lost("the consumer was detached")),
            };
            self.tell(event);
        }
    }

    /// Tells what there is to tell once a consumer is attached; gives that it is.
    fn attached(&mut self, result: &FrameResult, resume: &[String], again: bool) -> SessionEvent {
        self.ever_begun = true;
        // The server has sessions, and the one that broke may hold messages.
        if let Some(error) = self.untold.take() {
            self.tell(SessionEvent::Failed(error));
        }
        if again {
            self.tell(SessionEvent::Recovered);
        }
        let lost = result.failures.iter().filter_map(|failure| {
            let code = failure.error.as_ref().map(|error| error.code.as_ref());
            Some((resume.get(failure.item as usize)?.clone(), Loss::of(code)?))
        });
        SessionEvent::Attached(lost.collect())
    }

    /// True when everything was settled, and the server has answered. A receipt is held until its settlement
    /// counts as unanswered, so they are looked at in this order.
    fn has_nothing_in_hand(&self) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
            && self.unanswered.load(Ordering::Relaxed) == 0
            && self.pending.is_empty()
    }

    /// A worker that is ending hears nothing any more, but still settles.
    fn tell(&self, event: SessionEvent) {
        let _ = self.events.send(event);
    }

    /// The next session begins with the credit that was asked for last.
    fn note_credit(&mut self, frame: &Frame) {
        if let Frame::Credit(SetCredit { credit, .. }) = frame {
            self.terms.credit = *credit;
        }
    }

    fn attach(&self, resume: &[String]) -> Attach {
        let lease_ms = self.terms.lease.as_millis() as u64;
        Attach {
            consumer: CONSUMER,
            queues: vec![self.terms.queue.clone().into()],
            credit: self.terms.credit,
            lease_ms: Some(lease_ms),
            name: self.terms.name.clone().into(),
            grace_ms: Some(lease_ms.min(3_600_000)),
            resume: resume.iter().map(|receipt| Bytes::copy_from_slice(receipt.as_bytes())).collect(),
        }
    }

    fn answered(&mut self, result: &FrameResult) {
        let Some(waiting) = self.pending.remove(&result.number) else { return };
        let results = match &result.error {
            Some(error) => Err(error_of(error)),
            None => Ok(item_results(result, waiting.items)),
        };
        // Nobody waits for the answer to a credit.
        let _ = waiting.reply.send(results);
    }

    fn lost(&self, reason: &str) -> ClientError {
        let (server, reason) = (self.client.server().to_owned(), reason.to_owned());
        ClientError::Transport { kind: TransportKind::Broken, server, tried: 1, reason }
    }
}

/// Gives back at once what came too late to be seen.
async fn close(session: &Session, frames: &mut Frames) {
    let number = session.send(Frame::Detach(Detach { consumer: CONSUMER, grace_ms: None }));
    let answered = async {
        while let Ok(Some(told)) = frames.next().await {
            if matches!(told, ServerSent::Result(result) if result.number == number) {
                return;
            }
        }
    };
    let _ = timeout(CLOSE_WITHIN, answered).await;
}

/// True when a later session may get what this one was refused: there was no leader, no room, too much to do,
/// or the consumer was attached to a leader that has stepped down.
fn is_passing(error: &ClientError) -> bool {
    match error {
        ClientError::Server { status, .. } if *status >= 500 || matches!(status, 408 | 429) => true,
        _ => error.code() == Some("consumer_not_found"),
    }
}

/// True when the server is one without sessions, as far as that can be told.
fn is_foreign(error: &ClientError) -> bool {
    match error {
        ClientError::Protocol { .. } | ClientError::Transport { .. } => true,
        ClientError::Server { code, .. } => code == "method_not_allowed" || code == "internal",
        ClientError::Credentials { .. } | ClientError::InvalidUrl { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: &str) -> ClientError {
        error_of(&sluice_proto::v1::Error { code: code.to_owned().into(), ..Default::default() })
    }

    #[test]
    fn what_passes_does_not_end_a_worker() {
        let passing = [
            "no_leader",
            "not_leader",
            "outcome_unknown",
            "shutting_down",
            "overloaded",
            "disk_full",
            "consumer_not_found",
        ];
        for code in passing {
            assert!(is_passing(&refusal(code)), "{code}");
        }
        for code in ["queue_not_found", "permission_denied", "invalid_argument"] {
            assert!(!is_passing(&refusal(code)), "{code}");
        }
    }

    #[test]
    fn a_settlement_on_its_way_to_the_session_keeps_it_open() {
        let (events, _heard) = mpsc::unbounded_channel();
        let (_to, asked) = mpsc::unbounded_channel();
        let terms = AttachTerms {
            queue: "jobs".to_owned(),
            credit: 1,
            lease: Duration::from_secs(30),
            name: String::new(),
            may_fall_back: false,
        };
        let keeper = Keeper {
            client: Client::new("http://127.0.0.1:1").expect("a URL"),
            terms,
            held: HeldReceipts::default(),
            unanswered: Arc::new(AtomicUsize::new(1)),
            events,
            asked,
            pending: HashMap::new(),
            ever_begun: false,
            breaks: 0,
            untold: None,
        };
        assert!(!keeper.has_nothing_in_hand());
        keeper.unanswered.store(0, Ordering::Relaxed);
        assert!(keeper.has_nothing_in_hand());
    }
}
