//! The calls that frames of the client make, and their outcomes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use sluice_calls::access::{Caller, Peer, Right};
use sluice_calls::hot::send::check_idempotency_key;
use sluice_calls::hot::settle::{Refused, in_order};
use sluice_calls::hot::{Cleared, Consumer, Proof, Sending, Sent};
use sluice_calls::operation::Trait;
use sluice_calls::room::Uncounted;
use sluice_calls::{Asker, CallError, CallName, Fault, Operation, Permit};
use sluice_engine::Error;
use sluice_engine::command::{SettleItem, Settlement};
use sluice_engine::id::{ConsumerId, Receipt};
use sluice_proto::v1::client_frame::Frame;
use sluice_proto::v1::{Call, ExtendMany, SendMany, SettleMany, Settlement as SettlementFrame};
use smallvec::{SmallVec, smallvec};

use super::PATH;
use super::decode::{Said, is_plain_ack, is_plain_extension, messages_of, receipt, source, text};
use super::plain::Plain;
use crate::grpc::call::call_over_session;
use crate::grpc::methods::{SERVICES, operation_named};
use crate::hot::extend::Extensions;
use crate::hot::send::Batch;
use crate::hot::settle::Settlements;
use crate::net::context::Context;
use crate::net::memory::answers::Share;
use crate::net::memory::bodies::no_room;

/// The answer to a frame, or to several.
pub(super) type Answering = Pin<Box<dyn Future<Output = FrameAnswers> + Send>>;

/// A call whose caller's right depends on the queues of its messages, which are looked up first.
pub(super) type Checking = Pin<Box<dyn Future<Output = Checked> + Send>>;

/// A call whose caller's right is decided; if it was refused, the answer is the error.
pub(super) struct Checked(pub(super) Answering);

/// A call of a frame. It reaches the node when its [`Answering`] is polled for the first time.
pub(super) enum FrameCall {
    /// The caller may make it, or its right is checked when it begins.
    Ready(Answering),
    /// Frames behind it wait until it is known whether its caller may make it, so that they do not overtake
    /// it.
    Checking(Checking),
}

/// The outcomes of calls that ended together; mostly one.
pub(super) type FrameAnswers = SmallVec<[FrameAnswer; 1]>;

/// The outcome of one frame.
#[derive(Debug)]
pub(super) struct FrameAnswer {
    /// The client's number.
    pub(super) number: u64,
    pub(super) result: Result<Done, CallError>,
}

/// A consumer that was attached, with the results of the receipts that its Attach resumes.
#[derive(Debug)]
pub(super) struct NewConsumer {
    pub(super) consumer: Box<Consumer>,
    pub(super) resumed: Vec<Result<(), Error>>,
}

/// The outcome of a frame that succeeded.
#[derive(Debug)]
pub(super) enum Done {
    /// The result of each item, in their order; empty: all succeeded.
    Items(Vec<Result<(), Error>>),
    Sent(Sent),
    /// The client's number for a consumer, and the result of its Attach.
    Attached(u32, Result<NewConsumer, CallError>),
    /// The client's number for a consumer, and the result of its Detach.
    Detached(u32, Result<(), Error>),
    /// The message of an answer, and its memory.
    Answer {
        message: Vec<u8>,
        _memory: Share,
    },
}

/// True for a frame that ends or keeps work that was begun.
pub(super) fn relieves(frame: &Said<'_>) -> bool {
    match frame {
        Said::Other(Frame::Settle(_) | Frame::Extend(_)) => true,
        Said::Other(Frame::Call(call)) => {
            let operation = text(&call.method, "method").ok().and_then(operation_named);
            operation.is_some_and(|operation| operation.is(Trait::Relieves))
        }
        Said::Plain(_) | Said::Other(Frame::Open(_) | Frame::Send(_) | Frame::Ping(_)) => false,
        Said::Other(Frame::Attach(_) | Frame::Credit(_) | Frame::Detach(_)) => false,
    }
}

/// The memory of a request from its frame to its answer, in the budget of the server for bodies.
struct HeldRequest {
    context: Arc<Context>,
    bytes: usize,
}

impl HeldRequest {
    /// # Errors
    /// `overloaded`.
    fn new(context: &Arc<Context>, bytes: usize) -> Result<HeldRequest, Error> {
        if !context.body_budget.try_take(bytes) {
            return Err(no_room());
        }
        Ok(HeldRequest { context: Arc::clone(context), bytes })
    }
}

impl Drop for HeldRequest {
    fn drop(&mut self) {
        self.context.body_budget.give_back(self.bytes);
    }
}

