//! Settings of a queue that pushes: secrets, which answers tell by their fingerprints alone, and headers.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};
use sluice_engine::push::{self as engine, PUSH_HEADERS_MAX, PUSH_SECRETS_MAX, PushUrl};
use sluice_push::secret;

use super::kinds::Setting;
use crate::fault::{Fault, Read};

/// Secrets that pushes are signed with.
#[derive(Clone, PartialEq, Debug)]
pub struct PushSecrets(Vec<PushSecret>);

/// A secret, or its fingerprint.
#[derive(Clone, PartialEq)]
enum PushSecret {
    Key(Box<[u8]>),
    Fingerprint(String),
}

/// Tells the fingerprint alone.
impl fmt::Debug for PushSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fingerprint())
    }
}

impl PushSecret {
    fn fingerprint(&self) -> Cow<'_, str> {
        match self {
            PushSecret::Key(key) => secret::fingerprint(key).into(),
            PushSecret::Fingerprint(fingerprint) => fingerprint.into(),
        }
    }
}

impl PushSecrets {
    /// True if some are named by their fingerprints: they are to stay.
    pub(super) fn keeps_some(&self) -> bool {
        self.0.iter().any(|secret| matches!(secret, PushSecret::Fingerprint(_)))
    }

    /// The same with the secrets behind fingerprints.
    ///
    /// # Errors
    /// `invalid_argument`: none of those known has this fingerprint.
    pub(super) fn found_in(self, known: &engine::PushSecrets) -> Read<PushSecrets> {
        let find = |(at, named): (usize, PushSecret)| match named {
            PushSecret::Key(key) => Ok(PushSecret::Key(key)),
            PushSecret::Fingerprint(named) => {
                let found = known.0.iter().find(|key| secret::fingerprint(key) == named);
                found.cloned().map(PushSecret::Key).ok_or_else(|| {
                    let reason =
                        format!("there is no secret with the fingerprint {named}: give the secret itself");
                    Fault::invalid(reason).inside(&format!("push_secrets[{at}]"))
                })
            }
        };
        self.0.into_iter().enumerate().map(find).collect::<Read<_>>().map(PushSecrets)
    }
}

impl<'de> Deserialize<'de> for PushSecrets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        if texts.len() > PUSH_SECRETS_MAX {
            return Err(de::Error::custom(format_args!("too many secrets: use at most {PUSH_SECRETS_MAX}")));
        }
        let read = |text: String| match text.starts_with(secret::FINGERPRINT_PREFIX) {
            true => Ok(PushSecret::Fingerprint(text)),
            false => secret::parse(&text).map(PushSecret::Key).map_err(de::Error::custom),
        };
        texts.into_iter().map(read).collect::<Result<_, _>>().map(PushSecrets)
    }
}

impl Serialize for PushSecrets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(PushSecret::fingerprint))
    }
}

impl JsonSchema for PushSecrets {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PushSecrets".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "array", "items": {"type": "string"}, "maxItems": PUSH_SECRETS_MAX})
    }
}

/// Headers that pushes get.
#[derive(Clone, PartialEq, Debug)]
pub struct PushHeaders(pub(super) engine::PushHeaders);

impl<'de> Deserialize<'de> for PushHeaders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeadersVisitor)
    }
}

struct HeadersVisitor;

impl<'de> Visitor<'de> for HeadersVisitor {
    type Value = PushHeaders;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PushHeaders, A::Error> {
        let mut headers: Vec<(Box<str>, Box<str>)> = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            if headers.len() == PUSH_HEADERS_MAX {
                return Err(de::Error::custom(format_args!(
                    "too many headers: use at most {PUSH_HEADERS_MAX}"
                )));
            }
            headers.push((name.into(), value.into()));
        }
        let count = headers.len();
        let headers = engine::PushHeaders::new(headers);
        if headers.0.len() < count {
            // Without a name: the fault is in the object as a whole.
            return Err(de::Error::duplicate_field(""));
        }
        Ok(PushHeaders(headers))
    }
}

impl Serialize for PushHeaders {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.0.iter().map(|(name, value)| (name, value)))
    }
}

impl JsonSchema for PushHeaders {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PushHeaders".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object", "additionalProperties": {"type": "string"}, "maxProperties": PUSH_HEADERS_MAX,
        })
    }
}

impl Setting<PushUrl> for String {
    fn of_engine(value: &PushUrl) -> Self {
        value.0.to_string()
    }

    fn into_engine(self) -> PushUrl {
        PushUrl(self.into())
    }
}

impl Setting<engine::PushSecrets> for PushSecrets {
    fn of_engine(value: &engine::PushSecrets) -> Self {
        PushSecrets(value.0.iter().cloned().map(PushSecret::Key).collect())
    }

    /// The secrets that are given; [`PushSecrets::found_in`] comes before, for those named by fingerprints.
    fn into_engine(self) -> engine::PushSecrets {
        let key = |secret| match secret {
            PushSecret::Key(key) => Some(key),
            PushSecret::Fingerprint(_) => None,
        };
        engine::PushSecrets(self.0.into_iter().filter_map(key).collect())
    }
}

impl Setting<engine::PushHeaders> for PushHeaders {
    fn of_engine(value: &engine::PushHeaders) -> Self {
        PushHeaders(value.clone())
    }

    fn into_engine(self) -> engine::PushHeaders {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn secrets_are_told_by_their_fingerprints_and_kept_by_them() {
        let given: PushSecrets = from_value(json!([SECRET])).unwrap();
        let known = given.clone().into_engine();
        let shown = to_value(&given).unwrap();
        assert!(shown[0].as_str().unwrap().starts_with("sha256:"), "{shown}");
        assert!(!format!("{given:?} {known:?}").contains("MfKQ"));
        let again: PushSecrets = from_value(shown).unwrap();
        assert!(again.keeps_some() && !given.keeps_some());
        assert_eq!(again.found_in(&known).unwrap().into_engine(), known);
        let unknown: PushSecrets = from_value(json!(["sha256:0000"])).unwrap();
        let fault = unknown.found_in(&known).unwrap_err();
        assert_eq!(fault.field, "push_secrets[0]");
    }

    #[test]
    fn what_is_no_secret_is_refused_without_being_told() {
        for wrong in [json!(["whsec_c2VjcmV0"]), json!(["secret"]), json!(vec![SECRET; 5])] {
            let error = from_value::<PushSecrets>(wrong).unwrap_err().to_string();
            assert!(!error.contains("c2VjcmV0") && !error.contains("MfKQ"), "{error}");
        }
    }

    #[test]
    fn headers_have_each_name_once() {
        let of = |text: &str| serde_json::from_str::<PushHeaders>(text);
        assert!(of(r#"{"a":"1","a":"2"}"#).is_err());
        assert_eq!(to_value(of(r#"{"b":"1","a":"2"}"#).unwrap()).unwrap(), json!({"a": "2", "b": "1"}));
    }
}
