//! Settings of `sluice serve --test`: its own defaults, and what contradicts it.

use super::table::Config;
use super::values::TlsMode;

/// Defaults, where they differ.
const DEFAULTS: &[(&str, &str)] = &[
    ("listen", "127.0.0.1:0"),
    ("memory", "true"),
    ("log.level", "warn"),
    // The endpoints of a test are on this machine.
    ("push.allowed_addresses", "127.0.0.0/8,::1/128"),
];

/// Settings of files, and of other nodes.
const NOT_HERE: &[&str] = &[
    "data_dir",
    "durability",
    "reserve",
    "low_water",
    "no_encryption",
    "key_source",
    "accept_clock_jump",
    "cluster_members",
    "cluster_address",
    "cluster_log",
];

/// The default of a setting, if it differs.
pub(super) fn default(key: &str) -> Option<&'static str> {
    DEFAULTS.iter().find(|(differing, _)| *differing == key).map(|(_, default)| *default)
}

/// The contradictions between settings and `--test`. `origin`: the source of a setting that is given.
pub(super) fn contradictions(config: &Config, origin: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let given = NOT_HERE.iter().filter_map(|key| Some((key, origin(key)?)));
    let mut found: Vec<String> = given
        .map(|(key, origin)| {
            format!(
                "{key} (from {origin}): a server that runs with --test has no files and no other nodes: leave it \
                 out, or start one without --test"
            )
        })
        .collect();
    if !config.memory {
        found.push("--test keeps everything in memory: leave out memory = false".to_owned());
    }
    if config.tls == TlsMode::Auto && config.tls_dir.0.is_none() {
        found.push(
            "tls = auto keeps its certificates beside the data directory, which --test has not: set tls_dir to \
             a folder for them"
                .to_owned(),
        );
    }
    found
}
