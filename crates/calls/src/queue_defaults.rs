//! Settings that queues begin with, by a pattern of their names: list, show, set, delete.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_engine::Error;
use sluice_engine::push::PushSecrets;
use sluice_engine::query::DefaultsView;
use sluice_engine::settings::QueuePatch;

use crate::access::Right;
use crate::call::{Body, Done, How, Unary};
use crate::error::CallError;
use crate::permit::Permit;
use crate::settings::QueueSettingsPatch;
use crate::value::{Nothing, Within, cut_page, given};

/// Maximum and default number of patterns of a page.
const PAGE_MAX: u64 = 100;

/// The settings that queues begin with whose names match a pattern.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = example())]
pub struct QueueDefaults {
    /// A name in which `*` stands for any number of characters.
    pattern: String,
    /// The settings; those that are left out are those of any new queue.
    settings: QueueSettingsPatch,
}

fn example() -> Value {
    json!({"pattern": "mail.*", "settings": {"lease_ms": 60_000}})
}

impl From<&DefaultsView> for QueueDefaults {
    fn from(defaults: &DefaultsView) -> QueueDefaults {
        QueueDefaults { pattern: defaults.pattern.clone(), settings: (&defaults.patch).into() }
    }
}

/// The patterns of a namespace, by name.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "QueueDefaultsListRequest")]
pub struct List {
    /// `next` of the page before.
    after: Option<String>,
    /// Maximum number of patterns of the page; default 100.
    limit: Option<Within<1, PAGE_MAX>>,
}

/// A page of patterns.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "QueueDefaultsList")]
#[schemars(example = json!({"defaults": [example()]}))]
pub struct Defaults {
    /// By pattern.
    defaults: Vec<QueueDefaults>,
    /// Pattern after which the next page begins; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Unary for List {
    type Answer = Defaults;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Defaults>, CallError> {
        let size = self.limit.map_or(PAGE_MAX, Within::get) as usize;
        let after = given(self.after.as_deref());
        let mut defaults = permit.node().defaults_after(permit.namespace_id()?, after, size + 1).await?;
        let next = cut_page(&mut defaults, size, |defaults| &defaults.pattern);
        Ok(Defaults { defaults: defaults.iter().map(QueueDefaults::from).collect(), next }.into())
    }
}

/// A pattern to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "QueueDefaultsShowRequest")]
pub struct Show {}

impl Unary for Show {
    type Answer = QueueDefaults;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<QueueDefaults>, CallError> {
        let defaults = permit.node().defaults(permit.namespace_id()?, permit.name()).await?;
        Ok(QueueDefaults::from(&defaults).into())
    }
}

/// The settings of a pattern, instead of those that it has; what is left out is as in any new queue.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Put(QueueSettingsPatch);

impl Unary for Put {
    type Answer = QueueDefaults;
    const BODY: Body = Body::Small;
    const HOW: &'static [How] = &[How::Created, How::Done];

    async fn run(self, permit: &Permit<'_>) -> Result<Done<QueueDefaults>, CallError> {
        self.0.check_push(permit.calls().pushes())?;
        let known = match self.0.keeps_secrets() {
            true => present_secrets(permit).await?,
            false => PushSecrets::default(),
        };
        let patch = QueuePatch::from(self.0.with_secrets_of(&known)?);
        if let Some(to) = given(patch.dead_letter_queue.as_deref()) {
            permit.allow_queue(Right::Send, to)?;
        }
        let set = permit.node().defaults_set(permit.namespace_id()?, permit.name(), patch);
        let (defaults, created) = set.await?;
        Ok(Done::made(QueueDefaults::from(&defaults), created))
    }
}

/// The secrets that the pattern has by now.
async fn present_secrets(permit: &Permit<'_>) -> Result<PushSecrets, CallError> {
    match permit.node().defaults(permit.namespace_id()?, permit.name()).await {
        Ok(defaults) => Ok(defaults.patch.push_secrets.unwrap_or_default()),
        Err(Error::DefaultsNotFound { .. }) => Ok(PushSecrets::default()),
        Err(error) => Err(error.into()),
    }
}

/// A pattern to delete. Queues that exist keep their settings.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "QueueDefaultsDeleteRequest")]
pub struct Delete {}

impl Unary for Delete {
    type Answer = Nothing;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Nothing>, CallError> {
        permit.node().defaults_delete(permit.namespace_id()?, permit.name()).await?;
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
    async fn a_pattern_shows_the_settings_that_it_was_given() {
        let server = Open::new();
        let put = async |pattern, body: Value| {
            let permit = server.permit(Operation::DefaultsPut, pattern);
            from_value::<Put>(body).unwrap().run(&permit).await.unwrap().created()
        };
        assert!(put("mail.*", json!({"lease_ms": 5})).await);
        assert!(!put("mail.*", json!({"lease_ms": 9, "limit": ""})).await);
        assert!(put("z*", json!({})).await);
        let show = server.permit(Operation::DefaultsShow, "mail.*");
        let shown = to_value(Show {}.run(&show).await.unwrap().answer).unwrap();
        assert_eq!(shown, json!({"pattern": "mail.*", "settings": {"lease_ms": 9, "limit": ""}}));

        let list = server.permit(Operation::DefaultsList, "");
        let page = from_value::<List>(json!({"limit": 1})).unwrap().run(&list).await.unwrap().answer;
        assert_eq!(to_value(page).unwrap(), json!({"defaults": [shown], "next": "mail.*"}));
        let delete = server.permit(Operation::DefaultsDelete, "mail.*");
        Delete {}.run(&delete).await.unwrap();
        assert_eq!(Show {}.run(&show).await.unwrap_err().code(), "defaults_not_found");
    }
}
