//! `sluice lock watch`.

use clap::Args;
use serde_json::{Value, json};
use sluice_client::{Lock, LockHolder};

use super::connect::ServerFlags;
use super::format::{one_line, time};
use super::outage::Outage;
use super::{Out, Result, number};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluice lock watch app/leader\n  sluice lock watch deploy --json | jq .holder_count\n\n\
                  States between two lines may be left out, never the last one. Renewals are no changes. After a \
                  broken connection the command goes on with the lock as it is then."
)]
pub(crate) struct LockWatchArgs {
    /// Key of the lock.
    key: String,
    /// End after this number of lines.
    #[arg(long, value_name = "N", value_parser = number(1u64..))]
    max: Option<u64>,
    #[command(flatten)]
    server: ServerFlags,
}

/// Prints the states of a lock until it is interrupted.
pub(super) async fn run(args: LockWatchArgs, out: Out) -> Result<u8> {
    let LockWatchArgs { key, max, server } = args;
    let connection = server.connect()?;
    let mut watch = connection.client.lock_watch(&key);
    let (mut count, mut outage) = (0, Outage::default());
    while max.is_none_or(|max| count < max) {
        let lock = match watch.next().await {
            Ok(lock) => lock,
            Err(error) => {
                outage.begins(&connection, &error, watch.has_begun(), out)?;
                continue;
            }
        };
        outage.ends(&connection, out);
        count += 1;
        out.show(&whole(&lock), |_| line(&lock))?;
    }
    Ok(0)
}

/// The lock with all fields that the server gives, an empty list of those that wait among them.
pub(super) fn whole(lock: &Lock) -> Value {
    let mut whole = json!(lock);
    whole["waiters"] = json!(lock.waiters);
    whole
}

fn line(lock: &Lock) -> String {
    let waiting = match lock.waiter_count {
        0 => String::new(),
        count => format!(", {count} waiting"),
    };
    let more = match lock.holder_count.saturating_sub(1) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    match lock.holders.first() {
        None => format!("free{waiting}\n"),
        Some(LockHolder { owner, mode, fencing_token, expires_at_ms, .. }) => {
            let owner = one_line(owner.as_deref().unwrap_or("-"));
            let until = time(*expires_at_ms);
            format!("{mode}  {fencing_token}  {owner} until {until}{more}{waiting}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_a_line() {
        let shown = |lock| line(&serde_json::from_value(lock).unwrap());
        let holder = json!({"owner": "ann", "mode": "shared", "fencing_token": "7",
            "expires_at_ms": 1_767_225_600_000_u64, "keys": 1});
        assert_eq!(
            shown(json!({"key": "k", "holder_count": 3, "waiter_count": 2, "holders": [holder]})),
            "shared  7  ann until 2026-01-01 00:00:00Z and 2 more, 2 waiting\n"
        );
        let forged = json!({"owner": "ann\nfree", "mode": "exclusive", "fencing_token": "7",
            "expires_at_ms": 1_767_225_600_000_u64, "keys": 1});
        let told = shown(json!({"key": "k", "holder_count": 1, "waiter_count": 0, "holders": [forged]}));
        assert_eq!(told.lines().count(), 1, "{told}");
        assert_eq!(shown(json!({"key": "k", "holder_count": 0, "waiter_count": 0, "holders": []})), "free\n");
    }
}
