//! The name that was probably meant where one is unknown: those that other queues have, and those that are
//! spelt nearly so.

/// Letters to insert, delete or replace.
pub use strsim::levenshtein as distance;

/// Names of other queues' fields, and those that say the same here: of a flag of the command line, or a field
/// of the API.
const ELSEWHERE: &[(&str, &[&str])] = &[
    ("address", &["listen"]),
    ("bind", &["listen"]),
    ("body", &["payload"]),
    ("count", &["max"]),
    ("data", &["payload"]),
    ("dedup_id", &["idempotency_key", "unique"]),
    ("deduplication_id", &["idempotency_key", "unique"]),
    ("delay_seconds", &["delay_ms", "delay"]),
    ("expiration", &["ttl_ms", "ttl"]),
    ("expires", &["ttl_ms", "ttl"]),
    ("group_id", &["ordering_key"]),
    ("host", &["listen"]),
    ("interval", &["every_ms", "every"]),
    ("limit", &["max"]),
    ("max_messages", &["max"]),
    ("max_receive_count", &["max_attempts"]),
    ("max_retries", &["max_attempts"]),
    ("message", &["payload"]),
    ("message_group_id", &["ordering_key"]),
    ("partition_key", &["ordering_key"]),
    ("port", &["listen"]),
    ("retries", &["max_attempts"]),
    ("retry", &["max_attempts"]),
    ("timezone", &["time_zone"]),
    ("tz", &["time_zone"]),
    ("url", &["server"]),
    ("value", &["payload"]),
    ("visibility_timeout", &["lease_ms", "lease"]),
    ("workers", &["concurrency"]),
];
/// Longest name that is looked at: what is longer is no misspelling of one of ours.
const NAME_BYTES_MAX: usize = 32;
/// Most letters by which a misspelling differs.
const LETTERS_MAX: usize = 2;

/// The one among `known` that was probably meant by `given`: with a unit behind it, under its name elsewhere,
/// or spelt nearly so. A dash stands for an underscore.
pub fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    if given.len() > NAME_BYTES_MAX {
        return None;
    }
    renamed(given, known).or_else(|| {
        let given = plain(given);
        let nearest = known.iter().map(|name| (distance(name, &given), *name)).min()?;
        // Of a short name each letter counts more.
        (nearest.0 <= LETTERS_MAX.min(given.len() / 3)).then_some(nearest.1)
    })
}

/// The one among `known` that says the same as `given`: with a unit behind it, or under its name elsewhere.
pub fn renamed<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    if given.len() > NAME_BYTES_MAX {
        return None;
    }
    let given = plain(given);
    let with_unit = format!("{given}_ms");
    let elsewhere = ELSEWHERE.iter().find(|(name, _)| *name == given).map_or(&[][..], |(_, here)| here);
    let same = |name: &str| name == given || name == with_unit || elsewhere.contains(&name);
    known.iter().find(|name| same(&name.replace('-', "_"))).copied()
}

fn plain(name: &str) -> String {
    name.replace('-', "_").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_other_names_and_slips_are_seen_through() {
        let fields = ["payload", "delay_ms", "max_attempts", "priority", "id"];
        for (given, meant) in [
            ("delay", Some("delay_ms")),
            ("maxRetries", None),
            ("max_retries", Some("max_attempts")),
            ("max-retries", Some("max_attempts")),
            ("body", Some("payload")),
            ("priorty", Some("priority")),
            ("Payload", Some("payload")),
            ("ix", None),
            ("colour", None),
        ] {
            assert_eq!(nearest(given, &fields), meant, "{given}");
        }
        assert_eq!(nearest("max_retries", &["max-attempts"]), Some("max-attempts"));
        assert_eq!(nearest(&"a".repeat(1 << 20), &fields), None);
    }
}
