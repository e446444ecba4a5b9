//! The limits of the engine, as the settings have them. In a cluster they are in force only where an operator
//! puts them into force.

use std::time::Duration;

use sluice_engine::Limits;
use sluice_node::Node;
use tokio::time::sleep;

use crate::config::Config;

/// Pause before a node of a cluster looks again which limits are in force.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Warns of each limit of this node's settings that is not the one in force in its cluster, as long as it
/// runs, whenever others come into force.
pub(super) async fn warn_of_others(node: Node) {
    let own = node.own_limits().clone();
    let mut seen = own.clone();
    while let Ok(behaviour) = node.behaviour(0).await {
        // Before anything was applied nothing is in force.
        if behaviour > 0 && node.limits() != seen {
            seen = node.limits();
            let numbers = own.numbers().into_iter().zip(seen.numbers());
            for (name, (own, in_force)) in Limits::SETTINGS.into_iter().zip(numbers) {
                if own != in_force {
                    tracing::warn!(
                        "the setting {name} is {own} on this node and has no effect: in the cluster {in_force} is \
                         in force"
                    );
                }
            }
        }
        sleep(LOOK_EVERY).await;
    }
}

/// The settings for the engine.
pub(crate) fn limits(config: &Config) -> Limits {
    Limits {
        payload_bytes: config.limit_payload.as_u32(),
        headers: config.limit_headers.as_u32(),
        headers_bytes: config.limit_headers_bytes.as_u32(),
        batch_items: config.limit_batch_items.as_u32(),
        batch_bytes: config.limit_batch_bytes.as_u32(),
        receive_messages: config.limit_receive_messages.as_u32(),
        queues: config.limit_queues.as_u32(),
        namespaces: config.limit_namespaces.as_u32(),
        messages: config.limit_messages.0,
        idempotency_keys: config.limit_idempotency_keys.as_u32(),
        idempotency_window_ms: u64::try_from(config.limit_idempotency_window.as_millis()).unwrap_or(u64::MAX),
        auto_create: config.limit_auto_create,
    }
}
