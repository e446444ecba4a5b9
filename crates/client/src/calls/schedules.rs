//! Schedules.

use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::client::{Client, encoded};
use crate::encode;
use crate::error::ClientError;
use crate::retry::Safety;
use crate::schedules::{Schedule, ScheduleSettings, Triggered};
use crate::types::parse;

impl Client {
    /// All schedules of the namespace, by name.
    pub async fn schedules(&self) -> Result<Vec<Schedule>, ClientError> {
        self.all_of("schedules", "").await
    }

    /// One schedule, with what it sends.
    pub async fn schedule(&self, schedule: &str) -> Result<Schedule, ClientError> {
        self.look(self.path(&format!("/schedules/{}", encoded(schedule)))).await
    }

    /// Creates a schedule, or replaces what it does. Tells whether it is new.
    pub async fn schedule_set(
        &self,
        schedule: &str,
        settings: &ScheduleSettings<'_>,
    ) -> Result<(Schedule, bool), ClientError> {
        let mut fields = json!({"queue": settings.queue});
        for (name, text) in
            [("cron", &settings.cron), ("time_zone", &settings.time_zone), ("missed", &settings.missed)]
        {
            if let Some(text) = text {
                fields[name] = json!(text);
            }
        }
        if let Some(every_ms) = settings.every_ms {
            fields["every_ms"] = json!(every_ms);
        }
        let mut body = fields.to_string();
        body.pop();
        body.push_str(",\"message\":");
        body.push_str(&encode::send(std::slice::from_ref(&settings.message)));
        body.push('}');
        let path = self.path(&format!("/schedules/{}", encoded(schedule)));
        let answer = self.run(self.call(Method::PUT, path, body), Safety::Repeatable).await?;
        Ok((parse(&answer.body)?, answer.status == 201))
    }

    /// Deletes a schedule; what it has sent stays.
    pub async fn schedule_delete(&self, schedule: &str) -> Result<(), ClientError> {
        let path = self.path(&format!("/schedules/{}", encoded(schedule)));
        self.run(self.call(Method::DELETE, path, ""), Safety::Once).await.map(|_| ())
    }

    /// Pauses a schedule, whose instants go by then, or resumes it with the next one.
    pub async fn schedule_pause(&self, schedule: &str, paused: bool) -> Result<Schedule, ClientError> {
        let verb = if paused { "pause" } else { "resume" };
        let path = self.path(&format!("/schedules/{}/{verb}", encoded(schedule)));
        let answer = self.run(self.call(Method::POST, path, ""), Safety::Repeatable).await?;
        parse(&answer.body)
    }

    /// Sends a schedule's message now; its instants stay as they are. Sends nothing where a message with its
    /// unique key is there.
    pub async fn schedule_trigger(&self, schedule: &str) -> Result<Triggered, ClientError> {
        let path = self.path(&format!("/schedules/{}/trigger", encoded(schedule)));
        let answer = self.run(self.call(Method::POST, path, ""), Safety::Once).await?;
        parse(&answer.body)
    }

    /// The next instants of a schedule, in milliseconds since the Unix epoch; at most 100. None while it is
    /// paused.
    pub async fn schedule_next(&self, schedule: &str, count: u32) -> Result<Vec<u64>, ClientError> {
        #[derive(Deserialize)]
        struct Next {
            next_at_ms: Vec<u64>,
        }
        let path = self.path(&format!("/schedules/{}/next?count={count}", encoded(schedule)));
        self.look::<Next>(path).await.map(|next| next.next_at_ms)
    }
}
