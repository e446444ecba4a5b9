//! Groups: messages, and one that follows when all of them have ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::query::{GroupView, State};

use crate::access::Right;
use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::hot::ID_EXAMPLE;
use crate::hot::message::GroupMessage;
use crate::permit::Permit;
use crate::value::Word;

/// A group to send. Fronts decode it by hand.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GroupRequest", example = json!({
    "messages": [{"queue": "mail", "payload": "a"}], "callback": {"queue": "reports", "payload": "all sent"},
}))]
pub struct Send {
    /// Its members; none: the callback follows at once.
    pub messages: Vec<GroupMessage>,
    /// The message that follows when all members have ended.
    pub callback: GroupMessage,
}

/// The messages of a group that is stored.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(
    rename = "GroupSent",
    example = json!({"group": ID_EXAMPLE, "ids": [ID_EXAMPLE], "duplicate": false}),
)]
pub struct Sent {
    /// Id of the callback.
    pub group: String,
    /// Ids of the members, in the order of the request.
    pub ids: Vec<String>,
    /// True when the request repeats one with the same idempotency key.
    pub duplicate: bool,
}

/// A group to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "GroupShowRequest")]
pub struct Show {}

/// A group, and how many of its members have ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = json!({"group": ID_EXAMPLE, "pending": 0, "done": 2, "dead": 1, "callback": "ready"}))]
pub struct Group {
    /// Id of the callback.
    group: String,
    /// Members that have not ended.
    pending: u32,
    /// Members that are done.
    done: u32,
    /// Members that are dead, or gone without being done.
    dead: u32,
    /// State of the callback.
    callback: Word<State>,
}

/// The members of a group, by how they have ended.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct GroupCounts {
    /// Members that have not ended.
    pending: u32,
    /// Members that are done.
    done: u32,
    /// Members that are dead, or gone without being done.
    dead: u32,
}

impl From<&GroupView> for GroupCounts {
    fn from(view: &GroupView) -> GroupCounts {
        GroupCounts { pending: view.pending, done: view.done, dead: view.dead }
    }
}

impl Unary for Show {
    type Answer = Group;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Group>, CallError> {
        let id = permit.message_id(permit.name())?;
        permit.allow_messages(Right::Result, std::iter::once(id)).await?;
        let view = permit.node().group(id).await?;
        let GroupCounts { pending, done, dead } = GroupCounts::from(&view);
        Ok(Group { group: id.to_string(), pending, done, dead, callback: Word(view.callback) }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;

    #[tokio::test]
    async fn a_message_that_is_no_callback_has_no_group() {
        let server = Open::new();
        let id = server.send("q", b"x").await.to_string();
        let shown = Show {}.run(&server.permit(Operation::GroupShow, &id)).await;
        assert_eq!(shown.unwrap_err().code(), "message_not_found");
    }
}
