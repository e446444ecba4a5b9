//! TLS and rights: loaded at the start, and again when files change or SIGHUP arrives.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sluice_calls::access::{Access, AccessOptions, RequestRate};
use sluice_front::tls::{Tls, TlsFiles};
use sluice_node::Node;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::auto::AutoCertificates;
use super::cluster;
use super::place::{Place, Source};
use crate::config::{Config, TlsMode};
use crate::terminal::{CliError, Fault, Result};

/// Interval between two checks of the files: a revocation in a file takes effect within about this time.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Interval at which the last uses of tokens are stored, and refusals summed up when their time is over.
const NOTE_EVERY: Duration = Duration::from_secs(60);
/// Interval between two checks for certificates that expire soon.
const RENEW_EVERY: Duration = Duration::from_secs(12 * 3_600);

/// The TLS configuration and the access rules of a server.
#[derive(Debug)]
pub(super) struct Security {
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) access: Access,
    /// The files that `--tls auto` has made.
    pub(super) made: Option<AutoCertificates>,
}

impl Security {
    /// Loads the files that the settings name. A node of a cluster whose place stands in its file makes its
    /// certificates in any case. `place`: that of the server in a cluster.
    pub(super) fn load(config: &Config, place: Option<&Place>) -> Result<Security> {
        let own = place.filter(|place| matches!(place.source, Source::File(_)));
        let made = (config.tls == TlsMode::Auto || own.is_some())
            .then(|| AutoCertificates::ensure(config, own.map(|own| own.identity)))
            .transpose()
            .map_err(|e| e.context("--tls auto"))?;
        let files = match &made {
            Some(made) => Some(TlsFiles {
                cert: made.server.cert.clone(),
                key: made.server.key.clone(),
                client_ca: Some(made.ca.clone()),
            }),
            None => named(config),
        };
        let tls = files.map(|files| Tls::load(files, cluster::alpn(place), config.tls_handshake_timeout));
        let tls = tls.transpose().map_err(|e| CliError::usage(e.to_string()))?.map(Arc::new);
        let access = Access::new(AccessOptions {
            policy: config.access_policy.0.clone(),
            certificates: tls.as_ref().is_some_and(|tls| tls.asks_clients()),
            rate: rate(config),
        });
        Ok(Security { tls, access: access.map_err(CliError::usage)?, made })
    }

    /// Reads the tokens and the policy that this node has stored, whoever leads.
    pub(super) async fn load_stored(&self, node: &Node) -> Result<()> {
        let unreadable = |what: &str, e: &dyn fmt::Display| {
            CliError::of(Fault::Server, format!("cannot read {what}: {e}"))
        };
        self.access.load_tokens(&node.stale()).await.map_err(|e| unreadable("the tokens", &e))?;
        self.access.load_policy(&node.stale()).await.map_err(|e| unreadable("the stored policy", &e))
    }

    /// Takes up tokens and the policy that other nodes have made, set and removed, as soon as this node has
    /// applied that, for as long as the server runs.
    async fn follow(&self, node: &Node) {
        loop {
            if let Err(error) = self.access.follow(node).await {
                tracing::debug!("tokens and policy could not be read again yet: {error}");
            }
            // Once more in any case, where that failed.
            let _ = timeout(LOOK_EVERY, node.system_changed()).await;
        }
    }

    /// Loads changed files. Logs an error unless `reported` holds it already, and keeps the former contents
    /// in use. Returns whether anything has changed or is wrong.
    fn reload(&self, reported: &mut ReportedErrors) -> bool {
        let certificates = self.tls.as_ref().map_or(Ok(false), |tls| tls.reload().map_err(|e| e.to_string()));
        let policy = self.access.reload();
        if matches!(certificates, Ok(true)) {
            tracing::info!("new certificates are in use for new connections");
        }
        if matches!(policy, Ok(true)) {
            tracing::info!("the new policy is in force");
        }
        let as_it_was = matches!((&certificates, &policy), (Ok(false), Ok(false)));
        reported.certificates.update(certificates.err(), "the old certificates stay in use");
        reported.policy.update(policy.err(), "the old policy stays in force");
        !as_it_was
    }

    /// The same on request: logs the result in any case.
    fn reload_now(&self) {
        if !self.reload(&mut ReportedErrors::default()) {
            tracing::info!("SIGHUP: certificates and policy have not changed");
        }
    }

    /// Renews certificates that expire soon, or logs a warning about them.
    fn renew(&self) {
        if let Some(Err(error)) = self.made.as_ref().map(AutoCertificates::renew) {
            tracing::error!("certificates could not be renewed: {}", error.message());
        }
        if let Some(days) =
            self.tls.as_ref().filter(|_| self.made.is_none()).and_then(|tls| tls.expires_soon())
        {
            tracing::warn!("the server's certificate expires in {days} days: renew it");
        }
    }
}

/// The errors in files that the log has reported.
#[derive(Debug, Default)]
struct ReportedErrors {
    certificates: LastError,
    policy: LastError,
}

/// The last error of a file; `None`: the file is valid.
#[derive(Debug, Default)]
struct LastError(Option<String>);

impl LastError {
    fn update(&mut self, now: Option<String>, consequence: &str) {
        if let Some(error) = now.as_ref().filter(|_| now != self.0) {
            tracing::error!("{consequence}: {error}");
        }
        self.0 = now;
    }
}

fn named(config: &Config) -> Option<TlsFiles> {
    let (cert, key) = (config.tls_cert.0.clone()?, config.tls_key.0.clone()?);
    Some(TlsFiles { cert, key, client_ca: config.tls_client_ca.0.clone() })
}

fn rate(config: &Config) -> Option<RequestRate> {
    let per_s = config.access_requests_per_s.as_u32();
    let burst = config.access_burst.as_u32();
    (per_s > 0).then_some(RequestRate { per_s, burst: if burst == 0 { per_s } else { burst } })
}

/// Watches files, signals and certificates for as long as the server runs, and in a cluster the tokens and
/// the policy of all nodes.
pub(super) fn watch(security: Arc<Security>, node: Node, is_clustered: bool) -> Result<()> {
    let hangup = signal(SignalKind::hangup());
    let mut hangup = hangup.map_err(|e| CliError::failed(format!("cannot watch for signals: {e}")))?;
    let every = |period| {
        let mut ticks = interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    };
    let (mut looks, mut notes, mut renewals) = (every(LOOK_EVERY), every(NOTE_EVERY), every(RENEW_EVERY));
    security.renew();
    if is_clustered {
        let (security, node) = (Arc::clone(&security), node.clone());
        tokio::spawn(async move { security.follow(&node).await });
    }
    tokio::spawn(async move {
        let mut reported = ReportedErrors::default();
        loop {
            tokio::select! {
                _ = hangup.recv() => security.reload_now(),
                _ = looks.tick() => drop(security.reload(&mut reported)),
                _ = renewals.tick() => security.renew(),
                _ = notes.tick() => {
                    security.access.sum_up_refusals(&node, false).await;
                    if let Err(error) = security.access.note_uses(&node).await {
                        tracing::debug!("the last uses of tokens could not be stored yet: {error}");
                    }
                }
            }
        }
    });
    Ok(())
}
