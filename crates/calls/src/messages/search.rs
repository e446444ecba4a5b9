//! Searches: the messages of a queue that match a filter.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::search::SearchKind;
use sluice_node::search::{Found as NodeFound, Hit, MessageFilter, Search as NodeSearch};

use super::Message;
use super::page::{FIELDS_BYTES, Shown, room_for, shows_receipts};
use super::stored::example;
use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::fault::{Fault, Read};
use crate::payload::JsonObject;
use crate::permit::Permit;
use crate::value::{PageSize, cursor, page_size};

/// Messages that are loaded at once with their contents and histories.
const SLICE: usize = 32;

/// A search for messages of a queue.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "MessageSearchRequest")]
#[schemars(example = json!({
    "where": {"/state": "dead", "/tags": {"contains": "vip"}, "/payload/total": {"ge": 100}}, "payload": true,
}))]
pub struct Search {
    /// Filter that the message matches, as one JSON object of its fields; default: all messages.
    r#where: Option<JsonObject>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Most messages of the page.
    limit: Option<PageSize>,
    /// True: payloads, content types, headers, tags and histories are shown; default false.
    payload: bool,
}

/// Messages that match.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "MessageSearchAnswer")]
#[schemars(example = json!({"messages": [example()], "scanned": 20_000, "total": 12_000_000, "next": "20000"}))]
pub struct Found {
    /// By id. There may be few of them, even none, and a next page.
    messages: Vec<Message>,
    /// Number of messages that were looked at.
    scanned: u64,
    /// Number of messages of the queue, in the state that the filter names, if it is one.
    total: u64,
    /// Place at which the next page begins; absent when all messages were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// Index of the queue that was used, `tags` or `errors`: `scanned` are those that it has found, and those
    /// that it does not know yet; absent when all messages were looked at one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<&'static str>,
}

/// The filter of messages that is given, else the one that all match.
pub(crate) fn message_filter(given: Option<&JsonObject>) -> Read<Arc<MessageFilter>> {
    let filter = given.map(|text| MessageFilter::parse(&text.0)).transpose();
    let filter = filter.map_err(|error| Box::<Fault>::from(error).inside("where"))?;
    Ok(Arc::new(filter.unwrap_or_default()))
}

impl Unary for Search {
    type Answer = Found;
    const BODY: Body = Body::Optional;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Found>, CallError> {
        let search = NodeSearch {
            namespace: permit.namespace_id()?,
            queue: permit.name().into(),
            filter: message_filter(self.r#where.as_ref())?,
            now_ms: permit.node().clock().now_ms(),
        };
        let (from, limit) = (cursor(self.cursor.as_deref())?, page_size(self.limit));
        let bytes_max = match self.payload {
            true => room_for(permit, limit)?,
            false => {
                permit.room().reserve(limit * FIELDS_BYTES)?;
                usize::MAX
            }
        };
        let found = permit.node().search(&search, from, limit).await?;
        let NodeFound { hits, mut scanned, total, mut next, index } = found;
        let mut shown = Shown::new(bytes_max);
        if let Some(cut) = show(permit, &search, &hits, self.payload, &mut shown).await? {
            (scanned, next) = (cut.scanned, Some(cut.view.id.sequence));
        }
        let next = next.map(|next| next.to_string());
        let index = index.map(SearchKind::name);
        Ok(Found { messages: shown.messages, scanned, total, next, index }.into())
    }
}

/// Shows what was found. Tells the last that has a place in the answer, if not all of it has.
async fn show<'h>(
    permit: &Permit<'_>,
    search: &NodeSearch,
    hits: &'h [Hit],
    payload: bool,
    shown: &mut Shown,
) -> Result<Option<&'h Hit>, CallError> {
    let receipts = shows_receipts(permit, permit.name());
    let mut rest = hits;
    let mut last = None;
    while !rest.is_empty() {
        // Large payloads are not even loaded when the answer has no room for them.
        let fit = if payload { fitting(rest, shown.bytes_left()) } else { rest.len() };
        if fit == 0 && last.is_some() {
            return Ok(last);
        }
        let (some, others) = rest.split_at(fit.clamp(1, SLICE).min(rest.len()));
        for stored in permit.node().found(search, some, payload).await? {
            let hit = some.iter().find(|hit| hit.view.id == stored.view.id);
            if !shown.add(Message::of(stored, receipts)) {
                return Ok(last);
            }
            last = hit;
        }
        last = some.last();
        rest = others;
    }
    Ok(None)
}

