//! The table of all settings of the server: name, type, default, range, description. The struct, the flags,
//! the environment variables, the file, `sluice config` and `docs/configuration.md` come from it.

use std::path::PathBuf;
use std::time::Duration;

use sluice_front::http::Compression;
use sluice_node::Durability;
use sluice_push::address::Allowed;
use sluice_telemetry::Signals;
use sluice_telemetry::endpoint::{Endpoint, Headers};

use super::RootKeySource;
use super::members::{Address, ClusterMembers};
use super::telemetry::Share;
use super::values::{
    Any, Between, Count, LogFormat, LogLevel, MaybePath, Names, SettingValue, Size, TlsMode,
};

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Name in the file; dotted inside a section.
    pub(crate) key: &'static str,
    pub(crate) default: &'static str,
    /// Placeholder for a value in the help.
    pub(crate) placeholder: &'static str,
    /// Description, in sentences.
    pub(crate) doc: &'static str,
    /// True if values are never shown.
    pub(crate) is_secret: bool,
    /// Parses a value and returns its canonical form; the error says what is expected.
    pub(crate) normalise: fn(&str) -> Result<String, String>,
}

impl Setting {
    /// Name of the flag, without dashes.
    pub(crate) fn flag(&self) -> String {
        self.key.replace(['.', '_'], "-")
    }

    /// Name of the environment variable.
    pub(crate) fn env(&self) -> String {
        format!("SLUICE_{}", self.key.replace('.', "_").to_ascii_uppercase())
    }

    /// Section of the file; `None`: the top level.
    pub(crate) fn section(&self) -> Option<&'static str> {
        self.key.split_once('.').map(|(section, _)| section)
    }

    /// The value as it is shown.
    pub(crate) fn shown<'v>(&self, value: &'v str) -> &'v str {
        if self.is_secret && !value.is_empty() { "(not shown)" } else { value }
    }

    /// True when the flag may be repeated; each use adds a value.
    pub(crate) fn is_list(&self) -> bool {
        self.placeholder == Names::PLACEHOLDER
    }

    pub(crate) fn is_switch(&self) -> bool {
        self.placeholder == bool::PLACEHOLDER
    }
}

