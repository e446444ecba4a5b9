//! Relations of a message to others, as they are read.

use crate::id::MessageId;
use crate::query::{GroupView, State};

/// Parents, children and steps that one view of a flow names; of more it says that there are more.
pub const FLOW_ITEMS_MAX: usize = 256;
/// Children of children that a view of a flow goes down.
pub const FLOW_DEPTH_MAX: usize = 16;

/// A message with what it waits for, and what waits for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowView {
    /// The message.
    pub node: FlowNode,
    /// Messages that it waits for, or has waited for; the latest given comes first.
    pub parents: Vec<FlowParent>,
    /// True if there is more than this view names.
    pub truncated: bool,
}

/// One message of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowNode {
    /// Its id.
    pub id: MessageId,
    /// Name of its queue.
    pub queue: String,
    /// Where it stands.
    pub state: State,
    /// Why it is dead or held.
    pub reason: Option<&'static str>,
    /// The queues of the steps that follow when it is done.
    pub chain: Vec<String>,
    /// The queue of the step that follows when it fails.
    pub on_failure: Option<String>,
    /// Progress of the group whose callback it is.
    pub group: Option<GroupView>,
    /// Messages that wait for it, or have waited for it, in the order of sending.
    pub children: Vec<FlowNode>,
}

/// A parent of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowParent {
    /// Its id.
    pub id: MessageId,
    /// Name of its queue, and where it stands; `None`: it is gone.
    pub here: Option<(String, State)>,
    /// True if it was done when it ended; `None`: it has not ended, as far as the message was told.
    pub done: Option<bool>,
}
