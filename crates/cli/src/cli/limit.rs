//! `sluice limit`.

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_client::{Limit, LimitKey, LimitSettings, Rate};
use sluice_engine::limit::IN_FLIGHT_MAX;

use super::connect::{ReadFlags, ServerFlags};
use super::format::{length, spent, time};
use super::output::Table;
use super::values::rate;
use super::{Out, Result, number};

#[derive(Debug, Subcommand)]
pub(crate) enum LimitVerb {
    /// List limits with the messages in flight and those that wait.
    List {
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Show a limit and its keys.
    Show(ShowLimitArgs),
    /// Create a limit, or replace it as a whole: what is not given is not limited. It takes effect at once.
    ///
    /// `sluice queue set QUEUE --limit NAME` makes a queue follow it.
    Set(SetLimitArgs),
    /// Delete a limit that no queue follows.
    Delete {
        /// Name of the limit.
        limit: String,
        #[command(flatten)]
        server: ServerFlags,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ShowLimitArgs {
    /// Name of the limit.
    limit: String,
    /// Show only this key.
    #[arg(long, conflicts_with_all = ["waiting", "max"])]
    key: Option<String>,
    /// Show only keys with messages that wait.
    #[arg(long)]
    waiting: bool,
    /// Maximum number of keys to show.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = number(1u32..))]
    max: u32,
    #[command(flatten)]
    server: ReadFlags,
}

#[derive(Debug, Args)]
pub(crate) struct SetLimitArgs {
    /// Name of the limit.
    limit: String,
    /// Maximum number of messages in flight, of all queues that follow the limit together.
    #[arg(long, value_name = "N", value_parser = number(1u32..=IN_FLIGHT_MAX))]
    in_flight: Option<u32>,
    /// Maximum number of messages in flight of each limit key.
    #[arg(long, value_name = "N", value_parser = number(1u32..=IN_FLIGHT_MAX))]
    in_flight_per_key: Option<u32>,
    /// Maximum rate of deliveries, each counted as its cost, such as 50/1s, or 50/1s:10 with a burst of 10
    /// [default burst: the count].
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<Rate>,
    /// Maximum rate of deliveries of each limit key.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate_per_key: Option<Rate>,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(verb: LimitVerb, out: Out) -> Result<u8> {
    match verb {
        LimitVerb::List { server } => {
            let connection = server.connect()?;
            let limits = connection.client.limits().await.map_err(|e| connection.error(&e))?;
            if limits.is_empty() {
                out.note(&format!("no limits in namespace {}", connection.namespace));
                return Ok(0);
            }
            out.list(&limits, table)?;
        }
        LimitVerb::Show(args) => out.show(&show(args).await?, details)?,
        LimitVerb::Set(args) => {
            let connection = args.server.connect()?;
            let settings = LimitSettings {
                in_flight: args.in_flight,
                in_flight_per_key: args.in_flight_per_key,
                rate: args.rate,
                rate_per_key: args.rate_per_key,
            };
            let set = connection.client.limit_set(&args.limit, &settings).await;
            let (limit, created) = set.map_err(|e| connection.error(&e))?;
            out.show(&limit, |limit| {
                format!("{}\n{}", if created { "created" } else { "changed" }, details(limit))
            })?;
        }
        LimitVerb::Delete { limit, server } => {
            let connection = server.connect()?;
            connection.client.limit_delete(&limit).await.map_err(|e| {
                let error = connection.error(&e);
                if e.code() == Some("limit_in_use") {
                    error.hint("`sluice queue set QUEUE --limit ''` makes a queue follow no limit.")
                } else {
                    error
                }
            })?;
            out.show(&json!({ "deleted": limit }), |_| format!("deleted {limit}\n"))?;
        }
    }
    Ok(0)
}

/// Fetches the limit, with the requested number of keys.
async fn show(args: ShowLimitArgs) -> Result<Limit> {
    let connection = args.server.connect()?;
    if let Some(key) = &args.key {
        return connection.client.limit_key(&args.limit, key).await.map_err(|e| connection.error(&e));
    }
    let mut keys: Vec<LimitKey> = Vec::new();
    let mut cursor = None;
    loop {
        let most = (args.max.max(1) - keys.len() as u32).min(1_000);
        let page = connection.client.limit(&args.limit, args.waiting, cursor.as_deref(), most).await;
        let mut limit = page.map_err(|e| connection.error(&e))?;
        keys.append(&mut limit.keys);
        if limit.next.is_none() || keys.len() as u32 >= args.max {
            limit.keys = keys;
            return Ok(limit);
        }
        cursor = limit.next;
    }
}

fn count(value: Option<u32>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn spelt(rate: Option<Rate>) -> String {
    let Some(rate) = rate else { return "-".to_owned() };
    let burst = rate.burst.filter(|burst| *burst != rate.count);
    let burst = burst.map(|burst| format!(":{burst}")).unwrap_or_default();
    format!("{}/{}{burst}", rate.count, length(rate.period_ms))
}

fn next(at_ms: Option<u64>) -> String {
    at_ms.map_or_else(|| "-".to_owned(), time)
}

fn table(limits: &[Limit]) -> String {
    let mut table = Table::new(&[
        "LIMIT",
        ">IN FLIGHT",
        ">OF",
        ">OF EACH KEY",
        ">RATE",
        ">RATE PER KEY",
        ">SPENT",
        ">WAITING",
        "NEXT",
        ">QUEUES",
    ]);
    for limit in limits {
        let settings = &limit.settings;
        table.row([
            limit.name.clone(),
            limit.in_flight.to_string(),
            count(settings.in_flight),
            count(settings.in_flight_per_key),
            spelt(settings.rate),
            spelt(settings.rate_per_key),
            spent(limit.spent, settings.rate),
            limit.waiting.to_string(),
            next(limit.next_at_ms),
            limit.queues.len().to_string(),
        ]);
    }
    table.render()
}

fn details(limit: &Limit) -> String {
    let (mut about, settings) = (Table::fields(), &limit.settings);
    about.field("limit", limit.name.clone());
    about.field("queues", if limit.queues.is_empty() { "-".to_owned() } else { limit.queues.join(", ") });
    about.field("in flight", format!("{} of {}", limit.in_flight, count(settings.in_flight)));
    about.field("in flight per key", count(settings.in_flight_per_key));
    about.field("rate", spelt(settings.rate));
    about.field("rate per key", spelt(settings.rate_per_key));
    about.field("spent", spent(limit.spent, settings.rate));
    about.field("waiting", limit.waiting.to_string());
    about.field("next", next(limit.next_at_ms));
    if limit.keys.is_empty() {
        return about.render();
    }
    let mut keys = Table::new(&["KEY", ">IN FLIGHT", ">SPENT", ">WAITING", "NEXT"]);
    for key in &limit.keys {
        let spent = spent(key.spent, settings.rate_per_key);
        let (in_flight, waiting) = (key.in_flight.to_string(), key.waiting.to_string());
        keys.row([key.key.clone(), in_flight, spent, waiting, next(key.next_at_ms)]);
    }
    let more = if limit.next.is_some() { "There are more: --max shows them.\n" } else { "" };
    format!("{}\n{}{more}", about.render(), keys.render())
}
