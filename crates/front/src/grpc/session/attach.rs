//! An Attach: what it asks for, checked and bounded before anything of it is kept, and what comes of it.

use std::sync::Arc;

use sluice_calls::hot::Attached as ToAttach;
use sluice_calls::hot::receive::check_consumer;
use sluice_calls::hot::settle::{Refused, in_order};
use sluice_calls::{CallError, Operation};
use sluice_calls::{Fault, Read};
use sluice_engine::Error;
use sluice_engine::command::DETACH_GRACE_MS;
use sluice_engine::error::FieldPath;
use sluice_engine::id::Receipt;
use sluice_engine::limits::{Limits, NAME_BYTES_MAX, RECEIVE_QUEUES_MAX};
use sluice_proto::v1::Attach;

use super::calls::{Answering, Done, NewConsumer, SessionCalls, answering};
use super::decode::{receipt, text};

/// Queues of a consumer.
pub(super) type Queues = Arc<[Box<str>]>;

/// A checked Attach; it keeps no bytes of the frame.
#[derive(Debug)]
pub(super) struct AttachRequest {
    pub(super) queues: Queues,
    name: Box<str>,
    credit: u32,
    lease_ms: u64,
    grace_ms: u64,
    resume: Option<Resume>,
}

/// Receipts from before, and those that cannot be read.
#[derive(Debug, Default)]
struct Resume {
    receipts: Vec<Receipt>,
    refused: Refused,
}

impl AttachRequest {
    pub(super) fn read(attach: &Attach, limits: &Limits) -> Read<AttachRequest> {
        let count = attach.queues.len();
        if count > RECEIVE_QUEUES_MAX {
            let reason = format!("at most {RECEIVE_QUEUES_MAX} queues, got {count}");
            return Err(Fault::invalid(reason).inside("queues"));
        }
        let mut queues = Vec::with_capacity(count);
        for queue in &attach.queues {
            let queue = text(queue, "queues")?;
            if queue.len() > NAME_BYTES_MAX {
                let name = queue.chars().take(NAME_BYTES_MAX + 1).collect();
                return Err(Error::InvalidName { field: FieldPath::default(), what: "queue", name }.into());
            }
            queues.push(Box::from(queue));
        }
        let name = text(&attach.name, "name")?;
        check_consumer(name).map_err(|fault| fault.inside("name"))?;
        if attach.lease_ms == Some(0) {
            return Err(Fault::invalid("expected 1 or more, got 0").inside("lease_ms"));
        }
        Ok(AttachRequest {
            queues: queues.into(),
            name: name.into(),
            credit: attach.credit,
            lease_ms: attach.lease_ms.unwrap_or(0),
            grace_ms: attach.grace_ms.unwrap_or(DETACH_GRACE_MS),
            resume: Resume::read(attach, limits)?,
        })
    }
}

impl Resume {
    fn read(attach: &Attach, limits: &Limits) -> Read<Option<Resume>> {
        let (size, limit) = (attach.resume.len() as u64, u64::from(limits.batch_items));
        if size > limit {
            return Err(Error::BatchTooLarge { what: "items", size, limit }.into());
        }
        let mut resume = Resume::default();
        for (at, bytes) in attach.resume.iter().enumerate() {
            match receipt(bytes) {
                Ok(receipt) => resume.receipts.push(receipt),
                Err(error) => resume.refused.push((at, error)),
            }
        }
        Ok((size > 0).then_some(resume))
    }
}

impl SessionCalls {
    /// Attaches a consumer that the client knows by this number.
    pub(super) fn attach(&self, number: u64, consumer: u32, asked: AttachRequest) -> Answering {
        let calls = self.clone();
        answering(number, async move { Ok(Done::Attached(consumer, calls.attached(asked).await)) })
    }

    async fn attached(&self, asked: AttachRequest) -> Result<NewConsumer, CallError> {
        let queues: Vec<&str> = asked.queues.iter().map(|queue| &**queue).collect();
        let cleared = self.permit(Operation::ReceiveMany, "")?.cleared_queues(queues.iter().copied())?;
        let resume = asked.resume;
        if let Some(Resume { receipts, .. }) = &resume {
            self.cleared_receipts(Operation::ReceiveMany, receipts.iter().copied()).await?;
        }
        let consumer = ToAttach {
            name: &asked.name,
            queues: &queues,
            // First what it has already, then more.
            credit: if resume.is_some() { 0 } else { asked.credit },
            lease_ms: asked.lease_ms,
            grace_ms: asked.grace_ms,
        };
        let mut consumer = cleared.attach(consumer).await?;
        let Some(Resume { receipts, refused }) = resume else {
            return Ok(NewConsumer { consumer: Box::new(consumer), resumed: Vec::new() });
        };
        let done = match receipts.is_empty() {
            true => Vec::new(),
            false => consumer.resume(&receipts).await?,
        };
        cleared.credit(consumer.id(), asked.credit).await?;
        Ok(NewConsumer { consumer: Box::new(consumer), resumed: in_order(done, refused) })
    }
}
