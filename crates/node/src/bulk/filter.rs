//! The filter of a bulk.

use bytes::Bytes;
use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::change::Verb;
use sluice_engine::limits::TAG_BYTES_MAX;
use sluice_engine::query::{MessageView, State};

/// Selection of messages of a queue; `None`: no condition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Name of the queue.
    pub queue: String,
    /// State of the messages.
    pub state: Option<State>,
    /// A tag that they have.
    pub tag: Option<String>,
    /// A header that they have.
    pub header: Option<HeaderIs>,
    /// Upper limit (exclusive) of the time of sending, in milliseconds since the Unix epoch.
    pub sent_before_ms: Option<u64>,
    /// Lower limit (inclusive) of the time of sending, in milliseconds since the Unix epoch.
    pub sent_after_ms: Option<u64>,
    /// Minimum number of attempts begun.
    pub attempts_min: Option<u16>,
    /// Text in the error of one of the remembered attempts.
    pub error_contains: Option<String>,
}

/// A header with a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderIs {
    /// Name of the header.
    pub name: String,
    /// Its whole value.
    pub value: String,
}

/// The bytes of a message in the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// Headers, tags, payload.
    pub(super) blob: Option<Bytes>,
    /// Tags that replace those in `blob`.
    pub(super) tags: Option<Bytes>,
    pub(super) errors: Vec<Bytes>,
}

impl Filter {
    /// Refuses a filter that matches no message to which this change can be made.
    pub(super) fn check(&self, verb: Verb) -> Result<(), Error> {
        let refuse = |field: &str, reason: String| {
            Err(Error::InvalidArgument { field: format!("filter.{field}"), reason })
        };
        if let Some(state) = self.state.filter(|state| !verb.states().contains(state)) {
            let names: Vec<_> = verb.states().iter().map(|state| state.name()).collect();
            let reason =
                format!("{} is possible for {}, not for {}", verb.name(), names.join(", "), state.name());
            return refuse("state", reason);
        }
        if let (Some(after), Some(before)) = (self.sent_after_ms, self.sent_before_ms)
            && after >= before
        {
            return refuse("sent_after_ms", format!("{after} is not before sent_before_ms {before}"));
        }
        if let Some(tag) = self.tag.as_ref().filter(|tag| tag.is_empty() || tag.len() > TAG_BYTES_MAX) {
            return refuse("tag", format!("{} bytes: a tag has 1 to {TAG_BYTES_MAX}", tag.len()));
        }
        if self.header.as_ref().is_some_and(|header| header.name.is_empty()) {
            return refuse("header.name", "no header has an empty name".to_owned());
        }
        if self.error_contains.as_ref().is_some_and(String::is_empty) {
            return refuse("error_contains", "give at least one character, or leave it out".to_owned());
        }
        Ok(())
    }

    /// True when a message matches as far as its index shows.
    pub(super) fn matches_index(&self, view: &MessageView) -> bool {
        let sent_at_ms = view.sent_at_us / 1_000;
        self.state.is_none_or(|state| state == view.state)
            && self.sent_before_ms.is_none_or(|before| sent_at_ms < before)
            && self.sent_after_ms.is_none_or(|after| sent_at_ms >= after)
            && self.attempts_min.is_none_or(|least| view.attempts >= least)
    }

    /// True when the filter needs bytes from the log.
    pub(super) fn needs_bytes(&self) -> bool {
        self.needs_blob() || self.error_contains.is_some()
    }

    /// True when the filter needs the headers or tags that a message was sent with.
    pub(super) fn needs_blob(&self) -> bool {
        self.tag.is_some() || self.header.is_some()
    }

    /// True when the bytes of a message match.
    pub(super) fn matches_bytes(&self, bytes: &Content) -> bool {
        let blob = bytes.blob.as_deref().and_then(MessageBlob::parse);
        let tagged = bytes.tags.as_deref().map_or(blob, MessageBlob::parse);
        let has_tag = |tag: &String| tagged.is_some_and(|blob| blob.tags().any(|other| other == tag));
        let has_header = |is: &HeaderIs| {
            blob.is_some_and(|blob| blob.headers().any(|(name, value)| name == is.name && value == is.value))
        };
        let has_error = |text: &String| {
            bytes.errors.iter().any(|error| String::from_utf8_lossy(error).contains(text.as_str()))
        };
        self.tag.as_ref().is_none_or(has_tag)
            && self.header.as_ref().is_none_or(has_header)
            && self.error_contains.as_ref().is_none_or(has_error)
    }
}
