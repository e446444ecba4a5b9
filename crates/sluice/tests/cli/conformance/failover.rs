//! The scenario of three nodes, of which the one that is asked is killed.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use sluice_client::{Client, Credentials, LockRequest, Options, Settle, WorkerOptions};
use tempfile::TempDir;

use super::support::{LONG, Working, eventually, is_empty, message, on, send};
use crate::support::{Done, command};

/// Three nodes of one cluster, each a process of its own, which is killed when this is dropped.
struct Cluster {
    home: TempDir,
    /// As `sluice cluster dev --no-start` tells of them.
    made: Value,
    processes: [Option<Child>; 3],
}

impl Cluster {
    fn start() -> Cluster {
        let home = tempfile::tempdir().unwrap();
        let make = ["cluster", "dev", "--dir", "cluster", "--port", "0", "--no-start", "--json"];
        let made = Done::of(command(home.path(), &make).output().unwrap()).ok();
        let made = serde_json::from_str(&made).unwrap();
        let mut cluster = Cluster { home, made, processes: [None, None, None] };
        (0..3).for_each(|node| cluster.revive(node));
        cluster
    }

    /// Starts a node that does not run, and waits until it is ready.
    fn revive(&mut self, node: usize) {
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
    fn kill(&mut self, node: usize) {
        if let Some(mut child) = self.processes[node].take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn urls(&self) -> Vec<&str> {
        self.made["nodes"].as_array().unwrap().iter().map(|node| node["url"].as_str().unwrap()).collect()
    }

    fn client(&self) -> Client {
        let read = |name: &str| {
            let path = self.made[name].as_str().unwrap();
            Some(std::fs::read(self.home.path().join(path)).unwrap())
        };
        let credentials = Credentials { ca: read("ca"), cert: read("cert"), key: read("key"), token: None };
        let (retry_for, connect_retry_for) = (Duration::from_secs(60), Duration::from_secs(60));
        let options = Options { retry_for, connect_retry_for, credentials, ..Options::default() };
        Client::with_options(&self.urls().join(","), options).unwrap()
    }

    /// The node that the client asks at present.
    fn asked(&self, client: &Client) -> usize {
        self.urls().iter().position(|url| url.ends_with(client.server())).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..3).for_each(|node| self.kill(node));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failover() {
    let mut cluster = Cluster::start();
    let client = cluster.client();
    let request = LockRequest { ttl: Duration::from_secs(20), wait: LONG, ..LockRequest::new("leader") };
    let held = client.lock(&request).await.unwrap();
    let handled: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let seen = Arc::clone(&handled);
    let options = WorkerOptions { concurrency: 4, lease: Duration::from_secs(5), ..on("q") };
    let working = Working::begin(&client, options, move |job| {
        seen.lock().unwrap().insert(job.message.id);
        async { Settle::Ack }
    });
    let (mut sent, mut killed) = (BTreeSet::new(), 0);
    for n in 0..300 {
        if n == 100 || n == 200 {
            killed = cluster.asked(&client);
            cluster.kill(killed);
        }
        sent.insert(send(&client, "q", message("x")).await);
        if n == 150 || n == 250 {
            cluster.revive(killed);
        }
    }
    eventually("all are handled", async || handled.lock().unwrap().is_superset(&sent)).await;
    eventually("all are acked", async || is_empty(&client, "q").await).await;
    working.end().await;
    assert!(!held.is_lost());
    let holders = client.lock_show("leader").await.unwrap().holders;
    assert_eq!(holders[0].fencing_token, held.grant().fencing_token);
    held.release().await.unwrap();
}
