//! Names of queues: valid ones, and those that must be refused.

/// Queues that clients use in each namespace.
pub const QUEUES: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

/// True for a queue name that clients may not use.
pub(super) fn wrong_name(name: &str) -> bool {
    name.contains(' ') || name.starts_with('$')
}
