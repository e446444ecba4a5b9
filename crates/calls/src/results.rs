//! The end of a message: wait for it, and show its result.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
pub use sluice_node::Awaited;

use crate::access::Right;
use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::hot::AT_MS_EXAMPLE;
use crate::hot::receive::WAIT_MS_MAX;
use crate::messages::{Progress, room_for};
use crate::payload::{Content, Octets, Text};
use crate::permit::Permit;
use crate::standing::Waited;
use crate::value::{Within, Word, words};

/// A message whose end is waited for.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ResultRequest")]
pub struct Show {
    /// Longest wait for its end, in milliseconds; default 0.
    wait_ms: Option<Within<0, WAIT_MS_MAX>>,
}

/// End of a message, if it has ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum End {
    /// Acked.
    Done,
    /// A dead letter.
    Dead,
    /// Not ended.
    #[default]
    Pending,
}

words! {
    End: "done" = End::Done, "dead" = End::Dead, "pending" = End::Pending;
}

/// The end of a message, or how far it is. Fields that do not apply are absent.
#[derive(Clone, Default, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Awaited")]
#[schemars(example = json!({
    "state": "done", "result": "42", "done_at_ms": AT_MS_EXAMPLE, "kept_until_ms": AT_MS_EXAMPLE + 60_000,
}))]
pub struct Outcome {
    /// `done`, `dead`, or `pending`: neither, when the time was over.
    state: Word<End>,
    /// Done: its result, if that is UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Text>,
    /// Done: its result as standard base64, if that is not UTF-8 text.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_base64: Option<Octets>,
    /// Media type of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_content_type: Option<Text>,
    /// Done: when it was acked, in milliseconds since the Unix epoch; absent when the message is gone
    /// already.
    #[serde(skip_serializing_if = "Option::is_none")]
    done_at_ms: Option<u64>,
    /// Done: until when it is kept at least, if that is known, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_until_ms: Option<u64>,
    /// Dead: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// Dead: since when, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason_at_ms: Option<u64>,
    /// Pending: how far its holder says that it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
}

impl From<Awaited> for Outcome {
    fn from(awaited: Awaited) -> Outcome {
        let ms = |at_us: u64| at_us / 1_000;
        match awaited {
            Awaited::Done { result, done_at_us, kept_until_us } => {
                let result = Content::of(result.as_ref());
                Outcome {
                    state: Word(End::Done),
                    result: result.text,
                    result_base64: result.octets,
                    result_content_type: result.content_type,
                    done_at_ms: done_at_us.map(ms),
                    kept_until_ms: kept_until_us.map(ms),
                    ..Outcome::default()
                }
            }
            Awaited::Dead { reason, at_us } => {
                Outcome { state: Word(End::Dead), reason, reason_at_ms: at_us.map(ms), ..Outcome::default() }
            }
            Awaited::Pending { progress, .. } => Outcome {
                state: Word(End::Pending),
                progress: progress.map(Progress::from),
                ..Outcome::default()
            },
        }
    }
}

impl Unary for Show {
    type Answer = Outcome;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Outcome>, CallError> {
        let awaited = wait(permit, self.wait_ms.map_or(0, Within::get)).await?;
        Ok(Outcome::from(awaited).into())
    }
}

/// Waits up to `wait_ms` milliseconds, at most [`WAIT_MS_MAX`], for the end of the message that the call
/// names; not longer than the server runs, and than the caller may have its result.
///
/// # Errors
/// `invalid_message_id`, `message_not_found`, `forbidden`, `unauthenticated`, `payload_damaged`, or
/// `overloaded`.
pub async fn wait(permit: &Permit<'_>, wait_ms: u64) -> Result<Awaited, CallError> {
    let (node, id) = (permit.node(), permit.message_id(permit.name())?);
    permit.allow_messages(Right::Result, std::iter::once(id)).await?;
    room_for(permit, 1)?;
    let wait = node.await_result(id, Duration::from_millis(wait_ms));
    if wait_ms == 0 {
        return Ok(wait.await?);
    }
    let standing = permit.standing(Right::Result, || Waited::Message);
    let awaited = tokio::select! {
        biased;
        denied = standing.lost() => return Err(denied.into()),
        awaited = wait => awaited?,
        () = permit.stopping() => node.await_result(id, Duration::ZERO).await?,
    };
    let caller = standing.check()?;
    if !caller.is_as(permit.caller()) {
        // Other rules count by now.
        permit.as_caller(&caller).allow_messages(Right::Result, std::iter::once(id)).await?;
    }
    Ok(awaited)
}

#[cfg(test)]
mod tests {
    use sluice_engine::query::State;

    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;

    fn json(awaited: Awaited) -> String {
        serde_json::to_string(&Outcome::from(awaited)).unwrap()
    }

    #[test]
    fn each_end_has_its_fields() {
        let done = Awaited::Done {
            result: Some(vec![0, 0, b'4', b'2'].into()),
            done_at_us: Some(5_000),
            kept_until_us: Some(9_999),
        };
        assert_eq!(json(done), r#"{"state":"done","result":"42","done_at_ms":5,"kept_until_ms":9}"#);
        let dead = Awaited::Dead { reason: Some("rejected"), at_us: Some(7_000) };
        assert_eq!(json(dead), r#"{"state":"dead","reason":"rejected","reason_at_ms":7}"#);
        let pending = Awaited::Pending { state: State::Ready, progress: None };
        assert_eq!(json(pending), r#"{"state":"pending"}"#);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_with_the_server() {
        let server = Open::new();
        let id = server.send("q", b"x").await.to_string();
        let permit = server.permit(Operation::ResultShow, &id);
        let (awaited, ()) = tokio::join!(wait(&permit, WAIT_MS_MAX), async { server.stop() });
        assert!(matches!(awaited.unwrap(), Awaited::Pending { state: State::Ready, .. }));
    }
}
