//! Arguments of operations, out of the description of the API.

use serde_json::{Map, Value, json};
use sluice_calls::Operation;

/// Place of schemas in the description.
const SCHEMAS: &str = "#/components/schemas/";
/// Place of schemas in that of a tool.
const DEFINITIONS: &str = "#/$defs/";

/// Arguments of an operation beside the name in its path.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub(super) query: Vec<Parameter>,
    pub(super) body: Option<Body>,
    /// The schemas to which those of the arguments refer, by name.
    pub(super) definitions: Map<String, Value>,
}

/// A parameter in the query.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) schema: Value,
}

/// The fields of a body.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) properties: Map<String, Value>,
    pub(super) required: Vec<String>,
}

/// The arguments of an operation. Of a body with several forms it is the first: one message, one receipt.
pub(super) fn described(operation: Operation, description: &Value) -> Described {
    let name = operation.http();
    let path = format!("/v1/{}", name.segments.join("/"));
    let item = &description["paths"][&path][name.method.as_str().to_ascii_lowercase()];
    let mut query: Vec<Parameter> =
        item["parameters"].as_array().into_iter().flatten().filter_map(parameter).collect();
    let schema = &item["requestBody"]["content"]["application/json"]["schema"];
    let mut body = (!schema.is_null()).then(|| body_of(schema, description));
    let mut definitions = Map::new();
    for schema in query.iter_mut().map(|it| &mut it.schema) {
        gather(schema, description, &mut definitions);
    }
    for schema in body.iter_mut().flat_map(|body| body.properties.values_mut()) {
        gather(schema, description, &mut definitions);
    }
    Described { query, body, definitions }
}

fn parameter(parameter: &Value) -> Option<Parameter> {
    if parameter["in"] != "query" {
        return None;
    }
    let mut schema = parameter["schema"].clone();
    if let (Some(about), Some(schema)) = (parameter["description"].as_str(), schema.as_object_mut()) {
        schema.insert("description".to_owned(), json!(about));
    }
    let name = parameter["name"].as_str()?.to_owned();
    Some(Parameter { name, required: parameter["required"] == true, schema })
}

fn body_of(schema: &Value, description: &Value) -> Body {
    let mut schema = resolved(schema, description);
    while let Some(first) = schema.get("oneOf").and_then(|forms| forms.get(0)) {
        schema = resolved(first, description);
    }
    let required = schema["required"].as_array().into_iter().flatten();
    Body {
        properties: schema["properties"].as_object().cloned().unwrap_or_default(),
        required: required.filter_map(|name| name.as_str().map(str::to_owned)).collect(),
    }
}

/// The schema to which a reference leads; one that is none is itself.
fn resolved<'d>(schema: &'d Value, description: &'d Value) -> &'d Value {
    match schema["$ref"].as_str().and_then(|path| path.strip_prefix(SCHEMAS)) {
        Some(name) => &description["components"]["schemas"][name],
        None => schema,
    }
}

/// Lets the references of a schema lead into the definitions of a tool, and adds what they lead to.
fn gather(schema: &mut Value, description: &Value, definitions: &mut Map<String, Value>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(path)) = fields.get_mut("$ref")
                && let Some(name) = path.strip_prefix(SCHEMAS).map(str::to_owned)
            {
                *path = format!("{DEFINITIONS}{name}");
                if !definitions.contains_key(&name) {
                    // Noted first: a schema may refer to itself.
                    definitions.insert(name.clone(), Value::Null);
                    let mut found = description["components"]["schemas"][&name].clone();
                    gather(&mut found, description, definitions);
                    definitions.insert(name, found);
                }
            }
            fields.values_mut().for_each(|inner| gather(inner, description, definitions));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| gather(inner, description, definitions)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_that_refer_to_themselves_end() {
        let description = json!({"components": {"schemas": {
            "A": {"properties": {"next": {"$ref": "#/components/schemas/A"}, "b": {"$ref": "#/components/schemas/B"}}},
            "B": {"type": "string"},
        }}});
        let mut schema = json!({"items": [{"$ref": "#/components/schemas/A"}]});
        let mut definitions = Map::new();
        gather(&mut schema, &description, &mut definitions);
        assert_eq!(schema["items"][0]["$ref"], "#/$defs/A");
        assert_eq!(definitions["A"]["properties"]["next"]["$ref"], "#/$defs/A");
        assert_eq!(definitions["B"], json!({"type": "string"}));
    }

    #[test]
    fn an_operation_that_is_not_described_has_no_arguments() {
        let described = described(Operation::Send, &json!({}));
        assert!(described.query.is_empty() && described.body.is_none() && described.definitions.is_empty());
    }
}
