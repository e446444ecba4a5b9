//! Relations of messages: the messages that one waits for, and the steps that follow it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::flow::{FlowNode as EngineNode, FlowParent as EngineParent, FlowView};
use sluice_engine::query::State;

use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::groups::GroupCounts;
use crate::hot::ID_EXAMPLE;
use crate::permit::Permit;
use crate::value::{Word, words};

/// A message to show with what it waits for, and what waits for it.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "FlowShowRequest")]
pub struct Show {}

/// Declares a message of a flow: these fields, those of every message of a flow, and then the others.
macro_rules! flow_message {
    ($(#[$attribute:meta])* $name:ident { $($before:tt)* } { $($after:tt)* }) => {
        #[derive(Clone, Debug, Serialize, JsonSchema)]
        $(#[$attribute])*
        pub struct $name {
            $($before)*
            /// Id of the message.
            id: String,
            /// Name of its queue.
            queue: String,
            /// Its state.
            state: Word<State>,
            /// Why it is dead or held.
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<&'static str>,
            /// Names of the queues of the steps that follow when it is done.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            chain: Vec<String>,
            /// Name of the queue of the step that follows when it fails.
            #[serde(skip_serializing_if = "Option::is_none")]
            on_failure: Option<String>,
            /// The members of the group whose callback it is.
            #[serde(skip_serializing_if = "Option::is_none")]
            group: Option<GroupCounts>,
            /// Messages that wait for it, or have waited for it, in the order of sending.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            children: Vec<FlowNode>,
            $($after)*
        }
    };
}

flow_message! {
    /// A message with what it waits for, and as a tree what waits for it; at most 256 of all of them.
    #[schemars(example = json!({
        "parents": [{"id": ID_EXAMPLE, "queue": "mail", "state": "leased"}], "id": ID_EXAMPLE,
        "queue": "mail", "state": "blocked", "chain": ["print"], "truncated": false,
    }))]
    Flow {
        /// Messages that it waits for, or has waited for.
        parents: Vec<FlowParent>,
    } {
        /// True when there is more than is shown.
        truncated: bool,
    }
}

flow_message! {
    /// A message of a flow.
    FlowNode {} {}
}

/// End of a message that another one waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParentEnd {
    /// Acked.
    Done,
    /// Dead, or gone without an ack.
    Failed,
}

words! {
    ParentEnd: "done" = ParentEnd::Done, "failed" = ParentEnd::Failed;
}

/// A message that another one waits for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowParent {
    /// Its id.
    id: String,
    /// Name of its queue; absent when it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    /// Its state; absent when it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Word<State>>,
    /// `done` or `failed`; absent when it has not ended, as far as the message was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<Word<ParentEnd>>,
}

impl From<EngineParent> for FlowParent {
    fn from(parent: EngineParent) -> FlowParent {
        let (queue, state) = parent.here.unzip();
        FlowParent {
            id: parent.id.to_string(),
            queue,
            state: state.map(Word),
            ended: parent.done.map(|done| Word(if done { ParentEnd::Done } else { ParentEnd::Failed })),
        }
    }
}

impl From<EngineNode> for FlowNode {
    fn from(node: EngineNode) -> FlowNode {
        FlowNode {
            id: node.id.to_string(),
            queue: node.queue,
            state: Word(node.state),
            reason: node.reason,
            chain: node.chain,
            on_failure: node.on_failure,
            group: node.group.as_ref().map(GroupCounts::from),
            children: node.children.into_iter().map(FlowNode::from).collect(),
        }
    }
}

impl From<FlowView> for Flow {
    fn from(view: FlowView) -> Flow {
        let node = FlowNode::from(view.node);
        Flow {
            parents: view.parents.into_iter().map(FlowParent::from).collect(),
            id: node.id,
            queue: node.queue,
            state: node.state,
            reason: node.reason,
            chain: node.chain,
            on_failure: node.on_failure,
            group: node.group,
            children: node.children,
            truncated: view.truncated,
        }
    }
}

impl Unary for Show {
    type Answer = Flow;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Flow>, CallError> {
        let view = permit.node().flow(permit.message_id(permit.name())?).await?;
        Ok(Flow::from(view).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;

    #[tokio::test]
    async fn a_message_by_itself_has_few_fields() {
        let server = Open::new();
        let id = server.send("q", b"x").await.to_string();
        let done = Show {}.run(&server.permit(Operation::FlowShow, &id)).await.unwrap();
        let expected =
            format!(r#"{{"parents":[],"id":"{id}","queue":"q","state":"ready","truncated":false}}"#);
        assert_eq!(serde_json::to_string(&done.answer).unwrap(), expected);
    }
}
