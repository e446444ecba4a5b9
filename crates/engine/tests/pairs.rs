//! Each two features of messages are shown together by a golden script, or cannot meet.
//!
//! A script shows two when one of its blocks (lines without an empty one between them) has commands with
//! both.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

/// The features, and beginnings of words which commands have that use them; of options without what says
/// whose they are.
const FEATURES: [(&str, &[&str]); 18] = [
    ("ordering", &["ordering_key="]),
    ("fair", &["fair_key="]),
    ("limit", &["limit=", "limit_key="]),
    ("unique", &["unique="]),
    ("expiry", &["ttl_ms=", "expires_at_ms=", "max_age_ms="]),
    ("delay", &["delay_ms=", "at_ms="]),
    ("hold", &["hold=true", "change hold"]),
    ("purge", &["queue purge"]),
    ("redrive", &["dead redrive"]),
    ("move", &["change move"]),
    ("chain", &["chain=", "on_failure="]),
    ("depends_on", &["depends_on="]),
    ("group", &["group"]),
    ("result", &["result=", "result_ttl_ms="]),
    ("reply", &["reply_to="]),
    ("credit", &["credit"]),
    ("sticky", &["placement=sticky"]),
    ("schedule", &["schedule"]),
];

/// Each feature with those after it in [`FEATURES`], by the script that shows them together.
const SHOWN: [(&str, &[(&str, &str)]); 17] = [
    (
        "ordering",
        &[
            ("pairs_fair", "fair"),
            ("pairs_limit", "limit"),
            ("pairs_unique", "unique"),
            ("expiry", "expiry"),
            ("ordering_keys", "delay"),
            ("hold", "hold"),
            ("ordering_order_of_sending", "purge chain"),
            ("pairs_flows", "redrive group"),
            ("move", "move"),
            ("depends_on_gates", "depends_on"),
            ("pairs_results", "result reply"),
            ("sticky_placement_changed", "credit"),
            ("pairs_consumers", "sticky"),
            ("schedule_changes", "schedule"),
        ],
    ),
    (
        "fair",
        &[(
            "pairs_fair",
            "limit unique expiry delay hold purge redrive move chain depends_on group result reply credit \
             sticky schedule",
        )],
    ),
    (
        "limit",
        &[
            (
                "pairs_limit",
                "unique expiry delay hold purge redrive move chain depends_on group result reply credit \
                 schedule",
            ),
            ("sticky_limit_key", "sticky"),
        ],
    ),
    (
        "unique",
        &[
            ("over_on_arrival", "expiry redrive"),
            ("unique", "delay"),
            ("pairs_unique", "hold purge move chain group result reply credit sticky"),
            ("parents_ended_before", "depends_on"),
            ("schedule_changes", "schedule"),
        ],
    ),
    (
        "expiry",
        &[
            ("delayed_beyond_the_end", "delay"),
            ("expiry", "hold"),
            ("pairs_flows", "purge schedule"),
            ("max_age", "redrive move"),
            ("chains", "chain"),
            ("parents_ended_before", "depends_on"),
            ("groups_ended", "group"),
            ("pairs_results", "result reply"),
            ("pairs_consumers", "credit sticky"),
        ],
    ),
    (
        "delay",
        &[
            ("held_delay", "hold"),
            ("pairs_flows", "purge redrive chain depends_on"),
            ("move", "move"),
            ("groups", "group"),
            ("pairs_results", "result reply"),
            ("pairs_consumers", "credit sticky"),
            ("schedule_changes", "schedule"),
        ],
    ),
    (
        "hold",
        &[
            ("pairs_flows", "purge chain depends_on group schedule"),
            ("held_delay", "redrive"),
            ("move", "move"),
            ("pairs_results", "result reply"),
            ("pairs_consumers", "credit sticky"),
        ],
    ),
    (
        "purge",
        &[
            ("pairs_flows", "redrive depends_on schedule"),
            ("move", "move"),
            ("chains", "chain"),
            ("groups", "group"),
            ("pairs_results", "result reply"),
            ("pairs_consumers", "credit sticky"),
        ],
    ),
    (
        "redrive",
        &[
            ("max_length", "move"),
            ("chains", "chain"),
            ("pairs_flows", "depends_on schedule"),
            ("groups_ended", "group"),
            ("pairs_results", "result reply"),
            ("pairs_consumers", "credit sticky"),
        ],
    ),
    (
        "move",
        &[
            ("pairs_flows", "chain depends_on group schedule"),
            ("pairs_results", "result reply"),
            ("pairs_consumers", "credit sticky"),
        ],
    ),
    (
        "chain",
        &[
            ("pairs_flows", "depends_on group"),
            ("chains", "result"),
            ("pairs_results", "reply"),
            ("pairs_consumers", "credit sticky"),
        ],
    ),
    (
        "depends_on",
        &[("pairs_flows", "group"), ("pairs_results", "result reply"), ("pairs_consumers", "credit sticky")],
    ),
    ("group", &[("pairs_results", "result reply"), ("pairs_consumers", "credit sticky")]),
    ("result", &[("replies", "reply"), ("pairs_consumers", "credit sticky"), ("pairs_results", "schedule")]),
    ("reply", &[("pairs_consumers", "credit sticky"), ("pairs_results", "schedule")]),
    ("credit", &[("consumers_sticky", "sticky"), ("pairs_consumers", "schedule")]),
    ("sticky", &[("pairs_consumers", "schedule")]),
];

