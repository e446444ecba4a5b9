//! `depends_on`: the messages that a message waits for.

use sluice_engine::id::MessageId;
use sluice_engine::item::DependsOn;
use sluice_engine::limits::PARENTS_MAX;

use sluice_calls::fault::{Fault, Read, clip};

use super::source::Source;

/// The parents of a message, as they were read.
#[derive(Debug, Default)]
pub(crate) struct Parents {
    /// Each as [`DependsOn::id_bytes`] gives it.
    pub(crate) ids: Vec<[u8; 12]>,
    /// Places in the send, as little-endian bytes.
    pub(crate) places: Vec<[u8; 4]>,
}

impl Parents {
    /// Reads a list of ids, and of places like `"#0"`.
    pub(crate) fn read<'a>(source: &mut impl Source<'a>) -> Read<Parents> {
        let mut parents = Parents::default();
        let mut count = 0u64;
        source.array(|source, _| {
            count += 1;
            let text = source.string()?;
            let text = text.get(source.scratch());
            if count <= PARENTS_MAX as u64 {
                parents.add(text)?;
            }
            Ok(())
        })?;
        if !(1..=PARENTS_MAX as u64).contains(&count) {
            return Err(Fault::invalid(format!("expected 1 to {PARENTS_MAX} ids, got {count}")));
        }
        Ok(parents)
    }

    fn add(&mut self, text: &str) -> Read<()> {
        if let Some(place) = text.strip_prefix('#') {
            let digits = !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit());
            let place: Option<u32> = if digits { place.parse().ok() } else { None };
            let reason = || {
                format!(
                    "{:?} is not the place of a message in this send: use \"#0\" for its first",
                    clip(text)
                )
            };
            let place = place.ok_or_else(|| Fault::invalid(reason()))?;
            self.places.push(place.to_le_bytes());
        } else {
            self.ids.push(DependsOn::id_bytes(text.parse::<MessageId>()?));
        }
        Ok(())
    }
}
