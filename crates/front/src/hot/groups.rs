//! Groups: messages in several queues, and one that follows when all of them have ended.

use sluice_calls::hot::Sent;
use sluice_calls::{CallError, Permit};
use sluice_engine::Error;
use sluice_engine::command::QueueItem;
use sluice_engine::id::MessageId;

use super::send::Batch;
use super::source::Source;
use crate::hot::Answer;

/// Sends the members of a group and its callback.
pub(super) async fn send<'b>(
    permit: &Permit<'_>,
    idempotency_key: &[u8],
    source: impl Source<'b>,
) -> Result<Answer, CallError> {
    let (batch, queues) = Batch::read_group(source, &permit.calls().limits())?;
    let (headers, tags, plain) = (batch.headers(), batch.tags(), batch.options());
    let steps = batch.steps(&headers, &tags, &plain);
    let chains = batch.chains(&steps);
    let options = batch.chained(plain.clone(), &chains);
    let items = batch.items(&headers, &tags, &options).into_iter();
    let mut members: Vec<QueueItem<'_>> =
        items.zip(queues).map(|(item, queue)| QueueItem { queue: batch.text(queue), item }).collect();
    let cleared = permit.onward(members.iter().map(|member| &member.item))?.cleared().await?;
    let Some(callback) = members.pop() else {
        return Err(Error::Internal { reason: "a group without callback was read".into() }.into());
    };
    Ok(Answer::Group(SentGroup(cleared.send_group(idempotency_key, &members, &callback).await?)))
}

/// A group that is stored: its members, and the callback behind them.
#[derive(Debug)]
pub(crate) struct SentGroup(Sent);

impl SentGroup {
    /// Id of the callback, which names the group.
    pub(crate) fn group(&self) -> MessageId {
        self.id(self.members())
    }

    /// Ids of the members, in the order of the request.
    pub(crate) fn ids(&self) -> impl Iterator<Item = MessageId> + '_ {
        (0..self.members()).map(|at| self.id(at))
    }

    /// True if the request repeats one with the same idempotency key.
    pub(crate) fn duplicate(&self) -> bool {
        self.0.duplicate
    }

    fn members(&self) -> u64 {
        self.0.count.saturating_sub(1).into()
    }

    fn id(&self, at: u64) -> MessageId {
        let first = self.0.first;
        MessageId { sequence: first.sequence.wrapping_add(at), ..first }
    }
}
