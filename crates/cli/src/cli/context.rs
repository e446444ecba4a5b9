//! `sluice context`.

use clap::Subcommand;
use serde_json::json;
use sluice_client::{Client, Options};

use super::format::one_line;
use super::output::Table;
use super::values::not_empty;
use super::{CliError, Out, Result};
use crate::connect::{Context, Contexts, CredentialFiles};

#[derive(Debug, Subcommand)]
pub(crate) enum ContextVerb {
    /// Add a context, or change it. The first one added becomes the context in use.
    Add {
        /// Name of the context.
        #[arg(value_parser = plain_name)]
        name: String,
        /// URL of the server.
        #[arg(long, value_name = "URL")]
        server: String,
        /// Namespace to use.
        #[arg(long, short, value_name = "NAME", value_parser = not_empty)]
        namespace: Option<String>,
        #[command(flatten)]
        credentials: CredentialFiles,
    },
    /// List contexts; the one in use is marked.
    List,
    /// Set the context in use, for commands without --server.
    Use {
        /// Name of a context, as `sluice context list` shows it.
        name: String,
    },
    /// Remove a context.
    Remove {
        /// Name of a context, as `sluice context list` shows it.
        name: String,
    },
}

/// Refuses a name that nobody could type, or that steers the terminals on which it is shown.
fn plain_name(text: &str) -> std::result::Result<String, String> {
    let text = not_empty(text)?;
    if one_line(&text) == text {
        Ok(text)
    } else {
        Err("expected no control or invisible characters".to_owned())
    }
}

pub(super) fn run(verb: ContextVerb, out: Out) -> Result<u8> {
    let mut contexts = Contexts::load()?;
    match verb {
        ContextVerb::Add { name, server, namespace, credentials } => {
            let options = Options { credentials: credentials.read(None)?, ..Options::default() };
            Client::with_options(&server, options).map_err(|e| CliError::client(&e))?;
            let first = contexts.contexts.is_empty();
            let known = contexts.contexts.insert(
                name.clone(),
                Context { server: server.clone(), namespace, credentials: credentials.absolute() },
            );
            if first {
                contexts.current = Some(name.clone());
            }
            contexts.save()?;
            let what = if known.is_some() { "changed" } else { "added" };
            let used = if first { ", used from now on" } else { "" };
            out.show(&json!({"context": name, "server": server}), |_| {
                format!("{what} {name}: {server}{used}\n")
            })?;
        }
        ContextVerb::List => list(&contexts, out)?,
        ContextVerb::Use { name } => {
            let server = contexts.find(&name)?.server.clone();
            contexts.current = Some(name.clone());
            contexts.save()?;
            out.show(&json!({"context": name, "server": server}), |_| format!("using {name}: {server}\n"))?;
        }
        ContextVerb::Remove { name } => {
            contexts.find(&name)?;
            contexts.contexts.remove(&name);
            if contexts.current.as_ref() == Some(&name) {
                contexts.current = None;
            }
            contexts.save()?;
            out.show(&json!({ "removed": name }), |_| format!("removed {name}\n"))?;
        }
    }
    Ok(0)
}

fn list(contexts: &Contexts, out: Out) -> Result<()> {
    if contexts.contexts.is_empty() {
        out.note("no contexts; add one with `sluice context add NAME --server URL`");
        return Ok(());
    }
    let in_use = |name: &str| contexts.current.as_deref() == Some(name);
    if out.json {
        return contexts.contexts.iter().try_for_each(|(name, context)| {
            let namespace = context.namespace.as_deref().unwrap_or("default");
            out.object(
                &json!({"context": name, "server": context.server, "namespace": namespace, "current": in_use(name)}),
            )
        });
    }
    let mut table = Table::new(&["CONTEXT", "SERVER", "NAMESPACE", ""]);
    for (name, context) in &contexts.contexts {
        let used = if in_use(name) { "in use" } else { "" };
        let namespace = context.namespace.as_deref().unwrap_or("default");
        table.row([name.as_str(), context.server.as_str(), namespace, used].map(str::to_owned));
    }
    out.text(&table.render())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_seen() {
        assert!(plain_name("büro 2").is_ok());
        for wrong in ["", "a\u{1b}[2J", "a\nb", "a\u{200b}", "a\u{202e}b"] {
            assert!(plain_name(wrong).is_err(), "{wrong:?}");
        }
    }
}
