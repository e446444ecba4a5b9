//! Tokens, the audit log, and who somebody is.

use serde_json::{Value, json};

use super::AT_MS;
use super::parts::{list, merged, number, object, one_of, reference, text};

const TOKEN_ID: &str = "4f1d20c5a3b2e697";
const SCOPE: &str = "sluice://ns/shop?perm=rw";

pub(super) fn all() -> Value {
    let fields = json!({
        "id": text("Names the token; no secret"),
        "name": text("The identity that it stands for"),
        "scopes": list(text("What it allows by itself: sluice://ns/NAMESPACE?perm=r|w|rw|observer|operator|admin")),
        "created_at_ms": number("When it was made"),
        "created_by": text("Who has made it"),
        "expires_at_ms": number("When it ends; without: only when it is revoked"),
        "last_used_at_ms": number("About when it was used last; without: never"),
    });
    let token = json!({"id": TOKEN_ID, "name": "billing", "scopes": [SCOPE], "created_at_ms": AT_MS, "created_by": "ops"});
    let made = json!({"token": text("To be sent as `Authorization: Bearer TOKEN`; shown only here")});
    let required = ["id", "name", "scopes", "created_at_ms", "created_by"];
    let made_required: Vec<&str> = required.iter().copied().chain(["token"]).collect();
    let secret = format!("sluice_{TOKEN_ID}_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    json!({
        "Token": object(&required, fields.clone(), token.clone()),
        "TokenMade": object(&made_required, merged(fields, made), merged(token.clone(), json!({"token": secret}))),
        "TokenList": object(&["tokens"], json!({"tokens": list(reference("Token"))}), json!({"tokens": [token]})),
        "TokenNew": object(
            &["name"],
            json!({
                "name": text("The identity that it stands for: letters, digits, and `.`, `-`, `_`, `@`"),
                "scopes": list(text("What it allows by itself; rules of the policy may allow more")),
                "ttl_ms": number("Ends after so long; not together with expires_at_ms"),
                "expires_at_ms": number("Ends at this time; without both: only when it is revoked"),
            }),
            json!({"name": "billing", "scopes": [SCOPE], "ttl_ms": 86_400_000}),
        ),
        "Audit": object(
            &["entries"],
            json!({
                "entries": list(json!({"type": "object"})),
                "next": text("Cursor of the next page; without: this is the last"),
            }),
            json!({"entries": [{
                "at_ms": AT_MS, "who": "ops", "proof": format!("token {TOKEN_ID}"), "address": "192.0.2.7",
                "operation": "queue_purge", "target": "/v1/queues/emails/purge", "outcome": "200",
                "request_id": "000065f0c1a20001",
            }]}),
        ),
        "WhoAmI": object(
            &["name"],
            json!({
                "name": text("`anybody` where nobody is asked"),
                "proof": one_of(&["certificate", "token"]),
                "grants": list(text("A rule of the policy, or a scope")),
            }),
            json!({"name": "billing", "proof": "token", "grants": [SCOPE]}),
        ),
    })
}
