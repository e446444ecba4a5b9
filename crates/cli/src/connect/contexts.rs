//! The file of contexts: `~/.config/sluice/contexts.toml`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::CredentialFiles;
use crate::terminal::{CliError, Result};

/// All contexts, and the one in use.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The context that is used when no server is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Context>,
}

/// A named server.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    pub(crate) server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub(crate) credentials: CredentialFiles,
}

fn is_nothing(credentials: &CredentialFiles) -> bool {
    *credentials == CredentialFiles::default()
}

impl Contexts {
    /// Reads the file; without a file there are no contexts.
    pub(crate) fn load() -> Result<Contexts> {
        let Some(path) = path() else { return Ok(Contexts::default()) };
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                toml::from_str(&text).map_err(|e| CliError::usage(format!("{}: {e}", path.display())))
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Contexts::default()),
            Err(e) => Err(CliError::unreadable(&path.display().to_string(), &e)),
        }
    }

    /// Replaces the file as a whole; an error leaves the old file in place.
    pub(crate) fn save(&self) -> Result<()> {
        let path = path().ok_or_else(|| {
            CliError::usage("cannot find the contexts file: neither XDG_CONFIG_HOME nor HOME is set")
        })?;
        let text = toml::to_string_pretty(self).map_err(|e| CliError::failed(e.to_string()))?;
        let new = path.with_extension("toml.new");
        let write = || {
            if let Some(dir) = path.parent() {
                std::fs::create_dir_all(dir)?;
            }
            std::fs::write(&new, text)?;
            std::fs::rename(&new, &path)
        };
        write().map_err(|e: std::io::Error| CliError::unwritable(&path, &e))
    }

    /// Finds a context by name.
    pub(crate) fn find(&self, name: &str) -> Result<&Context> {
        self.contexts.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
            let known =
                if known.is_empty() { "there are no contexts yet".to_owned() } else { known.join(", ") };
            CliError::usage(format!("there is no context {name:?}: {known}"))
                .hint("`sluice context add NAME --server URL` adds one.")
        })
    }
}

/// The path of the file; `None` if neither XDG_CONFIG_HOME nor HOME is set.
fn path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let dir = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(dir.join("sluice").join("contexts.toml"))
}