macro_rules! settings {
    ($($field:ident $key:literal: $type:ty = $default:literal in $range:expr, $doc:literal;)*) => {
        /// The settings with their values.
        #[derive(Clone, PartialEq, Debug)]
        pub(crate) struct Config { $(#[doc = $doc] pub(crate) $field: $type,)* }

        /// All settings, in the order of the documentation.
        pub(crate) const SETTINGS: &[Setting] = &[$(Setting {
            key: $key,
            default: $default,
            placeholder: <$type as SettingValue>::PLACEHOLDER,
            doc: $doc,
            is_secret: <$type as SettingValue>::IS_SECRET,
            normalise: |text| <$type as SettingValue>::read(text, &$range).map(|value| value.show()),
        },)*];

        impl Config {
            /// Parses the text of each setting. Returns the first error; the caller has checked all texts
            /// before.
            pub(crate) fn read(text: impl Fn(&str) -> String) -> Result<Config, String> {
                Ok(Config { $($field: <$type as SettingValue>::read(&text($key), &$range)?,)* })
            }
        }
    };
}

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

settings! {
    listen "listen": String = "127.0.0.1:7070" in Any,
        "Address to listen on. Port 0 takes any free port; the server prints the address when it is ready.";
    data_dir "data_dir": PathBuf = "./sluice-data" in Any,
        "Data directory, created if it is missing. Only one process may use it at a time.";
    memory "memory": bool = "false" in Any,
        "Keep everything in memory and write no files. All data is lost when the process ends.";
    shards "shards": Count = "1" in Between(1, 64),
        "Number of shards. Each shard has a thread, an engine and a journal; each namespace lives on one \
        shard. The number may grow later, and never shrink.";
    durability "durability": Durability = "always" in Any,
        "When a reply may be sent: after fdatasync (always), after the write, with one sync per interval \
        (interval:1s), or after the write, without a sync (os). With any of them a crash of the process \
        loses nothing; a power loss may lose the last interval, or more with os.";
    cache "cache": Size = "256MiB" in Between(0, TIB),
        "Memory for recent payloads. Older payloads are read back from disk at delivery.";
    reserve "reserve": Size = "64MiB" in Between(0, TIB),
        "Disk space held back, for all shards together, so that messages can still be settled when the disk \
        is full; at most an eighth of a small disk.";
    low_water "low_water": Size = "1GiB" in Between(0, 1024 * TIB),
        "Free disk space below which the server logs a warning.";
    no_encryption "no_encryption": bool = "false" in Any,
        "Write new files without encryption. Encrypted files are still read, with their root key.";
    key_source "key_source": RootKeySource = "auto" in Any,
        "Where the root keys are: in a file beside the data directory, with its name and `.key`, which the \
        server creates when there is no data yet that needs a key (auto); in the file named, created \
        likewise (file:/etc/sluice/root.key); in an environment variable (env:NAME); or in the output of a \
        command (command:LINE). Without the root keys the data cannot be read: keep a copy elsewhere.";
    insecure "insecure": bool = "false" in Any,
        "Listen on an address that other machines can reach, although there is no TLS or no caller \
        authentication. Without TLS, anybody on the network path can read everything, tokens included; \
        without authentication, anybody who can reach the port may do everything.";
    tls "tls": TlsMode = "files" in Any,
        "Source of the server's certificate: the files `tls_cert` and `tls_key` (files; without them the \
        server speaks clear text), or a CA and certificates that the first start creates in `tls_dir` \
        (auto).";
    tls_name "tls_name": Names = "" in Any,
        "Names and addresses, separated by commas, that the certificate of `--tls auto` covers in addition \
        to those that the server knows: `localhost`, this machine's name, the host in `listen`, and with \
        `0.0.0.0` or `[::]` the addresses of the network interfaces. A client refuses a server whose \
        certificate does not cover the name that the client used.";
    tls_cert "tls_cert": MaybePath = "" in Any,
        "PEM file with the server's certificate, followed by the intermediate certificates. Read again when \
        it changes.";
    tls_key "tls_key": MaybePath = "" in Any,
        "PEM file with the private key of `tls_cert`.";
    tls_client_ca "tls_client_ca": MaybePath = "" in Any,
        "PEM file with the CAs that sign client certificates. When it is set, callers must authenticate.";
    tls_dir "tls_dir": MaybePath = "" in Any,
        "Folder for the files that `--tls auto` creates. Default: beside the data directory, with its name \
        and `-tls`, so that a copy of the data does not include the keys.";
    tls_handshake_timeout "tls_handshake_timeout": Duration = "10s" in Between(seconds(1), seconds(60)),
        "Longest time for a client's TLS handshake.";
    cluster_members "cluster_members": ClusterMembers = "" in Any,
        "Numbers and addresses of all nodes of the cluster, this one among them. Each shard is then \
        replicated on all nodes. Which node this is stands in `tls_cert`; `tls_client_ca` is the CA that \
        signs the certificates of all nodes. Without it the server is alone.";
    cluster_address "cluster_address": Address = "" in Any,
        "Address at which clients and other nodes reach this node of a cluster. Empty: that of `listen`. Used \
        by `sluice cluster init` and when the server joins.";
    cluster_log "cluster_log": Size = "1GiB" in Between(MIB, 1024 * GIB),
        "Log of each shard that is kept for nodes that are behind, a quarter of the disk at most, and of \
        small batches about the last million. A node that has missed more gets the state of the shard, and the \
        messages that it lacks.";
    grace "grace": Duration = "30s" in Between(Duration::ZERO, seconds(3600)),
        "Longest time for running requests to finish after SIGTERM or SIGINT. A second signal ends the \
        process at once.";
    accept_clock_jump "accept_clock_jump": bool = "false" in Any,
        "Start although the wall clock is more than a year ahead of the data. Leases and delays follow the \
        new time.";
    mailbox_requests "mailbox_requests": Count = "65536" in Between(16, 1_000_000),
        "Maximum number of requests that wait for one shard; further requests get `overloaded`. Another \
        eighth is reserved for settling and extending.";
    mailbox_bytes "mailbox_bytes": Size = "256MiB" in Between(16 * MIB, 64 * GIB),
        "Maximum bytes of the requests that wait for one shard; further requests get `overloaded`. Another \
        eighth is reserved for settling and extending.";
    waiting_receives "waiting_receives": Count = "100000" in Between(1, 10_000_000),
        "Maximum number of receives that wait for messages, per shard, and of callers that wait for locks; \
        further ones get `overloaded`.";
    events_window "events.window": Count = "10000" in Between(1, 100_000),
        "Maximum number of events of a queue or namespace that are kept for readers that reconnect.";
    events_keep "events.keep": Duration = "5m" in Between(Duration::ZERO, seconds(86_400)),
        "How long the events of a queue or namespace are kept after its last reader has left.";
    events_readers "events.readers": Count = "1000" in Between(1, 1_000_000),
        "Maximum number of event readers, per shard; further readers get `overloaded`.";
    events_pause "events.pause": Duration = "15s" in Between(seconds(1), seconds(20)),
        "Interval without events after which a stream of events sends a sign of life, and its reader's \
        right is checked again.";

    log_format "log.format": LogFormat = "text" in Any,
        "Format of the log on stderr: for people (text) or for machines (json).";
    log_level "log.level": LogLevel = "info" in Any,
        "Least important level that is logged.";

    telemetry_endpoint "telemetry.endpoint": Option<Endpoint> = "" in Any,
        "Collector to which traces, metrics and the log are exported, by OTLP over HTTP with protobuf. Empty: \
        nothing is exported.";
    telemetry_signals "telemetry.signals": Signals = "traces,metrics,logs" in Any,
        "Signals that are exported.";
    telemetry_sampling "telemetry.sampling": Share = "1%" in Between(0, 1_000_000),
        "Part of the messages without a `traceparent` that begin a trace. Messages with one are traced if it \
        says so.";
    telemetry_interval "telemetry.interval": Duration = "1m" in Between(seconds(1), seconds(3600)),
        "Interval between two exports of metrics.";
    telemetry_headers "telemetry.headers": Headers = "" in Any,
        "Header fields of each request to the collector, separated by commas. Values that are secrets belong \
        in the environment variable.";
    telemetry_ca "telemetry.ca": MaybePath = "" in Any,
        "PEM file with the CAs that may have signed the collector's certificate. Default: those that the \
        system trusts.";

    push_allowed_addresses "push.allowed_addresses": Allowed = "" in Any,
        "Ranges of addresses that queues may push to although they are private, loopback or refused for \
        another reason, in clear text as well, such as 10.0.0.0/8,::1. Every caller who may operate a queue \
        can reach what is there.";
    push_ca "push.ca": MaybePath = "" in Any,
        "PEM file with the CAs that may have signed the certificates of endpoints that queues push to. \
        Default: those that the system trusts.";

    http_connections "http.connections": Count = "4096" in Between(1, 1_000_000),
        "Maximum number of connections; further ones are answered 503 and closed.";
    http_requests "http.requests": Count = "16384" in Between(1, 1_000_000),
        "Maximum number of requests in progress, waiting receives included; further requests get \
        `overloaded`.";
    http_bodies "http.bodies": Size = "256MiB" in Between(MIB, TIB),
        "Maximum bytes of request bodies in memory; further requests get `overloaded`.";
    http_answers "http.answers": Size = "256MiB" in Between(MIB, TIB),
        "Maximum bytes of answers in memory that clients have not read yet. Beyond it, receives and other \
        requests that answer with messages or lists get `overloaded` before they take effect; sending and \
        settling continue.";
    http_connection_answers "http.connection_answers": Size = "64MiB" in Between(MIB, TIB),
        "Maximum bytes of unread answers in memory, per connection.";
    http_head_timeout "http.head_timeout": Duration = "10s" in Between(seconds(1), seconds(3600)),
        "Longest time for a client to send the head of a request.";
    http_body_timeout "http.body_timeout": Duration = "30s" in Between(seconds(1), seconds(3600)),
        "Longest time for a client to send the body of a request, plus one second for each 128 KiB \
        received.";
    http_write_timeout "http.write_timeout": Duration = "30s" in Between(seconds(1), seconds(3600)),
        "Longest time in which a client may read nothing of an answer that is ready. A client that reads \
        slowly, but reads, is not cut.";
    http_ping_interval "http.ping_interval": Duration = "20s" in Between(seconds(1), seconds(3600)),
        "How long an HTTP/2 connection may be silent before the server sends a ping, and how long the \
        answer to the ping may take.";
    http_idle_timeout "http.idle_timeout": Duration = "1m15s" in Between(seconds(1), seconds(86_400)),
        "How long a connection may stay open without a request.";
    http_metrics_queues "http.metrics_queues": Count = "500" in Between(0, 100_000),
        "Maximum number of queues with metrics of their own in `/metrics`.";
    http_compression "http.compression": Compression = "on" in Any,
        "Which answers are compressed for clients that accept it. `on`: descriptions, metrics and lists \
        without message contents; `all`: also pages of messages and results, whose compressed length may \
        reveal their content to an eavesdropper; `off`: none.";

    access_policy "access.policy": MaybePath = "" in Any,
        "The policy file, which says who may do what. When it holds a rule, callers must authenticate. Read \
        again when it changes. A policy that is stored with `sluice policy set` counts instead.";
    access_requests_per_s "access.requests_per_s": Count = "0" in Between(0, 10_000_000),
        "Average number of requests per second that an identity may send, unless the policy sets another \
        rate; further requests get `rate_limited`. 0: no limit.";
    access_burst "access.burst": Count = "0" in Between(0, 10_000_000),
        "Number of requests that an identity may send at once before its rate applies. 0: the requests of \
        one second.";

    guard_connections "guard.connections_per_address": Count = "1024" in Between(1, 1_000_000),
        "Maximum number of connections of one IP address (of one /64 network with IPv6). Connections from \
        this machine are not counted.";
    guard_failures "guard.failures": Count = "20" in Between(0, 1_000_000),
        "Number of failed handshakes and authentications of one IP address within a minute after which its \
        connections are refused. 0: no limit.";
    guard_ban "guard.ban": Duration = "30s" in Between(seconds(1), seconds(86_400)),
        "How long the connections of an IP address with too many failures are refused.";

    limit_payload "limits.payload": Size = "1MiB" in Between(1, 64 * MIB),
        "Maximum size of a message's payload.";
    limit_headers "limits.headers": Count = "64" in Between(0, 255),
        "Maximum number of headers of a message.";
    limit_headers_bytes "limits.headers_bytes": Size = "16KiB" in Between(0, 60 * KIB),
        "Maximum size of a message's headers, names and values together.";
    limit_batch_items "limits.batch_items": Count = "10000" in Between(1, 10_000),
        "Maximum number of messages in one send, and of items in one settle or extend.";
    limit_batch_bytes "limits.batch_bytes": Size = "16MiB" in Between(KIB, 256 * MIB),
        "Maximum size of the payloads and headers of one send together.";
    limit_receive_messages "limits.receive_messages": Count = "1000" in Between(1, 10_000),
        "Maximum number of messages that one receive takes.";
    limit_queues "limits.queues": Count = "100000" in Between(1, 10_000_000),
        "Maximum number of queues, per shard.";
    limit_namespaces "limits.namespaces": Count = "10000" in Between(2, 1_000_000),
        "Maximum number of namespaces.";
    limit_messages "limits.messages": Count = "200000000" in Between(1, 1_000_000_000),
        "Maximum number of messages in any state, per shard.";
    limit_idempotency_keys "limits.idempotency_keys": Count = "1000000" in Between(0, 100_000_000),
        "Maximum number of idempotency keys that are remembered, per shard; the oldest key is forgotten \
        first.";
    limit_idempotency_window "limits.idempotency_window": Duration = "10m" in Between(seconds(1), seconds(7 * 86_400)),
        "How long an idempotency key is remembered.";
    limit_auto_create "limits.auto_create": bool = "true" in Any,
        "Whether a send or a receive creates a queue that does not exist.";
}

impl Config {
    /// Returns the contradictions between settings.
    pub(crate) fn contradictions(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.limit_payload.0 > self.limit_batch_bytes.0 {
            found.push(format!(
                "limits.payload ({}) is larger than limits.batch_bytes ({}): no message of that size could \
                be sent",
                self.limit_payload.show(),
                self.limit_batch_bytes.show()
            ));
        }
        if self.reserve.0 > 8 * GIB && self.reserve.0 > self.low_water.0 {
            found.push(format!(
                "reserve ({}) is larger than low_water ({}): the warning would come after the disk is full",
                self.reserve.show(),
                self.low_water.show()
            ));
        }
        let is_certified = self.tls_cert.0.is_some() && self.tls_client_ca.0.is_some();
        if !self.cluster_members.0.is_empty() && (self.memory || !is_certified) {
            found.push(
                "cluster_members is set: nodes of a cluster need tls_cert, tls_key and tls_client_ca, and a \
                data directory"
                    .to_owned(),
            );
        }
        if self.telemetry_ca.0.is_some() && self.telemetry_endpoint.as_ref().is_none_or(|to| !to.is_tls) {
            found.push("telemetry.ca is set, but telemetry.endpoint is no https:// address".to_owned());
        }
        found.extend(self.tls_contradictions());
        found
    }

    fn tls_contradictions(&self) -> Vec<String> {
        let named = [
            ("tls_cert", &self.tls_cert),
            ("tls_key", &self.tls_key),
            ("tls_client_ca", &self.tls_client_ca),
        ];
        let named = named.into_iter().filter(|(_, path)| path.0.is_some());
        if self.tls == TlsMode::Auto {
            return named
                .map(|(name, _)| {
                    format!(
                        "{name} is set, but tls is auto, which makes its own certificates: set one of the two"
                    )
                })
                .collect();
        }
        let pair = (self.tls_cert.0.is_some(), self.tls_key.0.is_some());
        let mut found = Vec::new();
        if !self.tls_name.0.is_empty() {
            found.push("tls_name is set, but tls is files: tls_name applies to tls = auto only".to_owned());
        }
        if pair.0 != pair.1 {
            found.push("only one of tls_cert and tls_key is set: set both, or neither".to_owned());
        }
        if pair == (false, false) && self.tls_client_ca.0.is_some() {
            found.push(
                "tls_client_ca is set without tls_cert and tls_key: client certificates need TLS".to_owned(),
            );
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_valid_and_in_its_usual_form() {
        for setting in SETTINGS {
            assert_eq!(
                (setting.normalise)(setting.default).as_deref(),
                Ok(setting.default),
                "{}",
                setting.key
            );
        }
    }

    #[test]
    fn the_defaults_do_not_contradict_each_other() {
        let defaults = |key: &str| SETTINGS.iter().find(|s| s.key == key).unwrap().default.to_owned();
        assert!(Config::read(defaults).unwrap().contradictions().is_empty());
    }

    #[test]
    fn names_are_unique_in_every_source() {
        for (at, setting) in SETTINGS.iter().enumerate() {
            for other in &SETTINGS[..at] {
                assert_ne!(setting.flag(), other.flag());
                assert_ne!(setting.env(), other.env());
            }
            assert!(setting.doc.ends_with('.'), "{}", setting.key);
        }
    }
}
