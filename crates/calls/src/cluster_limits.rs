//! The limits of a cluster: those in force, and those that nodes have in their settings instead.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::{Error, Limits};

use crate::call::{Body, Done, Unary};
use crate::cluster::own_node;
use crate::error::CallError;
use crate::fault::Fault;
use crate::health::look_around;
use crate::permit::Permit;
use crate::roster::OwnNode;
use crate::view::{View, by_setting};

/// Limits in force in a cluster.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ClusterLimits", example = json!({
    "limits": by_setting(&Limits::default()), "differing": [{"node": 2, "limits": {"limits.queues": 500}}],
}))]
pub struct InForce {
    /// The limits by the names of their settings: sizes in bytes, times in milliseconds, and
    /// `limits.auto_create` as 1 or 0.
    limits: BTreeMap<String, u64>,
    /// Nodes that are reached and have other limits in their settings, which do not count.
    differing: Vec<NodeLimits>,
}

/// Limits of a node's settings that are not those in force.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ClusterNodeLimits")]
pub struct NodeLimits {
    /// Number of the node.
    node: u64,
    /// Its limits that differ, by the names of the settings.
    limits: BTreeMap<String, u64>,
}

/// The limits to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterLimitsRequest")]
pub struct Show {}

impl Unary for Show {
    type Answer = InForce;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<InForce>, CallError> {
        let own = own_node(permit)?;
        permit.node().catch_up(0).await?;
        Ok(shown(permit, own, &permit.node().limits()).await.into())
    }
}

async fn shown(permit: &Permit<'_>, own: &dyn OwnNode, limits: &Limits) -> InForce {
    let seen = look_around(permit, own).await;
    let views = seen.into_iter().filter_map(|seen| Some((seen.status.number, seen.view?)));
    let differing = views.map(|(node, view)| NodeLimits { node, limits: view.differing(limits) });
    InForce {
        limits: by_setting(limits),
        differing: differing.filter(|node| !node.limits.is_empty()).collect(),
    }
}

/// Limits to put into force.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "ClusterLimitsChange", example = json!({"limits": {"limits.payload": 2 << 20}}))]
pub struct Set {
    /// The limits to change, by the names of their settings and in the units of the answer.
    limits: BTreeMap<String, u64>,
    /// Number of the node whose settings give all other limits. Not named: those in force stay.
    from_node: Option<u64>,
}

impl Unary for Set {
    type Answer = InForce;
    const BODY: Body = Body::Small;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<InForce>, CallError> {
        let own = own_node(permit)?;
        if self.limits.is_empty() && self.from_node.is_none() {
            return Err(Fault::missing("limits", "the limits to change").into());
        }
        let mut named: BTreeMap<String, u64> = match self.from_node {
            Some(number) => settings_of(permit, own, number).await?,
            None => BTreeMap::new(),
        };
        named.extend(self.limits);
        let named = placed(named)?;
        let limits = permit.node().change_limits(move |in_force| with(&in_force, &named)).await?;
        Ok(shown(permit, own, &limits).await.into())
    }
}

/// The limits in the settings of a node.
async fn settings_of(
    permit: &Permit<'_>,
    own: &dyn OwnNode,
    number: u64,
) -> Result<BTreeMap<String, u64>, CallError> {
    if number == own.number() {
        return Ok(by_setting(permit.node().own_limits()));
    }
    if !own.addresses().contains_key(&number) {
        let reason = format!("the cluster has no node {number}: `sluice cluster members` shows them");
        return Err(Error::InvalidArgument { field: "from_node".to_owned(), reason }.into());
    }
    let view = View::ask(permit.node(), number).await.ok_or_else(|| {
        let message = format!(
            "node {number} is not reached, so that its settings are not known: start it, or ask another"
        );
        CallError::new("wrong_state", message)
    })?;
    Ok(view.limits)
}

