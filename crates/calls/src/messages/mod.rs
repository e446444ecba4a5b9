//! Messages that are looked at without being taken: lists, searches, the next in line, one message, and dead
//! letters.

mod page;
mod search;
mod stored;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::query::State;

use crate::access::Right;
use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::permit::Permit;
use crate::value::{PageSize, Within, Word, cursor, page_size};
pub(crate) use page::room_for;
use page::{Shown, Wanted, page, shows_receipts};
pub(crate) use search::message_filter;
pub use search::{Found, Search};
pub use stored::{Attempt, Message, PastChange, Progress};

/// Maximum number of messages of a peek: 1 to 100; default 10.
type PeekSize = Within<1, 100>;
const PEEK_DEFAULT: u64 = 10;

/// The messages of a queue, by id.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "MessageListRequest")]
pub struct List {
    /// Only messages in this state.
    state: Option<Word<State>>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Most messages of the page.
    limit: Option<PageSize>,
    /// True: payloads, content types, headers, tags and histories are shown; default false.
    payload: bool,
}

/// The dead letters of a queue, by id.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DeadListRequest")]
pub struct DeadList {
    /// `next` of the page before.
    cursor: Option<String>,
    /// Most messages of the page.
    limit: Option<PageSize>,
    /// True: payloads, content types, headers, tags and histories are shown; default true.
    payload: Option<bool>,
}

/// A page of messages, which may be short, even empty, and have a next one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "MessageList")]
#[schemars(example = json!({"messages": [stored::example()], "next": "17"}))]
pub struct Messages {
    /// By id.
    messages: Vec<Message>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Unary for List {
    type Answer = Messages;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Messages>, CallError> {
        let wanted = Wanted {
            state: self.state.map(|Word(state)| state),
            cursor: cursor(self.cursor.as_deref())?,
            limit: page_size(self.limit),
            payload: self.payload,
        };
        Ok(page(permit, wanted).await?.into())
    }
}

impl Unary for DeadList {
    type Answer = Messages;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Messages>, CallError> {
        let wanted = Wanted {
            state: Some(State::Dead),
            cursor: cursor(self.cursor.as_deref())?,
            limit: page_size(self.limit),
            payload: self.payload.unwrap_or(true),
        };
        Ok(page(permit, wanted).await?.into())
    }
}

/// The messages of a queue that are next in line.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "PeekRequest")]
pub struct Peek {
    /// Maximum number of messages; default 10.
    limit: Option<PeekSize>,
}

/// The messages that are next in line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "PeekList")]
#[schemars(example = json!({"messages": [stored::example()], "truncated": false}))]
pub struct Peeked {
    /// The first in line comes first.
    messages: Vec<Message>,
    /// True when the page has fewer than requested because they are large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl Unary for Peek {
    type Answer = Peeked;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Peeked>, CallError> {
        let limit = self.limit.map_or(PEEK_DEFAULT, PeekSize::get) as usize;
        let (namespace, queue) = (permit.namespace_id()?, permit.name());
        let bytes_max = room_for(permit, limit)?;
        let (found, truncated) = permit.node().peek(namespace, queue, limit, bytes_max as u64).await?;
        let receipts = shows_receipts(permit, queue);
        let mut shown = Shown::new(bytes_max);
        let all = found.into_iter().all(|stored| shown.add(Message::of(stored, receipts)));
        Ok(Peeked { messages: shown.messages, truncated: truncated || !all }.into())
    }
}

/// A message to show with its history.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "MessageShowRequest")]
pub struct Show {
    /// True: payload, content type, headers, checkpoint and result are shown; default true.
    payload: Option<bool>,
}

impl Unary for Show {
    type Answer = Message;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Message>, CallError> {
        let id = permit.message_id(permit.name())?;
        permit.allow_messages(Right::Observe, std::iter::once(id)).await?;
        room_for(permit, 1)?;
        let stored = permit.node().message(id, self.payload.unwrap_or(true)).await?;
        let receipts = shows_receipts(permit, &stored.queue);
        Ok(Message::of(stored, receipts).into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json, to_value};

    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;
    use crate::value::Words;

    async fn list(server: &Open, request: Value) -> Value {
        let permit = server.permit(Operation::MessageList, "q");
        let done = from_value::<List>(request).unwrap().run(&permit).await.unwrap();
        to_value(&done.answer).unwrap()
    }

    fn payloads(page: &Value) -> Vec<&str> {
        let messages = page["messages"].as_array().unwrap();
        messages.iter().map(|message| message["payload"].as_str().unwrap()).collect()
    }

    #[test]
    fn the_words_are_those_of_the_engine() {
        assert_eq!(State::ALL.map(|state| (state, state.name())), State::WORDS);
    }

    #[test]
    fn the_schema_requires_the_fields_that_are_always_there() {
        let schema = schemars::schema_for!(Message);
        let required: Vec<&str> =
            schema.get("required").unwrap().as_array().unwrap().iter().flat_map(Value::as_str).collect();
        let always = [
            "id",
            "queue",
            "state",
            "priority",
            "attempts",
            "max_attempts",
            "deliveries",
            "sent_at_ms",
            "version",
            "backoff",
            "size_bytes",
            "history",
        ];
        assert_eq!(required, always);
        assert_eq!(schema.get("properties").unwrap()["cancelled"]["enum"][0], true);
    }

    #[tokio::test]
    async fn a_message_is_shown_with_its_payload_if_wanted() {
        let server = Open::new();
        let id = server.send("q", b"hello").await.to_string();
        let show = async |request: Value| {
            let permit = server.permit(Operation::MessageShow, &id);
            let done = from_value::<Show>(request).unwrap().run(&permit).await.unwrap();
            serde_json::to_string(&done.answer).unwrap()
        };
        let full = show(json!({})).await;
        assert!(
            full.starts_with(&format!(r#"{{"id":"{id}","queue":"q","state":"ready","priority":0,"#)),
            "{full}"
        );
        let end = r#""jitter_percent":10},"payload":"hello","size_bytes":7,"history":[]}"#;
        assert!(full.ends_with(end), "{full}");
        let end = r#""jitter_percent":10},"size_bytes":7,"history":[]}"#;
        let bare = show(json!({"payload": false})).await;
        assert!(bare.ends_with(end), "{bare}");
    }

    #[tokio::test]
    async fn pages_follow_each_other_and_end_when_their_memory_is_full() {
        let server = Open::new();
        for payload in ["a", "b", "c"] {
            server.send("q", payload.as_bytes()).await;
        }
        let page = list(&server, json!({"limit": 2, "payload": true})).await;
        assert_eq!(payloads(&page), ["a", "b"]);
        let rest = list(&server, json!({"cursor": page["next"], "payload": true})).await;
        assert_eq!((payloads(&rest), rest.get("next")), (vec!["c"], None));
        assert_eq!(list(&server, json!({"state": "dead"})).await, json!({"messages": []}));
        // A page holds 16 MiB, which the fields of the messages take a part of.
        let large = vec![b'x'; 1_000_000];
        for _ in 0..20 {
            server.send("large", &large).await;
        }
        let permit = server.permit(Operation::MessageList, "large");
        let request = List { payload: true, ..List::default() };
        let page = request.run(&permit).await.unwrap().answer;
        assert_eq!((page.messages.len(), page.next.is_some()), (16, true));
        let peeked = Peek { limit: Some(PeekSize::clamped(20)) }.run(&permit).await.unwrap().answer;
        assert_eq!((peeked.messages.len(), peeked.truncated), (16, true));
    }
}
