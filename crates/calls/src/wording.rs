//! Words of which sentences are made.

/// A time in the largest unit of which it has two.
pub(crate) fn duration(ms: u64) -> String {
    match ms / 1_000 {
        0..120 => format!("{} s", ms / 1_000),
        s @ 120..7_200 => format!("{} min", s / 60),
        s @ 7_200..172_800 => format!("{} h", s / 3_600),
        s => format!("{} days", s / 86_400),
    }
}

/// A number with its noun: `1 shard`, `2 shards`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