/// Those that cannot meet, and why.
const NEVER: [(&str, &str, &str); 3] = [
    ("chain", "schedule", "what a schedule sends carries no steps: its put is refused"),
    ("depends_on", "schedule", "what a schedule sends waits for no others: its put is refused"),
    ("group", "schedule", "a schedule sends one message by itself"),
];

/// The commands of a script, block by block.
fn blocks(script: &str) -> Vec<Vec<&str>> {
    let is_command = |line: &&str| !line.is_empty() && !line.starts_with([' ', '#']);
    script.split("\n\n").map(|block| block.lines().filter(is_command).collect()).collect()
}

/// Whether a command uses a feature: `@5 change hold 1.1`, `send q a member_hold=true`.
fn uses(command: &str, words: &[&str]) -> bool {
    let (time, rest) = command.split_once(' ').unwrap_or((command, ""));
    let command = if time.starts_with('@') { rest } else { command };
    let options = || command.split(' ').skip(1).map(without_whose);
    words.iter().any(|word| command.starts_with(word) || options().any(|option| option.starts_with(word)))
}

/// An option without the prefix that says whose it is.
fn without_whose(option: &str) -> &str {
    let whose = ["first_", "step_", "member_"];
    whose.iter().find_map(|prefix| option.strip_prefix(prefix)).unwrap_or(option)
}

fn words(feature: &str) -> &'static [&'static str] {
    FEATURES.iter().find(|(name, _)| *name == feature).unwrap().1
}

/// Whether a script shows two features together.
fn shows(script: &str, features: [&str; 2]) -> bool {
    let of_block =
        |block: &Vec<&str>| features.map(|name| block.iter().any(|command| uses(command, words(name))));
    blocks(script).iter().any(|block| of_block(block) == [true, true])
}

#[test]
fn each_two_features_are_shown_together_or_cannot_meet() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/queue");
    let mut told: BTreeMap<[&str; 2], u32> = BTreeMap::new();
    for (one, scripts) in SHOWN {
        for (name, others) in scripts {
            let script = std::fs::read_to_string(format!("{folder}/{name}.txt")).unwrap();
            for other in others.split(' ') {
                assert!(shows(&script, [one, other]), "no block of {name}.txt has {one} and {other}");
                *told.entry([one, other]).or_default() += 1;
            }
        }
    }
    NEVER.iter().for_each(|(one, other, _)| *told.entry([one, other]).or_default() += 1);
    for (at, (one, _)) in FEATURES.iter().enumerate() {
        for (other, _) in &FEATURES[at + 1..] {
            assert_eq!(told.remove(&[*one, *other]), Some(1), "{one} and {other}");
        }
    }
    assert_eq!(told, BTreeMap::new(), "these are no pairs");
}
