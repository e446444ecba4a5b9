//! The time of a server for tests, which callers move.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_node::{AHEAD_MS_MAX, MovableTime};

use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::hot::AT_MS_EXAMPLE;
use crate::permit::Permit;
use crate::value::Within;

/// The time to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "TestTimeShowRequest")]
pub struct Show {}

/// The time of a server for tests.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = json!({"now_ms": AT_MS_EXAMPLE, "ahead_ms": 86_400_000}))]
pub struct TestTime {
    /// The time, in milliseconds since the Unix epoch.
    now_ms: u64,
    /// Time by which it was moved altogether, in milliseconds.
    ahead_ms: u64,
}

impl From<MovableTime<'_>> for TestTime {
    fn from(time: MovableTime<'_>) -> TestTime {
        TestTime { now_ms: time.now_ms(), ahead_ms: time.ahead_ms() }
    }
}

/// The time of the server, if it is one for tests.
///
/// # Errors
/// `no_test_server`.
fn movable_time<'p>(permit: &'p Permit<'_>) -> Result<MovableTime<'p>, CallError> {
    let refused =
        "this server is not one for tests, so nobody can move its time: start one with `sluice serve --test`";
    permit.node().movable_time().ok_or_else(|| CallError::new("no_test_server", refused))
}

impl Unary for Show {
    type Answer = TestTime;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<TestTime>, CallError> {
        Ok(TestTime::from(movable_time(permit)?).into())
    }
}

/// A move of the time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TestTimeAdvanceRequest", example = json!({"advance_ms": 86_400_000}))]
pub struct Advance {
    /// Time by which it moves forward, in milliseconds; 0: what is due now is done before the answer.
    advance_ms: Within<0, AHEAD_MS_MAX>,
}

impl Unary for Advance {
    type Answer = TestTime;
    const BODY: Body = Body::Small;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<TestTime>, CallError> {
        let (time, by_ms) = (movable_time(permit)?, self.advance_ms.get());
        time.advance(by_ms).await?;
        permit.calls().open_transactions().advance(Duration::from_millis(by_ms));
        Ok(TestTime::from(time).into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, to_value};
    use sluice_node::Node;

    use super::*;
    use crate::operation::Operation;
    use crate::testing::{Open, options};

    const HOUR_MS: u64 = 3_600_000;

    async fn advance(server: &Open, by_ms: u64) -> Result<Value, CallError> {
        let request: Advance = from_value(json!({"advance_ms": by_ms})).unwrap();
        let done = request.run(&server.permit(Operation::TestTimeAdvance, "")).await;
        done.map(|done| to_value(done.answer).unwrap())
    }

    #[tokio::test]
    async fn the_time_moves_forward_and_goes_on() {
        let server = Open::of(Node::start(sluice_node::Options { movable_time: true, ..options() }).unwrap());
        let first = advance(&server, 0).await.unwrap();
        let second = advance(&server, HOUR_MS).await.unwrap();
        let passed = |one: &Value, other: &Value| {
            other["now_ms"].as_u64().unwrap().checked_sub(one["now_ms"].as_u64().unwrap()).unwrap()
        };
        assert!((HOUR_MS..HOUR_MS + 60_000).contains(&passed(&first, &second)), "{first} {second}");
        assert_eq!((&first["ahead_ms"], &second["ahead_ms"]), (&json!(0), &json!(HOUR_MS)));
        let shown = Show {}.run(&server.permit(Operation::TestTimeShow, "")).await.unwrap();
        let shown = to_value(shown.answer).unwrap();
        assert!(passed(&second, &shown) < 60_000 && shown["ahead_ms"] == HOUR_MS, "{shown}");
    }

    #[tokio::test]
    async fn the_time_is_bounded_also_by_several_moves() {
        let server = Open::of(Node::start(sluice_node::Options { movable_time: true, ..options() }).unwrap());
        advance(&server, AHEAD_MS_MAX - 1).await.unwrap();
        let refused = advance(&server, 2).await.unwrap_err();
        assert_eq!(refused.code(), "invalid_argument");
        assert!(refused.message().contains("of which 1 are left; got 2"), "{}", refused.message());
        advance(&server, 1).await.unwrap();
        for wrong in [json!({}), json!({"advance_ms": AHEAD_MS_MAX + 1}), json!({"advance_ms": -1})] {
            assert!(from_value::<Advance>(wrong).is_err());
        }
    }

    #[tokio::test]
    async fn an_ordinary_server_moves_no_time() {
        let server = Open::new();
        let shown = Show {}.run(&server.permit(Operation::TestTimeShow, "")).await;
        for refused in [shown.map(drop), advance(&server, 1).await.map(drop)] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.code(), "no_test_server");
            assert!(refused.message().contains("sluice serve --test"), "{}", refused.message());
        }
    }
}
