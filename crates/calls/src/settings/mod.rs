//! Settings of queues and messages.

mod backoff;

use sluice_engine::settings::BackoffKind;

pub use backoff::Backoff;

use crate::value::words;

words! {
    BackoffKind:
        "none" = BackoffKind::None,
        "fixed" = BackoffKind::Fixed,
        "linear" = BackoffKind::Linear,
        "exponential" = BackoffKind::Exponential;
}
