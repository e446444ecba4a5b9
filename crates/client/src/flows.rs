//! Messages that have to do with others: groups, chains, and how they hang together.

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

/// A later message of a chain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step<'a> {
    /// Name of the queue.
    pub queue: Cow<'a, str>,
    /// The message.
    pub message: Message<'a>,
    /// Whether the payload is the message's own; if not, it is the result of the step before, or what has
    /// failed.
    pub own_payload: bool,
}

impl<'a> Step<'a> {
    /// A step that gets the result of the one before it.
    pub fn to(queue: impl Into<Cow<'a, str>>) -> Step<'a> {
        Step { queue: queue.into(), ..Step::default() }
    }

    /// A step with a payload of its own.
    pub fn with_payload(queue: impl Into<Cow<'a, str>>, message: Message<'a>) -> Step<'a> {
        Step { queue: queue.into(), message, own_payload: true }
    }
}

/// A group that was sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GroupSent {
    /// Id of the callback, and of the group.
    pub group: String,
    /// Ids of the messages, in order.
    pub ids: Vec<String>,
    /// Whether the idempotency key had been used for this request before.
    pub duplicate: bool,
}

/// How a group stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Group {
    /// Id of the callback.
    pub group: String,
    /// How many of its messages have ended, and how.
    #[serde(flatten)]
    pub counts: GroupCounts,
    /// State of the callback.
    pub callback: String,
}

/// How many messages of a group have ended, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GroupCounts {
    /// Messages that have not ended.
    pub pending: u32,
    /// Messages that were done.
    pub done: u32,
    /// Messages that have died, or are gone without being done.
    pub dead: u32,
}

/// A message with what it waits for and what follows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Flow {
    /// What it waits for, or has waited for.
    pub parents: Vec<FlowParent>,
    /// The message, and under it what waits for it.
    #[serde(flatten)]
    pub node: FlowNode,
    /// Whether there is more than this.
    pub truncated: bool,
}

/// A message that another one waits for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FlowParent {
    /// Its id.
    pub id: String,
    /// Its queue; `None`: it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Its state; `None`: it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// How it has ended: `done` or `failed`.
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
    /// Why it is dead or held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Queues of the steps that follow it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
    /// Queue of the step that follows its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<String>,
    /// How the group stands whose callback it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupCounts>,
    /// What waits for it, or has waited for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<FlowNode>,
}
