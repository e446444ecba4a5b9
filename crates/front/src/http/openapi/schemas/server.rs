//! Namespaces, and the server itself.

use serde_json::{Value, json};

use super::AT_MS;
use super::parts::{list, merged, number, object, one_of, reference, text};

pub(super) fn namespaces() -> Value {
    let quotas = json!({
        "queues": number("0: no quota"), "messages": number("0: no quota"), "bytes": number("0: no quota"),
    });
    let example = json!({
        "name": "shop", "shard": 0, "quotas": {"queues": 100, "messages": 1_000_000, "bytes": 0},
        "queues": 3, "messages": 1_200, "bytes": 340_000, "created_at_ms": AT_MS,
    });
    let patch = json!({"quotas": reference("Quotas")});
    let shard = json!({"shard": number("Where a new namespace lives; default: the server chooses")});
    json!({
        "Quotas": object(&[], quotas, json!({"messages": 1_000_000})),
        "Namespace": object(&["name", "shard", "quotas", "queues", "messages", "bytes", "created_at_ms"], json!({
            "name": text(""), "shard": number(""), "quotas": reference("Quotas"), "queues": number(""),
            "messages": number(""), "bytes": number(""), "created_at_ms": number(""),
        }), example.clone()),
        "NamespaceList": object(&["namespaces"], json!({"namespaces": list(reference("Namespace"))}), json!({"namespaces": [example]})),
        "NamespacePut": object(&[], merged(patch.clone(), shard), json!({"quotas": {"queues": 100}})),
        "NamespacePatch": object(&[], patch, json!({"quotas": {"queues": 100}})),
        "Nothing": object(&[], json!({}), json!({})),
    })
}

pub(super) fn server() -> Value {
    let error = json!({"code": "queue_not_found", "message": "queue \"mial\" does not exist", "details": {"queue": "mial"}});
    let status = json!({
        "version": text(""), "started_at_ms": number(""), "uptime_ms": number(""), "durability": text(""),
        "ready": {"type": "boolean"}, "shards": list(json!({"type": "object"})),
    });
    let key_use = json!({"files": number(""), "bytes": number("Of files that are not written any more")});
    let keys = json!({
        "current": text("Root key of what is new; not there: it is not encrypted"),
        "keys": list(object(&["id", "files", "bytes"], merged(json!({"id": text("")}), key_use.clone()), json!({}))),
        "unencrypted": object(&["files", "bytes"], key_use, json!({"files": 0, "bytes": 0})),
    });
    json!({
        "Keys": object(&["keys", "unencrypted"], keys, json!({
            "current": "56f0a3b0c2d41e97", "unencrypted": {"files": 0, "bytes": 0},
            "keys": [{"id": "56f0a3b0c2d41e97", "files": 3, "bytes": 340_000}],
        })),
        "ErrorBody": object(&["code", "message", "details"], json!({
            "code": one_of(&sluice_calls::codes::TABLE.iter().map(|row| row.code).collect::<Vec<_>>()),
            "message": text("For people"), "details": {"type": "object"},
        }), error.clone()),
        "Error": object(&["error"], json!({"error": reference("ErrorBody")}), json!({"error": error})),
        "Status": object(&["version", "started_at_ms", "uptime_ms", "durability", "ready", "shards"], status,
            json!({"version": "0.1.0", "started_at_ms": AT_MS, "uptime_ms": 5, "durability": "always", "ready": true, "shards": []})),
    })
}
