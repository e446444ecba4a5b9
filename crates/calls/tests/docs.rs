//! The table of settings in docs/api.md is the one in `settings`:
//! `SLUICE_WRITE_DOCS=1 cargo test -p sluice-calls --test docs` writes it anew.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::Path;

use schemars::schema_for;
use serde_json::Value;
use sluice_calls::settings::QueueSettingsPatch;

const BEGIN: &str = "<!-- The table of settings is written by crates/calls/tests/docs.rs. -->\n";
const END: &str = "<!-- The end of the table of settings. -->\n";

/// The table: name, values, and meaning of each setting, by name.
fn table() -> String {
    let schema = Value::from(schema_for!(QueueSettingsPatch));
    let mut table = "| setting | values | meaning |\n|---|---|---|\n".to_owned();
    for (name, setting) in schema["properties"].as_object().into_iter().flatten() {
        let meaning = setting["description"].as_str().unwrap_or_default().replace('\n', " ");
        writeln!(table, "| `{name}` | {} | {meaning} |", values(setting)).unwrap();
    }
    table
}

/// The values that a setting may have.
fn values(setting: &Value) -> String {
    if let Some(words) = setting["enum"].as_array() {
        let words: Vec<String> =
            words.iter().filter_map(|word| Some(format!("`{}`", word.as_str()?))).collect();
        return words.join(", ");
    }
    let one = setting["anyOf"].get(0).unwrap_or(setting);
    if one["$ref"].is_string() {
        return "an object".to_owned();
    }
    let types = one["type"].as_array().and_then(|types| types.first()).unwrap_or(&one["type"]);
    match types.as_str() {
        Some("integer") => match one["maximum"].as_u64() {
            None | Some(u64::MAX) => format!("{} or more", one["minimum"]),
            Some(most) => format!("{} to {}", one["minimum"], grouped(most)),
        },
        Some("boolean") => "`true`, `false`".to_owned(),
        Some("string") => "a text".to_owned(),
        Some("array") => "a list of texts".to_owned(),
        _ => "an object".to_owned(),
    }
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn the_table_of_settings_is_that_of_the_calls() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("docs/api.md has the line before the table");
    let (_, after) = rest.split_once(END).expect("docs/api.md has the line after the table");
    let expected = format!("{before}{BEGIN}\n{}\n{END}{after}", table());
    if std::env::var_os("SLUICE_WRITE_DOCS").is_some() {
        std::fs::write(&path, expected).unwrap();
        return;
    }
    assert!(
        page == expected,
        "docs/api.md is behind: SLUICE_WRITE_DOCS=1 cargo test -p sluice-calls --test docs"
    );
}
