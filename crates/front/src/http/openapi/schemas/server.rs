//! Errors.

use serde_json::{Value, json};

use super::parts::{object, one_of, reference, text};

pub(super) fn errors() -> Value {
    let error = json!({"code": "queue_not_found", "message": "queue \"mial\" does not exist", "details": {"queue": "mial"}});
    json!({
        "ErrorBody": object(&["code", "message", "details"], json!({
            "code": one_of(&sluice_calls::codes::TABLE.iter().map(|row| row.code).collect::<Vec<_>>()),
            "message": text("For people"), "details": {"type": "object"},
        }), error.clone()),
        "Error": object(&["error"], json!({"error": reference("ErrorBody")}), json!({"error": error})),
    })
}