/// The context of a session's calls: server, namespace, and caller.
#[derive(Clone, Debug)]
pub(super) struct SessionCalls {
    pub(super) context: Arc<Context>,
    /// The name of the namespace.
    pub(super) name: Arc<str>,
    pub(super) peer: Arc<Peer>,
    /// The credential of the session's request.
    pub(super) authorization: Option<Arc<[u8]>>,
    /// The caller of the frame.
    pub(super) caller: Caller,
    /// The memory of the session, beside which answers have memory of their own.
    pub(super) share: Arc<Share>,
}

pub(super) fn answering(
    number: u64,
    call: impl Future<Output = Result<Done, CallError>> + Send + 'static,
) -> Answering {
    Box::pin(async move { smallvec![FrameAnswer { number, result: call.await }] })
}

impl SessionCalls {
    /// The sender of the frame.
    pub(super) fn asker(&self) -> Asker<'_> {
        Asker {
            calls: &self.context.calls,
            peer: &self.peer,
            caller: &self.caller,
            authorization: self.authorization.as_deref(),
            room: &Uncounted,
            path: PATH,
        }
    }

    /// Checks that the caller may make this call, by its operation and name.
    pub(super) fn permit<'c>(&'c self, operation: Operation, name: &'c str) -> Result<Permit<'c>, CallError> {
        self.asker().permit(CallName { operation, namespace: Some(&self.name), name, is_stale: false })
    }

    /// The session as a call of its namespace.
    pub(super) fn as_call(&self) -> CallName<'_> {
        let (operation, namespace) = (Operation::ReceiveMany, Some(&*self.name));
        CallName { operation, namespace, name: "", is_stale: false }
    }

    /// Number of the node that leads the shard of the session's namespace, if another one does.
    pub(super) fn leader_elsewhere(&self) -> Option<u64> {
        self.as_call().leader_elsewhere(&self.context.calls)
    }

    /// A call about these messages, once it is known that the caller may make it.
    fn about(
        &self,
        operation: Operation,
        receipts: impl Iterator<Item = Receipt>,
        number: u64,
        call: impl FnOnce(SessionCalls, Proof) -> Answering + Send + 'static,
    ) -> FrameCall {
        let proof = match self.cleared_everywhere(operation) {
            Ok(proof) => proof,
            Err(denied) => return FrameCall::Ready(answering(number, async { Err(denied) })),
        };
        let calls = self.clone();
        if let Some(proof) = proof {
            return FrameCall::Ready(call(calls, proof));
        }
        let receipts = receipts.collect::<Vec<_>>();
        FrameCall::Checking(Box::pin(async move {
            match calls.cleared_receipts(operation, receipts.into_iter()).await {
                Ok(proof) => Checked(call(calls, proof)),
                Err(denied) => Checked(answering(number, async { Err(denied) })),
            }
        }))
    }

    /// Clears a call of a caller who may make it about all messages; `None`: theirs are to be looked up.
    fn cleared_everywhere(&self, operation: Operation) -> Result<Option<Proof>, CallError> {
        let cleared = self.permit(operation, "")?.cleared_everywhere();
        Ok(cleared.map(|cleared| cleared.proof()).transpose()?)
    }

    /// Clears a call about these, by the queues that they are in. What cannot be read is refused for itself.
    pub(super) async fn cleared_receipts(
        &self,
        operation: Operation,
        receipts: impl Iterator<Item = Receipt>,
    ) -> Result<Proof, CallError> {
        let ids = receipts.map(|receipt| receipt.id);
        Ok(self.permit(operation, "")?.cleared_messages(ids).await?.proof()?)
    }

    /// The permit of a call that was cleared before.
    pub(super) fn cleared_by(&self, operation: Operation, proof: Proof) -> Result<Cleared<'_>, CallError> {
        self.permit(operation, "")?.cleared_by(proof)
    }

    /// Sends what is more than plain.
    pub(super) fn send(&self, number: u64, send: SendMany) -> FrameCall {
        let calls = self.clone();
        let sending = async move {
            let bytes = messages_of(&send);
            let batch = Batch::read(source("SendMany", &bytes)?, &calls.context.calls.limits())?;
            let (headers, tags, plain) = (batch.headers(), batch.tags(), batch.options());
            let steps = batch.steps(&headers, &tags, &plain);
            let chains = batch.chains(&steps);
            let options = batch.chained(plain.clone(), &chains);
            let items = batch.items(&headers, &tags, &options);
            let queue = text(&send.queue, "queue")?;
            if items.is_empty() {
                return Err(no_messages());
            }
            check_key(&send.idempotency_key)?;
            let permit = calls.permit(Operation::Send, queue)?;
            let cleared = permit.onward(items.iter())?.cleared().await?;
            Ok(cleared.begin_send(&send.idempotency_key, &items)?)
        };
        if self.caller.may_everywhere(Right::Send, &self.name) {
            // Nothing is waited for until it is begun.
            return FrameCall::Ready(answering(number, async {
                Ok(Done::Sent(sending.await?.done().await?))
            }));
        }
        FrameCall::Checking(Box::pin(async move {
            let begun: Result<Sending, CallError> = sending.await;
            Checked(answering(number, async { Ok(Done::Sent(begun?.done().await?)) }))
        }))
    }

    pub(super) fn send_plain(&self, number: u64, plain: &Plain<'_>) -> Result<Answering, CallError> {
        let items = plain.items();
        if items.is_empty() {
            return Err(no_messages());
        }
        check_key(plain.idempotency_key)?;
        let onward = self.permit(Operation::Send, plain.queue)?.onward(items.iter())?;
        // Plain messages wait for no others.
        let cleared = onward.cleared_at_once().ok_or_else(no_messages)?;
        let sending = cleared.begin_send(plain.idempotency_key, &items)?;
        Ok(answering(number, async move { Ok(Done::Sent(sending.done().await?)) }))
    }

    pub(super) fn extend(&self, number: u64, extend: ExtendMany) -> FrameCall {
        let receipts = readable(extend.items.iter().map(|item| &item.receipt));
        self.about(Operation::Extend, receipts.into_iter(), number, move |calls, proof| {
            answering(number, async move { calls.extended(&extend, proof).await })
        })
    }

    async fn extended(&self, extend: &ExtendMany, proof: Proof) -> Result<Done, CallError> {
        let cleared = self.cleared_by(Operation::Extend, proof)?;
        if extend.items.is_empty() || !extend.items.iter().all(is_plain_extension) {
            let bytes = extend.encode_to_vec();
            let request = Extensions::read(source("ExtendMany", &bytes)?, &self.context.calls.limits())?;
            return Ok(Done::Items(request.extend(cleared).await?));
        }
        let mut refused = Refused::new();
        let mut items = Vec::with_capacity(extend.items.len());
        for (at, item) in extend.items.iter().enumerate() {
            match receipt(&item.receipt) {
                Ok(receipt) => items.push((receipt, item.lease_ms.unwrap_or(0))),
                Err(error) => refused.push((at, error)),
            }
        }
        Ok(Done::Items(in_order(cleared.extend(&items).await?, refused)))
    }

    /// A settlement that is more than acks.
    pub(super) fn settle(&self, number: u64, mut settle: SettleMany) -> FrameCall {
        let acks = std::mem::take(&mut settle.acks);
        let ack = |receipt| SettlementFrame { receipt, outcome: "ack".into(), ..SettlementFrame::default() };
        settle.items.extend(acks.into_iter().map(ack));
        let receipts = readable(settle.items.iter().map(|item| &item.receipt));
        self.about(Operation::Settle, receipts.into_iter(), number, move |calls, proof| {
            answering(number, async move {
                let bytes = settle.encode_to_vec();
                let request =
                    Settlements::read_mixed(source("SettleMany", &bytes)?, &calls.context.calls.limits())?;
                Ok(Done::Items(request.settle(calls.cleared_by(Operation::Settle, proof)?).await?))
            })
        })
    }

    /// Settles what gathered of acks. What one frame may not do is not held against the others.
    pub(super) fn ack(&self, acks: Acks) -> FrameCall {
        let calls = self.clone();
        if let Ok(Some(proof)) = self.cleared_everywhere(Operation::Settle) {
            return FrameCall::Ready(calls.acking(acks, proof, FrameAnswers::new()));
        }
        FrameCall::Checking(Box::pin(async move {
            let (acks, proof, answers) =
                match calls.cleared_receipts(Operation::Settle, acks.receipts.iter().copied()).await {
                    Ok(proof) => (acks, Some(proof), FrameAnswers::new()),
                    Err(_) => acks.allowed(&calls).await,
                };
            match proof {
                Some(proof) => Checked(calls.acking(acks, proof, answers)),
                None => Checked(Box::pin(async { answers })),
            }
        }))
    }

    /// Settles them; `answers`: those of frames that were refused.
    fn acking(self, acks: Acks, proof: Proof, mut answers: FrameAnswers) -> Answering {
        Box::pin(async move {
            let ack = |receipt: &Receipt| SettleItem {
                receipt: *receipt,
                settlement: Settlement::Ack,
                error: "",
                result: None,
                add_cost: 0,
            };
            let items: SmallVec<[SettleItem<'_>; 4]> = acks.receipts.iter().map(ack).collect();
            let settled = match self.cleared_by(Operation::Settle, proof) {
                Ok(cleared) => cleared.settle(&items).await.map_err(CallError::from),
                Err(error) => Err(error),
            };
            answers.extend(acks.answers(settled));
            answers
        })
    }

    /// A call that is made as if it came alone.
    pub(super) fn call(&self, number: u64, call: Call) -> Answering {
        let calls = self.clone();
        answering(number, async move {
            let _memory = HeldRequest::new(&calls.context, call.request.len())?;
            let (share, limits) = (Arc::new(calls.share.another()), calls.context.body_limits());
            let path = [SERVICES, text(&call.method, "method")?].concat();
            let asker = Asker { room: &*share, path: &path, ..calls.asker() };
            let message = call_over_session(asker, &calls.name, &call.request, limits, &share).await?;
            let share = Arc::into_inner(share).unwrap_or_else(|| calls.share.another());
            Ok(Done::Answer { message, _memory: share })
        })
    }

    pub(super) fn credit(&self, number: u64, consumer: ConsumerId, credit: u32) -> Answering {
        let calls = self.clone();
        answering(number, async move {
            calls.own()?.credit(consumer, credit).await?;
            Ok(Done::Items(Vec::new()))
        })
    }

    /// A call about a consumer of this session, whose queues were checked when it was attached.
    pub(super) fn own(&self) -> Result<Cleared<'_>, CallError> {
        self.permit(Operation::ReceiveMany, "")?.cleared_queues(std::iter::empty())
    }

    /// Detaches the consumer that the client knows by this number.
    pub(super) fn detach(&self, number: u64, consumer: u32, id: ConsumerId, grace_ms: u64) -> Answering {
        let calls = self.clone();
        answering(
            number,
            async move { Ok(Done::Detached(consumer, calls.own()?.detach(id, grace_ms).await)) },
        )
    }
}

