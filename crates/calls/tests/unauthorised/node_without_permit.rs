//! The node is out of reach.

use sluice_calls::Calls;

fn handler(calls: &Calls) {
    let _ = calls.node().metrics();
}

fn main() {}
