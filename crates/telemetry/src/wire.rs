//! The messages that all signals share: attributes, and the request around items
//! (`opentelemetry/proto/common/v1/common.proto`, `.../resource/v1/resource.proto`). Requests of traces,
//! metrics and logs have the same shape, with the same numbers.

use sluice_proto::wire::{put_bytes, put_fixed64, put_number};

/// A value of an attribute.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value<'v> {
    /// Text.
    Text(&'v str),
    /// A whole number.
    Number(u64),
}

/// Appends a field that is a floating-point number.
pub(crate) fn put_double(out: &mut Vec<u8>, field: u32, value: f64) {
    put_fixed64(out, field, value.to_bits());
}

/// Appends a field that is an attribute: `KeyValue`.
pub(crate) fn put_attribute(out: &mut Vec<u8>, field: u32, key: &str, value: Value<'_>) {
    let mut pair = Vec::with_capacity(key.len() + 32);
    put_bytes(&mut pair, 1, key.as_bytes());
    put_value(&mut pair, 2, value);
    put_bytes(out, field, &pair);
}

/// Appends a field that is an `AnyValue`.
pub(crate) fn put_value(out: &mut Vec<u8>, field: u32, value: Value<'_>) {
    let mut any = Vec::new();
    match value {
        Value::Text(text) => put_bytes(&mut any, 1, text.as_bytes()),
        Value::Number(number) => put_number(&mut any, 3, number),
    }
    put_bytes(out, field, &any);
}

/// The parts of a request before its items: which server and program they come from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    resource: Vec<u8>,
    scope: Vec<u8>,
}

impl Source {
    /// A server with this version and name.
    pub(crate) fn new(version: &str, instance: &str) -> Source {
        let mut resource = Vec::new();
        for (key, value) in
            [("service.name", "sluice"), ("service.version", version), ("service.instance.id", instance)]
        {
            put_attribute(&mut resource, 1, key, Value::Text(value));
        }
        let mut scope = Vec::new();
        put_bytes(&mut scope, 1, b"sluice");
        put_bytes(&mut scope, 2, version.as_bytes());
        Source { resource, scope }
    }

    /// The request with these items.
    pub(crate) fn request<'i>(&self, items: impl Iterator<Item = &'i [u8]> + Clone) -> Vec<u8> {
        let bytes: usize = items.clone().map(<[u8]>::len).sum();
        let mut scoped = Vec::with_capacity(bytes + bytes / 8 + self.scope.len());
        put_bytes(&mut scoped, 1, &self.scope);
        items.for_each(|item| put_bytes(&mut scoped, 2, item));
        let mut all = Vec::with_capacity(scoped.len() + self.resource.len() + 16);
        put_bytes(&mut all, 1, &self.resource);
        put_bytes(&mut all, 2, &scoped);
        let mut request = Vec::with_capacity(all.len() + 8);
        put_bytes(&mut request, 1, &all);
        request
    }
}
