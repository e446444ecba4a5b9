//! The scenarios that every library has to show, for that in Rust: `sdks/conformance/scenarios.json`.

mod failover;
mod messages;
mod state;
mod support;
mod workers;

use serde_json::Value;
use sluice_client::Client;

use crate::support::Server;

/// Declares the scenarios: each is a function of its name, with a client of a server of its own.
macro_rules! scenarios {
    ($($name:ident in $module:ident),* $(,)?) => {
        const SHOWN: &[&str] = &["failover", $(stringify!($name)),*];

        $(#[tokio::test]
        async fn $name() {
            let server = Server::with(&["--memory"]);
            $module::$name(&Client::new(&server.url).unwrap()).await;
        })*
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
    work_acks in workers,
    work_renews in workers,
    work_retries in workers,
    work_dead in workers,
    work_stops in workers,
    lock in state,
    lock_is_renewed in state,
    documents in state,
    transaction in state,
    errors in state,
}

#[test]
fn every_scenario_of_the_list_is_shown_and_no_other() {
    let list: Value =
        serde_json::from_str(include_str!("../../../../../sdks/conformance/scenarios.json")).unwrap();
    let mut listed: Vec<&str> =
        list.as_array().unwrap().iter().map(|scenario| scenario["name"].as_str().unwrap()).collect();
    let mut shown = SHOWN.to_vec();
    listed.sort_unstable();
    shown.sort_unstable();
    assert_eq!(shown, listed);
}
