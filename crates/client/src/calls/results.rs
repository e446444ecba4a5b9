//! Calls that wait for results, and that report progress.

use std::borrow::Cow;
use std::time::Duration;

use http::Method;

use crate::client::{Client, encoded};
use crate::encode;
use crate::error::ClientError;
use crate::message::Report;
use crate::retry::Safety;
use crate::stored::{Awaited, bytes_of};
use crate::types::parse;

use super::settle::only;

/// Longest wait of one request.
const WAIT_MAX: Duration = Duration::from_secs(60);

impl Client {
    /// The outcome of a message, waiting up to `wait` for it to end. A wait of more than 60 s takes several
    /// requests.
    ///
    /// # Errors
    /// `message_not_found`: there is no such message, or its outcome is not kept.
    pub async fn result(&self, id: &str, wait: Duration) -> Result<Awaited, ClientError> {
        let until = tokio::time::Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let once = left.min(WAIT_MAX);
            let path =
                self.path(&format!("/messages/{}/result?wait_ms={}", encoded(id), encode::millis(once)));
            let mut call = self.call(Method::GET, path, "");
            call.timeout = call.timeout.saturating_add(once);
            let answer = self.run(call, Safety::Repeatable).await?;
            let awaited: Awaited = parse(&answer.body)?;
            if awaited.state != "pending" || left <= WAIT_MAX {
                return Ok(awaited);
            }
        }
    }

    /// Extends a lease, and stores the progress of the work and a checkpoint for the next attempt. A report
    /// with a cost is not repeated when its answer is lost: the server would add the cost once more.
    pub async fn report(
        &self,
        receipt: &str,
        lease: Option<Duration>,
        report: &Report<'_>,
    ) -> Result<(), ClientError> {
        let body = encode::report(receipt, lease, report);
        let safety = if report.add_cost > 0 { Safety::Once } else { Safety::Repeatable };
        only(self.many("/extend", body, 1, safety).await?)
    }
}

impl Awaited {
    /// The result's bytes; `None` when there is none.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] when its base64 cannot be decoded.
    pub fn result_bytes(&self) -> Result<Option<Cow<'_, [u8]>>, ClientError> {
        bytes_of(self.result.as_deref(), self.result_base64.as_deref())
    }
}