/// The limits by their places among all.
fn placed(named: BTreeMap<String, u64>) -> Result<Vec<(usize, u64)>, Error> {
    let invalid = |field: &str, reason: String| Error::InvalidArgument { field: field.to_owned(), reason };
    let place = |(name, number): (String, u64)| {
        let place = Limits::SETTINGS.iter().position(|setting| *setting == name);
        let place = place.ok_or_else(|| {
            invalid("limits", format!("{name} is not a limit: use {}", Limits::SETTINGS.join(", ")))
        })?;
        let alone = [(place, number)];
        if with(&Limits::default(), &alone).numbers()[place] != number {
            return Err(invalid(&name, format!("{number} is too large")));
        }
        Ok((place, number))
    };
    named.into_iter().map(place).collect()
}

fn with(limits: &Limits, placed: &[(usize, u64)]) -> Limits {
    let mut numbers = limits.numbers();
    for (place, number) in placed {
        numbers[*place] = *number;
    }
    Limits::of_numbers(numbers)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;

    use super::*;
    use crate::operation::Operation;
    use crate::testing::{FirstNode, Open};

    async fn set(open: &Open, body: Value) -> Result<Value, (&'static str, String)> {
        let set: Set = serde_json::from_value(body).unwrap();
        let done = set.run(&open.permit(Operation::ClusterLimitsSet, "")).await;
        done.map(|done| serde_json::to_value(done.answer).unwrap())
            .map_err(|error| (error.code(), error.message().to_owned()))
    }

    #[tokio::test]
    async fn limits_are_changed_one_by_one_and_taken_from_settings() {
        let open = Open::in_cluster(Arc::new(FirstNode));
        let show = async || {
            let done = Show {}.run(&open.permit(Operation::ClusterLimits, "")).await.unwrap();
            serde_json::to_value(done.answer).unwrap()
        };
        let defaults = by_setting(&Limits::default());
        assert_eq!(show().await, json!({"limits": defaults, "differing": []}));
        let changed =
            set(&open, json!({"limits": {"limits.queues": 3, "limits.auto_create": 0}})).await.unwrap();
        assert_eq!(
            (&changed["limits"]["limits.queues"], &changed["limits"]["limits.auto_create"]),
            (&json!(3), &json!(0))
        );
        assert_eq!(changed["limits"]["limits.payload"], json!(1 << 20));
        let own = json!({"node": 1, "limits": {"limits.queues": 100_000, "limits.auto_create": 1}});
        assert_eq!(changed["differing"][0], own);
        // Named ones count more than those of the settings.
        let changed = set(&open, json!({"from_node": 1, "limits": {"limits.headers": 7}})).await.unwrap();
        assert_eq!(changed["differing"][0], json!({"node": 1, "limits": {"limits.headers": 64}}));
        assert_eq!(set(&open, json!({"from_node": 1})).await.unwrap()["differing"], json!([]));
    }

    #[tokio::test]
    async fn limits_that_cannot_be_are_refused() {
        let open = Open::in_cluster(Arc::new(FirstNode));
        for (body, code, told) in [
            (json!({}), "missing_field", "limits"),
            (
                json!({"limits": {"limits.rows": 1}}),
                "invalid_argument",
                "limits.rows is not a limit: use limits.payload,",
            ),
            (
                json!({"limits": {"limits.auto_create": 2}}),
                "invalid_argument",
                "limits.auto_create: 2 is too large",
            ),
            (json!({"limits": {"limits.queues": 1u64 << 32}}), "invalid_argument", "limits.queues"),
            (
                json!({"limits": {"limits.payload": 0}}),
                "invalid_argument",
                "limits.payload: 0 is out of range",
            ),
            (json!({"limits": {"limits.payload": 32 << 20}}), "invalid_argument", "limits.batch_bytes"),
            (json!({"from_node": 2}), "wrong_state", "node 2 is not reached"),
            (json!({"from_node": 9}), "invalid_argument", "the cluster has no node 9"),
        ] {
            let refused = set(&open, body.clone()).await.unwrap_err();
            assert!(refused.0 == code && refused.1.contains(told), "{body}: {refused:?}");
        }
        let alone = set(&Open::new(), json!({"from_node": 1})).await.unwrap_err();
        assert_eq!(alone.0, "no_cluster");
    }
}
