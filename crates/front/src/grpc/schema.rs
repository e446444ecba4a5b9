//! Tables made from the package's descriptors: the messages with their fields, and the messages of each call.
//!
//! Three things differ between the contract and JSON. Octets are one field here, and there text, or base64 in
//! a field of their own. Names with values, in an order that counts, are a list of [`Kind::Entries`] here and
//! an object there. And a list that may be given and empty is a message with the one field `values`, which
//! stands for what is in it.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FileDescriptorSet, MethodDescriptorProto};

/// The one field of a message that stands for what is in it.
const VALUES: &str = "values";

/// Every message and call of the package.
#[derive(Debug)]
pub(super) struct Schema {
    messages: Vec<MessageType>,
    /// The place of each, by its name without the package's.
    names: HashMap<String, usize>,
    /// Request and answer of each call, by its path.
    calls: HashMap<String, (usize, usize)>,
}

/// A message.
#[derive(Debug)]
pub(super) struct MessageType {
    /// The fields, by number.
    pub(super) fields: Vec<Field>,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: String,
    /// Name of the JSON field that carries its octets in base64; empty if it holds none.
    pub(super) base64: String,
    pub(super) kind: Kind,
    pub(super) is_list: bool,
    /// True if a number has at most 32 bits.
    pub(super) is_short: bool,
    /// True if an absent field stands for its default: protobuf does not tell the two apart ("implicit
    /// presence").
    pub(super) is_implicit: bool,
}

impl Field {
    /// The field's name in JSON.
    pub(super) fn json_name(&self) -> &str {
        if self.kind == Kind::Octets { &self.base64 } else { &self.name }
    }
}

/// The type of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Text,
    Octets,
    Boolean,
    Number,
    /// A message, by its place.
    Message(usize),
    /// Names with values: an object in JSON; the place of the message with field 1 and 2.
    Entries(usize),
}

/// The schema of the package; it is part of the program.
pub(super) fn schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::read(sluice_proto::DESCRIPTORS));
    &SCHEMA
}

impl Schema {
    fn read(descriptors: &[u8]) -> Schema {
        let set = FileDescriptorSet::decode(descriptors)
            .expect("generated with the program, and held against proto/");
        let mut named: Vec<(String, &DescriptorProto)> = Vec::new();
        for file in &set.file {
            file.message_type.iter().for_each(|message| name_all(file.package(), message, &mut named));
        }
        let places: HashMap<&str, usize> =
            named.iter().enumerate().map(|(at, (name, _))| (name.as_str(), at)).collect();
        let messages = named.iter().map(|(_, message)| MessageType::read(message, &places, &named)).collect();
        let mut calls = HashMap::new();
        for file in &set.file {
            for service in &file.service {
                for method in service.method.iter().filter(|method| !is_session(method)) {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    calls.insert(path, (places[method.input_type()], places[method.output_type()]));
                }
            }
        }
        let short = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
        let names = named.iter().enumerate().map(|(at, (name, _))| (short(name), at)).collect();
        Schema { messages, names, calls }
    }

    /// A message.
    pub(super) fn message(&self, at: usize) -> &MessageType {
        &self.messages[at]
    }

    /// The place of a message.
    #[cfg(test)]
    pub(super) fn place(&self, message: &MessageType) -> usize {
        self.messages.iter().position(|other| std::ptr::eq(other, message)).expect("one of the package")
    }

    /// The message with this name, which is one of the package.
    pub(super) fn named(&self, name: &str) -> &MessageType {
        &self.messages[self.names[name]]
    }

    /// Request and answer of a call.
    pub(super) fn call(&self, path: &str) -> Option<(usize, usize)> {
        self.calls.get(path).copied()
    }

    /// The paths of all calls.
    #[cfg(test)]
    pub(super) fn calls(&self) -> impl Iterator<Item = &str> {
        self.calls.keys().map(String::as_str)
    }

    /// The field that a message stands for, if it is one that may be given and empty.
    pub(super) fn stands_for(&self, at: usize) -> Option<&Field> {
        match self.messages[at].fields.as_slice() {
            [field] if field.name == VALUES => Some(field),
            _ => None,
        }
    }
}

/// True for a method in which both sides stream: a session, whose frames are no requests.
fn is_session(method: &MethodDescriptorProto) -> bool {
    method.client_streaming() && method.server_streaming()
}

/// A message and those within it, with their full names.
fn name_all<'d>(scope: &str, message: &'d DescriptorProto, named: &mut Vec<(String, &'d DescriptorProto)>) {
    let name = format!(".{}.{}", scope.trim_start_matches('.'), message.name());
    message.nested_type.iter().for_each(|nested| name_all(&name, nested, named));
    named.push((name, message));
}

impl MessageType {
    fn read(
        message: &DescriptorProto,
        places: &HashMap<&str, usize>,
        named: &[(String, &DescriptorProto)],
    ) -> MessageType {
        let fields = message.field.iter().map(|field| {
            let is_list = field.label() == Label::Repeated;
            let kind = match field.r#type() {
                Type::String => Kind::Text,
                Type::Bytes => Kind::Octets,
                Type::Bool => Kind::Boolean,
                Type::Uint32 | Type::Uint64 => Kind::Number,
                Type::Message => {
                    let at = places[field.type_name()];
                    let entries = is_list && is_entry(named[at].1);
                    if entries { Kind::Entries(at) } else { Kind::Message(at) }
                }
                other => unreachable!("no field of the package is of type {other:?}: a test reads them all"),
            };
            Field {
                is_short: field.r#type() == Type::Uint32,
                number: field.number() as u32,
                name: field.name().to_owned(),
                base64: if kind == Kind::Octets { format!("{}_base64", field.name()) } else { String::new() },
                is_list: is_list && !matches!(kind, Kind::Entries(_)),
                is_implicit: !is_list && !matches!(kind, Kind::Message(_)) && !field.proto3_optional(),
                kind,
            }
        });
        MessageType { fields: fields.collect() }
    }

    /// The field with this number, and its place.
    pub(super) fn by_number(&self, number: u32) -> Option<usize> {
        self.fields.iter().position(|field| field.number == number)
    }

    /// The field with this name.
    pub(super) fn by_name(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

/// Entries of maps, and headers, whose order counts.
fn is_entry(message: &DescriptorProto) -> bool {
    let is_map = message.options.as_ref().is_some_and(|options| options.map_entry());
    is_map || message.name() == "Header"
}
