//! Settings of queues: as a request changes them, and as an answer shows them.
//!
//! The table below is the one list of them: each row is a field of [`QueueSettingsPatch`] and of
//! [`QueueSettings`].

mod backoff;
mod fair_weights;
mod kinds;
mod push;

use schemars::JsonSchema;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use sluice_engine::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, LEASE_MS_MAX, RETAIN_DONE_COUNT_MAX};
use sluice_engine::push::{
    PUSH_CONCURRENCY_MAX, PUSH_RATE_MAX, PUSH_TIMEOUT_MS, PushSecrets as KnownSecrets,
};
use sluice_engine::search::SearchKinds;
use sluice_engine::settings::{self as engine, OnExpire, OrderingRetry, Overflow, Placement, QueuePatch};
use sluice_push::Pushes;

use crate::fault::{Fault, Read};
use crate::value::{Within, Word};
pub use backoff::Backoff;
pub use fair_weights::FairWeights;
use kinds::{Always, Setting, Shown, UnlessNew};
pub use push::{PushHeaders, PushSecrets};

type Attempts = Within<1, { ATTEMPTS_MAX as u64 }>;
type Deliveries = Within<1, { u16::MAX as u64 }>;
type Lease = Within<1, LEASE_MS_MAX>;
type Time = Within<0, DELAY_MS_MAX>;
type Number = Within<0, { u64::MAX }>;
type PushTimeout = Within<{ PUSH_TIMEOUT_MS.0 as u64 }, { PUSH_TIMEOUT_MS.1 as u64 }>;
type PushConcurrency = Within<1, { PUSH_CONCURRENCY_MAX as u64 }>;
type PushRate = Within<0, { PUSH_RATE_MAX as u64 }>;
type RetainDoneCount = Within<0, { RETAIN_DONE_COUNT_MAX as u64 }>;

