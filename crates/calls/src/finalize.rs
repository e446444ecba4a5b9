//! A new behaviour version comes into force.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::{BEHAVIOUR_OLDEST, BEHAVIOUR_VERSION};

use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::health::{Seen, look_around};
use crate::permit::Permit;

/// The newest behaviour version to put into force.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterFinalizeRequest")]
pub struct Finalize {}

/// Behaviour versions before and after.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ClusterFinalized", example = json!({
    "behaviour": BEHAVIOUR_VERSION, "former": BEHAVIOUR_OLDEST,
}))]
pub struct Finalized {
    /// The version in force.
    behaviour: u16,
    /// The version that was in force before: the same when there was nothing to do.
    former: u16,
}

impl Unary for Finalize {
    type Answer = Finalized;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Finalized>, CallError> {
        if let Some(clustered) = permit.calls().clustered() {
            check_all_know(&look_around(permit, &*clustered.own).await)?;
        }
        let node = permit.node();
        let former = node.behaviours().await?;
        // Shard 0 first: nodes tell each other its version.
        for shard in 0..former.len() as u32 {
            node.raise(shard, BEHAVIOUR_VERSION).await?;
        }
        let former = former.into_iter().min().unwrap_or(BEHAVIOUR_VERSION);
        Ok(Finalized { behaviour: BEHAVIOUR_VERSION, former }.into())
    }
}

/// Checks that each node is reached, and that the newest version which its program knows is that of this one.
fn check_all_know(seen: &[Seen]) -> Result<(), CallError> {
    let refused = |message: String| Err(CallError::new("not_finalized", message));
    for Seen { status, view } in seen {
        let number = status.number;
        let Some(view) = view else {
            return refused(format!(
                "node {number} is not reached, so that nobody knows whether its program knows version \
                 {BEHAVIOUR_VERSION}: start it, or remove it"
            ));
        };
        if view.newest_behaviour < BEHAVIOUR_VERSION {
            return refused(format!(
                "the program of node {number} does not know version {BEHAVIOUR_VERSION}: upgrade it first"
            ));
        }
        if view.newest_behaviour > BEHAVIOUR_VERSION {
            return refused(format!(
                "the program of node {number} is newer than that of this node, and knows version {}: upgrade this \
                 one first",
                view.newest_behaviour
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::NodeStatus;
    use crate::operation::Operation;
    use crate::testing::Open;
    use crate::view::View;

    #[tokio::test]
    async fn a_new_server_alone_has_the_newest_version_in_force() {
        let open = Open::new();
        let done = Finalize {}.run(&open.permit(Operation::ClusterFinalize, "")).await.unwrap().answer;
        assert_eq!((done.behaviour, done.former), (BEHAVIOUR_VERSION, BEHAVIOUR_VERSION));
    }

    #[test]
    fn a_node_that_is_not_reached_or_older_or_newer_is_named() {
        let seen = |newest: Option<u16>| {
            let view = newest.map(|newest_behaviour| View { newest_behaviour, ..View::default() });
            Seen { status: NodeStatus::of(3), view }
        };
        let told = |newest| {
            let told = check_all_know(&[seen(Some(BEHAVIOUR_VERSION)), seen(newest)]);
            told.map_err(|error| error.message().to_owned())
        };
        assert_eq!(told(Some(BEHAVIOUR_VERSION)), Ok(()));
        let refused = [None, Some(0), Some(BEHAVIOUR_VERSION + 1)].map(|newest| told(newest).unwrap_err());
        let expected = ["node 3 is not reached", "upgrade it first", "upgrade this one first"];
        for (refused, expected) in refused.iter().zip(expected) {
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
