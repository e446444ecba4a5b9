//! `sluice queue defaults`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use sluice_client::QueueDefaults;

use super::connect::{ReadFlags, ServerFlags};
use super::output::Table;
use super::queue_settings::QueueSettingFlags;
use super::{Out, Result};

#[derive(Debug, Subcommand)]
pub(crate) enum DefaultsVerb {
    /// List patterns and their settings.
    List {
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Set the settings with which new queues begin whose names match a pattern, such as 'mail.*'. Existing
    /// queues are not changed.
    ///
    /// The longest matching pattern applies; of equally long patterns, the first by name.
    Set(Box<SetDefaultsArgs>),
    /// Delete a pattern.
    Delete {
        /// The pattern.
        pattern: String,
        #[command(flatten)]
        server: ServerFlags,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SetDefaultsArgs {
    /// A name in which * stands for any number of characters; quote it, so that the shell does not expand it.
    pattern: String,
    #[command(flatten)]
    settings: QueueSettingFlags,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(verb: DefaultsVerb, out: Out) -> Result<u8> {
    match verb {
        DefaultsVerb::List { server } => {
            let connection = server.connect()?;
            let all = connection.client.queue_defaults().await.map_err(|e| connection.error(&e))?;
            if all.is_empty() {
                out.note(&format!("no queue defaults in namespace {}", connection.namespace));
                return Ok(0);
            }
            out.list(&all, table)?;
        }
        DefaultsVerb::Set(args) => {
            let connection = args.server.connect()?;
            let settings = args.settings.change()?;
            let set = connection.client.queue_defaults_set(&args.pattern, &settings).await;
            let (defaults, created) = set.map_err(|e| connection.error(&e))?;
            out.show(&defaults, |defaults| {
                let what = if created { "created" } else { "replaced" };
                format!("{what} {}: {}\n", defaults.pattern, text(defaults))
            })?;
        }
        DefaultsVerb::Delete { pattern, server } => {
            let connection = server.connect()?;
            let deleted = connection.client.queue_defaults_delete(&pattern).await;
            deleted.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "deleted": pattern }), |_| format!("deleted {pattern}\n"))?;
        }
    }
    Ok(0)
}

fn table(all: &[QueueDefaults]) -> String {
    let mut table = Table::new(&["PATTERN", "SETTINGS"]);
    for defaults in all {
        table.row([defaults.pattern.clone(), text(defaults)]);
    }
    table.render()
}

/// The settings that were given, as the API spells them.
fn text(defaults: &QueueDefaults) -> String {
    let Value::Object(settings) = json!(defaults.settings) else { return String::new() };
    if settings.is_empty() {
        return "the usual settings".to_owned();
    }
    let settings: Vec<String> = settings
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        })
        .collect();
    settings.join(" ")
}
