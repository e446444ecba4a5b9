//! Telemetry of the server, if the settings name a collector.

use std::net::SocketAddr;
use std::sync::Arc;

use sluice_telemetry::queue::Queue;
use sluice_telemetry::{Options, Telemetry, WAITING_BYTES_MAX};

use crate::config::Config;
use crate::terminal::{CliError, Result};

/// The queue of the events of the log that are exported; `None`: they are not.
pub(super) fn logs(config: &Config) -> Option<Arc<Queue>> {
    let is_told = config.telemetry_endpoint.is_some() && config.telemetry_signals.logs;
    is_told.then(|| Arc::new(Queue::new(WAITING_BYTES_MAX)))
}

/// Begins the exports, within a runtime; `None`: there is no collector. `logs`: what [`logs`] gave.
pub(super) fn start(
    config: &Config,
    listening: SocketAddr,
    logs: Option<&Arc<Queue>>,
) -> Result<Option<Telemetry>> {
    let Some(endpoint) = config.telemetry_endpoint.clone() else { return Ok(None) };
    let ca = match &config.telemetry_ca.0 {
        Some(path) => Some(std::fs::read(path).map_err(|error| {
            CliError::usage(format!("telemetry.ca: cannot read {}: {error}", path.display()))
        })?),
        None => None,
    };
    let options = Options {
        endpoint,
        ca,
        headers: config.telemetry_headers.clone(),
        sampled_ppm: config.telemetry_sampling.0,
        interval: config.telemetry_interval,
        signals: config.telemetry_signals,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instance: config.cluster_address.0.clone().unwrap_or_else(|| listening.to_string()),
    };
    let telemetry = Telemetry::start(&options, logs.cloned());
    telemetry.map(Some).map_err(|error| CliError::usage(format!("telemetry: {error}")))
}

/// Exports the last of it, for which there are two seconds.
pub(super) async fn finish(telemetry: Option<Telemetry>) {
    if let Some(telemetry) = telemetry {
        telemetry.finish().await;
    }
}
