//! The scenarios that every library has to show, for that in Rust: `sdks/conformance/scenarios.json`.

mod cluster;
mod failover;
mod messages;
mod state;
mod support;
mod workers;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use sluice_client::Client;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use self::cluster::Cluster;
use crate::support::Server;

/// Scenarios that run at once on the cluster: more would keep each other from being in time.
const AT_ONCE: usize = 4;

/// Declares the scenarios that are shown on one node and on three: each is a function of its name, with a
/// client of a server, or of a namespace, of its own.
macro_rules! scenarios {
    ($($name:ident in $module:ident),* $(,)?) => {
        const SHOWN_ON_BOTH: &[&str] = &[$(stringify!($name)),*];

        $(#[tokio::test]
        async fn $name() {
            let server = Server::with(&["--memory"]);
            $module::$name(&Client::new(&server.url).unwrap()).await;
        })*

        /// Begins all of them.
        async fn begin(cluster: &Cluster) -> Vec<(&'static str, JoinHandle<()>)> {
            let turns = Arc::new(Semaphore::new(AT_ONCE));
            let mut begun = Vec::new();
            $({
                let (turns, client) = (Arc::clone(&turns), cluster.client_in(stringify!($name)).await);
                begun.push((stringify!($name), spawn_local(async move {
                    let _turn = turns.acquire().await.unwrap();
                    $module::$name(&client).await;
                })));
            })*
            begun
        }
    };
}

scenarios! {
    send_and_receive in messages,
    send_many in messages,
    send_options in messages,
    send_again in messages,
    request_and_reply in messages,
    results in messages,
    flow in messages,
    schedule in messages,
    budget in messages,
    work_acks in workers,
    work_renews in workers,
    work_retries in workers,
    work_dead in workers,
    work_refused in workers,
    work_stops in workers,
    lock in state,
    lock_is_renewed in state,
    documents in state,
    transaction in state,
    errors in state,
}

#[tokio::test(flavor = "multi_thread")]
async fn on_three_nodes() {
    let cluster = Cluster::start();
    LocalSet::new()
        .run_until(async {
            for (name, running) in begin(&cluster).await {
                running.await.unwrap_or_else(|failed| panic!("{name}: {failed}"));
            }
        })
        .await;
}

#[test]
fn every_scenario_of_the_list_is_shown_and_no_other() {
    let list: Value =
        serde_json::from_str(include_str!("../../../../../sdks/conformance/scenarios.json")).unwrap();
    let list = list.as_array().unwrap();
    let listed: BTreeSet<String> =
        list.iter().map(|scenario| format!("{} {}", scenario["name"], scenario["nodes"])).collect();
    let both = SHOWN_ON_BOTH.iter().map(|name| format!("\"{name}\" [1,3]"));
    let shown: BTreeSet<String> =
        both.chain(["\"restart\" [1]".to_owned(), "\"failover\" [3]".to_owned()]).collect();
    assert_eq!(shown, listed);
}