fn no_messages() -> CallError {
    Fault::invalid("expected at least one message").inside("messages").into()
}

fn check_key(idempotency_key: &[u8]) -> Result<(), CallError> {
    Ok(check_idempotency_key(idempotency_key).map_err(|fault| fault.inside("idempotency_key"))?)
}

/// The receipts that can be read.
fn readable<'r>(texts: impl Iterator<Item = &'r Bytes>) -> SmallVec<[Receipt; 4]> {
    texts.filter_map(|text| receipt(text).ok()).collect()
}

/// Acks of frames that came together: they are settled as one.
#[derive(Debug, Default)]
pub(super) struct Acks {
    receipts: SmallVec<[Receipt; 4]>,
    frames: SmallVec<[AckFrame; 4]>,
}

/// The part of one frame.
#[derive(Debug)]
struct AckFrame {
    number: u64,
    /// Number of its receipts.
    receipts: usize,
    refused: Refused,
}

impl Acks {
    /// True if a frame holds acks and nothing else.
    pub(super) fn fit(settle: &SettleMany) -> bool {
        !(settle.items.is_empty() && settle.acks.is_empty()) && settle.items.iter().all(is_plain_ack)
    }

    pub(super) fn len(&self) -> usize {
        self.receipts.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Adds a frame that fits.
    pub(super) fn add(&mut self, number: u64, settle: &SettleMany) {
        let before = self.receipts.len();
        let mut refused = Refused::new();
        let items = settle.items.iter().map(|item| &item.receipt).chain(&settle.acks);
        for (at, bytes) in items.enumerate() {
            match receipt(bytes) {
                Ok(receipt) => self.receipts.push(receipt),
                Err(error) => refused.push((at, error)),
            }
        }
        self.frames.push(AckFrame { number, receipts: self.receipts.len() - before, refused });
    }

    /// Takes out the frames that the caller may not settle; these have their answers. The proof is that of
    /// the others.
    async fn allowed(self, calls: &SessionCalls) -> (Acks, Option<Proof>, FrameAnswers) {
        let (mut allowed, mut refused, mut cleared) = (Acks::default(), FrameAnswers::new(), None);
        let mut rest = self.receipts.as_slice();
        for frame in self.frames {
            let (own, others) = rest.split_at(frame.receipts);
            rest = others;
            match calls.cleared_receipts(Operation::Settle, own.iter().copied()).await {
                Ok(proof) => {
                    cleared = Some(proof);
                    allowed.receipts.extend_from_slice(own);
                    allowed.frames.push(frame);
                }
                Err(denied) => refused.push(FrameAnswer { number: frame.number, result: Err(denied) }),
            }
        }
        (allowed, cleared, refused)
    }

    /// Gives each frame its part.
    fn answers(self, settled: Result<Vec<Result<(), Error>>, CallError>) -> FrameAnswers {
        let mut rest = settled.as_deref().map_err(Clone::clone);
        let answer = |frame: AckFrame| {
            let result = rest.as_mut().map_err(|error| error.clone()).map(|rest| {
                let own = rest.split_off(..frame.receipts.min(rest.len())).unwrap_or_default();
                let all_well = frame.refused.is_empty() && own.iter().all(Result::is_ok);
                Done::Items(if all_well { Vec::new() } else { in_order(own.to_vec(), frame.refused) })
            });
            FrameAnswer { number: frame.number, result }
        };
        self.frames.into_iter().map(answer).collect()
    }
}
