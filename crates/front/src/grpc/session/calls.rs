//! What a frame of the client asks of the node, and what came of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use sluice_calls::CallError;
use sluice_calls::Fault;
use sluice_calls::access::{Caller, Peer, Right};
use sluice_engine::Error;
use sluice_engine::command::{SendItem, SettleItem, Settlement};
use sluice_engine::id::{ConsumerId, NamespaceId, Receipt};
use sluice_engine::limits::IDEMPOTENCY_KEY_BYTES_MAX;
use sluice_node::{Node, Sending, Sent};
use sluice_proto::v1::{ExtendMany, SendMany, SettleMany, Settlement as SettlementFrame};
use smallvec::{SmallVec, smallvec};

use super::attach::Attached;
use super::decode::{as_json, is_plain_ack, is_plain_extension, receipt, send_as_json, text};
use super::plain::Plain;
use super::reading::PATH;
use crate::hot::permission::Asking as Asks;
use crate::hot::send::{allow_onward, allow_queues, begin};
use crate::hot::settle::{Refused, in_order};
use crate::http::hot::extend::Extensions;
use crate::http::hot::send::Batch;
use crate::http::hot::settle::Settlements;
use crate::net::context::Context;

/// The answer to a frame, or to several.
pub(super) type Answering = Pin<Box<dyn Future<Output = Answers> + Send>>;

/// A call whose caller has first to be asked for, by the queues of its messages.
pub(super) type Asking = Pin<Box<dyn Future<Output = Known> + Send>>;

/// A call of which it is known whether its caller may make it: if not, its answer says so.
pub(super) struct Known(pub(super) Answering);

/// A call of a frame. It reaches the node when its [`Answering`] is polled for the first time.
pub(super) enum Call {
    /// Its caller may make it, or is asked for when it is begun.
    Ready(Answering),
    /// Frames behind it wait until it is known whether its caller may make it, so that they do not overtake
    /// it.
    Asked(Asking),
}

/// Mostly of one frame.
pub(super) type Answers = SmallVec<[Answered; 1]>;

/// What came of one frame.
#[derive(Debug)]
pub(super) struct Answered {
    /// The client's number.
    pub(super) number: u64,
    pub(super) result: Result<Done, CallError>,
}

/// What a frame did.
#[derive(Debug)]
pub(super) enum Done {
    /// What became of each item; none: all went well.
    Items(Vec<Result<(), Error>>),
    Sent(Sent),
    /// What came of an Attach, of the consumer that the client knows by this number.
    Attached(u32, Result<Attached, CallError>),
    /// What came of a Detach.
    Detached(u32, Result<(), Error>),
}

/// Where the calls of a session go.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    pub(super) context: Arc<Context>,
    pub(super) namespace: NamespaceId,
    /// The name of the namespace.
    pub(super) name: Arc<str>,
    pub(super) peer: Arc<Peer>,
    /// Who has sent the frame.
    pub(super) caller: Caller,
}

pub(super) fn answering(
    number: u64,
    call: impl Future<Output = Result<Done, CallError>> + Send + 'static,
) -> Answering {
    Box::pin(async move { smallvec![Answered { number, result: call.await }] })
}

impl Calls {
    pub(super) fn node(&self) -> &Node {
        &self.context.node
    }

