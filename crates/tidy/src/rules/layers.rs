//! The table of which crate may use which: dependencies only lead downwards. ARCHITECTURE.md says what lives
//! in each crate. `[dev-dependencies]` are free.

use toml::{Table, Value};

use crate::Finding;

/// The name of the rule.
pub(crate) const RULE: &str = "layer";

/// The crates, each with those that it may use.
const LAYERS: [(&str, &[&str]); 24] = [
    ("alloc-count", &[]),
    ("engine", &[]),
    ("http2", &[]),
    ("https", &[]),
    ("journal", &[]),
    ("proto", &[]),
    ("record", &["engine", "journal"]),
    ("bench-rows", &["alloc-count", "engine", "journal", "record"]),
    ("replica", &["journal"]),
    ("peers", &["replica"]),
    ("tidy", &[]),
    ("units", &[]),
    ("filter", &["units"]),
    ("node", &["engine", "filter", "journal", "record", "replica"]),
    ("telemetry", &["https", "proto"]),
    ("push", &["engine", "https", "node"]),
    ("calls", &["node", "engine", "filter", "push", "telemetry"]),
    ("front", &["console", "calls", "http2", "proto", "engine", "telemetry"]),
    ("client", &["proto", "http2"]),
    ("console", &[]),
    ("sim", &["engine", "journal", "node", "record", "replica"]),
    ("bench", &["bench-rows", "client", "engine", "node", "http2", "proto", "alloc-count", "units"]),
    ("sluice", &["alloc-count", "cli", "client"]),
    (
        "cli",
        &[
            "alloc-count",
            "bench",
            "calls",
            "client",
            "engine",
            "front",
            "http2",
            "https",
            "journal",
            "node",
            "peers",
            "proto",
            "push",
            "replica",
            "telemetry",
            "units",
        ],
    ),
];

/// A manifest of the workspace.
pub(crate) struct Manifest<'a> {
    /// The folder's name below `crates`.
    pub name: &'a str,
    /// The text of `Cargo.toml`.
    pub text: &'a str,
}

/// The dependencies that the table does not allow.
///
/// # Errors
///
/// A manifest that is not TOML.
pub(crate) fn check(manifests: &[Manifest<'_>]) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for manifest in manifests {
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == manifest.name) else {
            findings.push(finding(
                manifest,
                "",
                "is not in the table of crates/tidy/src/rules/layers.rs".to_owned(),
            ));
            continue;
        };
        let table: Table = manifest.text.parse().map_err(|error| format!("{}: {error}", manifest.name))?;
        for used in dependencies(&table) {
            if !allowed.contains(&used.as_str()) {
                let advice =
                    format!("{} may not use {used}; it may use: {}", manifest.name, allowed.join(", "));
                findings.push(finding(manifest, &used, advice));
            }
        }
    }
    Ok(findings)
}

fn finding(manifest: &Manifest<'_>, used: &str, advice: String) -> Finding {
    let named = |line: &str| line.starts_with(&format!("sluice-{used}"));
    Finding {
        rule: RULE,
        subject: format!("{}->{used}", manifest.name),
        file: format!("crates/{}/Cargo.toml", manifest.name),
        line: manifest.text.lines().position(named).map_or(1, |index| index + 1),
        advice,
    }
}

/// The crates of ours that a manifest names outside of `[dev-dependencies]`, without the prefix of their
/// packages.
fn dependencies(table: &Table) -> Vec<String> {
    let targets = table.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let owners = std::iter::once(table).chain(targets.filter_map(Value::as_table));
    let lists = owners.flat_map(|owner| [owner.get("dependencies"), owner.get("build-dependencies")]);
    let entries = lists.flatten().filter_map(Value::as_table).flatten();
    entries
        .filter_map(|(key, value)| {
            let package = value.get("package").and_then(Value::as_str).unwrap_or(key);
            if package == "sluice" { Some("sluice") } else { package.strip_prefix("sluice-") }
        })
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subjects(manifests: &[(&str, &str)]) -> Vec<String> {
        let manifests: Vec<_> = manifests.iter().map(|&(name, text)| Manifest { name, text }).collect();
        check(&manifests).unwrap().into_iter().map(|finding| finding.subject).collect()
    }

    #[test]
    fn dependencies_lead_downwards() {
        let node = "[dependencies]\nbytes = \"1\"\nsluice-engine.workspace = true";
        assert_eq!(subjects(&[("node", node)]), [""; 0]);
        assert_eq!(subjects(&[("engine", "[dependencies]\nsluice-node.workspace = true")]), ["engine->node"]);
    }

    #[test]
    fn dependencies_of_a_build_a_target_and_under_another_name_count() {
        assert_eq!(subjects(&[("engine", "[build-dependencies]\nsluice-proto = {}")]), ["engine->proto"]);
        assert_eq!(
            subjects(&[("engine", "[target.'cfg(unix)'.dependencies]\nsluice-node = {}")]),
            ["engine->node"]
        );
        let renamed = "[dependencies]\nother = { package = \"sluice-node\" }";
        assert_eq!(subjects(&[("engine", renamed)]), ["engine->node"]);
    }

    #[test]
    fn dependencies_of_tests_are_free() {
        assert_eq!(subjects(&[("engine", "[dev-dependencies]\nsluice-node = {}")]), [""; 0]);
    }

    #[test]
    fn fronts_reach_the_node_through_calls() {
        assert_eq!(subjects(&[("calls", "[dependencies]\nsluice-node = {}")]), [""; 0]);
        assert_eq!(subjects(&[("front", "[dependencies]\nsluice-node = {}")]), ["front->node"]);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_found() {
        assert_eq!(subjects(&[("new", "")]), ["new->"]);
    }
}
