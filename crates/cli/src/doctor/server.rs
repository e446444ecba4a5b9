//! A running server or cluster: reached, of one version, with clocks and certificates that are right.

use std::path::Path;
use std::time::SystemTime;

use serde_json::Value;
use sluice_client::{Client, ClientError, ClusterStatus};

use super::finding::{Finding, Level};
use super::{certificates, clock};
use crate::cert::read_der;
use crate::connect::Connection;
use crate::terminal::format::{counted, now_ms};

const CHECK: &str = "server";
/// Error code of a server alone that is asked about its cluster.
const NO_CLUSTER: &str = "no_cluster";

/// The findings about the server of a connection. `expected`: one has to be there.
pub(super) async fn check(connection: &Connection, expected: bool) -> Vec<Finding> {
    let (client, before_ms) = (&connection.client, now_ms());
    let status = match client.status().await {
        Ok(status) => status,
        Err(error) => return vec![judge_error(connection, &error, expected)],
    };
    let after_ms = now_ms();
    let mut found = judge_status(&connection.url(), &status);
    let told_ms = ["started_at_ms", "uptime_ms"].map(|name| status[name].as_u64().unwrap_or_default());
    found.push(clock::judge_server(before_ms, told_ms[0].saturating_add(told_ms[1]), after_ms));
    found.extend(certificate(client).await);
    match client.cluster_status().await {
        Ok(cluster) => found.extend(judge_cluster(&cluster)),
        Err(ClientError::Server { code, .. }) if code == NO_CLUSTER => {}
        Err(error) => found.push(told("cluster", Level::Warning, connection, &error)),
    }
    found
}

/// The certificate that the server shows.
async fn certificate(client: &Client) -> Option<Finding> {
    let shown = match client.shown_certificate().await {
        Ok(shown) => read_der(&shown?),
        Err(error) => Err(error.to_string()),
    };
    // The server renews it, or those do who made it: either way it is told when that has not happened.
    Some(match shown {
        Ok(seen) => certificates::expiry(Path::new(client.server()), &seen, false, SystemTime::now()),
        Err(error) => Finding::told("certificates", Level::Problem, &error),
    })
}

fn told(check: &'static str, level: Level, connection: &Connection, error: &ClientError) -> Finding {
    let told = connection.error(error);
    let to_do = told.hints().join(" ").trim_end_matches('.').to_owned();
    let seen = told.message().to_owned();
    Finding { check, level, seen, to_do: (!to_do.is_empty()).then_some(to_do) }
}

fn judge_error(connection: &Connection, error: &ClientError, expected: bool) -> Finding {
    match error {
        ClientError::Transport { .. } if !expected => {
            Finding::skipped(CHECK, format!("none answers at {}", connection.urls()))
        }
        ClientError::Server { code, .. } if code == "forbidden" || code == "unauthenticated" => {
            told(CHECK, Level::Warning, connection, error)
        }
        _ if expected => told(CHECK, Level::Problem, connection, error),
        _ => told(CHECK, Level::Warning, connection, error),
    }
}

/// The findings about what a server tells of itself.
fn judge_status(url: &str, status: &Value) -> Vec<Finding> {
    let (own, version) = (env!("CARGO_PKG_VERSION"), status["version"].as_str().unwrap_or("unknown"));
    let any = |figure: &str| {
        status["shards"].as_array().is_some_and(|shards| shards.iter().any(|shard| shard[figure] == true))
    };
    let mut found = Vec::new();
    if status["ready"] == true {
        found.push(Finding::ok(CHECK, format!("{url} is ready")));
    } else {
        let to_do = "wait while it starts, stops or has no leader; its log says which";
        found.push(Finding::problem(CHECK, format!("{url} answers, and is not ready"), to_do));
    }
    if version != own {
        let seen = format!("it is of version {version}, and this program of {own}");
        found.push(Finding::warning("versions", seen, "use the same version on all machines"));
    }
    if any("disk_full") {
        let to_do = "settle messages, or enlarge the disk";
        found.push(Finding::problem("disk_room", "the server's disk is full, and sends are refused", to_do));
    } else if any("disk_low") {
        found.push(Finding::warning("disk_room", "the server's disk is nearly full", "enlarge the disk"));
    }
    let damaged: u64 = status["shards"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|shard| shard["damaged_blobs"].as_u64())
        .fold(0, u64::saturating_add);
    if damaged > 0 {
        let seen = format!("{} cannot be read back from its disk", counted(damaged, "payload"));
        let to_do = "look for disk errors, and in docs/operations.md for damaged payloads";
        found.push(Finding::problem("data", seen, to_do));
    }
    found
}

