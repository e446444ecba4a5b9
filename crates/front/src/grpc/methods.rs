//! The methods with one request: each is an operation of the one table.

use std::collections::HashMap;
use std::sync::LazyLock;

use sluice_calls::Operation;

/// The beginning of the path of each method.
pub(super) const SERVICES: &str = "/sluice.v1.";

/// The operations by service and method: the path of the method behind [`SERVICES`].
static METHODS: LazyLock<HashMap<&'static str, Operation>> = LazyLock::new(|| all().collect());

/// Every method behind [`SERVICES`], and its operation.
pub(super) fn all() -> impl Iterator<Item = (&'static str, Operation)> {
    Operation::ALL.iter().filter_map(|operation| Some((operation.grpc()?, *operation)))
}

/// The operation of a method, by its path.
pub(super) fn operation_of(path: &str) -> Option<Operation> {
    operation_named(path.strip_prefix(SERVICES)?)
}

/// The operation of a method, by service and method, as in `Locks/Acquire`.
pub(super) fn operation_named(method: &str) -> Option<Operation> {
    METHODS.get(method).copied()
}
