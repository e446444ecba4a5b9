//! Contents of messages: text or octets, content types, headers and tags. In answers each is a slice of the
//! bytes that were loaded, so that they are copied once, when the answer is written.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use data_encoding::BASE64;
use schemars::json_schema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sluice_engine::blob::MessageBlob;
use sluice_engine::limits::{DOCUMENT_ATTRIBUTES_MAX, TAG_BYTES_MAX, TAGS_MAX};

use crate::schema::inline_schemas;

/// UTF-8 text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text(Bytes);

/// Octets that are no UTF-8 text: standard base64 with padding in JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Octets(Bytes);

/// The headers of a message, in the order sent.
#[derive(Clone, Debug)]
pub struct Headers(Bytes);

/// The tags of a message, in the order given.
#[derive(Clone, Debug)]
pub struct Tags(Bytes);

/// Names and values to keep with a content, each name once.
#[derive(Clone, Debug)]
pub(crate) struct Attributes(pub(crate) Vec<(String, String)>);

/// The name by which a source of JSON knows that an object is to be handed out as the text that it is
/// written in.
pub const JSON_OBJECT: &str = "JsonObject";

/// An object of JSON, as the text that it is written in; where requests are not JSON, a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonObject(pub(crate) String);

/// The payload of a blob and its content type; one of `text` and `octets`, or neither if there is no blob.
#[derive(Clone, Default, Debug)]
pub(crate) struct Content {
    /// The payload, if it is UTF-8.
    pub(crate) text: Option<Text>,
    /// The payload, if it is not.
    pub(crate) octets: Option<Octets>,
    /// Its content type, if it has one.
    pub(crate) content_type: Option<Text>,
}

impl Content {
    /// Reads a blob that is laid out as a payload. The node has verified it.
    pub(crate) fn of(bytes: Option<&Bytes>) -> Content {
        let parsed = bytes.and_then(|bytes| Some((bytes, MessageBlob::parse(bytes)?)));
        let Some((bytes, blob)) = parsed else { return Content::default() };
        let payload = bytes.slice_ref(blob.payload);
        let (text, octets) = match std::str::from_utf8(&payload) {
            Ok(_) => (Some(Text(payload)), None),
            Err(_) => (None, Some(Octets(payload))),
        };
        let content_type = Some(blob.content_type).filter(|content_type| !content_type.is_empty());
        Content {
            text,
            octets,
            content_type: content_type.map(|text| Text(bytes.slice_ref(text.as_bytes()))),
        }
    }
}

impl Headers {
    /// The headers of a blob; `None`: it has none.
    pub(crate) fn of(bytes: &Bytes) -> Option<Headers> {
        MessageBlob::parse(bytes)?.headers().next().map(|_| Headers(bytes.clone()))
    }
}

impl Tags {
    /// The tags of a blob; `None`: it has none.
    pub(crate) fn of(bytes: &Bytes) -> Option<Tags> {
        MessageBlob::parse(bytes)?.tags().next().map(|_| Tags(bytes.clone()))
    }
}

impl Text {
    /// Its bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl Octets {
    /// The octets.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Bytes> for Octets {
    fn from(octets: Bytes) -> Octets {
        Octets(octets)
    }
}

impl From<&[u8]> for Octets {
    fn from(octets: &[u8]) -> Octets {
        Octets(Bytes::copy_from_slice(octets))
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(&self.0);
        }
        // Borrowed: it was checked when it was made.
        serializer.serialize_str(&String::from_utf8_lossy(&self.0))
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        String::deserialize(deserializer).map(|text| Text(text.into()))
    }
}

impl<'de> Deserialize<'de> for Octets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Octets, D::Error> {
        if !deserializer.is_human_readable() {
            return deserializer.deserialize_bytes(AsTheyAre);
        }
        let text = Cow::<str>::deserialize(deserializer)?;
        let octets = BASE64.decode(text.as_bytes());
        octets
            .map(|octets| Octets(octets.into()))
            .map_err(|_| de::Error::custom("expected standard base64 with padding"))
    }
}

struct AsTheyAre;

impl de::Visitor<'_> for AsTheyAre {
    type Value = Octets;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("octets")
    }

    fn visit_bytes<E: de::Error>(self, octets: &[u8]) -> Result<Octets, E> {
        Ok(Octets::from(octets))
    }
}