/// The findings about a cluster, whose nodes have found most of them themselves.
fn judge_cluster(cluster: &ClusterStatus) -> Vec<Finding> {
    const CHECK: &str = "cluster";
    let leaderless = cluster.shards.iter().any(|shard| shard.leader.is_none());
    let level = if leaderless || cluster.tolerates == 0 { Level::Problem } else { Level::Warning };
    let mut found: Vec<Finding> =
        cluster.problems.iter().map(|problem| Finding::told(CHECK, level, problem)).collect();
    let versions: Vec<&String> = cluster.nodes.iter().filter_map(|node| node.version.as_ref()).collect();
    if versions.windows(2).any(|pair| pair[0] != pair[1]) {
        let told: Vec<String> = cluster
            .nodes
            .iter()
            .filter_map(|node| Some(format!("node {}: {}", node.number, node.version.as_ref()?)))
            .collect();
        let seen = format!("the nodes are of different versions ({})", told.join(", "));
        found.push(Finding::warning("versions", seen, "upgrade the others, one after another"));
    }
    let apart_ms = cluster.nodes.iter().filter_map(|node| node.clock_ahead_ms).map(i64::unsigned_abs).max();
    if found.is_empty() {
        let nodes = counted(cluster.nodes.len() as u64, "node");
        let clocks = apart_ms.map_or_else(String::new, |apart| format!(", clocks within {apart} ms"));
        found.push(Finding::ok(CHECK, format!("{nodes} of one version, all reached{clocks}")));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn worst(found: &[Finding]) -> Level {
        found.iter().map(|it| it.level).max().unwrap()
    }

    #[test]
    fn a_status_is_judged_whatever_is_in_it() {
        let own = env!("CARGO_PKG_VERSION");
        let shard = |name: &str| json!([{name: true, "damaged_blobs": 0}, 7]);
        for (status, level) in [
            (json!({"ready": true, "version": own, "shards": []}), Level::Ok),
            (json!({"ready": true, "version": own, "shards": shard("disk_low")}), Level::Warning),
            (json!({"ready": true, "version": own, "shards": shard("disk_full")}), Level::Problem),
            (json!({"ready": true, "version": own, "shards": [{"damaged_blobs": 2}]}), Level::Problem),
            (json!({"ready": true, "version": "0.0.0-other", "shards": []}), Level::Warning),
            (json!({"ready": false, "version": own, "shards": []}), Level::Problem),
            (json!(null), Level::Problem),
            (json!({"ready": "yes", "version": 7, "shards": {"a": 1}}), Level::Problem),
        ] {
            assert_eq!(worst(&judge_status("http://a:1", &status)), level, "{status}");
        }
    }

    fn cluster(value: &Value) -> ClusterStatus {
        let mut whole = json!({"cluster": "c", "node": 1, "healthy": true, "tolerates": 1, "problems": [],
            "nodes": [], "shards": []});
        for (name, value) in value.as_object().unwrap() {
            whole[name] = value.clone();
        }
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn a_cluster_is_judged_by_what_it_tells() {
        let node = |number: u64, version: &str| {
            let mut node = json!({"number": number, "address": "a:1", "reached": true, "clock_ahead_ms": -3});
            node["version"] = json!(version);
            node
        };
        let shard = |leader: Option<u64>| json!([{"shard": 0, "leader": leader, "term": 1, "followers": []}]);
        for (value, level) in [
            (json!({}), Level::Ok),
            (json!({"nodes": [node(1, "1"), node(2, "1")], "shards": shard(Some(1))}), Level::Ok),
            (json!({"nodes": [node(1, "1"), node(2, "2")]}), Level::Warning),
            (json!({"problems": ["node 2 is gone: start it"]}), Level::Warning),
            (json!({"problems": ["node 2 is gone: start it"], "tolerates": 0}), Level::Problem),
            (json!({"problems": ["no leader"], "shards": shard(None)}), Level::Problem),
        ] {
            assert_eq!(worst(&judge_cluster(&cluster(&value))), level, "{value}");
        }
        let told = judge_cluster(&cluster(&json!({"nodes": [node(1, "1")]})));
        assert_eq!(told[0].seen, "1 node of one version, all reached, clocks within 3 ms");
    }
}
