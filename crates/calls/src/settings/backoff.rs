//! The backoff of a queue or a message.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sluice_engine::settings::{self as engine, BackoffKind};

use crate::value::{Within, Word};

/// Delay before the next attempt of a message; what is left out takes its default.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Backoff {
    /// Growth of the delay: `none` no delay, `fixed` always `base_ms`, `linear` `base_ms` times the attempts
    /// so far, `exponential` twice as long with each attempt. Default: `exponential`.
    kind: Word<BackoffKind>,
    /// The first delay, in milliseconds. Default: 1,000.
    base_ms: Within<0, { u64::MAX }>,
    /// The longest delay, in milliseconds. Default: 600,000.
    cap_ms: Within<0, { u64::MAX }>,
    /// Random variation of the delay, up and down, in percent. Default: 10.
    jitter_percent: Within<0, 100>,
}

impl Default for Backoff {
    fn default() -> Backoff {
        engine::Backoff::default().into()
    }
}

impl From<engine::Backoff> for Backoff {
    fn from(backoff: engine::Backoff) -> Backoff {
        Backoff {
            kind: Word(backoff.kind),
            base_ms: Within::clamped(backoff.base_ms),
            cap_ms: Within::clamped(backoff.cap_ms),
            jitter_percent: Within::clamped(backoff.jitter_percent.into()),
        }
    }
}

impl From<Backoff> for engine::Backoff {
    fn from(backoff: Backoff) -> engine::Backoff {
        engine::Backoff {
            kind: backoff.kind.0,
            base_ms: backoff.base_ms.get(),
            cap_ms: backoff.cap_ms.get(),
            jitter_percent: backoff.jitter_percent.get() as u8,
        }
    }
}