    pub(super) fn asking(&self) -> Asks<'_> {
        Asks { peer: &self.peer, caller: &self.caller, namespace: &self.name, what: PATH }
    }

    /// A call about these messages, once it is known that the caller may make it.
    fn about(&self, receipts: impl Iterator<Item = Receipt>, number: u64, call: Answering) -> Call {
        if self.caller.may_everywhere(Right::Receive, &self.name) {
            return Call::Ready(call);
        }
        let (calls, receipts) = (self.clone(), receipts.collect::<Vec<_>>());
        Call::Asked(Box::pin(async move {
            match calls.allow_receipts(receipts.into_iter()).await {
                Ok(()) => Known(call),
                Err(denied) => Known(answering(number, async { Err(denied) })),
            }
        }))
    }

    /// Whether the caller may settle these, by the queues that they are in. What cannot be read is refused for itself.
    pub(super) async fn allow_receipts(
        &self,
        receipts: impl Iterator<Item = Receipt>,
    ) -> Result<(), CallError> {
        let ids = receipts.map(|receipt| receipt.id);
        self.asking().allow_messages(self.node(), self.namespace, Right::Receive, ids).await
    }

    /// Sends what is more than plain.
    pub(super) fn send(&self, number: u64, send: SendMany) -> Call {
        let calls = self.clone();
        let sending = async move {
            let json = send_as_json(&send)?;
            let batch = Batch::read(&json, calls.node().limits())?;
            let (headers, tags, plain) = (batch.headers(), batch.tags(), batch.options());
            let steps = batch.steps(&headers, &tags, &plain);
            let chains = batch.chains(&steps);
            let options = batch.chained(plain.clone(), &chains);
            let items = batch.items(&headers, &tags, &options);
            let queue = text(&send.queue, "queue")?;
            allow_onward(calls.asking(), calls.node(), calls.namespace, items.iter()).await?;
            calls.begin_send(queue, &send.idempotency_key, &items)
        };
        if self.caller.may_everywhere(Right::Send, &self.name) {
            // Nothing is waited for until it is begun.
            return Call::Ready(answering(number, async { Ok(Done::Sent(sending.await?.done().await?)) }));
        }
        Call::Asked(Box::pin(async move {
            let begun = sending.await;
            Known(answering(number, async { Ok(Done::Sent(begun?.done().await?)) }))
        }))
    }

    pub(super) fn send_plain(&self, number: u64, plain: &Plain<'_>) -> Result<Answering, CallError> {
        let items = plain.items();
        if !self.caller.may_everywhere(Right::Send, &self.name) {
            allow_queues(self.asking(), items.iter())?;
        }
        let sending = self.begin_send(plain.queue, plain.idempotency_key, &items)?;
        Ok(answering(number, async move { Ok(Done::Sent(sending.done().await?)) }))
    }

    fn begin_send(
        &self,
        queue: &str,
        idempotency_key: &[u8],
        items: &[SendItem<'_>],
    ) -> Result<Sending, CallError> {
        if items.is_empty() {
            return Err(Fault::invalid("expected at least one message").inside("messages").into());
        }
        self.asking().allow_queue(Right::Send, queue)?;
        if idempotency_key.len() > IDEMPOTENCY_KEY_BYTES_MAX
            || !idempotency_key.iter().all(|byte| (0x20..0x7f).contains(byte))
        {
            let reason = format!("expected up to {IDEMPOTENCY_KEY_BYTES_MAX} characters of printable ASCII");
            return Err(Fault::invalid(reason).inside("idempotency_key").into());
        }
        Ok(begin(self.node(), self.namespace, queue, idempotency_key, items)?)
    }

    pub(super) fn extend(&self, number: u64, extend: ExtendMany) -> Call {
        let calls = self.clone();
        let receipts = readable(extend.items.iter().map(|item| &item.receipt));
        let call = answering(number, async move {
            let (node, namespace) = (calls.node(), calls.namespace);
            if extend.items.is_empty() || !extend.items.iter().all(is_plain_extension) {
                let json = as_json("ExtendMany", &extend)?;
                let request = Extensions::read(&json, node.limits())?;
                return Ok(Done::Items(request.extend(node, namespace).await?));
            }
            let mut refused = Refused::new();
            let mut items = Vec::with_capacity(extend.items.len());
            for (at, item) in extend.items.iter().enumerate() {
                match receipt(&item.receipt) {
                    Ok(receipt) => items.push((receipt, item.lease_ms.unwrap_or(0))),
                    Err(error) => refused.push((at, error)),
                }
            }
            let done = if items.is_empty() { Vec::new() } else { node.extend(namespace, &items).await? };
            Ok(Done::Items(in_order(done, refused)))
        });
        self.about(receipts.into_iter(), number, call)
    }

    /// A settlement that is more than acks.
    pub(super) fn settle(&self, number: u64, mut settle: SettleMany) -> Call {
        let acks = std::mem::take(&mut settle.acks);
        let ack = |receipt| SettlementFrame { receipt, outcome: "ack".into(), ..SettlementFrame::default() };
        settle.items.extend(acks.into_iter().map(ack));
        let calls = self.clone();
        let receipts = readable(settle.items.iter().map(|item| &item.receipt));
        let call = answering(number, async move {
            let json = as_json("SettleMany", &settle)?;
            let request = Settlements::read_mixed(&json, calls.node().limits())?;
            Ok(Done::Items(request.settle(calls.node(), calls.namespace).await?))
        });
        self.about(receipts.into_iter(), number, call)
    }

    /// Settles what gathered of acks. What one frame may not do is not held against the others.
    pub(super) fn ack(&self, acks: Acks) -> Call {
        let calls = self.clone();
        if self.caller.may_everywhere(Right::Receive, &self.name) {
            return Call::Ready(calls.acking(acks, Answers::new()));
        }
        Call::Asked(Box::pin(async move {
            let (acks, answers) = match calls.allow_receipts(acks.receipts.iter().copied()).await {
                Ok(()) => (acks, Answers::new()),
                Err(_) => acks.allowed(&calls).await,
            };
            Known(calls.acking(acks, answers))
        }))
    }

    /// Settles them; `answers`: those of frames that were refused.
    fn acking(self, acks: Acks, mut answers: Answers) -> Answering {
        Box::pin(async move {
            let ack = |receipt: &Receipt| SettleItem {
                receipt: *receipt,
                settlement: Settlement::Ack,
                error: "",
                result: None,
            };
            let items: SmallVec<[SettleItem<'_>; 4]> = acks.receipts.iter().map(ack).collect();
            let settled = match items.is_empty() {
                true => Ok(Vec::new()),
                false => self.node().settle(self.namespace, &items).await,
            };
            answers.extend(acks.answers(settled));
            answers
        })
    }

    pub(super) fn credit(&self, number: u64, consumer: ConsumerId, credit: u32) -> Answering {
        let calls = self.clone();
        answering(number, async move {
            calls.node().credit(calls.namespace, consumer, credit).await?;
            Ok(Done::Items(Vec::new()))
        })
    }

    /// Detaches the consumer that the client knows by this number.
    pub(super) fn detach(&self, number: u64, consumer: u32, id: ConsumerId, grace_ms: u64) -> Answering {
        let calls = self.clone();
        answering(number, async move {
            Ok(Done::Detached(consumer, calls.node().detach(calls.namespace, id, grace_ms).await))
        })
    }
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

/// What is of one frame.
#[derive(Debug)]
struct AckFrame {
    number: u64,
    /// How many of the receipts.
    receipts: usize,
    refused: Refused,
}

impl Acks {
    /// Whether a frame holds nothing else.
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

    /// Takes out the frames that the caller may not settle; these have their answers.
    async fn allowed(self, calls: &Calls) -> (Acks, Answers) {
        let (mut allowed, mut refused) = (Acks::default(), Answers::new());
        let mut rest = self.receipts.as_slice();
        for frame in self.frames {
            let (own, others) = rest.split_at(frame.receipts);
            rest = others;
            match calls.allow_receipts(own.iter().copied()).await {
                Ok(()) => {
                    allowed.receipts.extend_from_slice(own);
                    allowed.frames.push(frame);
                }
                Err(denied) => refused.push(Answered { number: frame.number, result: Err(denied) }),
            }
        }
        (allowed, refused)
    }

    /// Gives each frame its part.
    fn answers(self, settled: Result<Vec<Result<(), Error>>, Error>) -> Answers {
        let mut rest = settled.as_deref().map_err(|error| CallError::from(error.clone()));
        let answer = |frame: AckFrame| {
            let result = rest.as_mut().map_err(|error| error.clone()).map(|rest| {
                let own = rest.split_off(..frame.receipts.min(rest.len())).unwrap_or_default();
                let all_well = frame.refused.is_empty() && own.iter().all(Result::is_ok);
                Done::Items(if all_well { Vec::new() } else { in_order(own.to_vec(), frame.refused) })
            });
            Answered { number: frame.number, result }
        };
        self.frames.into_iter().map(answer).collect()
    }
}
