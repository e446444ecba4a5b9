//! `sluice namespace`.

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_client::{Namespace, QuotaChange};

use super::confirm::Confirmation;
use super::connect::{ReadFlags, ServerFlags};
use super::format::{size, time};
use super::output::Table;
use super::values::size as parse_size;
use super::{CliError, Out, Result, number};

#[derive(Debug, Subcommand)]
pub(crate) enum NamespaceVerb {
    /// List namespaces.
    List {
        /// Also list `$sys`, the namespace in which the server stores its own data.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Create a namespace.
    Create {
        /// Name of the new namespace.
        name: String,
        /// Shard on which the namespace lives; it cannot be changed later [default: chosen by the server].
        #[arg(long, value_name = "N", value_parser = number(0u32..))]
        shard: Option<u32>,
        #[command(flatten)]
        quotas: QuotaFlags,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Show a namespace.
    Show {
        /// Name of the namespace.
        name: String,
        #[command(flatten)]
        server: ReadFlags,
    },
    /// Change the quotas of a namespace.
    Set {
        /// Name of the namespace.
        name: String,
        #[command(flatten)]
        quotas: QuotaFlags,
        #[command(flatten)]
        server: ServerFlags,
    },
    /// Delete a namespace.
    Delete {
        /// Name of the namespace.
        name: String,
        /// Delete its queues and messages, too.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        confirm: Confirmation,
        #[command(flatten)]
        server: ServerFlags,
    },
}

/// The quotas of a namespace.
#[derive(Debug, Args)]
#[command(next_help_heading = "Quotas")]
pub(crate) struct QuotaFlags {
    /// Maximum number of queues; 0: no quota.
    #[arg(long, value_name = "N", value_parser = number(0u64..))]
    queues: Option<u64>,
    /// Maximum number of messages in any state; 0: no quota.
    #[arg(long, value_name = "N", value_parser = number(0u64..))]
    messages: Option<u64>,
    /// Maximum bytes of payloads, headers, documents and attachments; 0: no quota.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    bytes: Option<u64>,
}

impl QuotaFlags {
    fn change(&self) -> QuotaChange {
        QuotaChange { queues: self.queues, messages: self.messages, bytes: self.bytes }
    }
}

pub(super) async fn run(verb: NamespaceVerb, out: Out) -> Result<u8> {
    match verb {
        NamespaceVerb::List { all, server } => {
            let connection = server.connect()?;
            let found = connection.client.namespaces(all).await.map_err(|e| connection.error(&e))?;
            out.list(&found, table)?;
        }
        NamespaceVerb::Create { name, quotas, shard, server } => {
            let connection = server.connect()?;
            if connection.client.namespace(&name).await.is_ok() {
                return Err(CliError::server(
                    "namespace_exists",
                    &format!("namespace {name:?} exists already"),
                    &json!({ "namespace": name }),
                )
                .hint("`sluice namespace set` changes its quotas."));
            }
            let created = connection.client.namespace_create(&name, quotas.change(), shard).await;
            let (namespace, _) = created.map_err(|e| connection.error(&e))?;
            out.show(&namespace, |n| format!("created\n{}", details(n)))?;
        }
        NamespaceVerb::Show { name, server } => {
            let connection = server.connect()?;
            let namespace = connection.client.namespace(&name).await.map_err(|e| connection.error(&e))?;
            out.show(&namespace, details)?;
        }
        NamespaceVerb::Set { name, quotas, server } => {
            if quotas.change() == QuotaChange::default() {
                return Err(CliError::usage("no quota given")
                    .hint("Give at least one of --queues, --messages, --bytes."));
            }
            let connection = server.connect()?;
            let set = connection.client.namespace_set(&name, quotas.change()).await;
            out.show(&set.map_err(|e| connection.error(&e))?, |n| format!("changed\n{}", details(n)))?;
        }
        NamespaceVerb::Delete { name, force, confirm, server } => {
            let connection = server.connect()?;
            let what = if force { " and everything in it" } else { "" };
            confirm.ask(&format!("Deleting namespace {name}{what}"))?;
            connection.client.namespace_delete(&name, force).await.map_err(|e| {
                let error = connection.error(&e);
                if e.code() == Some("namespace_not_empty") {
                    error.hint("--force deletes its queues and documents, too.")
                } else {
                    error
                }
            })?;
            out.show(&json!({ "deleted": name }), |_| format!("deleted {name}\n"))?;
        }
    }
    Ok(0)
}

fn quota(value: u64, show: impl Fn(u64) -> String) -> String {
    if value == 0 { "-".to_owned() } else { show(value) }
}

fn table(all: &[Namespace]) -> String {
    let headings = ["NAMESPACE", ">SHARD", ">QUEUES", ">QUOTA", ">MESSAGES", ">QUOTA", ">SIZE", ">QUOTA"];
    let mut table = Table::new(&headings);
    for n in all {
        table.row([
            n.name.clone(),
            n.shard.to_string(),
            n.queues.to_string(),
            quota(n.quotas.queues, |q| q.to_string()),
            n.messages.to_string(),
            quota(n.quotas.messages, |q| q.to_string()),
            size(n.bytes),
            quota(n.quotas.bytes, size),
        ]);
    }
    table.render()
}

fn details(n: &Namespace) -> String {
    let mut table = Table::fields();
    let of = |used: String, quota: String| if quota == "-" { used } else { format!("{used} of {quota}") };
    table.field("namespace", n.name.clone());
    table.field("shard", n.shard.to_string());
    table.field("queues", of(n.queues.to_string(), quota(n.quotas.queues, |q| q.to_string())));
    table.field("messages", of(n.messages.to_string(), quota(n.quotas.messages, |q| q.to_string())));
    table.field("size", of(size(n.bytes), quota(n.quotas.bytes, size)));
    table.field("created", time(n.created_at_ms));
    table.render()
}
