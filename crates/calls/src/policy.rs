//! The stored policy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::access::{PolicyChange, StoredPolicy};
use crate::call::{Body, Done, How, Unary};
use crate::error::CallError;
use crate::fault::Fault;
use crate::hot::AT_MS_EXAMPLE;
use crate::permit::Permit;

/// A policy for examples.
const EXAMPLE: &str = "[[rule]]\nname = \"billing\"\nidentities = [\"billing-*\"]\nrole = \"consumer\"\n";

/// The stored policy.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = example())]
pub struct Policy {
    /// Its text, as in a policy file; not in answers to changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// Its version: no other policy has the same.
    version: String,
    /// Time at which it was set, in milliseconds since the Unix epoch.
    set_at_ms: u64,
    /// The identity that has set it.
    set_by: String,
}

fn example() -> Value {
    let version = "00000081k7pvm120000g";
    json!({"policy": EXAMPLE, "version": version, "set_at_ms": AT_MS_EXAMPLE, "set_by": "ops"})
}

impl From<&StoredPolicy> for Policy {
    fn from(stored: &StoredPolicy) -> Policy {
        Policy {
            policy: None,
            version: stored.version.clone(),
            set_at_ms: stored.set_at_ms,
            set_by: stored.set_by.clone(),
        }
    }
}

/// The policy to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "PolicyShowRequest")]
pub struct Show {}

impl Unary for Show {
    type Answer = Policy;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Policy>, CallError> {
        let stored = permit.calls().access().policy(permit.node()).await?;
        Ok(Policy { policy: Some(stored.text.clone()), ..Policy::from(&stored) }.into())
    }
}

/// A policy to store.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "PolicyPutRequest", example = json!({"policy": EXAMPLE}))]
pub struct Put {
    /// Its text, as in a policy file; required.
    policy: Option<String>,
    /// Version of the policy that it replaces, empty for none: if another one is stored, nothing changes.
    version: Option<String>,
}

impl Unary for Put {
    type Answer = Policy;
    const HOW: &'static [How] = &[How::Created, How::Done];
    const BODY: Body = Body::Policy;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Policy>, CallError> {
        let missing = || Fault::missing("policy", "the text of a policy file, in TOML");
        let text = self.policy.as_deref().ok_or_else(missing)?;
        let change = change(permit, self.version.as_deref());
        let access = permit.calls().access();
        let (stored, is_first) = access.policy_set(permit.node(), change, text).await?;
        access.spread(permit.node()).await;
        let how = if is_first { How::Created } else { How::Done };
        Ok(Done::named(Policy::from(&*stored), how, stored.version.clone()))
    }
}

/// The stored policy to remove.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "PolicyDeleteRequest")]
pub struct Delete {
    /// Version of the policy that is to be removed: if another one is stored, nothing changes.
    version: Option<String>,
}

impl Unary for Delete {
    type Answer = Policy;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Policy>, CallError> {
        let change = change(permit, self.version.as_deref());
        let access = permit.calls().access();
        let removed = access.policy_remove(permit.node(), change).await?;
        access.spread(permit.node()).await;
        Ok(Policy::from(&*removed).into())
    }
}

fn change<'c>(permit: &Permit<'c>, replaces: Option<&'c str>) -> PolicyChange<'c> {
    PolicyChange { peer: permit.peer(), caller: permit.caller(), replaces }
}