macro_rules! queue_settings {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty => $shown:ident,)+) => {
        /// Settings of a queue to change; what is left out keeps its value.
        #[derive(Clone, PartialEq, Default, Debug, Deserialize, Serialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        #[schemars(example = json!({"lease_ms": 60_000}))]
        pub struct QueueSettingsPatch {
            $($(#[doc = $doc])+
            #[serde(skip_serializing_if = "Option::is_none")]
            $name: Option<$type>,)+
        }

        /// The settings of a queue.
        #[derive(Clone, PartialEq, Debug, JsonSchema)]
        pub struct QueueSettings {
            $($(#[doc = $doc])+ $name: $shown<$type>,)+
        }

        impl Serialize for QueueSettings {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let names = [$(stringify!($name)),+];
                let mut out = serializer.serialize_struct("QueueSettings", names.len())?;
                $(match Shown::<$type>::shown(&self.$name) {
                    Some(value) => out.serialize_field(stringify!($name), value)?,
                    None => out.skip_field(stringify!($name))?,
                })+
                out.end()
            }
        }

        impl From<QueueSettingsPatch> for QueuePatch {
            fn from(patch: QueueSettingsPatch) -> QueuePatch {
                QueuePatch { $($name: patch.$name.map(Setting::into_engine),)+ }
            }
        }

        impl From<&QueuePatch> for QueueSettingsPatch {
            fn from(patch: &QueuePatch) -> QueueSettingsPatch {
                QueueSettingsPatch { $($name: patch.$name.as_ref().map(Setting::of_engine),)+ }
            }
        }

        impl From<&engine::QueueSettings> for QueueSettings {
            fn from(settings: &engine::QueueSettings) -> QueueSettings {
                let new = engine::QueueSettings::default();
                QueueSettings {
                    $($name: Shown::<$type>::of(
                        Setting::of_engine(&settings.$name),
                        &Setting::of_engine(&new.$name),
                    ),)+
                }
            }
        }
    };
}

// Each row: the description, the name, the type with its range, and whether an answer always shows the
// setting or leaves it out while it is as in a new queue. Answers list them in this order.
queue_settings! {
    /// Lease of a receive that names none, in milliseconds; 30,000 in a new queue.
    lease_ms: Lease => Always,
    /// Attempts of a message that names none; 5 in a new queue.
    max_attempts: Attempts => Always,
    /// Deliveries, counted as attempts or not, after which a message becomes a dead letter; 100 in a new
    /// queue.
    max_deliveries: Deliveries => Always,
    /// Backoff of a message that names none.
    backoff: Backoff => Always,
    /// Messages that each fair key gives in its turn, by key; a key that is not named gives 1.
    fair_weights: FairWeights => UnlessNew,
    /// Effect of a message that waits for its time on the others with its ordering key: `block` makes them
    /// wait for it, `step_aside` lets them go on. `block` in a new queue.
    ordering_retry: Word<OrderingRetry> => Always,
    /// Which of several consumers with credit gets the next message: `fair` each in turn, `least_loaded` the
    /// one that holds the fewest, `sticky` the one that had the last message with the same ordering key.
    /// `fair` in a new queue.
    placement: Word<Placement> => UnlessNew,
    /// Name of the limit that the queue follows; empty: none.
    limit: String => UnlessNew,
    /// Time for which a finished message stays readable, in milliseconds since its ack; 0: no time limit, as
    /// in a new queue. Finished messages are kept when this or `retain_done_count` is not 0.
    retain_done_ms: Time => Always,
    /// Maximum number of finished messages that stay readable, the oldest dropped first; 0: no maximum, as in
    /// a new queue.
    retain_done_count: RetainDoneCount => Always,
    /// Treatment of a message that still waits when its time to live is over: `dead_letter` makes it a dead
    /// letter, `drop` drops it. `dead_letter` in a new queue.
    on_expire: Word<OnExpire> => UnlessNew,
    /// Maximum number of messages that wait or are leased; 0: no limit, as in a new queue.
    max_messages: Number => Always,
    /// Maximum number of bytes of the messages that wait or are leased; 0: no limit, as in a new queue.
    max_bytes: Number => Always,
    /// Treatment of a send that would exceed `max_messages` or `max_bytes`: `refuse_new` refuses it,
    /// `dead_letter_oldest` makes dead letters of those that were sent first. `refuse_new` in a new queue.
    overflow: Word<Overflow> => UnlessNew,
    /// Longest time that a message may wait, in milliseconds since it came to the queue; 0: no limit, as in a
    /// new queue.
    max_age_ms: Time => Always,
    /// Name of the queue that dead letters move to; empty: they stay.
    dead_letter_queue: String => UnlessNew,
    /// Purpose of the queue, for people; up to 255 bytes, may be empty.
    description: String => UnlessNew,
    /// Address of the endpoint that messages are pushed to, `https://HOST[:PORT][/PATH][?QUERY]`, up to 2,048
    /// bytes; empty: they are not pushed. Whoever may see the queue sees it.
    push_url: String => UnlessNew,
    /// Secrets that pushes are signed with, at most 4: `whsec_` and the base64 of 24 to 64 random bytes each.
    /// Answers tell their fingerprints, and a fingerprint stands for the secret that the queue has.
    push_secrets: PushSecrets => UnlessNew,
    /// Time for a push until the head of its answer, in milliseconds; 15,000 in a new queue.
    push_timeout_ms: PushTimeout => UnlessNew,
    /// Maximum number of pushes at a time, each over a connection of its own; 16 in a new queue.
    push_concurrency: PushConcurrency => UnlessNew,
    /// Maximum number of pushes that begin in a second; 0: no maximum, as in a new queue.
    push_rate: PushRate => UnlessNew,
    /// Headers that pushes get, at most 16. Whoever may see the queue sees them.
    push_headers: PushHeaders => UnlessNew,
    /// True when nothing is pushed; false in a new queue. An endpoint that answers 410 sets it.
    push_paused: bool => UnlessNew,
    /// Index by which searches find messages without a look at each of them: `tags`, `errors` (their
    /// fingerprints), `tags_and_errors`; `none` in a new queue.
    search_index: Word<SearchKinds> => UnlessNew,
    /// True when the queue delivers nothing; false in a new queue.
    paused: bool => Always,
    /// True when the queue refuses sends; false in a new queue.
    closed: bool => Always,
}

impl QueueSettingsPatch {
    /// True if it names secrets by their fingerprints, for which the present ones have to be known.
    pub(crate) fn keeps_secrets(&self) -> bool {
        self.push_secrets.as_ref().is_some_and(PushSecrets::keeps_some)
    }

    /// The same with the secrets behind fingerprints, of those known.
    ///
    /// # Errors
    /// `invalid_argument`: none has such a fingerprint.
    pub(crate) fn with_secrets_of(self, known: &KnownSecrets) -> Read<QueueSettingsPatch> {
        let push_secrets = self.push_secrets.map(|secrets| secrets.found_in(known)).transpose()?;
        Ok(QueueSettingsPatch { push_secrets, ..self })
    }

    /// Checks the endpoint and the headers of its pushes.
    ///
    /// # Errors
    /// `invalid_argument`.
    pub(crate) fn check_push(&self, pushes: &Pushes) -> Read<()> {
        if let Some(url) = self.push_url.as_deref().filter(|url| !url.is_empty()) {
            pushes.check_url(url).map_err(|reason| Fault::invalid(reason).inside("push_url"))?;
        }
        for (name, value) in self.push_headers.iter().flat_map(|headers| headers.0.0.iter()) {
            let checked = pushes.check_header(name, value);
            checked.map_err(|reason| Fault::invalid(reason).inside("push_headers"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<QueueSettingsPatch, serde_json::Error> {
        serde_json::from_value(serde_json::from_str(json)?)
    }

    fn patch(json: &str) -> QueuePatch {
        read(json).unwrap().into()
    }

    #[test]
    fn a_new_queue_shows_what_is_always_shown() {
        let shown = QueueSettings::from(&engine::QueueSettings::default());
        assert_eq!(
            serde_json::to_string(&shown).unwrap(),
            r#"{"lease_ms":30000,"max_attempts":5,"max_deliveries":100,"backoff":{"kind":"exponential","base_ms":1000,"cap_ms":600000,"jitter_percent":10},"ordering_retry":"block","retain_done_ms":0,"retain_done_count":0,"max_messages":0,"max_bytes":0,"max_age_ms":0,"paused":false,"closed":false}"#
        );
        // They can be sent as they were shown.
        let mut settings = engine::QueueSettings { lease_ms: 1, ..engine::QueueSettings::default() };
        settings.change(&patch(&serde_json::to_string(&shown).unwrap()));
        assert_eq!(settings, engine::QueueSettings::default());
        let schema = schemars::schema_for!(QueueSettings);
        let required = schema.get("required").unwrap().as_array().unwrap();
        assert!(required.iter().any(|name| name == "closed") && required.iter().all(|name| name != "limit"));
        assert_eq!(required.len(), 12);
    }

    #[test]
    fn settings_that_differ_from_a_new_queue_are_shown_as_they_were_sent() {
        let json = r#"{"lease_ms":1000,"max_attempts":2,"max_deliveries":3,"backoff":{"kind":"fixed","base_ms":7,"cap_ms":8,"jitter_percent":9},"fair_weights":{"a \"":7,"b":2},"ordering_retry":"step_aside","placement":"sticky","limit":"shop","retain_done_ms":4,"retain_done_count":5,"on_expire":"drop","max_messages":7,"max_bytes":8,"overflow":"dead_letter_oldest","max_age_ms":9,"dead_letter_queue":"dead","push_url":"https://a/","push_timeout_ms":500,"push_concurrency":3,"push_rate":7,"push_headers":{"x-a":"b"},"push_paused":true,"search_index":"tags_and_errors","paused":true,"closed":true}"#;
        let patch = patch(json);
        assert_eq!(serde_json::to_string(&QueueSettingsPatch::from(&patch)).unwrap(), json);
        let mut settings = engine::QueueSettings::default();
        settings.change(&patch);
        assert_eq!((settings.fair_weights.of(b"a \""), settings.fair_weights.of(b"c")), (7, 1));
        assert_eq!(serde_json::to_string(&QueueSettings::from(&settings)).unwrap(), json);
    }

    #[test]
    fn a_patch_holds_only_what_it_names() {
        assert_eq!(patch("{}"), QueuePatch::default());
        let backoff = patch(r#"{"backoff":{"base_ms":5}}"#).backoff;
        assert_eq!(backoff, Some(engine::Backoff { base_ms: 5, ..engine::Backoff::default() }));
        // What is given and empty is told from what is left out.
        let cleared = r#"{"fair_weights":{},"limit":""}"#;
        assert_eq!(serde_json::to_string(&QueueSettingsPatch::from(&patch(cleared))).unwrap(), cleared);
        assert!(read(r#"{"lease_ms":0}"#).is_err());
        assert!(read(r#"{"backoff":{"kind":"cubic"}}"#).is_err());
    }
}
