//! Locks as they are shown: holders, and who waits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_engine::locks::{LockHolderView, LockView, LockWaiterView};

use super::{FENCING_EXAMPLE, Mode};
use crate::access::Right;
use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::hot::AT_MS_EXAMPLE;
use crate::permit::Permit;
use crate::value::{PageSize, Shown, Whole, Word, cut_page, given, page_size, text};

/// Holders, and those that wait, that one lock is shown with.
const DETAIL_MAX: usize = 100;

/// A lock that is held or waited for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = example())]
pub struct Lock {
    /// Its key.
    pub(super) key: String,
    /// Number of holders.
    pub(super) holder_count: u64,
    /// Number of those that wait.
    pub(super) waiter_count: u64,
    /// Holders in the order of their grants: the first 100 of one lock, the first of each in a list.
    pub(super) holders: Vec<Holder>,
    /// Waiting claims in their order, when one lock is shown: the first 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waiters: Option<Vec<Waiter>>,
}

pub(super) fn example() -> Value {
    let holder = json!({
        "owner": "worker-3", "mode": "exclusive", "fencing_token": FENCING_EXAMPLE,
        "expires_at_ms": AT_MS_EXAMPLE, "keys": 1,
    });
    json!({"key": "orders/17", "holder_count": 1, "waiter_count": 2, "holders": [holder]})
}

impl Whole for Lock {
    const NAME: &'static str = "LockShown";
    const FIELD: &'static str = "waiters";

    fn example() -> Value {
        json!([{"owner": "worker-4", "mode": "exclusive", "keys": 1}])
    }
}

/// A holder of a lock.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "LockHolder")]
pub struct Holder {
    /// Name that it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Way in which it holds the lock.
    mode: Word<Mode>,
    /// Its fencing token, in decimal digits.
    pub(super) fencing_token: String,
    /// When its grant ends unless it is renewed, in milliseconds since the Unix epoch.
    expires_at_ms: u64,
    /// Number of keys that its grant is for.
    keys: u64,
}

/// One that waits for a lock.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "LockWaiter")]
pub struct Waiter {
    /// Name that it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Way in which it will hold the lock.
    mode: Word<Mode>,
    /// Number of keys that it waits for.
    keys: u64,
}

impl From<&LockHolderView> for Holder {
    fn from(holder: &LockHolderView) -> Holder {
        Holder {
            owner: text(holder.owner.as_bytes()),
            mode: holder.mode.into(),
            fencing_token: holder.number.to_string(),
            expires_at_ms: holder.until_us / 1_000,
            keys: holder.keys.into(),
        }
    }
}

impl From<&LockWaiterView> for Waiter {
    fn from(waiter: &LockWaiterView) -> Waiter {
        let owner = text(waiter.owner.as_bytes());
        Waiter { owner, mode: waiter.mode.into(), keys: waiter.keys.into() }
    }
}

impl From<&LockView> for Lock {
    fn from(lock: &LockView) -> Lock {
        Lock {
            key: lock.key.clone(),
            holder_count: lock.holder_count.into(),
            waiter_count: lock.waiter_count.into(),
            holders: lock.holders.iter().map(Holder::from).collect(),
            waiters: None,
        }
    }
}

/// The locks of a namespace that are held or waited for, by key.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "LockListRequest")]
pub struct List {
    /// Only keys that begin with this.
    pub(super) prefix: Option<String>,
    /// `next` of the page before.
    pub(super) after: Option<String>,
    /// Most locks of the page.
    pub(super) limit: Option<PageSize>,
}

/// A page of locks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "LockList")]
#[schemars(example = json!({"locks": [example()]}))]
pub struct Locks {
    /// By key.
    pub(super) locks: Vec<Lock>,
    /// Key after which the next page begins; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

impl Unary for List {
    type Answer = Locks;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Locks>, CallError> {
        let (size, namespace) = (page_size(self.limit), permit.namespace_id()?);
        let (prefix, after) = (self.prefix.as_deref().unwrap_or_default(), given(self.after.as_deref()));
        let mut locks = permit.node().locks(namespace, prefix, after, size + 1).await?;
        let next = cut_page(&mut locks, size, |lock| &lock.key);
        locks.retain(|lock| permit.may_key(Right::Observe, &lock.key));
        Ok(Locks { locks: locks.iter().map(Lock::from).collect(), next }.into())
    }
}

/// A lock to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "LockShowRequest")]
pub struct Show {}

impl Unary for Show {
    type Answer = Shown<Lock>;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Shown<Lock>>, CallError> {
        let lock = permit.node().lock(permit.namespace_id()?, permit.name(), DETAIL_MAX).await?;
        Ok(Shown(Lock::whole(permit.name(), lock.as_ref())).into())
    }
}

impl Lock {
    /// The lock of a key with those that wait; `None`: it is free.
    pub(super) fn whole(key: &str, lock: Option<&LockView>) -> Lock {
        let waiters = lock.iter().flat_map(|lock| &lock.waiters).map(Waiter::from).collect();
        let free = Lock {
            key: key.to_owned(),
            holder_count: 0,
            waiter_count: 0,
            holders: Vec::new(),
            waiters: None,
        };
        let lock = lock.map_or(free, Lock::from);
        Lock { waiters: Some(waiters), ..lock }
    }
}
