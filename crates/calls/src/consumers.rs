//! Consumers of a namespace: list, show with what they hold, detach.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_engine::Error;
use sluice_engine::command::{DETACH_GRACE_MS, DETACH_GRACE_MS_MAX};
use sluice_engine::id::ConsumerId;
use sluice_engine::query::{ConsumerState, ConsumerView, HeldView, Holder as EngineHolder};

use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::fault::{Fault, Read};
use crate::hot::{AT_MS_EXAMPLE, ID_EXAMPLE};
use crate::permit::Permit;
use crate::value::{Nothing, PageSize, Shown, Whole, Within, Word, page_size, words};

words! {
    ConsumerState:
        "attached" = ConsumerState::Attached,
        "detached" = ConsumerState::Detached,
        "pulling" = ConsumerState::Pulling;
}

/// A consumer, and how much it holds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = example())]
pub struct Consumer {
    /// Its id, which is never given again.
    id: String,
    /// Its name, as it gave it; others may have the same one.
    name: String,
    /// `attached`: it gets messages; `detached`: it gets no more; `pulling`: it takes them by itself.
    state: Word<ConsumerState>,
    /// Names of its queues; absent when it pulls.
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<Vec<String>>,
    /// Messages that it may hold at a time; absent when it pulls.
    #[serde(skip_serializing_if = "Option::is_none")]
    credit: Option<u32>,
    /// Messages that it holds.
    in_flight: u32,
    /// Its lease, in milliseconds; absent: each queue's.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_ms: Option<u64>,
    /// Since when it is known, in milliseconds since the Unix epoch.
    since_at_ms: u64,
    /// When it was given what it holds longest, in milliseconds since the Unix epoch; absent when it holds
    /// nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_leased_at_ms: Option<u64>,
    /// A page of the messages that it holds, longest held first, when one consumer is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<Vec<Held>>,
}

fn example() -> Value {
    json!({
        "id": "12", "name": "mailer-1", "state": "attached", "queues": ["mail"], "credit": 100,
        "in_flight": 1, "since_at_ms": AT_MS_EXAMPLE, "oldest_leased_at_ms": AT_MS_EXAMPLE,
    })
}

/// A message that a consumer holds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Held {
    /// Id of the message.
    id: String,
    /// Name of its queue.
    queue: String,
    /// The attempt, counted from 1.
    attempt: u16,
    /// When it was delivered, in milliseconds since the Unix epoch.
    leased_at_ms: u64,
    /// When the lease ends, in milliseconds since the Unix epoch.
    lease_until_ms: u64,
}

/// The consumer that holds a message.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Holder {
    /// Its id.
    consumer: String,
    /// Its name; may be empty.
    name: String,
}

impl Whole for Consumer {
    const NAME: &'static str = "ConsumerShown";
    const FIELD: &'static str = "holds";

    fn example() -> Value {
        json!([{
            "id": ID_EXAMPLE, "queue": "mail", "attempt": 1, "leased_at_ms": AT_MS_EXAMPLE,
            "lease_until_ms": AT_MS_EXAMPLE + 30_000,
        }])
    }
}

impl From<&ConsumerView> for Consumer {
    fn from(consumer: &ConsumerView) -> Consumer {
        let attachable = consumer.state != ConsumerState::Pulling;
        Consumer {
            id: consumer.id.0.to_string(),
            name: consumer.name.clone(),
            state: Word(consumer.state),
            queues: attachable.then(|| consumer.queues.clone()),
            credit: attachable.then_some(consumer.credit),
            in_flight: consumer.in_flight,
            lease_ms: Some(consumer.lease_ms).filter(|lease_ms| *lease_ms > 0),
            since_at_ms: consumer.since_us / 1_000,
            oldest_leased_at_ms: consumer.oldest_lease_us.map(|at_us| at_us / 1_000),
            holds: None,
        }
    }
}

impl From<&HeldView> for Held {
    fn from(held: &HeldView) -> Held {
        Held {
            id: held.id.to_string(),
            queue: held.queue.clone(),
            attempt: held.attempt,
            leased_at_ms: held.leased_at_us / 1_000,
            lease_until_ms: held.lease_until_us / 1_000,
        }
    }
}

impl From<&EngineHolder> for Holder {
    fn from(holder: &EngineHolder) -> Holder {
        Holder { consumer: holder.consumer.0.to_string(), name: holder.name.to_string() }
    }
}

