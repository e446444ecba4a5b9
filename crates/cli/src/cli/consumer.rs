//! `sluice consumer`.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_client::Consumer;

use super::connect::{ReadFlags, ServerFlags};
use super::duration;
use super::format::{length, time};
use super::output::Table;
use super::{Out, Result, number};

#[derive(Debug, Subcommand)]
pub(crate) enum ConsumerVerb {
    /// List consumers with the number of messages that each holds.
    List {
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Show a consumer and the messages that it holds.
    Show(ShowConsumerArgs),
    /// Detach a consumer: it gets no more messages. What it holds returns after the grace period, without
    /// counting as an attempt.
    Detach(DetachArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ShowConsumerArgs {
    /// Id of the consumer.
    consumer: String,
    /// Maximum number of messages to show, longest held first.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = number(1u32..=1_000))]
    max: u32,
    #[command(flatten)]
    server: ReadFlags,
}

#[derive(Debug, Args)]
pub(crate) struct DetachArgs {
    /// Id of the consumer.
    consumer: String,
    /// Grace period in which it may still settle what it holds [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    grace: Option<Duration>,
    #[command(flatten)]
    server: ServerFlags,
}

pub(super) async fn run(verb: ConsumerVerb, out: Out) -> Result<u8> {
    match verb {
        ConsumerVerb::List { server } => {
            let connection = server.connect()?;
            let consumers = connection.client.consumers().await.map_err(|e| connection.error(&e))?;
            if consumers.is_empty() {
                out.note(&format!("no consumers in namespace {}", connection.namespace));
                return Ok(0);
            }
            out.list(&consumers, table)?;
        }
        ConsumerVerb::Show(ShowConsumerArgs { consumer, max, server }) => {
            let connection = server.connect()?;
            let shown = connection.client.consumer(&consumer, max).await;
            out.show(&shown.map_err(|e| connection.error(&e))?, details)?;
        }
        ConsumerVerb::Detach(DetachArgs { consumer, grace, server }) => {
            let connection = server.connect()?;
            let detached = connection.client.consumer_detach(&consumer, grace).await;
            detached.map_err(|e| connection.error(&e))?;
            out.show(&json!({ "detached": consumer }), |_| format!("detached {consumer}\n"))?;
        }
    }
    Ok(0)
}

/// The name of a consumer, or `-`.
fn name(consumer: &Consumer) -> String {
    if consumer.name.is_empty() { "-".to_owned() } else { consumer.name.clone() }
}

fn queues(consumer: &Consumer) -> String {
    let queues = consumer.queues.as_ref().filter(|queues| !queues.is_empty());
    queues.map_or_else(|| "-".to_owned(), |queues| queues.join(", "))
}

fn credit(consumer: &Consumer) -> String {
    consumer.credit.map_or_else(|| "-".to_owned(), |credit| credit.to_string())
}

fn table(consumers: &[Consumer]) -> String {
    let mut table =
        Table::new(&["ID", "NAME", "STATE", ">IN FLIGHT", ">OF", "OLDEST SINCE", "SINCE", "QUEUES"]);
    for consumer in consumers {
        table.row([
            consumer.id.clone(),
            name(consumer),
            consumer.state.clone(),
            consumer.in_flight.to_string(),
            credit(consumer),
            consumer.oldest_leased_at_ms.map_or_else(|| "-".to_owned(), time),
            time(consumer.since_at_ms),
            queues(consumer),
        ]);
    }
    table.render()
}

fn details(consumer: &Consumer) -> String {
    let mut about = Table::fields();
    about.field("consumer", consumer.id.clone());
    about.field("name", name(consumer));
    about.field("state", consumer.state.clone());
    about.field("since", time(consumer.since_at_ms));
    if consumer.credit.is_none() {
        about.field("in flight", consumer.in_flight.to_string());
    } else {
        about.field("queues", queues(consumer));
        about.field("lease", consumer.lease_ms.map_or_else(|| "each queue's".to_owned(), length));
        about.field("in flight", format!("{} of {}", consumer.in_flight, credit(consumer)));
    }
    if consumer.holds.is_empty() {
        return about.render();
    }
    let mut holds = Table::new(&["MESSAGE", "QUEUE", ">ATTEMPT", "SINCE", "LEASE UNTIL"]);
    for held in &consumer.holds {
        let [since, until] = [held.leased_at_ms, held.lease_until_ms].map(time);
        holds.row([held.id.clone(), held.queue.clone(), held.attempt.to_string(), since, until]);
    }
    let more = consumer.in_flight as usize > consumer.holds.len();
    let more = if more { "It holds more: --max shows them.\n" } else { "" };
    format!("{}\n{}{more}", about.render(), holds.render())
}
