//! Every setting of the server, once: name, type, default, range, words. The struct, the flags, the
//! environment, the file, `sluice config` and the reference in the documentation all come from here.

use std::path::PathBuf;
use std::time::Duration;

use sluice_front::http::Compression;
use sluice_node::Durability;

use super::RootKeySource;
use super::values::{
    Any, Between, Count, LogFormat, LogLevel, MaybePath, Names, SettingValue, Size, TlsMode,
};

/// One setting, as the sources and the documentation see it.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Name in the file, dotted when it stands in a section.
    pub(crate) key: &'static str,
    pub(crate) default: &'static str,
    /// What stands for a value in the help.
    pub(crate) placeholder: &'static str,
    /// What it does, in sentences.
    pub(crate) doc: &'static str,
    /// Reads a value and writes it in its usual form, or says what would be right.
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

    /// The section of the file that it stands in; `None`: the top.
    pub(crate) fn section(&self) -> Option<&'static str> {
        self.key.split_once('.').map(|(section, _)| section)
    }

    /// Whether it may be given several times, each of which adds to it.
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

        /// Every setting, in the order in which they are shown.
        pub(crate) const SETTINGS: &[Setting] = &[$(Setting {
            key: $key,
            default: $default,
            placeholder: <$type as SettingValue>::PLACEHOLDER,
            doc: $doc,
            normalise: |text| <$type as SettingValue>::read(text, &$range).map(|value| value.show()),
        },)*];

        impl Config {
            /// Reads each setting's text; the error is the first one's, as the caller has checked them all
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
        "Address to listen on. Port 0 takes any free port; the address is printed when the server is ready.";
    data_dir "data_dir": PathBuf = "./sluice-data" in Any,
        "Directory for everything that is stored; made when it is missing. One process at a time.";
    memory "memory": bool = "false" in Any,
        "Keep everything in memory and write no file: gone when the process ends.";
    shards "shards": Count = "1" in Between(1, 64),
        "Shards, each a thread, an engine and a journal. A namespace lives on one. May grow later, never shrink.";
    durability "durability": Durability = "always" in Any,
        "When a reply may leave: after fdatasync (always), after the write with a sync every interval (interval:1s), or \
        after the write with no sync (os). A crash of the process loses nothing in any of them; a power loss may lose \
        the last interval, or with os more.";
    cache "cache": Size = "256MiB" in Between(0, TIB),
        "Memory for recent payloads. Older ones are read back from disk at delivery.";
    reserve "reserve": Size = "64MiB" in Between(0, TIB),
        "Disk kept back so that a full disk can still be drained by settling messages; of a small disk an eighth at most.";
    low_water "low_water": Size = "1GiB" in Between(0, 1024 * TIB),
        "Free disk below which the log warns.";
    no_encryption "no_encryption": bool = "false" in Any,
        "Write new files without encryption. Files that are encrypted are read all the same, with their root key.";
    key_source "key_source": RootKeySource = "auto" in Any,
        "Where the root keys are: in a file beside the data directory, with its name and `.key`, made when there is nothing \
        yet to be read (auto); in a file (file:/etc/sluice/root.key), made likewise; in an environment variable \
        (env:NAME); or printed by a command (command:LINE). Without them the data cannot be read: keep a copy elsewhere.";
    insecure "insecure": bool = "false" in Any,
        "Listen beyond this machine without TLS, or without anybody being asked who they are. Without TLS, whoever is on the \
        way reads everything, tokens too; without identities, whoever reaches the port may do everything.";
    tls "tls": TlsMode = "files" in Any,
        "Where TLS comes from: from `tls_cert` and `tls_key` (files; without them the server speaks clear text), or from a \
        CA and certificates that the first start makes in `tls_dir` (auto).";
    tls_name "tls_name": Names = "" in Any,
        "Names and addresses, with commas between, that the certificate of `--tls auto` is for, beside those that the server \
        knows of: `localhost`, this machine's name, the host in `listen`, and with `0.0.0.0` or `[::]` the addresses of the \
        network interfaces. Clients refuse a server whose certificate is not for what they called it by.";
    tls_cert "tls_cert": MaybePath = "" in Any,
        "PEM file with the server's certificate, followed by those between it and the CA. Read anew when it changes.";
    tls_key "tls_key": MaybePath = "" in Any,
        "PEM file with the private key of `tls_cert`.";
    tls_client_ca "tls_client_ca": MaybePath = "" in Any,
        "PEM file with the CAs that sign the certificates of clients. With it, callers are asked who they are.";
    tls_dir "tls_dir": MaybePath = "" in Any,
        "Folder for what `--tls auto` makes. When it is not named: beside the data directory, with `-tls` behind its name, so \
        that no copy of the data carries the keys.";
    tls_handshake_timeout "tls_handshake_timeout": Duration = "10s" in Between(seconds(1), seconds(60)),
        "How long a client may take for its TLS handshake.";
    grace "grace": Duration = "30s" in Between(Duration::ZERO, seconds(3600)),
        "How long requests may take to finish after SIGTERM or SIGINT; a second signal ends at once.";
    accept_clock_jump "accept_clock_jump": bool = "false" in Any,
        "Start although the wall clock is more than a year ahead of the data. Leases and delays follow the new time.";
    mailbox_requests "mailbox_requests": Count = "65536" in Between(16, 1_000_000),
        "Most requests that wait for one shard; more get `overloaded`. An eighth more is kept for settling and extending.";
    mailbox_bytes "mailbox_bytes": Size = "256MiB" in Between(16 * MIB, 64 * GIB),
        "Most bytes that the requests for one shard take while they wait; more get `overloaded`, as with their number.";
    waiting_receives "waiting_receives": Count = "100000" in Between(1, 10_000_000),
        "Most receives that wait for messages, per shard; more get `overloaded`.";
    events_window "events.window": Count = "10000" in Between(1, 100_000),
        "Most events of a queue or namespace that are kept for those who read its feed and come back.";
    events_keep "events.keep": Duration = "5m" in Between(Duration::ZERO, seconds(86_400)),
        "How long the feed of a queue or namespace is kept that nobody reads any more.";
    events_readers "events.readers": Count = "1000" in Between(1, 1_000_000),
        "Most readers of events, per shard; more get `overloaded`.";
    events_pause "events.pause": Duration = "15s" in Between(seconds(1), seconds(20)),
        "After so long without an event a stream of them shows that it is still there, and asks again whether its reader \
        still may look.";

    log_format "log.format": LogFormat = "text" in Any,
        "How the log, on stderr, is written: for people (text) or machines (json).";
    log_level "log.level": LogLevel = "info" in Any,
        "The least important message that is logged.";

    http_connections "http.connections": Count = "4096" in Between(1, 1_000_000),
        "Most connections at once; more are answered 503 and closed.";
    http_requests "http.requests": Count = "16384" in Between(1, 1_000_000),
        "Most requests at once, waiting receives included; more get `overloaded`.";
    http_bodies "http.bodies": Size = "256MiB" in Between(MIB, TIB),
        "Most bytes of request bodies in memory at once; more get `overloaded`.";
    http_answers "http.answers": Size = "256MiB" in Between(MIB, TIB),
        "Most bytes of answers in memory at once, until clients have read them. Beyond it, receives and what else answers \
        with messages or lists get `overloaded` before anything is done; sending and settling go on.";
    http_connection_answers "http.connection_answers": Size = "64MiB" in Between(MIB, TIB),
        "The same for each connection.";
    http_head_timeout "http.head_timeout": Duration = "10s" in Between(seconds(1), seconds(3600)),
        "How long a client may take for the head of a request.";
    http_body_timeout "http.body_timeout": Duration = "30s" in Between(seconds(1), seconds(3600)),
        "How long a client may take for a request's body, plus one second for each 128 KiB received.";
    http_write_timeout "http.write_timeout": Duration = "30s" in Between(seconds(1), seconds(3600)),
        "How long a client may take nothing of an answer that is there. A slow client that takes some is left alone.";
    http_ping_interval "http.ping_interval": Duration = "20s" in Between(seconds(1), seconds(3600)),
        "How long an HTTP/2 connection may be silent before it is asked for a sign of life, and how long that may take.";
    http_idle_timeout "http.idle_timeout": Duration = "1m15s" in Between(seconds(1), seconds(86_400)),
        "How long a connection may be without a request.";
    http_metrics_queues "http.metrics_queues": Count = "500" in Between(0, 100_000),
        "Most queues that have figures of their own in `/metrics`.";
    http_compression "http.compression": Compression = "on" in Any,
        "Which answers are compressed for clients that take it: `on`: descriptions, figures and lists without contents of messages; \
        `all`: pages of messages and results, too, which may tell who sees their lengths what they hold; `off`: none.";

    access_policy "access.policy": MaybePath = "" in Any,
        "The policy file: who may do what. With a rule in it, callers are asked who they are. Read anew when it changes.";
    access_requests_per_s "access.requests_per_s": Count = "0" in Between(0, 10_000_000),
        "Requests per second of an identity, on average, if the policy says nothing else; more get `rate_limited`. 0: any number.";
    access_burst "access.burst": Count = "0" in Between(0, 10_000_000),
        "Requests that an identity may send at once before its rate counts. 0: those of a second.";

    guard_connections "guard.connections_per_address": Count = "1024" in Between(1, 1_000_000),
        "Most connections of an address at once, of an IPv6 network its /64; this machine's own are not counted.";
    guard_failures "guard.failures": Count = "20" in Between(0, 1_000_000),
        "Handshakes and authentications of an address that may fail within a minute before it is turned away. 0: any number.";
    guard_ban "guard.ban": Duration = "30s" in Between(seconds(1), seconds(86_400)),
        "For how long an address is turned away that has failed so often.";

    limit_payload "limits.payload": Size = "1MiB" in Between(1, 64 * MIB),
        "Largest payload of a message.";
    limit_headers "limits.headers": Count = "64" in Between(0, 1_000),
        "Most headers of a message.";
    limit_headers_bytes "limits.headers_bytes": Size = "16KiB" in Between(0, MIB),
        "Headers of a message together, names and values.";
    limit_batch_items "limits.batch_items": Count = "10000" in Between(1, 100_000),
        "Most messages of one send, and items of one settle or extend.";
    limit_batch_bytes "limits.batch_bytes": Size = "16MiB" in Between(KIB, 256 * MIB),
        "Payloads and headers of one send together.";
    limit_receive_messages "limits.receive_messages": Count = "1000" in Between(1, 10_000),
        "Most messages of one receive.";
    limit_queues "limits.queues": Count = "100000" in Between(1, 10_000_000),
        "Most queues per shard.";
    limit_namespaces "limits.namespaces": Count = "10000" in Between(1, 1_000_000),
        "Most namespaces.";
    limit_messages "limits.messages": Count = "200000000" in Between(1, 1_000_000_000),
        "Most messages per shard, in any state.";
    limit_idempotency_keys "limits.idempotency_keys": Count = "1000000" in Between(0, 100_000_000),
        "Idempotency keys remembered per shard; the oldest goes first.";
    limit_idempotency_window "limits.idempotency_window": Duration = "10m" in Between(seconds(1), seconds(7 * 86_400)),
        "How long an idempotency key is remembered.";
    limit_auto_create "limits.auto_create": bool = "true" in Any,
        "Whether a send or a receive creates a queue that does not exist.";
}

impl Config {
    /// The durability as it is written in the configuration; "memory" without a disk.
    pub(crate) fn shown_durability(&self) -> String {
        if self.memory { "memory".to_owned() } else { self.durability.show() }
    }

    /// What no single setting can tell.
    pub(crate) fn contradictions(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.limit_payload.0 > self.limit_batch_bytes.0 {
            found.push(format!(
                "limits.payload ({}) is larger than limits.batch_bytes ({}): no message of that size could be sent",
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
                    format!("{name} is given, and tls is auto, which makes its own: give one of the two")
                })
                .collect();
        }
        let pair = (self.tls_cert.0.is_some(), self.tls_key.0.is_some());
        let mut found = Vec::new();
        if !self.tls_name.0.is_empty() {
            found.push(
                "tls_name is given, and tls is files: names are for the certificate of tls = auto".to_owned(),
            );
        }
        if pair.0 != pair.1 {
            found.push("tls_cert and tls_key go together: give both, or neither".to_owned());
        }
        if pair == (false, false) && self.tls_client_ca.0.is_some() {
            found.push("tls_client_ca is given without tls_cert and tls_key: clients show certificates over TLS only".to_owned());
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
