//! The policy in namespace `$sys`: of the list `policy` the newest value counts, on every node of a cluster.

use std::sync::Arc;

use serde_json::{Value, json};
use sluice_engine::Error;
use sluice_node::Node;

use super::identity::{Caller, Target};
use super::peer::Peer;
use super::policy::Policy;
use super::right::Right;
use super::store::{AccessError, admin_needed};
use super::{Access, STORED_COUNTS, cannot_be_used};
use crate::system::{Entry, OnceKey, SystemList};

const POLICY: SystemList = SystemList("policy");

/// A policy that is stored, and in force instead of that of the file.
#[derive(Clone, Debug)]
pub struct StoredPolicy {
    /// Its text, as in a policy file.
    pub text: String,
    /// Its version: no other policy has the same.
    pub version: String,
    /// Time at which it was set, in milliseconds since the Unix epoch.
    pub set_at_ms: u64,
    /// Name of the caller that set it.
    pub set_by: String,
    pub(super) policy: Arc<Policy>,
}

/// A change of the stored policy.
#[derive(Clone, Copy, Debug)]
pub struct PolicyChange<'c> {
    /// The connection over which it is asked for.
    pub peer: &'c Peer,
    /// The caller, who has to be an administrator after it, too.
    pub caller: &'c Caller,
    /// Version of the policy that is to be replaced, empty: none is stored; `None`: whatever it is.
    pub replaces: Option<&'c str>,
}

impl Access {
    /// Reads the policy that is stored.
    ///
    /// # Errors
    /// `overloaded`, `shutting_down`; `internal`: it cannot be read. The policy in force stays.
    pub async fn load_policy(&self, node: &Node) -> Result<(), Error> {
        let stored = POLICY.all(node).await?.last().map(read).transpose()?;
        self.adopt(stored.map(Arc::new));
        Ok(())
    }

    /// Reads the policy again if it was set or removed through another node of the cluster.
    ///
    /// # Errors
    /// `overloaded`, `shutting_down`. One that cannot be read is logged, once.
    pub async fn refresh_policy(&self, node: &Node) -> Result<(), Error> {
        let mut seen = self.shared.policy_changes.lock().await;
        let version = POLICY.version(node).await?;
        if *seen == version {
            return Ok(());
        }
        match self.load_policy(node).await {
            Err(error @ Error::Internal { .. }) => {
                tracing::error!("the old policy stays in force: {error}");
            }
            read => read?,
        }
        *seen = version;
        Ok(())
    }

    /// The stored policy.
    ///
    /// # Errors
    /// `policy_not_found`; those of [`Access::load_policy`].
    pub async fn policy(&self, node: &Node) -> Result<StoredPolicy, AccessError> {
        Ok(read(POLICY.all(node).await?.last().ok_or_else(none_stored)?)?)
    }

    /// Stores a policy, durably, in place of the one that is stored, and puts it into force. Tells whether it
    /// is the first. One that has the same text stays as it is.
    ///
    /// # Errors
    /// `invalid_argument` with all mistakes of the text; `version_mismatch`; `admin_needed`: by this policy
    /// the caller would be no administrator; what the engine says.
    pub async fn policy_set(
        &self,
        node: &Node,
        change: PolicyChange<'_>,
        text: &str,
    ) -> Result<(Arc<StoredPolicy>, bool), AccessError> {
        let policy = Policy::parse(text).map_err(|mistakes| invalid(cannot_be_used(&mistakes)))?;
        let _turn = self.shared.policy_changes.lock().await;
        let entries = POLICY.all(node).await?;
        let former = self.expect_former(&entries, change.replaces, Some(text))?;
        if let Some(former) = former.as_ref().filter(|former| former.text == text) {
            return Ok((Arc::clone(former), false));
        }
        self.rules().1.policy.check_next(&policy).map_err(invalid)?;
        self.check_admin(&change, &policy)?;
        let set_at_ms = node.clock().now_ms();
        let set_by = change.caller.name().to_owned();
        let value = json!({"text": text, "set_at_ms": set_at_ms, "set_by": set_by});
        let id = POLICY.add(node, &value, OnceKey::default()).await?;
        let (text, version, policy) = (text.to_owned(), id.to_string(), Arc::new(policy));
        let stored = Arc::new(StoredPolicy { text, version, set_at_ms, set_by, policy });
        self.adopt(Some(Arc::clone(&stored)));
        for entry in &entries {
            // One that stays counts no more, and is removed with the next change.
            if let Err(error) = entry.remove(node).await {
                tracing::debug!("a former policy could not be removed yet: {error}");
            }
        }
        Ok((stored, entries.is_empty()))
    }

