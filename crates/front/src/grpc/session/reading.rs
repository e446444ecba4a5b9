//! The client's side of a session: its frames in order, and their answers.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Waking, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::header::CONTENT_TYPE;
use http::response::Response;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use sluice_calls::Fault;
use sluice_calls::access::{Caller, Denied, Peer, Right};
use sluice_calls::permit::DEFAULT_NAMESPACE;
use sluice_calls::{CallError, Operation};
use sluice_engine::Error;
use sluice_proto::framing::{Deframer, FramingError, frame_with};
use sluice_proto::v1::client_frame::Frame;
use sluice_proto::v1::{Detach, SetCredit};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::PATH;
use super::attach::AttachRequest;
use super::calls::{
    Acks, Answering, Checked, Checking, Done, FrameAnswer, FrameAnswers, FrameCall, NewConsumer,
    SessionCalls, relieves,
};
use super::consumers::{CONSUMERS_MAX, Consumers, Turn, Waiting};
use super::decode::{Said, read_frame, text};
use super::delivering::AttachedConsumer;
use super::encode;
use super::moving::{names_leader, where_to};
use super::outbox::{Outbox, Outgoing};
use super::passing::{Begun, Request};
use crate::grpc::status::{GRPC, failure, success};
use crate::grpc::wire::INVALID;
use crate::net::arrived::Arrived;
use crate::net::body::{Body, Inbound, allowance};
use crate::net::context::Context;
use crate::net::memory::bodies::no_room;

/// Frames of a client that are not answered yet; more are read only when there are fewer.
const UNANSWERED_MAX: usize = 1_024;
/// Longest time without a frame of the server; then it sends one to keep the connection alive.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Bytes of a frame on its way that are not counted against the bodies of all requests.
const FREE_BYTES: usize = 64 << 10;
/// The code of frames whose numbers do not grow, and of such as come before or after their time.
const OUT_OF_ORDER: &str = "frame_out_of_order";

/// Begins a session; it runs until one of the sides ends it.
pub(in crate::grpc) fn open(arrived: &Arrived, incoming: Inbound) -> Response<Body> {
    let Arrived { context, peer, in_flight, head, request_id, .. } = arrived;
    let outbox = Outbox::new(&in_flight.share);
    let mut response = Response::new(Body::other(Outgoing(Arc::clone(&outbox))));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    let request = Request { head: head.clone(), id: request_id.clone() };
    let who = Who { peer: Arc::clone(peer), request };
    tokio::spawn(run(Arc::clone(context), who, incoming, outbox));
    response
}

async fn run(context: Arc<Context>, who: Who, mut incoming: Inbound, outbox: Arc<Outbox>) {
    let (end, ended) = watch::channel(false);
    let mut consumers = JoinSet::new();
    let mut session = Session {
        frames: Deframer::new(context.body_limits().send),
        reserved: 0,
        opened: None,
        last_number: 0,
        attachments: Consumers::default(),
        answers: FuturesUnordered::new(),
        asking: None,
        held: None,
        acks: Acks::default(),
        consumers: &mut consumers,
        ended,
        outbox: &outbox,
        context: &context,
        who: &who,
        checked: None,
        moved: Arc::default(),
        is_leaving: false,
        passed_on: None,
    };
    let served = session.serve(&mut incoming).await;
    drop(session);
    let result = match served {
        Ok(Some(begun)) => who.request.pass_on(begun, &mut incoming, &outbox).await,
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    match &result.map_err(|error| context.with_address(error)) {
        Ok(()) => outbox.end(success()),
        Err(error) if error.is_denial() => outbox.cut(failure(error)),
        Err(error) => outbox.end(failure(error)),
    }
    // Fails only when no consumer is there to hear it.
    let _ = end.send(true);
    while consumers.join_next().await.is_some() {}
}

/// The client: its connection, and its request.
struct Who {
    peer: Arc<Peer>,
    request: Request,
}

impl Who {
    /// The caller of the next frame, looked up anew because a token may have expired or been revoked.
    fn caller(&self, relieves: bool) -> Result<Caller, Denied> {
        self.peer.caller(self.request.authorization(), relieves)
    }

    /// The caller between two frames; counts no request.
    fn standing(&self) -> Result<Caller, Denied> {
        self.peer.standing(self.request.authorization())
    }
}

struct Session<'s> {
    context: &'s Arc<Context>,
    who: &'s Who,
    /// The caller whose right to receive from the queues of all consumers was checked last.
    checked: Option<Caller>,
    outbox: &'s Arc<Outbox>,
    frames: Deframer,
    /// Bytes that the frame on its way has of the budget for bodies.
    reserved: usize,
    /// The session's namespace and caller; `None` before the first frame.
    opened: Option<SessionCalls>,
    last_number: u64,
    attachments: Consumers,
    answers: FuturesUnordered<Answering>,
    /// The call that all frames behind it wait for.
    asking: Option<Checking>,
    /// The first of them, where it was read to know what it is.
    held: Option<Bytes>,
    /// Acks of frames that arrived together.
    acks: Acks,
    consumers: &'s mut JoinSet<()>,
    ended: watch::Receiver<bool>,
    /// Told by a consumer when another node leads.
    moved: Arc<Notify>,
    /// True once another node leads: no frame is read any more, and those before are answered.
    is_leaving: bool,
    /// Set once another node is to serve the session.
    passed_on: Option<Begun>,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.context.body_budget.give_back(self.reserved);
    }
}