impl Serialize for Octets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(&BASE64.encode_display(&self.0)),
            false => serializer.serialize_bytes(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for JsonObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonObject, D::Error> {
        deserializer.deserialize_newtype_struct(JSON_OBJECT, AsWritten)
    }
}

impl Serialize for JsonObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_str(&self.0);
        }
        let object: serde_json::Value = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        object.serialize(serializer)
    }
}

struct AsWritten;

impl<'de> de::Visitor<'de> for AsWritten {
    type Value = JsonObject;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<JsonObject, E> {
        Ok(JsonObject(text.to_owned()))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<JsonObject, D::Error> {
        String::deserialize(deserializer).map(JsonObject)
    }
}

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Attributes, D::Error> {
        deserializer.deserialize_map(EachOnce)
    }
}

struct EachOnce;

impl<'de> de::Visitor<'de> for EachOnce {
    type Value = Attributes;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object of texts")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Attributes, A::Error> {
        let mut all: Vec<(String, String)> = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            if all.len() == DOCUMENT_ATTRIBUTES_MAX {
                let reason = format!("there are too many: use at most {DOCUMENT_ATTRIBUTES_MAX}");
                return Err(de::Error::custom(reason));
            }
            if all.iter().any(|(other, _)| *other == name) {
                return Err(de::Error::duplicate_field("an attribute"));
            }
            all.push((name, value));
        }
        Ok(Attributes(all))
    }
}

impl Serialize for Headers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let blob = MessageBlob::parse(&self.0);
        serializer.collect_map(blob.iter().flat_map(MessageBlob::headers))
    }
}

impl Serialize for Tags {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let blob = MessageBlob::parse(&self.0);
        serializer.collect_seq(blob.iter().flat_map(MessageBlob::tags))
    }
}

inline_schemas! {
    Text: json_schema!({"type": "string"});
    Octets: json_schema!({"type": "string", "contentEncoding": "base64"});
    JsonObject: json_schema!({"type": "object"});
    Attributes: json_schema!({"type": "object", "additionalProperties": {"type": "string"}});
    Headers: json_schema!({"type": "object", "additionalProperties": {"type": "string"}});
    Tags: json_schema!({
        "type": "array", "maxItems": TAGS_MAX, "uniqueItems": true,
        "items": {"type": "string", "minLength": 1, "maxLength": TAG_BYTES_MAX},
    });
}

#[cfg(test)]
mod tests {
    use sluice_engine::blob::BlobHead;

    use super::*;

    fn blob(content_type: &str, headers: &[(&str, &str)], payload: &[u8]) -> Bytes {
        [BlobHead::default().build(content_type, headers), payload].concat().into()
    }

    fn json(value: &impl Serialize) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn a_payload_is_text_or_octets() {
        let content = Content::of(Some(&blob("text/plain", &[], "gr\u{fc}n".as_bytes())));
        assert_eq!(json(&(content.text, content.content_type)), "[\"gr\u{fc}n\",\"text/plain\"]");
        assert_eq!(content.octets, None);
        let content = Content::of(Some(&blob("", &[], b"\xff\x00")));
        assert_eq!((content.text, content.content_type), (None, None));
        assert_eq!(json(&content.octets), r#""/wA=""#);
        let content = Content::of(Some(&blob("", &[], b"")));
        assert_eq!(json(&content.text), r#""""#);
        assert!(Content::of(None).text.is_none());
    }

    #[test]
    fn contents_of_requests_are_read() {
        let read: (Text, Octets) = serde_json::from_str(r#"["gr\u00fcn","/wA="]"#).unwrap();
        assert_eq!(read, (Text("gr\u{fc}n".into()), Octets(b"\xff\x00"[..].into())));
        assert!(serde_json::from_str::<Octets>(r#""/wA""#).is_err());
    }

    #[test]
    fn headers_keep_their_order_and_tags_are_none_of_them() {
        // A tag is a field without a name.
        let both = blob("", &[("", "t"), ("b", "1"), ("a", "2"), ("", "s")], b"x");
        assert_eq!(json(&Headers::of(&both)), r#"{"b":"1","a":"2"}"#);
        assert_eq!(json(&Tags::of(&both)), r#"["t","s"]"#);
        let neither = blob("", &[], b"x");
        assert!(Headers::of(&neither).is_none() && Tags::of(&neither).is_none());
    }
}
