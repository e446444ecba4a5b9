//! The parameters of operations that are not typed. Others are refused before anything is done.

use sluice_calls::Operation;

use super::handlers::results;
use super::raw;

/// The names of an operation's parameters.
pub(crate) fn parameters(operation: Operation) -> &'static [&'static str] {
    match operation {
        Operation::ReceiveRaw => raw::RECEIVE_PARAMS,
        Operation::ResultRaw => results::RESULT_PARAMS,
        _ => &[],
    }
}
