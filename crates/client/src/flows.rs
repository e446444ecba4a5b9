//! Messages that depend on others: groups, chains, and the flows that they form.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::message::Message;

/// One message in a queue: a member of a group, its callback, or a step of a chain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueMessage<'a> {
    /// Name of the queue.
    pub queue: Cow<'a, str>,
    /// The message.
    pub message: Message<'a>,
}

/// A group that was sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GroupSent {
    /// Id of the callback, and of the group.
    pub group: String,
    /// Ids of the messages, in order.
    pub ids: Vec<String>,
    /// True when the idempotency key had been used for this request before.
    pub duplicate: bool,
}

/// The state of a group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Group {
    /// Id of the callback.
    pub group: String,
    /// Messages of the group by their outcome.
    #[serde(flatten)]
    pub counts: GroupCounts,
    /// State of the callback.
    pub callback: String,
}

/// Number of messages of a group by their outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GroupCounts {
    /// Messages that have not ended.
    pub pending: u32,
    /// Messages that were acked.
    pub done: u32,
    /// Messages that became dead letters, or were removed without an ack.
    pub dead: u32,
}

/// A message with the messages that it waits for and those that follow it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Flow {
    /// Messages that it waits for, or has waited for.
    pub parents: Vec<FlowParent>,
    /// The message, and below it the messages that wait for it.
    #[serde(flatten)]
    pub node: FlowNode,
    /// True when the flow has more messages than are listed here.
    pub truncated: bool,
}

/// A message that another one waits for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FlowParent {
    /// Its id.
    pub id: String,
    /// Name of its queue; `None`: the message was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// State of the message; `None`: the message was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Outcome, `done` or `failed`; `None`: it has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// One message of a flow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FlowNode {
    /// Its id.
    pub id: String,
    /// Its queue.
    pub queue: String,
    /// Its state.
    pub state: String,
    /// Reason why it is dead or held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Queues of the steps that follow it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
    /// Queue of the step that follows its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<String>,
    /// Counts of the group whose callback it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupCounts>,
    /// Messages that wait for it, or have waited for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<FlowNode>,
}