/// The consumers of a namespace, in the order in which they came.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ConsumerListRequest")]
pub struct List {
    /// `next` of the page before.
    after: Option<String>,
    /// Most consumers of the page.
    limit: Option<PageSize>,
}

/// A page of consumers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ConsumerList")]
#[schemars(example = json!({"consumers": [example()]}))]
pub struct Consumers {
    /// In the order in which they came.
    consumers: Vec<Consumer>,
    /// Consumer after which the next page begins; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Unary for List {
    type Answer = Consumers;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Consumers>, CallError> {
        let (size, after) = (page_size(self.limit), after(self.after.as_deref())?);
        // One more than asked for tells whether there is a next page.
        let mut consumers = permit.node().consumers(permit.namespace_id()?, after, size + 1).await?;
        let more = consumers.len() > size;
        consumers.truncate(size);
        let next = consumers.last().filter(|_| more).map(|last| last.id.0.to_string());
        Ok(Consumers { consumers: consumers.iter().map(Consumer::from).collect(), next }.into())
    }
}

fn after(text: Option<&str>) -> Read<Option<ConsumerId>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let number = text.parse().map(|number| Some(ConsumerId(number)));
    number.map_err(|_| Fault::invalid("not the `next` of a page").inside("after"))
}

/// A consumer with the messages that it has held for longest.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ConsumerShowRequest")]
pub struct Show {
    /// Most messages of `holds`.
    limit: Option<PageSize>,
}

impl Unary for Show {
    type Answer = Shown<Consumer>;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Shown<Consumer>>, CallError> {
        let (consumer, size) = (consumer_id(permit.name())?, page_size(self.limit));
        let (consumer, held) =
            permit.node().consumer_with_held(permit.namespace_id()?, consumer, size).await?;
        let holds = held.iter().map(Held::from).collect();
        Ok(Shown(Consumer { holds: Some(holds), ..Consumer::from(&consumer) }).into())
    }
}

/// A consumer to detach.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ConsumerDetachRequest")]
pub struct Detach {
    /// Time for which its receipts stay valid, in milliseconds; default 30,000.
    grace_ms: Option<Within<0, DETACH_GRACE_MS_MAX>>,
}

impl Unary for Detach {
    type Answer = Nothing;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Nothing>, CallError> {
        let grace_ms = self.grace_ms.map_or(DETACH_GRACE_MS, Within::get);
        permit.node().detach(permit.namespace_id()?, consumer_id(permit.name())?, grace_ms).await?;
        Ok(Nothing {}.into())
    }
}

fn consumer_id(name: &str) -> Result<ConsumerId, Error> {
    name.parse().map(ConsumerId).map_err(|_| Error::ConsumerNotFound { consumer: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;

    #[test]
    fn one_that_pulls_has_neither_queues_nor_credit() {
        let mut view = ConsumerView {
            id: ConsumerId(12),
            name: "mailer".into(),
            state: ConsumerState::Attached,
            queues: vec!["mail".into()],
            credit: 100,
            in_flight: 1,
            lease_ms: 0,
            since_us: 5_000,
            oldest_lease_us: Some(7_999),
        };
        let expected = json!({
            "id": "12", "name": "mailer", "state": "attached", "queues": ["mail"], "credit": 100,
            "in_flight": 1, "since_at_ms": 5, "oldest_leased_at_ms": 7,
        });
        assert_eq!(serde_json::to_value(Consumer::from(&view)).unwrap(), expected);
        (view.state, view.oldest_lease_us, view.lease_ms) = (ConsumerState::Pulling, None, 9);
        let expected = json!({
            "id": "12", "name": "mailer", "state": "pulling", "in_flight": 1, "lease_ms": 9, "since_at_ms": 5,
        });
        assert_eq!(serde_json::to_value(Consumer::from(&view)).unwrap(), expected);
    }

    #[tokio::test]
    async fn a_name_that_is_no_number_is_of_no_consumer() {
        let server = Open::new();
        let shown = Show::default().run(&server.permit(Operation::ConsumerShow, "x")).await;
        assert_eq!(shown.unwrap_err().code(), "consumer_not_found");
        let list = List { after: Some("x".into()), limit: None };
        let listed = list.run(&server.permit(Operation::ConsumerList, "")).await;
        assert_eq!(listed.unwrap_err().message(), "after: not the `next` of a page");
        let done = List::default().run(&server.permit(Operation::ConsumerList, "")).await.unwrap();
        assert_eq!(serde_json::to_string(&done.answer).unwrap(), r#"{"consumers":[]}"#);
    }
}
