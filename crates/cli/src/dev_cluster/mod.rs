//! `sluice cluster dev`: the servers of one cluster on this machine, to try it out.
//!
//! Map: `folder` its files, `server` one of its processes.

mod folder;
mod server;

use std::net::TcpListener;
use std::path::PathBuf;

use clap::Args;
use futures_util::future::join_all;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::terminal::{CliError, Out, Result};
use folder::DevFolder;
use server::{Server, arguments};

/// Number of nodes.
const NODES: u16 = 3;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sluice cluster dev\n  sluice cluster dev --dir /tmp/trial --port 0\n\n\
    Ctrl-C ends all nodes. The folder keeps their data: the next start goes on with it.")]
pub(crate) struct DevArgs {
    /// Folder with the data and certificates of all nodes; created when missing.
    #[arg(long, default_value = "sluice-cluster", value_name = "DIR")]
    dir: PathBuf,
    /// Port of the first node; the others take the next ones. 0: free ports.
    #[arg(long, default_value_t = 7070, value_name = "PORT")]
    port: u16,
    /// Make the folder and print the command of each node, without starting any.
    #[arg(long)]
    no_start: bool,
}

/// A node, and how it is started.
#[derive(Debug)]
struct Start {
    number: u16,
    url: String,
    /// Arguments of this program.
    arguments: Vec<String>,
}

/// Runs the nodes until a signal, or until all have ended.
pub(crate) async fn run(args: DevArgs, out: Out) -> Result<u8> {
    let folder = DevFolder::open_or_make(&args.dir, NODES).await?;
    let ports = ports(args.port)?;
    let numbered = ports.iter().zip(1..).map(|(port, number)| format!("{number}=127.0.0.1:{port}"));
    let members = numbered.collect::<Vec<String>>().join(",");
    let start = |(port, number)| {
        let arguments = arguments(&folder.files(number), port, &members);
        Start { number, url: format!("https://127.0.0.1:{port}"), arguments }
    };
    let starts: Vec<Start> = ports.into_iter().zip(1..).map(start).collect();
    if args.no_start {
        return show_starts(&folder, &starts, out).map(|()| 0);
    }
    let mut servers = Vec::new();
    for start in &starts {
        servers.push(Server::start(start.number, &start.arguments)?);
    }
    for server in &mut servers {
        server.ready().await?;
    }
    show(&folder, &servers, out)?;
    let told = |e| CliError::failed(format!("cannot watch for signals: {e}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(told)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(told)?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = join_all(servers.iter_mut().map(|server| server.ended(out))) => {}
    }
    for server in &mut servers {
        server.terminate();
    }
    join_all(servers.iter_mut().map(|server| server.ended(out))).await;
    Ok(0)
}

/// The ports of the nodes.
fn ports(first: u16) -> Result<Vec<u16>> {
    if first > 0 {
        let last = first.checked_add(NODES - 1);
        let last =
            last.ok_or_else(|| CliError::usage(format!("there are no {NODES} ports from {first} on")))?;
        return Ok((first..=last).collect());
    }
    // All at once, so that they differ.
    let free = || TcpListener::bind("127.0.0.1:0");
    let free: std::io::Result<Vec<TcpListener>> = (0..NODES).map(|_| free()).collect();
    let ports = free.and_then(|free| free.iter().map(|it| Ok(it.local_addr()?.port())).collect());
    ports.map_err(|e| CliError::failed(format!("no free ports: {e}")))
}

/// Paths of the CA, and of the certificate and key of an administrator.
fn credentials(folder: &DevFolder) -> [String; 3] {
    let admin = folder.admin();
    [folder.ca(), admin.cert, admin.key].map(|path| path.display().to_string())
}

fn show_starts(folder: &DevFolder, starts: &[Start], out: Out) -> Result<()> {
    let node = |start: &Start| json!({"node": start.number, "url": start.url, "arguments": start.arguments});
    let nodes: Vec<_> = starts.iter().map(node).collect();
    let [ca, cert, key] = credentials(folder);
    let value = json!({"nodes": nodes, "ca": ca, "cert": cert, "key": key});
    out.show(&value, |_| {
        let command = |start: &Start| format!("sluice {}\n", start.arguments.join(" "));
        starts.iter().map(command).collect()
    })
}

fn show(folder: &DevFolder, servers: &[Server], out: Out) -> Result<()> {
    let [ca, cert, key] = credentials(folder);
    let nodes: Vec<_> = servers
        .iter()
        .map(|server| {
            json!({"node": server.number, "url": server.url, "pid": server.pid,
                "data_dir": folder.files(server.number).data.display().to_string()})
        })
        .collect();
    let value = json!({"nodes": nodes, "ca": ca, "cert": cert, "key": key});
    out.show(&value, |_| {
        let mut text =
            "The cluster is ready; its nodes agree on a leader within about a second.\n\n".to_owned();
        for server in servers {
            text.push_str(&format!("  node {}  {}  process {}\n", server.number, server.url, server.pid));
        }
        let urls: Vec<&str> = servers.iter().map(|server| server.url.as_str()).collect();
        text.push_str(&format!(
            "\nIn another terminal:\n\n  export SLUICE_SERVER={}\n  export SLUICE_CA={ca} SLUICE_CERT={cert} \
             SLUICE_CERT_KEY={key}\n  sluice send emails hello\n\n",
            urls.join(",")
        ));
        text
    })
}
