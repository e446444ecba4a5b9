//! Changing messages, one or many. A change is tried again only when it surely had no effect.

use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::changes::{Bulk, BulkFilter, Change, Note};
use crate::client::{Client, encoded};
use crate::error::ClientError;
use crate::retry::Safety;
use crate::types::parse;

/// The fields of a change and of who makes it.
fn fields(change: &Change, note: &Note) -> Map<String, Value> {
    let own = match change {
        Change::Move { to } => json!({ "to": to }),
        Change::Set(fields) => json!(fields),
        _ => json!({}),
    };
    let all = [own, json!(note)].into_iter().filter_map(|value| match value {
        Value::Object(fields) => Some(fields),
        _ => None,
    });
    all.flatten().collect()
}

impl Client {
    /// Changes a message; with `version` only if it still has that version.
    pub async fn message_change(
        &self,
        id: &str,
        change: &Change,
        note: &Note,
        version: Option<&str>,
    ) -> Result<(), ClientError> {
        let mut body = fields(change, note);
        if let Some(version) = version {
            body.insert("version".to_owned(), version.into());
        }
        let path = self.path(&format!("/messages/{}/{}", encoded(id), change.verb()));
        self.run(self.call(Method::POST, path, Value::Object(body).to_string()), Safety::Once).await?;
        Ok(())
    }

    /// Begins a change of all messages that match, at most `per_second` of them in a second (1 to 100,000);
    /// returns its id.
    pub async fn bulk_start(
        &self,
        change: &Change,
        filter: &BulkFilter,
        note: &Note,
        dry_run: bool,
        per_second: Option<u32>,
    ) -> Result<String, ClientError> {
        #[derive(Deserialize)]
        struct Started {
            bulk: String,
        }
        let mut body = fields(change, note);
        body.insert("action".to_owned(), change.verb().into());
        body.insert("filter".to_owned(), json!(filter));
        body.insert("dry_run".to_owned(), dry_run.into());
        if let Some(per_second) = per_second {
            body.insert("per_second".to_owned(), per_second.into());
        }
        let call = self.call(Method::POST, self.path("/bulk"), Value::Object(body).to_string());
        let started: Started = parse(&self.run(call, Safety::Once).await?.body)?;
        Ok(started.bulk)
    }

    /// State of a bulk change.
    pub async fn bulk(&self, id: &str) -> Result<Bulk, ClientError> {
        self.get(self.path(&format!("/bulk/{}", encoded(id)))).await
    }

    /// The bulks that the server remembers, oldest first.
    pub async fn bulks(&self) -> Result<Vec<Bulk>, ClientError> {
        #[derive(Deserialize)]
        struct List {
            bulks: Vec<Bulk>,
        }
        let list: List = self.get(self.path("/bulk")).await?;
        Ok(list.bulks)
    }

    /// Cancels a bulk change; messages that it has changed stay changed.
    pub async fn bulk_cancel(&self, id: &str) -> Result<Bulk, ClientError> {
        let call = self.call(Method::DELETE, self.path(&format!("/bulk/{}", encoded(id))), "");
        parse(&self.run(call, Safety::Repeatable).await?.body)
    }
}
