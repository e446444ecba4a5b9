//! The filter of a bulk.

use bytes::Bytes;
use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::change::Verb;
use sluice_engine::limits::TAG_BYTES_MAX;
use sluice_engine::query::{MessageView, State};

/// Selection of messages of a queue; conditions that are not given do not count.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Name of the queue.
    pub queue: String,
    /// In this state.
    pub state: Option<State>,
    /// With this tag.
    pub tag: Option<String>,
    /// With this header.
    pub header: Option<HeaderIs>,
    /// Sent before this time, in milliseconds since the Unix epoch.
    pub sent_before_ms: Option<u64>,
    /// Sent at this time or later.
    pub sent_after_ms: Option<u64>,
    /// With at least so many attempts begun.
    pub attempts_min: Option<u16>,
    /// With this text in the error of one of their remembered attempts.
    pub error_contains: Option<String>,
}

/// A header with a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderIs {
    /// Its name.
    pub name: String,
    /// Its whole value.
    pub value: String,
}

/// What of a message lies in the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// Headers, tags, payload.
    pub(super) blob: Option<Bytes>,
    /// Tags that replace those in `blob`.
    pub(super) tags: Option<Bytes>,
    pub(super) errors: Vec<Bytes>,
}

impl Filter {
    /// Refuses a filter that no message can match to which this can be done.
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

    /// Whether a message matches as far as its index tells.
    pub(super) fn matches_index(&self, view: &MessageView) -> bool {
        let sent_at_ms = view.sent_at_us / 1_000;
        self.state.is_none_or(|state| state == view.state)
            && self.sent_before_ms.is_none_or(|before| sent_at_ms < before)
            && self.sent_after_ms.is_none_or(|after| sent_at_ms >= after)
            && self.attempts_min.is_none_or(|least| view.attempts >= least)
    }

    /// Whether the rest is in the log.
    pub(super) fn needs_bytes(&self) -> bool {
        self.needs_blob() || self.error_contains.is_some()
    }

    /// Whether the headers or tags that it was sent with are needed.
    pub(super) fn needs_blob(&self) -> bool {
        self.tag.is_some() || self.header.is_some()
    }

    /// Whether the rest matches.
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
