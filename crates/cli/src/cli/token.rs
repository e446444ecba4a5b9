//! `sluice token`, `audit` and `whoami`.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use sluice_calls::access::Scope;
use sluice_client::{Token, TokenNew};

use super::cert::scope;
use super::connect::{Connection, ServerFlags};
use super::format::{one_line, time};
use super::output::Table;
use super::{Out, Result, duration};

/// Number of entries of the audit log in one request.
const PAGE: u32 = 1_000;

#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Create a token and print it. It cannot be printed again.
    #[command(after_help = "Examples:\n  sluice token create ops --scope '*=admin'\n  \
        sluice token create billing --scope shop=rw --ttl 90d\n  \
        sluice token create prometheus --scope '*=observer'\n\n\
        As soon as there is a token, all callers must authenticate. The first token must be an admin's.\n\
        A token is sent as `Authorization: Bearer TOKEN`; `sluice` takes it from SLUICE_TOKEN.")]
    Create {
        /// Identity of the token: letters, digits, and `.`, `-`, `_`, `@`.
        name: String,
        /// Right of the token: NAMESPACE=PERM, with PERM r, w, rw, observer, operator or admin; repeat the
        /// flag for several rights.
        #[arg(long, value_name = "NAMESPACE=PERM", value_parser = scope)]
        scope: Vec<Scope>,
        /// Time for which the token is valid [default: until it is revoked].
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        ttl: Option<Duration>,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// List tokens, without their secret text.
    List {
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Revoke a token, with immediate effect.
    Revoke {
        /// Name or id of the token.
        token: String,
        #[command(flatten)]
        server: ServerFlags,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    server: ServerFlags,
}

#[derive(Debug, Args)]
pub(crate) struct WhoAmIArgs {
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(verb: TokenVerb, out: Out) -> Result<u8> {
    match verb {
        TokenVerb::Create { name, scope, ttl, server } => {
            let connection = server.connect()?;
            if scope.is_empty() {
                out.note(&super::cert::without_scope("token"));
            }
            let new = TokenNew {
                name,
                scopes: scope.iter().map(ToString::to_string).collect(),
                ttl_ms: ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            };
            let made = connection.client.token_create(&new).await.map_err(|e| connection.error(&e))?;
            out.note("Keep the token: the server stores only a hash of it and cannot show it again.");
            out.show(&made, |made| format!("{}\n", made.token))?;
        }
        TokenVerb::List { server } => {
            let connection = server.connect()?;
            let tokens = connection.client.tokens().await.map_err(|e| connection.error(&e))?;
            if tokens.is_empty() {
                out.note("no tokens; create one with `sluice token create NAME --scope '*=admin'`");
                return Ok(0);
            }
            out.list(&tokens, table)?;
        }
        TokenVerb::Revoke { token, server } => {
            let connection = server.connect()?;
            let revoked = connection.client.token_revoke(&token).await.map_err(|e| connection.error(&e))?;
            out.show(&json!({"revoked": revoked.id, "name": revoked.name}), |_| {
                format!("revoked {} ({})\n", revoked.name, revoked.id)
            })?;
        }
    }
    Ok(0)
}

fn table(tokens: &[Token]) -> String {
    let mut table = Table::new(&["NAME", "ID", "SCOPES", "CREATED", "EXPIRES", "LAST USED"]);
    let or = |at_ms: Option<u64>, none: &str| at_ms.map_or_else(|| none.to_owned(), time);
    for token in tokens {
        table.row([
            token.name.clone(),
            token.id.clone(),
            token.scopes.join(" "),
            format!("{} by {}", time(token.created_at_ms), token.created_by),
            or(token.expires_at_ms, "never"),
            or(token.last_used_at_ms, "never"),
        ]);
    }
    table.render()
}

/// `sluice audit`
pub(super) async fn audit(args: AuditArgs, out: Out) -> Result<u8> {
    let connection = args.server.connect()?;
    let mut cursor = None;
    let mut empty = true;
    loop {
        let page = connection.client.audit(cursor.as_deref(), PAGE).await;
        let page = page.map_err(|e| connection.error(&e))?;
        empty &= page.entries.is_empty();
        out.list(&page.entries, |entries| entries.iter().map(line).collect())?;
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    if empty {
        out.note("the audit log is empty: the server writes it once callers must authenticate");
    }
    Ok(0)
}

/// `2026-11-21 04:44:36Z  ops (token 4f1d…) at 127.0.0.1  queue_purge /v1/queues/emails/purge  200`
fn line(entry: &Value) -> String {
    let text = |name: &str| entry[name].as_str().unwrap_or("-");
    let proof = entry["proof"].as_str().map_or_else(String::new, |proof| format!(" ({proof})"));
    let count = entry["count"].as_u64().map_or_else(String::new, |count| format!(", {count} times"));
    let details = entry.get("details").map_or_else(String::new, |details| format!("  {details}"));
    let line = format!(
        "{}  {}{proof} at {}  {} {}  {}{count}{details}",
        time(entry["at_ms"].as_u64().unwrap_or_default()),
        text("who"),
        text("address"),
        text("operation"),
        text("target"),
        text("outcome")
    );
    // Callers choose a part of the text: it must not contain line ends.
    format!("{}\n", one_line(&line))
}

/// `sluice whoami`
pub(super) async fn whoami(args: WhoAmIArgs, out: Out) -> Result<u8> {
    let connection: Connection = args.server.connect()?;
    let who = connection.client.whoami().await.map_err(|e| connection.error(&e))?;
    out.show(&who, |who| {
        let mut table = Table::fields();
        table.field("name", &*who.name);
        table.field("proof", who.proof.as_deref().unwrap_or("none"));
        for grant in &who.grants {
            table.field("has", &**grant);
        }
        table.render()
    })?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::line;

    #[test]
    fn an_entry_is_one_line_whatever_is_in_it() {
        let entry = json!({
            "at_ms": 0,
            "who": "w",
            "proof": "token 1",
            "address": "::1",
            "operation": "queue_purge",
            "target": "x  403\n2026-11-21 \u{1b}[8m",
            "outcome": "403",
        });
        assert_eq!(
            line(&entry),
            "1970-01-01 00:00:00Z  w (token 1) at ::1  queue_purge x  403 2026-11-21 \u{fffd}[8m  403\n"
        );
        let entry = json!({
            "at_ms": 0, "who": "w", "address": "::1", "operation": "message_approve", "target": "/x", "outcome": "200",
            "details": {"why": "a\nb"},
        });
        let expected = "1970-01-01 00:00:00Z  w at ::1  message_approve /x  200  {\"why\":\"a\\nb\"}\n";
        assert_eq!(line(&entry), expected);
    }
}
