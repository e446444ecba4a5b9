//! What a reader of events asks for.

use sluice_calls::access::Patterns;
use sluice_engine::event::EventKind;
use sluice_node::{EventPosition, Told, ToldDetail};

use crate::http::route::call::Call;
use crate::json::{Fault, Read};

/// Parameters of the feed of a namespace.
pub(crate) const EVENTS_PARAMS: &[&str] = &["types", "queue", "after"];
/// Parameters of the feed of a queue.
pub(crate) const QUEUE_EVENTS_PARAMS: &[&str] = &["types", "after"];
/// The field in which browsers say where they were.
const LAST_EVENT_ID: &str = "last-event-id";

/// Which events, and from where on.
#[derive(Debug)]
pub(crate) struct Asked {
    /// One bit for each kind.
    kinds: u32,
    queues: Option<Patterns>,
    /// `None`: from now on.
    pub(crate) after: Option<EventPosition>,
}

const _: () = assert!(EventKind::ALL.len() <= 32, "each kind has a bit");

impl Asked {
    /// Reads parameters and fields of a call.
    pub(crate) fn read(call: &Call<'_>) -> Read<Asked> {
        let params = call.query()?;
        let kinds = match params.text("types") {
            None => u32::MAX,
            Some(text) => read_kinds(text).map_err(|fault| fault.inside("types"))?,
        };
        let pattern = params
            .text("queue")
            .map(|text| Patterns::new(&[text]).map_err(|(_, reason)| Fault::invalid(reason).inside("queue")));
        // A browser calls again with the address that it was given and, in the field, where it was.
        let field = call.head.headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty());
        let after = match field {
            Some(value) => {
                Some(read_position(value.as_bytes()).map_err(|fault| fault.inside("Last-Event-ID"))?)
            }
            None => {
                let after = params.text("after").map(|text| read_position(text.as_bytes()));
                after.transpose().map_err(|fault| fault.inside("after"))?
            }
        };
        Ok(Asked { kinds, queues: pattern.transpose()?, after })
    }

    /// Whether the reader wants this one.
    pub(super) fn wants(&self, told: &Told) -> bool {
        let from = match &told.detail {
            ToldDetail::From(from) => Some(from),
            _ => None,
        };
        let fits = |queues: &Patterns| queues.fit(&told.queue) || from.is_some_and(|from| queues.fit(from));
        self.kinds & bit(told.kind) != 0 && self.queues.as_ref().is_none_or(fits)
    }
}

fn bit(kind: EventKind) -> u32 {
    1 << kind as u32
}

fn read_kinds(text: &str) -> Read<u32> {
    let mut kinds = 0;
    for name in text.split(',') {
        let kind = EventKind::by_name(name).ok_or_else(|| Fault::one_of(EventKind::NAMES, name))?;
        kinds |= bit(kind);
    }
    Ok(kinds)
}

fn read_position(text: &[u8]) -> Read<EventPosition> {
    let position = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    position.ok_or_else(|| {
        let got: String = String::from_utf8_lossy(text).chars().take(64).collect();
        Fault::invalid(format!("{got:?} is not the id of an event: give the last one that came, or none"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_by_name() {
        assert_eq!(read_kinds("sent,acked").unwrap(), bit(EventKind::Sent) | bit(EventKind::Acked));
        assert_eq!(read_kinds("dropped,dropped").unwrap(), bit(EventKind::Dropped));
        for bad in ["sent,", "Sent", "sent acked", "gap"] {
            let fault = read_kinds(bad).unwrap_err();
            assert_eq!(fault.code, "invalid_argument");
            assert!(fault.reason.contains("expected one of sent, delayed, due"), "{}", fault.reason);
        }
    }

    #[test]
    fn noise_is_no_position() {
        let mut random = sluice_calls::testing::Random(23);
        for _ in 0..20_000 {
            let mut text = b"1795262113283000-42-1-1".to_vec();
            random.mutate(&mut text);
            if let Ok(position) = read_position(&text) {
                assert_eq!(position.to_string().parse(), Ok(position));
            }
        }
        assert!(read_position(b"\xff").is_err());
    }
}
