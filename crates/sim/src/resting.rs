//! Time after which the journals of a seed's runs rest.

use std::time::Duration;

use crate::rng::Rng;

/// Draws the time without batches after which a journal rests. `rng` is used for nothing else, so that the
/// other draws of a seed do not change.
pub(crate) fn draw(mut rng: Rng) -> Duration {
    Duration::from_millis(*rng.pick(&[1, 100, 60_000]))
}
