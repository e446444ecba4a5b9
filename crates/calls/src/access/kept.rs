//! The decision on a request in a namespace, with the rule for the namespace that the server keeps for
//! itself.

use super::SYS;
use super::identity::{Caller, Denied, Target};
use super::right::Right;

/// True for the namespace that the server keeps for itself.
pub fn is_kept(namespace: &str) -> bool {
    namespace == SYS
}

/// Checks that a caller has a right at a target in a namespace.
///
/// # Errors
/// `forbidden`, `unauthenticated`, or `rate_limited`.
pub fn decide(
    caller: &Caller,
    right: Right,
    namespace: Option<&str>,
    target: Target<'_>,
) -> Result<(), Denied> {
    match namespace.filter(|namespace| is_kept(namespace)) {
        Some(namespace) => check_kept(caller, right, namespace),
        None => caller.may(right, target),
    }
}

/// Checks the right at a namespace that the server keeps for itself: administrators may read it, and nobody
/// may change it.
///
/// # Errors
/// `forbidden`, `unauthenticated`, or `rate_limited`.
pub fn check_kept(caller: &Caller, right: Right, namespace: &str) -> Result<(), Denied> {
    caller.may(Right::Admin, Target::Server)?;
    match right {
        Right::Observe | Right::Result | Right::Read => Ok(()),
        _ => Err(Denied {
            code: "forbidden",
            message: format!(
                "the server keeps namespace {namespace:?} for itself: nobody else may change it"
            ),
            retry_after_ms: None,
        }),
    }
}
