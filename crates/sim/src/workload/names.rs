//! Names of queues: those that clients use, and those that must be refused.

/// Queues that clients use in each namespace.
pub const QUEUES: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

/// Whether clients may use no such name for a queue.
pub(super) fn wrong_name(name: &str) -> bool {
    name.contains(' ') || name.starts_with('$')
}
