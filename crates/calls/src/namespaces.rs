//! Namespaces: list, show, set, delete.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_engine::query::NamespaceView;
use sluice_engine::settings as engine;

use crate::access::{Right, Target};
use crate::call::{Body, Done, How, Unary};
use crate::error::CallError;
use crate::hot::AT_MS_EXAMPLE;
use crate::permit::Permit;
use crate::value::{Nothing, Within};

type Quota = Within<0, { u64::MAX }>;

/// Quotas of a namespace.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Quotas {
    /// Most queues; 0: any number.
    queues: u64,
    /// Most messages, in any state; 0: any number.
    messages: u64,
    /// Most bytes of payloads and headers, in any state; 0: any number.
    bytes: u64,
}

impl From<&engine::Quotas> for Quotas {
    fn from(quotas: &engine::Quotas) -> Quotas {
        Quotas { queues: quotas.queues, messages: quotas.messages, bytes: quotas.bytes }
    }
}

/// Quotas of a namespace to change; what is left out keeps its value, which is 0 in a new namespace.
#[derive(Clone, Copy, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuotasPatch {
    /// Most queues; 0: any number.
    queues: Option<Quota>,
    /// Most messages, in any state; 0: any number.
    messages: Option<Quota>,
    /// Most bytes of payloads and headers, in any state; 0: any number.
    bytes: Option<Quota>,
}

impl QuotasPatch {
    /// The quotas `old` after the change.
    fn apply(self, old: engine::Quotas) -> engine::Quotas {
        engine::Quotas {
            queues: self.queues.map_or(old.queues, Quota::get),
            messages: self.messages.map_or(old.messages, Quota::get),
            bytes: self.bytes.map_or(old.bytes, Quota::get),
        }
    }
}

/// A namespace, its quotas and what it holds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = example())]
pub struct Namespace {
    /// Its name.
    name: String,
    /// Number of the shard that it lives on.
    shard: u32,
    /// Its quotas.
    quotas: Quotas,
    /// Queues in it.
    queues: u64,
    /// Messages in it, in any state.
    messages: u64,
    /// Bytes of content types, headers and payloads of its messages.
    bytes: u64,
    /// When it was created, in milliseconds since the Unix epoch.
    created_at_ms: u64,
}

fn example() -> Value {
    json!({
        "name": "shop", "shard": 0, "quotas": {"queues": 100, "messages": 1_000_000, "bytes": 0}, "queues": 3,
        "messages": 1_200, "bytes": 340_000, "created_at_ms": AT_MS_EXAMPLE,
    })
}

impl From<&NamespaceView> for Namespace {
    fn from(view: &NamespaceView) -> Namespace {
        Namespace {
            name: view.name.clone(),
            shard: view.shard,
            quotas: Quotas::from(&view.quotas),
            queues: view.queues,
            messages: view.messages,
            bytes: view.bytes,
            created_at_ms: view.created_at_us / 1_000,
        }
    }
}

/// The namespaces that the caller may look at.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "NamespaceListRequest")]
pub struct List {
    /// True: `$sys`, which the server keeps for itself, is listed too; default false.
    all: bool,
}

/// All namespaces that the caller may look at.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "NamespaceList")]
#[schemars(example = json!({"namespaces": [example()]}))]
pub struct Namespaces {
    /// By name.
    namespaces: Vec<Namespace>,
}

impl Unary for List {
    type Answer = Namespaces;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Namespaces>, CallError> {
        permit.require_known()?;
        let mut views = permit.node().namespaces().await?;
        views.retain(|view| permit.caller().may(Right::Observe, Target::SomeQueue(&view.name)).is_ok());
        // The server's own: whoever comes to see the tenants has nothing to do with them.
        views.retain(|view| self.all || !view.name.starts_with('$'));
        Ok(Namespaces { namespaces: views.iter().map(Namespace::from).collect() }.into())
    }
}

/// A namespace to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "NamespaceShowRequest")]
pub struct Show {}

impl Unary for Show {
    type Answer = Namespace;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Namespace>, CallError> {
        let view = permit.node().namespace(permit.name()).await?;
        Ok(Namespace::from(&view).into())
    }
}

/// A namespace to create, or quotas to change of one that exists.
#[derive(Clone, Copy, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "NamespacePut")]
#[schemars(example = json!({"quotas": {"queues": 100}}))]
pub struct Put {
    /// The quotas to change.
    quotas: QuotasPatch,
    /// Number of the shard on which a new namespace lives; default: chosen by the server. Of an existing one,
    /// the number must be that of its shard.
    shard: Option<Within<0, { u32::MAX as u64 }>>,
}

impl Unary for Put {
    type Answer = Namespace;
    const HOW: &'static [How] = &[How::Created, How::Done];

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Namespace>, CallError> {
        let shard = self.shard.map(|shard| shard.get() as u32);
        let change = move |old| self.quotas.apply(old);
        let (view, created) = permit.node().namespace_put(permit.name(), shard, change).await?;
        Ok(Done::made(Namespace::from(&view), created))
    }
}

/// Quotas to change of a namespace that exists.
#[derive(Clone, Copy, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "NamespacePatch")]
#[schemars(example = json!({"quotas": {"queues": 100}}))]
pub struct Patch {
    /// The quotas to change.
    quotas: QuotasPatch,
}

impl Unary for Patch {
    type Answer = Namespace;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Namespace>, CallError> {
        let change = move |old| self.quotas.apply(old);
        let view = permit.node().namespace_set(permit.name(), None, change).await?;
        Ok(Namespace::from(&view).into())
    }
}

/// A namespace to delete.
#[derive(Clone, Copy, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "NamespaceDeleteRequest")]
pub struct Delete {
    /// True: its queues and messages are deleted as well; default false: a namespace with queues is refused.
    force: bool,
}

impl Unary for Delete {
    type Answer = Nothing;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Nothing>, CallError> {
        permit.node().namespace_delete(permit.name(), self.force).await?;
        Ok(Nothing {}.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json, to_value};

    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;

    #[tokio::test]
    async fn quotas_that_are_left_out_keep_their_value() {
        let server = Open::new();
        let put = server.permit(Operation::NamespacePut, "shop");
        let made = async |body: Value| from_value::<Put>(body).unwrap().run(&put).await.unwrap();
        assert!(made(json!({"quotas": {"queues": 7, "bytes": 8}})).await.created());
        assert!(!made(json!({"quotas": {"bytes": 9}, "shard": 0})).await.created());
        let patch = server.permit(Operation::NamespacePatch, "shop");
        let body = json!({"quotas": {"messages": 5}});
        let changed = from_value::<Patch>(body).unwrap().run(&patch).await.unwrap().answer;
        let changed = to_value(changed).unwrap();
        assert_eq!(changed["quotas"], json!({"queues": 7, "messages": 5, "bytes": 9}));
        assert_eq!((&changed["name"], &changed["shard"]), (&json!("shop"), &json!(0)));

        let list = server.permit(Operation::NamespaceList, "");
        let names = async |all| {
            let listed = List { all }.run(&list).await.unwrap().answer.namespaces;
            listed.into_iter().map(|namespace| namespace.name).collect::<Vec<_>>()
        };
        assert_eq!(names(false).await, ["default", "shop"]);
        assert_eq!(names(true).await, ["$sys", "default", "shop"]);
        let delete = server.permit(Operation::NamespaceDelete, "shop");
        Delete::default().run(&delete).await.unwrap();
        assert_eq!(names(false).await, ["default"]);
    }
}
