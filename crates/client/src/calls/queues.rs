//! Queues and dead letters.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{Client, encoded};
use crate::error::ClientError;
use crate::retry::Safety;
use crate::stored::StoredPage;
use crate::types::{Queue, QueueChange, parse};

/// Default settings of new queues whose names match a pattern.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QueueDefaults {
    /// The pattern, in which `*` stands for any number of characters.
    pub pattern: String,
    /// The settings that it names.
    pub settings: QueueChange,
}

/// Dead letters of a part of a queue, by the text of their last error.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DeadErrors {
    /// The texts, the most frequent first; at most 1,000 of them.
    pub errors: Vec<DeadError>,
    /// Dead letters whose last attempt gave no text, such as those whose lease ended.
    pub without_text: u64,
    /// Dead letters with texts beyond the 1,000.
    pub with_other_texts: u64,
    /// Dead letters whose text is damaged; 0 from a server that does not count them.
    #[serde(default)]
    pub with_damaged_text: u64,
    /// Dead letters that were looked at.
    pub scanned: u64,
    /// Where to go on; `None`: all were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The dead letters with one text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeadError {
    /// The text of their last error.
    pub error: String,
    /// Their number.
    pub messages: u64,
    /// Fingerprint of the text, which a search finds by `/error_fingerprint`; empty from an older server.
    #[serde(default)]
    pub fingerprint: String,
}

/// A push of a message to the endpoint of its queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Push {
    /// Id of the message.
    pub id: String,
    /// Number of the attempt, from 1.
    pub attempt: u16,
    /// When it began, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Time that it took, in milliseconds.
    pub took_ms: u64,
    /// `acked`, `failed`, `delayed` or `gone`.
    pub outcome: String,
    /// Status of the answer; `None`: there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Delay until the next attempt that the endpoint asked for, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Reason why the message could not be settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsettled: Option<String>,
}

#[derive(Deserialize)]
struct Pushes {
    pushes: Vec<Push>,
}

impl Client {
    /// The latest pushes of a queue to its endpoint, the newest first, at most `limit` and 100.
    pub async fn pushes(&self, queue: &str, limit: u32) -> Result<Vec<Push>, ClientError> {
        let path = self.path(&format!("/queues/{}/pushes?limit={limit}", encoded(queue)));
        let Pushes { pushes } = self.look(path).await?;
        Ok(pushes)
    }

    /// All queues whose names begin with `prefix`, by name.
    pub async fn queues(&self, prefix: &str) -> Result<Vec<Queue>, ClientError> {
        self.all_of("queues", prefix).await
    }

    /// One queue.
    pub async fn queue(&self, queue: &str) -> Result<Queue, ClientError> {
        self.look(self.path(&format!("/queues/{}", encoded(queue)))).await
    }

    /// Changes settings; with `create` makes a queue that does not exist. Tells whether it is new.
    pub async fn queue_set(
        &self,
        queue: &str,
        change: &QueueChange,
        create: bool,
    ) -> Result<(Queue, bool), ClientError> {
        let path = self.path(&format!("/queues/{}", encoded(queue)));
        let method = if create { Method::PUT } else { Method::PATCH };
        let answer = self.run(self.call(method, path, json!(change).to_string()), Safety::Repeatable).await?;
        Ok((parse(&answer.body)?, answer.status == 201))
    }

    /// Pauses the deliveries of a queue, or with `paused` false resumes them.
    pub async fn queue_pause(&self, queue: &str, paused: bool) -> Result<Queue, ClientError> {
        self.queue_mark(queue, if paused { "pause" } else { "resume" }).await
    }

    /// Closes a queue for sends, or with `closed` false opens it.
    pub async fn queue_close(&self, queue: &str, closed: bool) -> Result<Queue, ClientError> {
        self.queue_mark(queue, if closed { "close" } else { "open" }).await
    }

    async fn queue_mark(&self, queue: &str, verb: &str) -> Result<Queue, ClientError> {
        let path = self.path(&format!("/queues/{}/{verb}", encoded(queue)));
        let answer = self.run(self.call(Method::POST, path, String::new()), Safety::Repeatable).await?;
        parse(&answer.body)
    }

    /// Deletes the messages that wait in a queue; returns their number.
    pub async fn queue_purge(&self, queue: &str) -> Result<u64, ClientError> {
        self.counted(Method::POST, &format!("/queues/{}/purge", encoded(queue)), None, "purged").await
    }

    /// Deletes a queue and all its messages; returns their number.
    pub async fn queue_delete(&self, queue: &str) -> Result<u64, ClientError> {
        self.counted(Method::DELETE, &format!("/queues/{}", encoded(queue)), None, "deleted").await
    }

