//! Root keys of encryption at rest: show, rotate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_node::keys::{KeyStatus, KeyUse};

use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::permit::Permit;

/// Files on disk by the root key that they are encrypted under.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "current": "56f0a3b0c2d41e97", "keys": [{"id": "56f0a3b0c2d41e97", "files": 3, "bytes": 340_000}],
    "unencrypted": {"files": 0, "bytes": 0},
}))]
pub struct Keys {
    /// Id of the root key of new files; absent when they are not encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    /// The root keys in use.
    keys: Vec<Key>,
    /// Files that are not encrypted.
    unencrypted: Files,
}

/// The use of a root key.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Key {
    /// Its id.
    id: String,
    /// Files encrypted under it.
    files: u64,
    /// Bytes of those of them that are not written any more.
    bytes: u64,
}

/// A number of files.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Files {
    /// Files.
    files: u64,
    /// Bytes of those of them that are not written any more.
    bytes: u64,
}

impl From<&KeyStatus> for Keys {
    fn from(status: &KeyStatus) -> Keys {
        let keys = status.uses.iter().filter_map(|(root, found)| {
            root.map(|root| Key { id: root.to_string(), files: found.files, bytes: found.bytes })
        });
        let KeyUse { files, bytes } = status.uses.get(&None).copied().unwrap_or_default();
        Keys {
            current: status.current.map(|current| current.to_string()),
            keys: keys.collect(),
            unencrypted: Files { files, bytes },
        }
    }
}

/// The root keys to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "KeysShowRequest")]
pub struct Show {}

impl Unary for Show {
    type Answer = Keys;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Keys>, CallError> {
        Ok(Keys::from(&permit.node().keys().await?).into())
    }
}

/// The root key to replace by a new one.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "KeysRotateRequest")]
pub struct Rotate {}

impl Unary for Rotate {
    type Answer = Keys;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Keys>, CallError> {
        Ok(Keys::from(&permit.node().rotate_keys().await?).into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn files_without_encryption_stand_apart() {
        let none = Keys::from(&KeyStatus::default());
        let expected = json!({"keys": [], "unencrypted": {"files": 0, "bytes": 0}});
        assert_eq!(to_value(none).unwrap(), expected);
        let uses = [(None, KeyUse { files: 2, bytes: 3 })].into();
        let plain = Keys::from(&KeyStatus { current: None, uses });
        let expected = json!({"keys": [], "unencrypted": {"files": 2, "bytes": 3}});
        assert_eq!(to_value(plain).unwrap(), expected);
    }
}
