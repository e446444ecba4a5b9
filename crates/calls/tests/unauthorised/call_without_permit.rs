//! A call takes the permit that authorisation answers.

use sluice_calls::{Asker, Unary, limits};

async fn handler(_asker: Asker<'_>) {
    let _ = limits::Delete {}.run().await;
}

fn main() {}
