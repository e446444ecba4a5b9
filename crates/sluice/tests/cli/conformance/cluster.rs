//! Three nodes of one cluster.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;
use sluice_client::{Client, Credentials, Options, QuotaChange};
use tempfile::TempDir;

use crate::support::{Done, command};

/// Three nodes, each a process of its own, which is killed when this is dropped.
pub(super) struct Cluster {
    home: TempDir,
    /// As `sluice cluster dev --no-start` tells of them.
    made: Value,
    processes: [Option<Child>; 3],
}

impl Cluster {
    pub(super) fn start() -> Cluster {
        let home = tempfile::tempdir().unwrap();
        let make = ["cluster", "dev", "--dir", "cluster", "--port", "0", "--no-start", "--json"];
        let made = Done::of(command(home.path(), &make).output().unwrap()).ok();
        let made = serde_json::from_str(&made).unwrap();
        let mut cluster = Cluster { home, made, processes: [None, None, None] };
        (0..3).for_each(|node| cluster.revive(node));
        cluster
    }

    /// Starts a node that does not run, and waits until it is ready.
    pub(super) fn revive(&mut self, node: usize) {
        let arguments = self.made["nodes"][node]["arguments"].as_array().unwrap();
        let arguments: Vec<&str> = arguments.iter().map(|one| one.as_str().unwrap()).collect();
        let mut command = command(self.home.path(), &[&arguments[..], &["--json"]].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with('{'), "{line}");
        self.processes[node] = Some(child);
    }

    /// kill -9
    pub(super) fn kill(&mut self, node: usize) {
        if let Some(mut child) = self.processes[node].take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn urls(&self) -> Vec<&str> {
        self.made["nodes"].as_array().unwrap().iter().map(|node| node["url"].as_str().unwrap()).collect()
    }

    /// A client that asks this node first.
    pub(super) fn client(&self, first: usize) -> Client {
        let read = |name: &str| {
            let path = self.made[name].as_str().unwrap();
            Some(std::fs::read(self.home.path().join(path)).unwrap())
        };
        let credentials = Credentials { ca: read("ca"), cert: read("cert"), key: read("key"), token: None };
        let (retry_for, connect_retry_for) = (Duration::from_secs(60), Duration::from_secs(60));
        let options = Options { retry_for, connect_retry_for, credentials, ..Options::default() };
        let mut urls = self.urls();
        urls.rotate_left(first);
        Client::with_options(&urls.join(","), options).unwrap()
    }

    /// A client with a new namespace, which asks one node or another first.
    pub(super) async fn client_in(&self, namespace: &str) -> Client {
        let client = self.client(namespace.len() % 3);
        client.namespace_create(namespace, QuotaChange::default(), None).await.unwrap();
        client.in_namespace(namespace)
    }

    /// The node that the client asks at present.
    pub(super) fn asked(&self, client: &Client) -> usize {
        self.urls().iter().position(|url| url.ends_with(client.server())).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..3).for_each(|node| self.kill(node));
    }
}
