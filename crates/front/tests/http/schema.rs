//! As much of JSON Schema as the API description uses.

use serde_json::Value;

use crate::client::Answer;

/// Holds an answer against what the description says about its method, path and status.
pub(crate) fn check_answer(api: &Value, method: &str, path: &str, answer: &Answer) -> Result<(), String> {
    if answer.header("content-type") != "application/json" || method == "HEAD" {
        return Ok(());
    }
    let path = path.split('?').next().unwrap();
    let operation = find(api, &method.to_lowercase(), path);
    let value = answer.json();
    let Some(operation) = operation else {
        return validate(api, &reference("Error"), &value, "");
    };
    let responses = &operation["responses"];
    let response = match &responses[answer.status.to_string()] {
        Value::Null if answer.status >= 400 => &responses["default"],
        Value::Null => return Err(format!("status {} is not described", answer.status)),
        described => described,
    };
    validate(api, &response["content"]["application/json"]["schema"], &value, "")
}

pub(crate) fn reference(name: &str) -> Value {
    serde_json::json!({"$ref": format!("#/components/schemas/{name}")})
}

fn find<'a>(api: &'a Value, method: &str, path: &str) -> Option<&'a Value> {
    let paths = api["paths"].as_object().unwrap();
    let found = paths.iter().find(|(template, item)| {
        let (template, path): (Vec<&str>, Vec<&str>) =
            (template.split('/').collect(), path.split('/').collect());
        item.get(method).is_some()
            && template.len() == path.len()
            && template.iter().zip(&path).all(|(expected, got)| expected.starts_with('{') || expected == got)
    });
    found.map(|(_, item)| &item[method])
}

/// Tells what in `value` does not follow `schema`.
pub(crate) fn validate(api: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        let named = &api["components"]["schemas"][name];
        return if named.is_null() {
            Err(format!("{at}: no schema {name}"))
        } else {
            validate(api, named, value, at)
        };
    }
    if let Some(alternatives) = schema["oneOf"].as_array() {
        let faults: Vec<String> =
            alternatives.iter().filter_map(|one| validate(api, one, value, at).err()).collect();
        return match alternatives.len() - faults.len() {
            1 => Ok(()),
            fit => Err(format!("{at}: {fit} alternatives fit: {faults:?}")),
        };
    }
    if let Some(expected) = schema.get("const") {
        return if expected == value { Ok(()) } else { Err(format!("{at}: {value} is not {expected}")) };
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Err(format!("{at}: {value} is none of {words:?}"));
    }
    match schema["type"].as_str() {
        Some("object") => validate_object(api, schema, value, at),
        Some("array") => {
            let items = value.as_array().ok_or(format!("{at}: {value} is no list"))?;
            items.iter().enumerate().try_for_each(|(index, item)| {
                validate(api, &schema["items"], item, &format!("{at}[{index}]"))
            })
        }
        Some("string") if !value.is_string() => Err(format!("{at}: {value} is no string")),
        Some("boolean") if !value.is_boolean() => Err(format!("{at}: {value} is no boolean")),
        Some("integer") => {
            let number = value.as_u64().ok_or(format!("{at}: {value} is no integer"))?;
            let min = schema["minimum"].as_u64().unwrap_or(0);
            let max = schema["maximum"].as_u64().unwrap_or(u64::MAX);
            if (min..=max).contains(&number) {
                Ok(())
            } else {
                Err(format!("{at}: {number} is out of range"))
            }
        }
        _ => Ok(()),
    }
}

fn validate_object(api: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let fields = value.as_object().ok_or(format!("{at}: {value} is no object"))?;
    for name in schema["required"].as_array().into_iter().flatten() {
        if !fields.contains_key(name.as_str().unwrap()) {
            return Err(format!("{at}: {name} is missing"));
        }
    }
    for (name, field) in fields {
        let place = format!("{at}.{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Bool(false)) => return Err(format!("{place} is not described")),
            // Whatever an answer has is described, though clients are to take what is added later.
            (Value::Null, Value::Null) if schema.get("properties").is_some() => {
                return Err(format!("{place} is not described"));
            }
            (Value::Null, Value::Null) => {}
            (Value::Null, others) => validate(api, others, field, &place)?,
            (described, _) => validate(api, described, field, &place)?,
        }
    }
    Ok(())
}
