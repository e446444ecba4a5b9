//! `sluice lock`.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_client::{Lock, LockGrant};

use super::confirm::Confirmation;
use super::connect::{ReadFlags, ServerFlags};
use super::format::time;
use super::output::Table;
use super::{Out, Result, duration, joined, lock_watch};
use crate::lock_run::{self, LocksArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum LockVerb {
    /// Run a command while holding locks.
    Run(lock_run::RunArgs),
    /// List locks that are held or waited for.
    List {
        /// List only keys that begin with this.
        #[arg(long, default_value = "", hide_default_value = true)]
        prefix: String,
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Show a lock, its holders, and those that wait for it.
    Show {
        /// Key of the lock.
        key: String,
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Watch a lock: print it as it is, and again after each change.
    Watch(lock_watch::LockWatchArgs),
    /// Acquire locks and print the token of the grant, which the caller has to renew and release.
    ///
    /// `sluice lock run` does both by itself.
    Acquire(AcquireArgs),
    /// Renew a grant: its time begins anew.
    Renew {
        /// Token of the grant.
        token: String,
        /// Time after which it ends unless it is renewed again [default: as before].
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        ttl: Option<Duration>,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Release a grant.
    Release {
        /// Token of the grant.
        token: String,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Break a lock: its holders lose it, and the next in line gets it.
    Break {
        /// Key of the lock.
        key: String,
        #[command(flatten)]
        confirm: Confirmation,
        #[command(flatten)]
        server: ServerFlags,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AcquireArgs {
    #[command(flatten)]
    locks: LocksArgs,
    /// Longest wait while others hold a lock.
    #[arg(
        long,
        short,
        value_name = "DURATION",
        default_value = "0",
        value_parser = duration,
        conflicts_with = "if_absent"
    )]
    wait: Duration,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(verb: LockVerb, out: Out) -> Result<u8> {
    match verb {
        LockVerb::Run(args) => return lock_run::run(args, out).await,
        LockVerb::Watch(args) => return lock_watch::run(args, out).await,
        LockVerb::List { prefix, server } => {
            let connection = server.connect()?;
            let locks = connection.client.locks(&prefix).await.map_err(|e| connection.error(&e))?;
            if locks.is_empty() {
                out.note(&format!("no locks are held in namespace {}", connection.namespace));
                return Ok(0);
            }
            out.list(&locks, table)?;
        }
        LockVerb::Show { key, server } => {
            let connection = server.connect()?;
            let lock = connection.client.lock_show(&key).await.map_err(|e| connection.error(&e))?;
            out.show(&lock_watch::whole(&lock), |_| details(&lock))?;
        }
        LockVerb::Acquire(AcquireArgs { locks, wait, server }) => {
            joined::told_outside(out);
            let (connection, owner) = (server.connect()?, locks.owner());
            let grant = connection.client.lock_acquire(&locks.request(&owner, wait)).await;
            out.show(&grant.map_err(|e| connection.error(&e))?, |grant| format!("{}\n", grant.token))?;
        }
        LockVerb::Renew { token, ttl, server } => {
            let connection = server.connect()?;
            let grant = connection.client.lock_renew(&token, ttl).await.map_err(|e| connection.error(&e))?;
            let told = |grant: &LockGrant| format!("renewed until {}\n", time(grant.expires_at_ms));
            out.show(&grant, told)?;
        }
        LockVerb::Release { token, server } => {
            joined::told_outside(out);
            let connection = server.connect()?;
            connection.client.lock_release(&token).await.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "released": token }), |_| "released\n".to_owned())?;
        }
        LockVerb::Break { key, confirm, server } => {
            let connection = server.connect()?;
            confirm.ask(&format!("Breaking lock {key}"))?;
            let holders = connection.client.lock_break(&key).await.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "key": key, "holders": holders }), |_| match holders {
                0 => "nobody held it\n".to_owned(),
                1 => "1 holder has lost it\n".to_owned(),
                _ => format!("{holders} holders have lost it\n"),
            })?;
        }
    }
    Ok(0)
}

fn named(owner: Option<&String>) -> String {
    owner.cloned().unwrap_or_else(|| "-".to_owned())
}

fn table(locks: &[Lock]) -> String {
    let mut table = Table::new(&["KEY", ">HOLDERS", ">WAITING", "MODE", "FIRST HOLDER", "UNTIL"]);
    for lock in locks {
        let first = lock.holders.first();
        let of_first =
            |field: fn(&sluice_client::LockHolder) -> String| first.map_or_else(|| "-".to_owned(), field);
        table.row([
            lock.key.clone(),
            lock.holder_count.to_string(),
            lock.waiter_count.to_string(),
            of_first(|holder| holder.mode.clone()),
            of_first(|holder| named(holder.owner.as_ref())),
            of_first(|holder| time(holder.expires_at_ms)),
        ]);
    }
    table.render()
}

fn details(lock: &Lock) -> String {
    let mut about = Table::fields();
    about.field("key", lock.key.clone());
    about.field("holders", lock.holder_count.to_string());
    about.field("waiting", lock.waiter_count.to_string());
    let mut text = about.render();
    if !lock.holders.is_empty() {
        let mut holders = Table::new(&["HOLDER", "MODE", "UNTIL", ">FENCING TOKEN", ">KEYS"]);
        for holder in &lock.holders {
            holders.row([
                named(holder.owner.as_ref()),
                holder.mode.clone(),
                time(holder.expires_at_ms),
                holder.fencing_token.clone(),
                holder.keys.to_string(),
            ]);
        }
        text = format!("{text}\n{}", holders.render());
    }
    if !lock.waiters.is_empty() {
        let mut waiters = Table::new(&["WAITS", "MODE", ">KEYS"]);
        for waiter in &lock.waiters {
            waiters.row([named(waiter.owner.as_ref()), waiter.mode.clone(), waiter.keys.to_string()]);
        }
        text = format!("{text}\n{}", waiters.render());
    }
    text
}
