//! `sluice cluster init`: makes a server the first node of a new cluster, with the data that it has.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use sluice_node::Node;

use super::auto::AutoCertificates;
use super::node_file::{Membership, NodeFile, own_address};
use super::place::expect_no_node;
use super::{LAST_SYNC, not_started, options};
use crate::config::{self, Config, SettingFlags, Sources, TlsMode};
use crate::root_keys::ServerEncryption;
use crate::terminal::data_dir::expect_stopped;
use crate::terminal::{CliError, Fault, Out, Result};

/// Number of the first node of a cluster.
const FIRST: u64 = 1;

#[derive(Debug, Args)]
#[command(
    after_help = "Give the settings with which the server is started: in the file, the environment or here.\n\
    Nothing is copied. The next `sluice serve` goes on as a cluster of one node; without data it begins \
    with none."
)]
pub(crate) struct InitArgs {
    /// Configuration file of the server [default: ./sluice.toml if it is there; env: SLUICE_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingFlags,
}

/// Makes the server the first node. The same again changes nothing.
pub(crate) async fn run(args: InitArgs, out: Out) -> Result<()> {
    let loaded = config::load(&Sources::of_process(args.config, args.settings))
        .map_err(|e| CliError::usage(e.to_string()))?;
    let config = loaded.config;
    let data_dir = &config.data_dir;
    if config.memory || config.tls_cert.0.is_some() {
        return Err(CliError::usage("a node of a cluster has a data directory and --tls auto"));
    }
    expect_stopped(data_dir)?;
    let (file, chosen) = match NodeFile::read(data_dir)? {
        Some(file) if file.joined.as_ref().is_some_and(|joined| joined.node == FIRST) => (file, None),
        Some(_) => {
            let there = format!("the server in {} belongs to a cluster already", data_dir.display());
            return Err(CliError::of(Fault::Exists, there));
        }
        None => {
            expect_no_node(&config)?;
            let address = own_address(&config)?;
            let chosen = make_data(&config).await?;
            (first(address), Some(chosen))
        }
    };
    AutoCertificates::ensure(&Config { tls: TlsMode::Auto, ..config.clone() }, None)?;
    file.write(data_dir)?;
    let cluster = file.joined.as_ref().map(|joined| joined.cluster.clone()).unwrap_or_default();
    let encryption = chosen.as_ref().map(ServerEncryption::json);
    let value = json!({"cluster": cluster, "node": FIRST, "address": file.address, "encryption": encryption});
    out.show(&value, |_| {
        let warning = chosen.as_ref().and_then(ServerEncryption::warning);
        format!(
            "This server is node {FIRST} of the cluster {cluster}, reached at {}.\n\n{}  \
             sluice serve          goes on with its data, as a cluster of one node\n  \
             sluice cluster add    lets a machine join it\n",
            file.address,
            warning.map(|text| text + "\n").unwrap_or_default()
        )
    })
}

/// Starts and stops the server once, alone, with its settings: what is wrong with them or with the data is
/// said before anything of the cluster is made, and the logs of all shards are there for others to follow.
async fn make_data(config: &Config) -> Result<ServerEncryption> {
    let chosen = ServerEncryption::choose(config).map_err(|e| not_started(&e))?;
    let node = Node::start(options(config, Some(&chosen))).map_err(|e| not_started(&e))?;
    node.shutdown(LAST_SYNC).await.map_err(|e| CliError::of(Fault::Server, e.to_string()))?;
    Ok(chosen)
}

fn first(address: String) -> NodeFile {
    let joined = Some(Membership::first(FIRST, &address));
    NodeFile { address, machine: String::new(), joined, recovering: None, is_removed: false }
}
