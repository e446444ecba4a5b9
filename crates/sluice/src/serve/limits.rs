//! The limits of the engine, as the settings have them.

use sluice_engine::Limits;

use crate::config::Config;

/// The settings for the engine.
pub(super) fn limits(config: &Config) -> Limits {
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
