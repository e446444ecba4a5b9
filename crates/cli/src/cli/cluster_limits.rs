//! `sluice cluster limits`.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use sluice_client::ClusterLimits;
use sluice_engine::Limits;

use super::connect::ServerFlags;
use super::output::Table;
use super::{Out, Result, number};
use crate::config::{Config, SETTINGS, Setting};
use crate::serve::limits::limits;

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterLimitsVerb {
    /// Show the limits in force, and the nodes that have others in their settings.
    Show {
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Put limits into force on all nodes, at once. To repeat it does no harm.
    #[command(
        after_help = "Examples:\n  sluice cluster limits set limits.payload=2MiB limits.queues=500\n  \
        sluice cluster limits set --from-node 2"
    )]
    Set(SetArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// Limit by the name of its setting, and its new value; others stay.
    #[arg(value_name = "NAME=VALUE", value_parser = limit, required_unless_present = "from_node")]
    limits: Vec<(&'static str, u64)>,
    /// Number of a node whose settings give all limits that are not named.
    #[arg(long, value_name = "NODE", value_parser = number(1u64..))]
    from_node: Option<u64>,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(verb: ClusterLimitsVerb, out: Out) -> Result<u8> {
    let (connection, shown) = match verb {
        ClusterLimitsVerb::Show { server } => {
            let connection = server.connect()?;
            let shown = connection.client.cluster_limits().await;
            (connection, shown)
        }
        ClusterLimitsVerb::Set(SetArgs { limits, from_node, server }) => {
            let connection = server.connect()?;
            let limits: BTreeMap<String, u64> =
                limits.into_iter().map(|(name, number)| (name.to_owned(), number)).collect();
            let shown = connection.client.cluster_limits_set(&limits, from_node).await;
            (connection, shown)
        }
    };
    out.show(&shown.map_err(|e| connection.error(&e))?, table)?;
    Ok(0)
}

/// A limit as `NAME=VALUE`: its setting, and the value as a number.
fn limit(text: &str) -> std::result::Result<(&'static str, u64), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as limits.payload=2MiB")?;
    let place = Limits::SETTINGS.iter().position(|setting| *setting == name);
    let place = place.ok_or_else(|| format!("expected one of {}", Limits::SETTINGS.join(", ")))?;
    let own = |key: &str, default: &str| if key == name { value } else { default }.to_owned();
    let default = |key: &str| SETTINGS.iter().find(|it| it.key == key).map_or("", |it| it.default);
    let config = Config::read(|key| own(key, default(key)))?;
    Ok((Limits::SETTINGS[place], limits(&config).numbers()[place]))
}

/// A limit as its setting is written.
fn written(setting: &Setting, number: u64) -> String {
    let text = match setting.placeholder {
        "DURATION" => format!("{number}ms"),
        _ if setting.is_switch() => (number > 0).to_string(),
        _ => number.to_string(),
    };
    (setting.normalise)(&text).unwrap_or(text)
}

fn table(shown: &ClusterLimits) -> String {
    let mut table = Table::new(&["NAME", "IN FORCE", "IN SETTINGS"]);
    for setting in SETTINGS {
        let Some(in_force) = shown.limits.get(setting.key) else { continue };
        let own = |number: &u64| written(setting, *number);
        let differing =
            shown.differing.iter().filter_map(|node| Some((node.node, node.limits.get(setting.key)?)));
        let differing: Vec<String> =
            differing.map(|(node, it)| format!("{} on node {node}", own(it))).collect();
        table.row([setting.key.to_owned(), own(in_force), differing.join(", ")]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use sluice_client::NodeLimits;

    use super::*;

    #[test]
    fn limits_are_read_and_shown_as_their_settings_are_written() {
        for (text, name, number, shown) in [
            ("limits.payload=2MiB", "limits.payload", 2 << 20, "2MiB"),
            ("limits.queues=500", "limits.queues", 500, "500"),
            ("limits.idempotency_window=90s", "limits.idempotency_window", 90_000, "1m30s"),
            ("limits.auto_create=false", "limits.auto_create", 0, "false"),
        ] {
            assert_eq!(limit(text), Ok((name, number)));
            let setting = SETTINGS.iter().find(|it| it.key == name).unwrap();
            assert_eq!(written(setting, number), shown);
        }
        for (text, expected) in [
            ("limits.payload", "NAME=VALUE"),
            ("queues=5", "limits.queues"),
            ("limits.queues=0", "expected 1 to 10000000"),
            ("limits.auto_create=2", "true or false"),
        ] {
            assert!(limit(text).unwrap_err().contains(expected), "{text}");
        }
    }

    #[test]
    fn limits_in_force_are_listed_with_the_nodes_whose_settings_differ() {
        let number = |name: &str, number| BTreeMap::from([(name.to_owned(), number)]);
        let differing =
            [(1, 7), (3, 9)].map(|(node, it)| NodeLimits { node, limits: number("limits.queues", it) });
        let limits = [number("limits.queues", 5), number("limits.payload", 1 << 20)].into_iter().flatten();
        let shown = ClusterLimits { limits: limits.collect(), differing: differing.into() };
        assert_eq!(
            table(&shown),
            "NAME            IN FORCE  IN SETTINGS\n\
             limits.payload  1MiB\n\
             limits.queues   5         7 on node 1, 9 on node 3\n"
        );
    }
}
