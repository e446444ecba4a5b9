//! Groups, and how messages hang together, through the handle.

use sluice_engine::command::{Command, Group};
use sluice_engine::error::Error;
use sluice_engine::flow::FlowView;
use sluice_engine::id::MessageId;
use sluice_engine::outcome::Reply;
use sluice_engine::query::GroupView;

use crate::api::Sent;
use crate::handle::Node;
use crate::shard::request::unexpected;

impl Node {
    /// Sends the messages of a group and its callback, whose id is the last one; all or none.
    ///
    /// # Errors
    /// As [`Node::send`].
    pub async fn group_send(&self, group: &Group<'_>) -> Result<Sent, Error> {
        let answer = self.propose(group.namespace, &Command::Group(group.clone())).await?;
        match answer.result? {
            Reply::Sent { first, count, duplicate } => {
                Ok(Sent { first, count, duplicate, duplicates: answer.duplicates })
            }
            other => Err(unexpected(&other)),
        }
    }

    /// State of a group, by the id of its callback.
    ///
    /// # Errors
    /// `message_not_found` when the callback is gone, or is none.
    pub async fn group(&self, callback: MessageId) -> Result<GroupView, Error> {
        let not_found = || Error::MessageNotFound { id: callback.to_string() };
        let shard = self.inner.placement.shard_of(callback.namespace).map_err(|_| not_found())?;
        self.look(shard, move |at| at.engine.group_view(callback)).await?.ok_or_else(not_found)
    }

    /// A message with what it waits for and what waits for it.
    ///
    /// # Errors
    /// `message_not_found` when it is gone.
    pub async fn flow(&self, id: MessageId) -> Result<FlowView, Error> {
        let not_found = || Error::MessageNotFound { id: id.to_string() };
        let shard = self.inner.placement.shard_of(id.namespace).map_err(|_| not_found())?;
        self.look(shard, move |at| at.engine.flow_view(id)).await?
    }
}
