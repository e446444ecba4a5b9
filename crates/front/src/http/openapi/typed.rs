//! The description of calls with one request and one answer, from their types.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use sluice_calls::operation::{Operation, Trait};
use sluice_calls::unary::{Body, How, Schemas, body, schemas};

use super::Described;
use crate::http::codec::query::STALE;

/// Where the schemas stand in the document.
const SCHEMAS: &str = "/components/schemas";

/// A generator of schemas as OpenAPI 3.1 has them.
pub(super) fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = SCHEMAS.into())
        .with_transform(RecursiveTransform(without_null))
        .with_transform(RecursiveTransform(one_of))
        .into_generator()
}

/// A field that may be left out is not null.
fn without_null(schema: &mut Schema) {
    let null = json!({"type": "null"});
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|one| one != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            schema.insert("type".to_owned(), one);
        }
    }
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.retain(|word| !word.is_null());
    }
    if let Some([one, other]) = schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice)
        && *other == null
    {
        let inner = one.as_object().cloned().unwrap_or_default();
        schema.remove("anyOf");
        inner.into_iter().for_each(|(name, value)| drop(schema.insert(name, value)));
    }
    if schema.get("default") == Some(&Value::Null) {
        schema.remove("default");
    }
}

/// Forms of which a value has one: they exclude each other.
fn one_of(schema: &mut Schema) {
    if let Some(forms) = schema.remove("anyOf") {
        schema.insert("oneOf".to_owned(), forms);
    }
}

/// Describes a call; `None`: it is not one with one request and one answer.
pub(super) fn describe(operation: Operation, generator: &mut SchemaGenerator) -> Option<Described> {
    let Schemas { request, answer, how } = schemas(operation, generator)?;
    let request = resolved(generator, Value::from(request));
    let answer = resolved(generator, Value::from(answer));
    let answers = how.iter().map(|how| {
        let (status, about) = match how {
            How::Created => (201, "Created"),
            How::Done => (200, "Done"),
            How::Begun => (202, "Begun"),
        };
        let schema = answer.clone();
        (status, about, Some(json!({"application/json": {"schema": schema}})))
    });
    let answers = answers.collect();
    Some(match operation.is_query() {
        true => {
            let own = parameters(&take(generator, &request)).into_iter();
            let parameters = own.chain(operation.is(Trait::Stale).then(stale)).collect();
            Described { parameters, request: None, answers }
        }
        false => {
            Described { parameters: Vec::new(), request: body_of(operation, request, generator), answers }
        }
    })
}

/// The parameter of all calls that show state.
fn stale() -> Value {
    json!({
        "name": STALE, "in": "query", "required": false,
        "description": "True: the node that is asked answers at once from what it has, which may be behind; \
            default false",
        "schema": {"type": "boolean"},
    })
}

/// The schema that a reference leads to in the end: types that stand for another one have no name of their
/// own.
fn resolved(generator: &mut SchemaGenerator, mut reference: Value) -> Value {
    while let Some(alias) =
        generator.definitions().get(name_of(&reference)).filter(|one| one["$ref"].is_string())
    {
        let next = json!({"$ref": alias["$ref"]});
        take(generator, &reference);
        reference = next;
    }
    reference
}

/// Takes a schema out of the document: that of parameters is no body.
fn take(generator: &mut SchemaGenerator, reference: &Value) -> Value {
    let name = name_of(reference);
    generator.definitions_mut().remove(name).unwrap_or_else(|| reference.clone())
}

/// The name that a reference leads to; empty if it is a schema itself.
fn name_of(reference: &Value) -> &str {
    reference["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default()
}

/// The parameters of a request whose fields stand in the query.
pub(super) fn query_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Vec<Value> {
    let reference = Value::from(generator.subschema_for::<T>());
    parameters(&take(generator, &reference))
}

fn parameters(schema: &Value) -> Vec<Value> {
    let required: Vec<&Value> = schema["required"].as_array().into_iter().flatten().collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        if let Ok(schema) = <&mut Schema>::try_from(&mut schema) {
            without_null(schema);
        }
        let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        json!({
            "name": name, "in": "query", "required": required.contains(&&json!(name)),
            "description": about.unwrap_or_default(), "schema": schema,
        })
    };
    properties.map(parameter).collect()
}

fn body_of(operation: Operation, reference: Value, generator: &mut SchemaGenerator) -> Option<Value> {
    let takes = body(operation).ok()?;
    if takes == Body::None {
        take(generator, &reference);
        return None;
    }
    Some(json!({"required": takes != Body::Optional, "content": {"application/json": {"schema": reference}}}))
}

/// The schemas that the calls described so far refer to, by name.
pub(super) fn definitions(mut generator: SchemaGenerator) -> Map<String, Value> {
    generator.take_definitions(true)
}