impl Session<'_> {
    /// Reads until the client has closed its side, and answers all that it has sent; or until it is known
    /// that another node is to serve the session.
    async fn serve(&mut self, incoming: &mut Inbound) -> Result<Option<Begun>, CallError> {
        let opened = Instant::now();
        let mut frame_since = opened;
        let mut keep_alive = tokio::time::interval(KEEP_ALIVE / 2);
        let mut changes = self.who.peer.changes();
        let (mut reading, mut draining) = (true, false);
        let context = Arc::clone(self.context);
        let mut stopping = std::pin::pin!(context.calls.stopping());
        let moved = Arc::clone(&self.moved);
        while reading || !self.answers.is_empty() || self.asking.is_some() {
            let waits = self.opened.is_none() || self.frames.pending() > 0;
            let deadline = match self.opened {
                None => opened + context.options.head_timeout,
                Some(_) => frame_since + context.options.body_timeout + allowance(self.frames.pending()),
            };
            let unanswered = self.answers.len() + self.attachments.waiting();
            reading &= !self.is_leaving;
            let may_read = reading && unanswered < UNANSWERED_MAX && self.asking.is_none();
            tokio::select! {
                piece = next_piece(incoming, self.outbox), if may_read => match piece {
                    Some(piece) => {
                        if self.frames.pending() == 0 {
                            frame_since = Instant::now();
                        }
                        if self.take(piece?)? {
                            frame_since = Instant::now();
                        }
                    }
                    None if self.frames.pending() > 0 => {
                        return Err(CallError::new("incomplete_body", "the stream ends within a frame"));
                    }
                    None => reading = false,
                },
                Checked(call) = asked(&mut self.asking), if self.asking.is_some() => {
                    self.asking = None;
                    self.begin(call)?;
                    self.take_frames()?;
                }
                Some(answered) = self.answers.next(), if !self.answers.is_empty() => self.tell_all(answered),
                () = self.outbox.closed() => return Ok(None),
                () = moved.notified() => self.is_leaving = true,
                () = &mut stopping, if !draining => {
                    draining = true;
                    let grace_ms = context.options.shutdown_grace.as_millis() as u64;
                    self.outbox.add(|out| encode::draining(out, grace_ms));
                }
                // Never an error: the session knows the sender.
                _ = changes.changed() => self.still_allowed()?,
                _ = keep_alive.tick() => {
                    // What was shown may have expired.
                    self.still_allowed()?;
                    if self.outbox.quiet_for() >= KEEP_ALIVE {
                        self.outbox.add(encode::keep_alive);
                    }
                }
                () = sleep_until(deadline), if reading && waits => return Err(self.too_slow()),
            }
            if self.is_leaving && self.answers.is_empty() && self.asking.is_none() {
                return Err(where_to(self.opened.as_ref()).await);
            }
            if let Some(begun) = self.passed_on.take() {
                return Ok(Some(begun));
            }
        }
        Ok(None)
    }

    fn too_slow(&self) -> CallError {
        let message = match self.opened {
            None => "no Open came in time: it is the first frame of a session".to_owned(),
            Some(_) => format!("a frame came too slowly: {} bytes of it are here", self.frames.pending()),
        };
        CallError::new("request_timeout", message)
    }

    /// Takes in what has come. Tells whether a frame has come to its end.
    fn take(&mut self, piece: Bytes) -> Result<bool, CallError> {
        self.frames.push(piece);
        let before = self.last_number;
        self.take_frames()?;
        Ok(self.last_number > before)
    }

    /// Takes the frames that are there, up to one that others have to wait for.
    fn take_frames(&mut self) -> Result<(), CallError> {
        self.frames.set_limit(self.context.body_limits().send);
        while self.asking.is_none() && self.passed_on.is_none() {
            if let Some(bytes) = self.held.take() {
                self.held_frame(&bytes)?;
                continue;
            }
            match self.frames.next() {
                Ok(Some(bytes)) => self.frame(&bytes)?,
                Ok(None) => break,
                Err(error @ FramingError::Compressed) => {
                    return Err(Fault::new(INVALID, error.to_string()).into());
                }
                Err(FramingError::TooLarge { limit, .. }) => return Err(CallError::body_too_large(limit)),
            }
        }
        self.settle_gathered();
        self.reserve()
    }

    /// A large frame on its way counts as the body of a request.
    fn reserve(&mut self) -> Result<(), CallError> {
        let wanted = self.frames.pending().saturating_sub(FREE_BYTES);
        let budget = &self.context.body_budget;
        if wanted <= self.reserved {
            budget.give_back(self.reserved - wanted);
        } else if !budget.try_take(wanted - self.reserved) {
            return Err(no_room().into());
        }
        self.reserved = wanted;
        Ok(())
    }

    fn frame(&mut self, bytes: &Bytes) -> Result<(), CallError> {
        let (number, frame) = read_frame(bytes, &self.context.calls.limits())?;
        if number <= self.last_number {
            let message = format!(
                "the frame has number {number}, after {}: numbers begin at 1 and grow",
                self.last_number
            );
            return Err(CallError::new(OUT_OF_ORDER, message));
        }
        self.last_number = number;
        let caller = match self.who.caller(frame.as_ref().is_ok_and(relieves)) {
            Ok(caller) => caller,
            Err(denied) if denied.code == "rate_limited" => return self.refuse(number, denied.into()),
            Err(denied) => return Err(self.denied(denied)),
        };
        let Some(opened) = &mut self.opened else { return self.open((number, bytes), frame?, caller) };
        opened.caller = caller;
        let frame = match frame {
            Ok(frame) => frame,
            Err(fault) => return self.refuse(number, fault.into()),
        };
        let calls = opened.clone();
        if let Said::Other(Frame::Settle(settle)) = &frame
            && Acks::fit(settle)
        {
            if self.acks.len() + settle.items.len() + settle.acks.len() > self.batch_items() {
                self.settle_gathered();
            }
            self.acks.add(number, settle);
            return Ok(());
        }
        // What comes behind others must not overtake them.
        self.settle_gathered();
        if self.asking.is_some() {
            self.held = Some(bytes.clone());
            return Ok(());
        }
        self.act(number, frame, &calls)
    }

    /// Processes a frame that had to wait.
    fn held_frame(&mut self, bytes: &Bytes) -> Result<(), CallError> {
        let (number, frame) = read_frame(bytes, &self.context.calls.limits())?;
        match self.opened.clone() {
            Some(calls) => self.act(number, frame?, &calls),
            None => Ok(()),
        }
    }

    fn act(&mut self, number: u64, frame: Said<'_>, calls: &SessionCalls) -> Result<(), CallError> {
        let frame = match frame {
            Said::Other(frame) => frame,
            Said::Plain(plain) => {
                return match calls.send_plain(number, &plain) {
                    Ok(answering) => self.begin(answering),
                    Err(error) => self.refuse(number, error),
                };
            }
        };
        match frame {
            Frame::Open(_) => Err(CallError::new(OUT_OF_ORDER, "the session is open already")),
            Frame::Send(send) => self.call(calls.send(number, send)),
            Frame::Settle(settle) => self.call(calls.settle(number, settle)),
            Frame::Extend(extend) => self.call(calls.extend(number, extend)),
            Frame::Call(call) => self.begin(calls.call(number, call)),
            Frame::Attach(attach) => match AttachRequest::read(&attach, &self.context.calls.limits()) {
                Ok(asked) => self.turn(number, attach.consumer, Turn::Attach(Box::new(asked))),
                Err(fault) => self.refuse(number, fault.into()),
            },
            Frame::Credit(SetCredit { consumer, credit }) => {
                self.turn(number, consumer, Turn::Credit(credit))
            }
            Frame::Detach(Detach { consumer, grace_ms }) => {
                self.turn(number, consumer, Turn::Detach(grace_ms.unwrap_or(0)))
            }
            Frame::Ping(_) => {
                self.outbox.add(|out| encode::results(out, number, &[]));
                Ok(())
            }
        }
    }

    /// Does what a frame wants of a consumer, as soon as it is its turn.
    fn turn(&mut self, number: u64, consumer: u32, turn: Turn) -> Result<(), CallError> {
        let Some(turn) = self.attachments.take_turn(number, consumer, turn) else { return Ok(()) };
        let Some(calls) = self.opened.clone() else { return Ok(()) };
        let attached = self.attachments.attached(consumer).map(|attached| attached.id);
        match (turn, attached) {
            (Turn::Attach(_), Some(_)) => self.refuse(number, attached_already(consumer)),
            (Turn::Attach(_), None) if !self.attachments.has_room() => {
                let limit = CONSUMERS_MAX as u64;
                self.refuse(number, Error::LimitExceeded { what: "consumers of a session", limit }.into())
            }
            (Turn::Attach(asked), None) => {
                self.attachments.attaches(consumer, Arc::clone(&asked.queues));
                self.begin(calls.attach(number, consumer, *asked))
            }
            (Turn::Credit(credit), Some(id)) => self.begin(calls.credit(number, id, credit)),
            (Turn::Detach(grace_ms), Some(id)) => {
                self.attachments.detaches(consumer);
                self.begin(calls.detach(number, consumer, id, grace_ms))
            }
            (Turn::Credit(_) | Turn::Detach(_), None) => self.refuse(number, not_attached(consumer)),
        }
    }

    /// Checks that the caller still may receive from the queues of all consumers, so that a session ends once
    /// its token is revoked or its rights are taken away.
    fn still_allowed(&mut self) -> Result<(), CallError> {
        let Some(opened) = &mut self.opened else { return Ok(()) };
        match self.who.standing() {
            Ok(caller) => opened.caller = caller,
            Err(denied) => return Err(self.denied(denied)),
        }
        if self.checked.as_ref().is_some_and(|checked| checked.is_as(&opened.caller)) {
            return Ok(());
        }
        if !opened.caller.may_everywhere(Right::Receive, &opened.name) {
            let mut queues = self.attachments.queues();
            queues.try_for_each(|queue| opened.permit(Operation::Receive, queue).map(|_| ()))?;
        }
        self.checked = Some(opened.caller.clone());
        Ok(())
    }

    fn denied(&self, denied: Denied) -> CallError {
        self.who.peer.refused(&denied, PATH);
        denied.into()
    }

    fn open(
        &mut self,
        (number, bytes): (u64, &Bytes),
        frame: Said<'_>,
        caller: Caller,
    ) -> Result<(), CallError> {
        let Said::Other(Frame::Open(open)) = frame else {
            return Err(CallError::new(OUT_OF_ORDER, "the first frame of a session is Open"));
        };
        let name = match text(&open.namespace, "namespace")? {
            "" => DEFAULT_NAMESPACE,
            name => name,
        };
        let peer = Arc::clone(&self.who.peer);
        let context = Arc::clone(self.context);
        let share = Arc::clone(self.outbox.share());
        let authorization = self.who.request.authorization().map(Arc::from);
        let opened = SessionCalls { context, name: name.into(), peer, authorization, caller, share };
        opened.asker().allow_work(name)?;
        if let Some(leader) = opened.leader_elsewhere() {
            let passable = self.context.leads_elsewhere(&opened.peer, &opened.as_call()).is_some();
            if open.follows_leaders || !passable {
                return Err(Error::NotLeader { leader }.into());
            }
            let mut frames = Vec::new();
            frame_with(&mut frames, |out| out.extend_from_slice(bytes));
            frames.extend_from_slice(&self.frames.take_rest());
            self.passed_on = Some(Begun { calls: opened, frames: frames.into() });
            return Ok(());
        }
        opened.context.calls.check_namespace(name)?;
        self.opened = Some(opened);
        self.outbox.add(|out| encode::results(out, number, &[]));
        Ok(())
    }

    fn batch_items(&self) -> usize {
        self.context.calls.limits().batch_items as usize
    }

    fn settle_gathered(&mut self) {
        if !self.acks.is_empty()
            && self.asking.is_none()
            && let Some(calls) = &self.opened
        {
            let call = calls.ack(std::mem::take(&mut self.acks));
            // Never an error: it only begins.
            let _ = self.call(call);
        }
    }

    /// Begins a call, or lets the frames behind it wait.
    fn call(&mut self, call: FrameCall) -> Result<(), CallError> {
        match call {
            FrameCall::Ready(answering) => self.begin(answering),
            FrameCall::Checking(asking) => {
                self.asking = Some(asking);
                Ok(())
            }
        }
    }

    /// Begins a call at once, so that calls reach the node in the order of their frames.
    fn begin(&mut self, mut answering: Answering) -> Result<(), CallError> {
        match Pin::new(&mut answering).poll(&mut Waking::from_waker(Waker::noop())) {
            Poll::Ready(answered) => self.tell_all(answered),
            Poll::Pending => self.answers.push(answering),
        }
        Ok(())
    }

    fn refuse(&mut self, number: u64, error: CallError) -> Result<(), CallError> {
        self.tell(FrameAnswer { number, result: Err(error) });
        Ok(())
    }

    fn tell_all(&mut self, answered: FrameAnswers) {
        answered.into_iter().for_each(|answered| self.tell(answered));
    }

    fn tell(&mut self, answered: FrameAnswer) {
        let FrameAnswer { number, result } = answered;
        self.is_leaving |= names_leader(&result);
        match result {
            Ok(Done::Items(items)) => self.outbox.add(|out| encode::results(out, number, &items)),
            Ok(Done::Sent(sent)) => self.outbox.add(|out| encode::sent(out, number, &sent)),
            // What waits for the connection is counted from here on.
            Ok(Done::Answer { message, .. }) => {
                self.outbox.add(|out| encode::answer(out, number, &message));
            }
            Ok(Done::Attached(number_of, Ok(NewConsumer { consumer, resumed }))) => {
                // Before any of its deliveries.
                self.outbox.add(|out| encode::results(out, number, &resumed));
                let attached = AttachedConsumer::begin(
                    number_of,
                    *consumer,
                    self.outbox,
                    self.ended.clone(),
                    Arc::clone(&self.moved),
                    self.consumers,
                );
                let waiting = self.attachments.is_attached(number_of, attached);
                self.turn_all(number_of, waiting);
            }
            Ok(Done::Attached(consumer, Err(error))) => {
                self.outbox.add(|out| encode::refused(out, number, &error));
                let waiting = self.attachments.is_gone(consumer);
                self.turn_all(consumer, waiting);
            }
            Ok(Done::Detached(consumer, result)) => self.tell_detached(number, consumer, result),
            Err(error) => self.outbox.add(|out| encode::refused(out, number, &error)),
        }
    }

    fn tell_detached(&mut self, number: u64, consumer: u32, result: Result<(), Error>) {
        let waiting = match result {
            Ok(()) => {
                self.outbox.add(|out| encode::results(out, number, &[]));
                self.attachments.is_gone(consumer)
            }
            Err(error) => {
                self.outbox.add(|out| encode::refused(out, number, &error.into()));
                // Its queues count again.
                self.checked = None;
                self.attachments.stays(consumer)
            }
        };
        self.turn_all(consumer, waiting);
    }

    fn turn_all(&mut self, consumer: u32, waiting: Waiting) {
        for (number, turn) in waiting {
            // Never an error: it only begins.
            let _ = self.turn(number, consumer, turn);
        }
    }
}

fn attached_already(consumer: u32) -> CallError {
    let reason = format!("consumer {consumer} is attached already in this session");
    Fault::invalid(reason).inside("consumer").into()
}

fn not_attached(consumer: u32) -> CallError {
    Error::ConsumerNotFound { consumer: consumer.to_string() }.into()
}

/// Resolves when the caller's right to the call is decided; never, if there is none.
async fn asked(asking: &mut Option<Checking>) -> Checked {
    match asking {
        Some(asking) => asking.await,
        None => pending().await,
    }
}

/// The next bytes of the client, as soon as an answer to them could be kept; `None` when it has closed its
/// side.
async fn next_piece(incoming: &mut Inbound, outbox: &Outbox) -> Option<Result<Bytes, CallError>> {
    outbox.may_answer().await;
    while !incoming.is_end_stream() {
        match incoming.frame().await? {
            Ok(frame) => {
                if let Ok(data) = frame.into_data() {
                    return Some(Ok(data));
                }
            }
            Err(error) => {
                return Some(Err(CallError::new(
                    "incomplete_body",
                    format!("the stream broke off: {error}"),
                )));
            }
        }
    }
    None
}
