//! `sluice key`.

use clap::Subcommand;
use serde_json::json;
use sluice_client::Keys;
use sluice_journal::RootKey;
use sluice_journal::keys::SystemRandom;

use super::connect::ServerFlags;
use super::format::size;
use super::output::Table;
use super::{CliError, Out, Result};

#[derive(Debug, Subcommand)]
pub(crate) enum KeyVerb {
    /// Show which root keys are in use, and how many files each encrypts.
    Status {
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Encrypt everything written from now on under a new root key.
    #[command(after_help = "\
The server adds a key to its key file, before the others. With `key_source` \
command:LINE it runs the command again, which must print the new key first.\n\
Data written before keeps its key until it is compacted: keep the old key while \
`sluice key status` shows it, and as long as there are backups from before.")]
    Rotate {
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Print a new root key, for an environment variable or a secret store.
    New,
}

pub(super) fn new(out: Out) -> Result<u8> {
    let key = RootKey::generate(&SystemRandom).map_err(|e| CliError::failed(e.to_string()))?;
    out.show(&json!({"id": key.id().to_string(), "key": &*key.to_text()}), |_| {
        format!("{} # {}\n", *key.to_text(), key.id())
    })?;
    Ok(0)
}

pub(super) async fn run(server: ServerFlags, rotate: bool, out: Out) -> Result<u8> {
    let connection = server.connect()?;
    let client = &connection.client;
    let keys = if rotate { client.rotate_keys().await } else { client.keys().await };
    out.show(&keys.map_err(|e| connection.error(&e))?, |keys| show(keys, rotate))?;
    Ok(0)
}

fn show(keys: &Keys, rotated: bool) -> String {
    let mut table = Table::new(&["ROOT KEY", ">FILES", ">SIZE", ""]);
    let mut row = |name: &str, files: u64, bytes: u64, about: &str| {
        table.row([name.to_owned(), files.to_string(), size(bytes), about.to_owned()]);
    };
    for key in &keys.keys {
        let current = keys.current.as_ref() == Some(&key.id);
        row(&key.id, key.files, key.bytes, if current { "for new data" } else { "" });
    }
    let unencrypted = keys.unencrypted;
    if unencrypted.files > 0 || keys.current.is_none() {
        let about = if keys.current.is_none() { "for new data" } else { "" };
        row("none", unencrypted.files, unencrypted.bytes, about);
    }
    let text = table.render();
    match &keys.current {
        Some(current) if rotated => format!(
            "new data is encrypted under root key {current}: keep a copy of all keys, the older ones \
            too\n{text}"
        ),
        _ => text,
    }
}
