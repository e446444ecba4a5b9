//! Scenarios in which the server that is asked is killed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_client::{Client, LockRequest, Options, Settle, WorkerOptions};

use super::cluster::Cluster;
use super::support::{LONG, Working, eventually, is_empty, message, on, send};
use crate::support::Server;

/// Of how many messages so many are sent before each of the kills.
const KILLS: [usize; 2] = [100, 200];
const MESSAGES: usize = 300;

#[tokio::test(flavor = "multi_thread")]
async fn failover() {
    let mut cluster = Cluster::start();
    let (client, mut killed) = (cluster.client(0), 0);
    let asking = client.clone();
    goes_on(&client, |sent| {
        if KILLS.contains(&sent) {
            killed = cluster.asked(&asking);
            cluster.kill(killed);
        } else if KILLS.contains(&sent.saturating_sub(50)) {
            cluster.revive(killed);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn restart() {
    let server = Server::at_one_address();
    let (retry_for, connect_retry_for) = (Duration::from_secs(60), Duration::from_secs(60));
    let options = Options { retry_for, connect_retry_for, ..Options::default() };
    let client = Client::with_options(&server.url, options).unwrap();
    let mut server = Some(server);
    goes_on(&client, |sent| {
        if KILLS.contains(&sent) {
            server = server.take().map(Server::kill_and_restart);
        }
    })
    .await;
}

/// Sends, works and holds a lock, and does something before each send, by the number of those before it.
async fn goes_on(client: &Client, mut before: impl FnMut(usize)) {
    let request = LockRequest { ttl: Duration::from_secs(20), wait: LONG, ..LockRequest::new("leader") };
    let held = client.lock(&request).await.unwrap();
    let handled: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let seen = Arc::clone(&handled);
    let options = WorkerOptions { concurrency: 4, lease: Duration::from_secs(5), ..on("q") };
    let working = Working::begin(client, options, move |job| {
        seen.lock().unwrap().insert(job.message.id);
        async { Settle::Ack }
    });
    let mut sent = BTreeSet::new();
    for n in 0..MESSAGES {
        before(n);
        sent.insert(send(client, "q", message("x")).await);
    }
    eventually("all are handled", async || handled.lock().unwrap().is_superset(&sent)).await;
    eventually("all are acked", async || is_empty(client, "q").await).await;
    working.end().await;
    assert!(!held.is_lost());
    let holders = client.lock_show("leader").await.unwrap().holders;
    assert_eq!(holders[0].fencing_token, held.grant().fencing_token);
    held.release().await.unwrap();
}