    /// Removes the stored policy, and returns it: that of each node's file is in force again.
    ///
    /// # Errors
    /// `policy_not_found`, `version_mismatch`; `wrong_state`: revoked certificates would count again;
    /// `admin_needed`: by the file of this node the caller would be no administrator; what the engine says.
    pub async fn policy_remove(
        &self,
        node: &Node,
        change: PolicyChange<'_>,
    ) -> Result<Arc<StoredPolicy>, AccessError> {
        let _turn = self.shared.policy_changes.lock().await;
        let entries = POLICY.all(node).await?;
        let former = Arc::new(read(entries.last().ok_or_else(none_stored)?)?);
        self.expect_former(&entries, change.replaces, None)?;
        let (_, rules) = self.rules();
        former.policy.check_next(&rules.file).map_err(|_| still_revoked())?;
        self.check_admin(&change, &rules.file)?;
        for entry in &entries {
            entry.remove(node).await?;
        }
        self.adopt(None);
        Ok(former)
    }

    /// Fingerprint of the policy of this node's file, empty without one; `None`: another one is stored.
    pub(crate) fn file_policy(&self) -> Option<String> {
        let (_, rules) = self.rules();
        rules.stored.is_none().then(|| rules.file.fingerprint().to_owned())
    }

    /// The policy that a change replaces, which is in force on this node from here on; `None`: none is
    /// stored, or it cannot be read. `text`: that of the one in its place; a repeated change finds it there.
    fn expect_former(
        &self,
        entries: &[Entry],
        replaces: Option<&str>,
        text: Option<&str>,
    ) -> Result<Option<Arc<StoredPolicy>>, AccessError> {
        let former = entries.last().and_then(|newest| read(newest).ok()).map(Arc::new);
        let is_repeated = former.as_ref().is_some_and(|former| Some(&*former.text) == text);
        let version = entries.last().map_or_else(String::new, |newest| newest.id.to_string());
        if let Some(replaces) = replaces.filter(|replaces| *replaces != version && !is_repeated) {
            let replaces: String = replaces.chars().take(64).collect();
            let now = match &former {
                Some(former) => format!("it has the version {version}, and {:?} has set it", former.set_by),
                None => "none is stored".to_owned(),
            };
            let message = format!("the policy is not {replaces:?} any more: {now}. Look at it again");
            return Err(AccessError::Own("version_mismatch", message));
        }
        if former.is_some() {
            self.adopt(former.clone());
        }
        Ok(former)
    }

    /// Checks that who asks for a change can take it back.
    fn check_admin(&self, change: &PolicyChange<'_>, policy: &Policy) -> Result<(), AccessError> {
        let PolicyChange { peer, caller, .. } = *change;
        if !self.asks() {
            return match policy.has_rules() {
                true => {
                    Err(admin_needed("with these rules all callers must authenticate, and there is no token"))
                }
                false => Ok(()),
            };
        }
        let after = peer.caller_by(policy, caller);
        let may = after
            .and_then(|caller| caller.may(Right::Admin, Target::Server).map_err(|denied| denied.message));
        may.map_err(|reason| {
            let message = format!(
                "by this policy you could not take it back: {reason}. Let an administrator by scope do it \
                 (`--scope '*=admin'`), or add a rule for {:?} with role \"admin\" and namespaces [\"*\"]",
                caller.name()
            );
            AccessError::Own("admin_needed", message)
        })
    }

    /// Puts the stored policy into force, or that of the file where none is stored.
    fn adopt(&self, stored: Option<Arc<StoredPolicy>>) {
        let version = |stored: &Option<Arc<StoredPolicy>>| stored.as_ref().map(|it| it.version.clone());
        let (_, rules) = self.rules();
        if version(&rules.stored) == version(&stored) {
            return;
        }
        let is_first = rules.stored.is_none();
        self.replace(|rules| rules.stored = stored);
        if let Some(path) = self.shared.options.policy.as_ref().filter(|_| is_first) {
            tracing::warn!("the policy file {} is not used: {STORED_COUNTS}", path.display());
        }
    }
}

fn invalid(reason: String) -> AccessError {
    Error::InvalidArgument { field: "policy".to_owned(), reason }.into()
}

fn still_revoked() -> AccessError {
    let message = "the stored policy revokes certificates, and the policy file of this node has no [revoked], so that \
                   they would count again: write them into the file, or set a policy with serials = [] first";
    AccessError::Own("wrong_state", message.to_owned())
}

fn none_stored() -> AccessError {
    let message = "no policy is stored: each server uses the policy file of its settings, if it has one; \
                   `sluice policy set FILE` stores one";
    AccessError::Own("policy_not_found", message.to_owned())
}

fn read(entry: &Entry) -> Result<StoredPolicy, Error> {
    let failed = |reason: String| Error::Internal { reason: format!("the stored policy {reason}") };
    let fields = |value: &Value| {
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        Some((text("text")?, text("set_by")?, value.get("set_at_ms")?.as_u64()?))
    };
    let found = entry.value.as_ref().and_then(fields);
    let (text, set_by, set_at_ms) =
        found.ok_or_else(|| failed(format!("in message {} is damaged", entry.id)))?;
    let policy = Policy::parse(&text).map_err(|mistakes| failed(cannot_be_used(&mistakes)))?;
    Ok(StoredPolicy { text, version: entry.id.to_string(), set_at_ms, set_by, policy: Arc::new(policy) })
}

#[cfg(test)]
mod tests;
