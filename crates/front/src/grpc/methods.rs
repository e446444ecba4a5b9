//! The methods with one request: each is an operation of the one table.

use std::collections::HashMap;
use std::sync::LazyLock;

use sluice_calls::Operation;

/// The operations by the path of their method behind `/sluice.v1.`.
static METHODS: LazyLock<HashMap<&'static str, Operation>> = LazyLock::new(|| all().collect());

/// Every method behind `/sluice.v1.`, and its operation.
pub(super) fn all() -> impl Iterator<Item = (&'static str, Operation)> {
    Operation::ALL.iter().filter_map(|operation| Some((operation.grpc()?, *operation)))
}

/// The operation of a method, by its path.
pub(super) fn operation_of(path: &str) -> Option<Operation> {
    METHODS.get(path.strip_prefix("/sluice.v1.")?).copied()
}
