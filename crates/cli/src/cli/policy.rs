//! `sluice policy`.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;

use super::confirm::Confirmation;
use super::connect::ServerFlags;
use super::format::time;
use super::{Out, Result, bounded};

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// Store a policy, which counts on every node of a cluster instead of their policy files.
    #[command(after_help = "Examples:\n  sluice policy set policy.toml\n  \
        sluice policy set policy.toml --version 00000081k7pvm120000g\n\n\
        The file is checked as a whole before anything changes. You have to be an administrator by the new \
        policy, too.")]
    Set {
        /// File with the policy, as `--access-policy` takes it.
        file: PathBuf,
        /// Replace the policy only if it still has this version, as shown by `sluice policy show`; empty:
        /// only if none is stored.
        #[arg(long)]
        version: Option<String>,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Print the stored policy.
    Show {
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Remove the stored policy. Each server uses its own policy file again, if it has one.
    Remove {
        /// Remove the policy only if it still has this version, as shown by `sluice policy show`.
        #[arg(long)]
        version: Option<String>,
        #[command(flatten)]
        confirm: Confirmation,
        #[command(flatten)]
        server: ServerFlags,
    },
}

pub(super) async fn run(verb: PolicyVerb, out: Out) -> Result<u8> {
    match verb {
        PolicyVerb::Set { file, version, server } => {
            let text = bounded::read_file(&file, bounded::FILE_BYTES_MAX)?;
            let text = bounded::text(text, &file.display().to_string())?;
            let connection = server.connect()?;
            let stored = connection.client.policy_set(&text, version.as_deref()).await;
            let stored = stored.map_err(|e| connection.error(&e))?;
            out.show(&stored, |stored| format!("the policy is in force, as version {}\n", stored.version))?;
        }
        PolicyVerb::Show { server } => {
            let connection = server.connect()?;
            let stored = connection.client.policy().await.map_err(|e| connection.error(&e))?;
            let set_at = time(stored.set_at_ms);
            out.note(&format!("version {}, set by {} at {set_at}", stored.version, stored.set_by));
            out.show(&stored, |stored| stored.policy.replace("\r\n", "\n"))?;
        }
        PolicyVerb::Remove { version, confirm, server } => {
            let connection = server.connect()?;
            confirm.ask("Removing the stored policy")?;
            let removed = connection.client.policy_remove(version.as_deref()).await;
            let removed = removed.map_err(|e| connection.error(&e))?;
            out.show(&json!({"removed": removed.version}), |_| {
                format!("removed the policy of version {}\n", removed.version)
            })?;
        }
    }
    Ok(0)
}