    /// A page of dead letters, with payload and history.
    pub async fn dead(
        &self,
        queue: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<StoredPage, ClientError> {
        let mut path = self.path(&format!("/queues/{}/dead?limit={limit}", encoded(queue)));
        if let Some(cursor) = cursor {
            path.push_str(&format!("&cursor={}", encoded(cursor)));
        }
        self.look(path).await
    }

    /// Counts dead letters by the text of their last error: a part of a long queue at a time, from `cursor`
    /// on, which is the `next` of the part before.
    pub async fn dead_errors(&self, queue: &str, cursor: Option<&str>) -> Result<DeadErrors, ClientError> {
        let mut path = self.path(&format!("/queues/{}/dead/errors", encoded(queue)));
        if let Some(cursor) = cursor {
            path.push_str(&format!("?cursor={}", encoded(cursor)));
        }
        self.look(path).await
    }

    /// Makes dead letters ready again; `None`: all. Returns their number.
    pub async fn dead_redrive(&self, queue: &str, ids: Option<&[String]>) -> Result<u64, ClientError> {
        let path = format!("/queues/{}/dead/redrive", encoded(queue));
        self.counted(Method::POST, &path, Some(chosen(ids)), "redriven").await
    }

    /// Makes all that are dead at this moment ready again, so many per second; tells how many.
    /// [`Queue::redriving`] tells how far it has come.
    pub async fn dead_redrive_rate(&self, queue: &str, per_second: u32) -> Result<u64, ClientError> {
        let path = format!("/queues/{}/dead/redrive", encoded(queue));
        let body = json!({ "all": true, "per_second": per_second });
        self.counted(Method::POST, &path, Some(body), "redriven").await
    }

    /// Ends a redrive at a rate; tells how many were left of it, which stay dead.
    pub async fn dead_redrive_end(&self, queue: &str) -> Result<u64, ClientError> {
        let path = format!("/queues/{}/dead/redrive", encoded(queue));
        self.counted(Method::DELETE, &path, None, "left").await
    }

    /// Default settings of new queues, by pattern.
    pub async fn queue_defaults(&self) -> Result<Vec<QueueDefaults>, ClientError> {
        #[derive(Deserialize)]
        struct Page {
            defaults: Vec<QueueDefaults>,
            next: Option<String>,
        }
        let mut all = Vec::new();
        let mut path = self.path("/queue-defaults");
        loop {
            let page: Page = self.look(path).await?;
            all.extend(page.defaults);
            let Some(next) = page.next else { return Ok(all) };
            path = self.path(&format!("/queue-defaults?after={}", encoded(&next)));
        }
    }

    /// Sets all that queues begin with which are made from here on with a name that matches. Tells whether it
    /// is new.
    pub async fn queue_defaults_set(
        &self,
        pattern: &str,
        settings: &QueueChange,
    ) -> Result<(QueueDefaults, bool), ClientError> {
        let path = self.path(&format!("/queue-defaults/{}", encoded(pattern)));
        let call = self.call(Method::PUT, path, json!(settings).to_string());
        let answer = self.run(call, Safety::Repeatable).await?;
        Ok((parse(&answer.body)?, answer.status == 201))
    }

    /// Forgets a pattern.
    pub async fn queue_defaults_delete(&self, pattern: &str) -> Result<(), ClientError> {
        let path = self.path(&format!("/queue-defaults/{}", encoded(pattern)));
        self.run(self.call(Method::DELETE, path, ""), Safety::Once).await.map(|_| ())
    }

    /// Deletes dead letters; `None`: all. Returns their number.
    pub async fn dead_delete(&self, queue: &str, ids: Option<&[String]>) -> Result<u64, ClientError> {
        let path = format!("/queues/{}/dead/delete", encoded(queue));
        self.counted(Method::POST, &path, Some(chosen(ids)), "deleted").await
    }

    /// Calls whose answer is a count. A repeat would count again, so they are tried again only when nothing
    /// was done.
    async fn counted(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        key: &str,
    ) -> Result<u64, ClientError> {
        let body = body.map(|b| b.to_string()).unwrap_or_default();
        let answer = self.run(self.call(method, self.path(path), body), Safety::Once).await?;
        let value: Value = parse(&answer.body)?;
        value[key].as_u64().ok_or_else(|| ClientError::Protocol {
            status: answer.status,
            reason: format!("expected a number {key:?}, got {value}"),
        })
    }
}

fn chosen(ids: Option<&[String]>) -> Value {
    match ids {
        Some(ids) => json!({ "ids": ids }),
        None => json!({ "all": true }),
    }
}
