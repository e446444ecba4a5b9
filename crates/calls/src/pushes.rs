//! Pushes of a queue to its endpoint: the log of the latest ones, and the checks of an endpoint's settings.

use std::future::Future;
use std::pin::Pin;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_engine::NamespaceId;
use sluice_node::Node;
use sluice_push::Auditor;
pub use sluice_push::Pushes;
use sluice_push::log::{ATTEMPTS_MAX, Attempt};
pub use sluice_push::log::{BUCKETS_MS, Outcome};

use crate::access::Access;
use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::hot::{AT_MS_EXAMPLE, ID_EXAMPLE};
use crate::permit::Permit;
use crate::value::{Within, Word, words};

words! {
    Outcome:
        "acked" = Outcome::Acked,
        "failed" = Outcome::Failed,
        "delayed" = Outcome::Delayed,
        "gone" = Outcome::Gone;
}

/// The latest pushes of a queue, the newest first.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "PushListRequest")]
pub struct List {
    /// Maximum number of pushes; default 100.
    limit: Option<Within<1, { ATTEMPTS_MAX as u64 }>>,
}

/// The latest pushes of a queue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "PushList", example = json!({"pushes": [example()]}))]
pub struct Listed {
    /// The newest first; at most 100 are kept, in the memory of the node that leads the queue's shard, since
    /// it pushes.
    pushes: Vec<Push>,
}

/// A push that has ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = example())]
pub struct Push {
    /// Id of the message.
    id: String,
    /// Number of the attempt, from 1.
    attempt: u16,
    /// When it began, in milliseconds since the Unix epoch.
    at_ms: u64,
    /// Time that it took, in milliseconds.
    took_ms: u64,
    /// Outcome: `acked`, `failed` (the queue's rules decide about another attempt), `delayed` (the
    /// endpoint asked for that) or `gone` (the pushes of the queue were paused).
    outcome: Word<Outcome>,
    /// Status of the answer; absent when there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// Reason of a failure, up to 256 characters; absent when it was acked.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Delay until the next attempt that the endpoint asked for, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
    /// Reason why the message could not be settled; absent when it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    unsettled: Option<String>,
}

fn example() -> Value {
    json!({
        "id": ID_EXAMPLE, "attempt": 1, "at_ms": AT_MS_EXAMPLE, "took_ms": 12, "outcome": "failed",
        "status": 500, "error": "HTTP 500 Internal Server Error: no database",
    })
}

impl From<Attempt> for Push {
    fn from(attempt: Attempt) -> Push {
        let given = |text: Box<str>| Some(String::from(text)).filter(|text| !text.is_empty());
        Push {
            id: attempt.message.to_string(),
            attempt: attempt.attempt,
            at_ms: attempt.at_ms,
            took_ms: attempt.took_ms,
            outcome: Word(attempt.outcome),
            status: attempt.status,
            error: given(attempt.error),
            delay_ms: attempt.delay_ms,
            unsettled: given(attempt.unsettled),
        }
    }
}

impl Unary for List {
    type Answer = Listed;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Listed>, CallError> {
        let (namespace, queue) = (permit.namespace_id()?, permit.name());
        permit.node().queue(namespace, queue).await?;
        let most = self.limit.map_or(ATTEMPTS_MAX, |limit| limit.get() as usize);
        let pushes = permit.calls().pushes().log(namespace, queue, most);
        Ok(Listed { pushes: pushes.into_iter().map(Push::from).collect() }.into())
    }
}

impl Auditor for Access {
    fn paused<'a>(
        &'a self,
        node: &'a Node,
        namespace: NamespaceId,
        queue: &'a str,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        let names = node.namespace_names(&[namespace].into());
        let namespace = names.get(&namespace).cloned().unwrap_or_default();
        let target = format!("/v1/namespaces/{namespace}/queues/{queue}");
        Box::pin(async move { self.record_own(node, "push_gone", &target, "the endpoint answers 410").await })
    }
}
