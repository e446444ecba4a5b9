//! What schemas are made of.

use serde_json::{Value, json};

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

pub(super) fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

pub(super) fn integer(min: u64, max: u64, about: &str) -> Value {
    json!({"type": "integer", "minimum": min, "maximum": max, "description": about})
}

pub(super) fn number(about: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": about})
}

pub(super) fn list(of: Value) -> Value {
    json!({"type": "array", "items": of})
}

pub(super) fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// An object with these fields and no others.
pub(super) fn object(required: &[&str], properties: Value, example: Value) -> Value {
    json!({
        "type": "object", "required": required, "properties": properties,
        "additionalProperties": false, "examples": [example],
    })
}

pub(super) fn either(one: Value, other: Value, examples: Value) -> Value {
    json!({"oneOf": [one, other], "examples": examples})
}

pub(super) fn merged(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            one.extend(other);
            Value::Object(one)
        }
        (one, _) => one,
    }
}
