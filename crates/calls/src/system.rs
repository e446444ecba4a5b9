//! Lists in namespace `$sys`, which the server keeps for itself: each value is a held message of a queue, its
//! payload JSON, with tags. So it is in the journal, survives a restart, and is in every backup.

use serde_json::Value;
use sluice_engine::blob::MessageBlob;
use sluice_engine::change::{Change, ChangeAction, NewFields};
use sluice_engine::command::{Send, SendItem};
use sluice_engine::item::SendOptions;
use sluice_engine::query::{Counters, State};
use sluice_engine::{Error, MessageId, NamespaceId, QueueId};
use sluice_node::Node;
use sluice_node::api::Stored;

/// Values that one look reads.
const PAGE: usize = 200;

/// A list of values, by the name of its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemList(pub(crate) &'static str);

/// A value of a list.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: MessageId,
    /// The value; `None`: it or its tags are damaged, or released by the others and not here yet.
    pub(crate) value: Option<Value>,
    pub(crate) tags: Vec<String>,
}

/// State of a list: it differs when values were added or taken away since.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Version(Option<(QueueId, Counters)>);

/// The key under which a value is added at most once. An empty one is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OnceKey<'a> {
    pub(crate) key: &'a [u8],
    /// Digest of the value: another value under the same key is refused.
    pub(crate) digest: u64,
}

impl SystemList {
    /// All values, the oldest first.
    ///
    /// # Errors
    /// `overloaded`, `shutting_down`; in a cluster `not_leader`, `no_leader`.
    pub(crate) async fn all(self, node: &Node) -> Result<Vec<Entry>, Error> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page =
                match node.messages(NamespaceId::SYS, self.0, Some(State::Held), cursor, PAGE, true).await {
                    Err(Error::QueueNotFound { .. }) => return Ok(all),
                    page => page?,
                };
            all.extend(page.items.iter().map(Entry::read));
            cursor = page.next;
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    /// The state of the list.
    ///
    /// # Errors
    /// As [`SystemList::all`].
    pub(crate) async fn version(self, node: &Node) -> Result<Version, Error> {
        match node.queue(NamespaceId::SYS, self.0).await {
            Ok(view) => Ok(Version(Some((view.id, view.counters)))),
            Err(Error::QueueNotFound { .. }) => Ok(Version(None)),
            Err(error) => Err(error),
        }
    }

    /// Adds a value, and returns its id.
    ///
    /// # Errors
    /// What the engine says: `idempotency_mismatch` for another value under the same key.
    pub(crate) async fn add(self, node: &Node, value: &Value, once: OnceKey<'_>) -> Result<MessageId, Error> {
        let payload = value.to_string();
        let options = SendOptions { hold: true, ..SendOptions::default() };
        let item = SendItem {
            payload: payload.as_bytes(),
            content_type: "application/json",
            options: Some(&options),
            ..SendItem::default()
        };
        let send = Send {
            namespace: NamespaceId::SYS,
            queue: self.0,
            idempotency_key: once.key,
            request_digest: once.digest,
            items: &[item],
        };
        node.send(&send).await.map(|sent| sent.first)
    }
}

impl Entry {
    fn read(stored: &Stored) -> Entry {
        let value = |blob: &[u8]| serde_json::from_slice(MessageBlob::parse(blob)?.payload).ok();
        let tags = stored.tags.as_deref().and_then(MessageBlob::parse);
        let has_tags = stored.view.tags.is_none() || tags.is_some();
        Entry {
            id: stored.view.id,
            value: stored.blob.as_deref().and_then(value).filter(|_| has_tags),
            tags: tags.map(|tags| tags.tags().map(str::to_owned).collect()).unwrap_or_default(),
        }
    }

    /// Takes the value away, unless another node has done so already.
    ///
    /// # Errors
    /// What the engine says.
    pub(crate) async fn remove(&self, node: &Node) -> Result<(), Error> {
        match self.change(node, ChangeAction::Cancel).await {
            Err(Error::MessageNotFound { .. }) => Ok(()),
            removed => removed,
        }
    }

    /// Replaces all tags.
    ///
    /// # Errors
    /// What the engine says.
    pub(crate) async fn set_tags(&self, node: &Node, tags: &[&str]) -> Result<(), Error> {
        let fields = NewFields { tags: Some(tags), ..NewFields::default() };
        self.change(node, ChangeAction::Set(fields)).await
    }

    async fn change(&self, node: &Node, action: ChangeAction<'_>) -> Result<(), Error> {
        let items = [(self.id, 0)];
        let change = Change { namespace: NamespaceId::SYS, items: &items, action, by: "", why: "" };
        node.change(&change).await?.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn a_value_that_two_take_away_is_gone() {
        let (node, list) = (testing::node(), SystemList("values"));
        for value in [1, 2] {
            list.add(&node, &json!(value), OnceKey::default()).await.unwrap();
        }
        let seen = list.all(&node).await.unwrap();
        seen[0].remove(&node).await.unwrap();
        seen[0].remove(&node).await.unwrap();
        let left: Vec<_> = list.all(&node).await.unwrap().into_iter().map(|entry| entry.value).collect();
        assert_eq!(left, [Some(json!(2))]);
    }
}