/// Number of messages whose payloads have at most so many bytes together.
fn fitting(hits: &[Hit], bytes_max: usize) -> usize {
    let mut bytes = 0;
    let fit = hits.iter().take_while(|hit| {
        bytes += hit.view.blob.len as usize;
        bytes <= bytes_max
    });
    fit.count()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, to_value};

    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;

    async fn search(server: &Open, request: Value) -> Result<Value, CallError> {
        let permit = server.permit(Operation::MessageSearch, "q");
        let done = from_value::<Search>(request).unwrap().run(&permit).await?;
        Ok(to_value(&done.answer).unwrap())
    }

    fn payloads(page: &Value) -> Vec<&str> {
        page["messages"].as_array().unwrap().iter().map(|one| one["payload"].as_str().unwrap()).collect()
    }

    #[tokio::test]
    async fn pages_follow_each_other_and_tell_how_far_they_are() {
        let server = Open::new();
        for n in 0..10 {
            server.send("q", format!("{{\"n\":{n}}}").as_bytes()).await;
        }
        let even = json!({"or": (0..5).map(|n| json!({"/payload/n": 2 * n})).collect::<Value>()});
        let page = async |cursor: Value| {
            let mut request = json!({"where": even.to_string(), "limit": 2, "payload": true});
            if cursor != Value::Null {
                request["cursor"] = cursor;
            }
            search(&server, request).await.unwrap()
        };
        let first = page(Value::Null).await;
        assert_eq!((payloads(&first), &first["scanned"]), (vec![r#"{"n":0}"#, r#"{"n":2}"#], &json!(3)));
        let second = page(first["next"].clone()).await;
        assert_eq!((payloads(&second), &second["scanned"]), (vec![r#"{"n":4}"#, r#"{"n":6}"#], &json!(4)));
        let third = page(second["next"].clone()).await;
        assert_eq!((payloads(&third), &third["scanned"]), (vec![r#"{"n":8}"#], &json!(3)));
        assert_eq!((&third["total"], third.get("next")), (&json!(10), None));
    }

    #[tokio::test]
    async fn a_page_ends_when_its_memory_is_full() {
        let server = Open::new();
        let large = vec![b'x'; 1_000_000];
        for _ in 0..20 {
            server.send("q", &large).await;
        }
        let page = search(&server, json!({"payload": true})).await.unwrap();
        assert_eq!((payloads(&page).len(), &page["scanned"]), (16, &json!(16)));
        let rest = search(&server, json!({"payload": true, "cursor": page["next"]})).await.unwrap();
        assert_eq!((payloads(&rest).len(), rest.get("next")), (4, None));
        let bare = search(&server, json!({})).await.unwrap();
        assert_eq!(bare["messages"].as_array().unwrap().len(), 20);
    }

    #[tokio::test]
    async fn faults_tell_their_place() {
        let server = Open::new();
        server.send("q", b"a").await;
        for (filter, field) in [
            (r#"{"/payload/a":{"$gt":1}}"#, "where./payload/a.$gt"),
            (r#"{"/sate":"dead"}"#, "where./sate"),
            (r#"{"/state":"deda"}"#, "where./state"),
        ] {
            let error = search(&server, json!({"where": filter})).await.unwrap_err();
            assert_eq!(error.code(), "invalid_argument", "{filter}");
            assert!(error.message().starts_with(&format!("{field}: ")), "{}", error.message());
        }
        let wrong = search(&server, json!({"cursor": "x"})).await.unwrap_err();
        assert!(wrong.message().starts_with("cursor: "), "{}", wrong.message());
        let permit = server.permit(Operation::MessageSearch, "none");
        assert_eq!(Search::default().run(&permit).await.unwrap_err().code(), "queue_not_found");
    }
}
