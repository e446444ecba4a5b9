//! Certificates of the server: readable, matching their key, signed one by the next, for the right names,
//! valid for long enough, with keys that nobody else reads.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use sluice_front::tls::{Tls, TlsFiles};

use super::finding::{Finding, Level};
use crate::cert::{CertificateInfo, read_certificate, read_certificates};
use crate::config::{Config, TlsMode, plain_host, read_host};
use crate::serve::auto::{self, RENEW_BEFORE};
use crate::serve::node_file::NodeFile;

const CHECK: &str = "certificates";
const DAY: Duration = Duration::from_secs(86_400);
/// Permission of others than the owner to read.
const OTHERS_READ: u32 = 0o044;

/// The findings about the certificates of a configuration. `node`: the place in a cluster, if there is one.
pub(super) fn check(config: &Config, node: Option<&NodeFile>) -> Vec<Finding> {
    let now = SystemTime::now();
    let is_node = node.is_some_and(|node| node.joined.is_some());
    if config.tls != TlsMode::Auto && !is_node {
        return match (&config.tls_cert.0, &config.tls_key.0) {
            (Some(cert), Some(key)) => {
                let client_ca = config.tls_client_ca.0.clone();
                of_files(TlsFiles { cert: cert.clone(), key: key.clone(), client_ca }, config, false, now)
            }
            _ => vec![Finding::skipped(CHECK, "none: the server speaks clear text")],
        };
    }
    let folder = auto::folder(config);
    let (ca, pair) = (folder.ca(), folder.files(auto::SERVER));
    if !folder.has_ca() && !is_node {
        let place = ca.cert.parent().unwrap_or(Path::new("."));
        return vec![Finding::ok(CHECK, format!("the first start makes them in {}", place.display()))];
    }
    let mut found = Vec::new();
    if let Err(error) = ca.read_certificate() {
        let to_do = "bring it back from a copy, or replace this node: `sluice cluster replace`";
        return vec![Finding::problem(CHECK, error, to_do)];
    }
    found.extend(key_of_others(&ca.key));
    if !pair.exist() {
        found.push(Finding::ok(CHECK, "the next start makes one for the server"));
        return found;
    }
    let made_here = pair.read_certificate().is_ok_and(|seen| seen.by_server) && ca.key.exists();
    let files = TlsFiles { cert: pair.cert, key: pair.key, client_ca: Some(ca.cert) };
    found.extend(of_files(files, config, made_here, now));
    found
}

/// The findings about files; `renewed`: the server renews its certificate by itself.
fn of_files(files: TlsFiles, config: &Config, renewed: bool, now: SystemTime) -> Vec<Finding> {
    if let Err(error) = Tls::load(files.clone(), None, config.tls_handshake_timeout) {
        // A server that has made its certificate makes another when that has ended.
        if renewed && fs::read(&files.cert).is_ok_and(|pem| ended(&pem, now)) {
            return vec![Finding::ok(CHECK, "the one of the server has ended; the next start makes another")];
        }
        return vec![Finding::told(CHECK, Level::Problem, &error.to_string())];
    }
    let mut found = Vec::new();
    // They were read a moment before.
    let chain = fs::read(&files.cert).map_err(|e| e.to_string()).and_then(|pem| read_certificates(&pem));
    match chain.as_deref() {
        Ok([own, ..]) => {
            found.push(expiry(&files.cert, own, renewed, now));
            found.extend(chain.iter().flatten().skip(1).map(|ca| expiry(&files.cert, ca, false, now)));
            found.extend(order(&files.cert, chain.as_deref().unwrap_or_default()));
            found.extend(if renewed { None } else { names(&files.cert, own, &wanted(config)) });
        }
        Ok([]) => {}
        Err(error) => found.push(Finding::told(CHECK, Level::Problem, error)),
    }
    found.extend(key_of_others(&files.key));
    if let Some(path) = &files.client_ca {
        let cas = fs::read(path).map_err(|e| e.to_string()).and_then(|pem| read_certificates(&pem));
        match cas {
            Ok(cas) => found.extend(cas.iter().map(|ca| expiry(path, ca, false, now))),
            Err(error) => {
                found.push(Finding::told(CHECK, Level::Problem, &format!("{}: {error}", path.display())));
            }
        }
    }
    found
}

fn ended(pem: &[u8], now: SystemTime) -> bool {
    read_certificate(pem).is_ok_and(|seen| seen.not_after <= now)
}

/// The finding about the end of a certificate.
pub(super) fn expiry(path: &Path, seen: &CertificateInfo, renewed: bool, now: SystemTime) -> Finding {
    let left = seen.not_after.duration_since(now).unwrap_or_default();
    let what = format!("{}: {}", path.display(), seen.subject);
    let told = format!("{what}, ends at {}", seen.expires);
    let to_do = "make another, and put it in its place: a running server reads it within a second";
    if left.is_zero() {
        return Finding::problem(CHECK, format!("{what}, has ended at {}", seen.expires), to_do);
    }
    if left >= RENEW_BEFORE || renewed {
        let days = left.as_secs() / DAY.as_secs();
        let by_itself = if renewed { "; the server renews it" } else { "" };
        return Finding::ok(CHECK, format!("{what}, for {days} more days{by_itself}"));
    }
    Finding::warning(CHECK, told, to_do)
}

/// The finding about a certificate that is not signed by the one behind it; `None`: each is.
fn order(path: &Path, chain: &[CertificateInfo]) -> Option<Finding> {
    let wrong = chain.windows(2).find(|pair| !is_signed_by(&pair[0], &pair[1]))?;
    Some(Finding::problem(
        CHECK,
        format!(
            "{}: {} is not signed by {}, which follows it",
            path.display(),
            wrong[0].subject,
            wrong[1].subject
        ),
        "write the server's own certificate first, and behind each the one of the CA that signed it",
    ))
}

fn is_signed_by(seen: &CertificateInfo, ca: &CertificateInfo) -> bool {
    match (&seen.issuer_key_id, &ca.key_id) {
        (Some(signer), Some(key)) => signer == key,
        _ => seen.issuer == ca.subject,
    }
}

/// Names by which callers and nodes reach the server, as the settings tell them.
fn wanted(config: &Config) -> Vec<String> {
    let host = |address: &str| {
        let host = address.rsplit_once(':').map_or("", |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']').to_owned()
    };
    let is_name = |name: &String| matches!(read_host(name), Ok(None));
    let listen = Some(host(&config.listen)).filter(|name| is_name(name) && name != "localhost");
    let node = config.cluster_address.0.as_deref().map(host);
    config.tls_name.0.iter().cloned().chain(listen).chain(node).map(|name| plain_host(&name)).collect()
}

/// The finding about names that a certificate does not cover; `None`: it covers all.
fn names(path: &Path, seen: &CertificateInfo, wanted: &[String]) -> Option<Finding> {
    let missing: Vec<&str> = wanted
        .iter()
        .filter(|name| !seen.names.iter().any(|has| covers(has, name)))
        .map(String::as_str)
        .collect();
    let has = if seen.names.is_empty() { "no name".to_owned() } else { seen.names.join(", ") };
    let told = format!("{} covers {has}, and not {}", path.display(), missing.join(", "));
    let to_do = "make one for these names, too: callers refuse a server by another name";
    (!missing.is_empty() || seen.names.is_empty()).then(|| Finding::problem(CHECK, told, to_do))
}

/// True when a name of a certificate stands for a host (RFC 9525 §6.3).
fn covers(name: &str, host: &str) -> bool {
    match name.strip_prefix("*.") {
        Some(rest) => host.split_once('.').is_some_and(|(_, domain)| domain.eq_ignore_ascii_case(rest)),
        None => name.eq_ignore_ascii_case(host),
    }
}

/// The finding about a private key that others may read; `None`: they may not, or it is not there.
fn key_of_others(path: &Path) -> Option<Finding> {
    let mode = path.metadata().ok()?.mode();
    (mode & OTHERS_READ != 0).then(|| {
        Finding::warning(
            CHECK,
            format!("others than the owner may read the private key {}", path.display()),
            format!("chmod 600 {}", path.display()),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::cert::{Authority, Maker, Pair};
    use crate::config::{Sources, load};

    fn config(settings: &[(&'static str, String)]) -> Config {
        let mut sources = Sources::default();
        sources.flags.given.extend(settings.iter().cloned());
        load(&sources).unwrap().config
    }

    struct Files(tempfile::TempDir);

    impl Files {
        fn write(&self, name: &str, text: &str, mode: u32) -> String {
            let path = self.0.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path.display().to_string()
        }

        fn check(&self, cert: &str, key: &str, listen: &str) -> (Level, String) {
            let settings = [
                ("tls_cert", self.write("s.pem", cert, 0o644)),
                ("tls_key", self.write("s.key", key, 0o600)),
                ("listen", listen.to_owned()),
            ];
            worst(check(&config(&settings), None))
        }
    }

    fn worst(found: Vec<Finding>) -> (Level, String) {
        let found = found.into_iter().rev().max_by_key(|it| it.level).unwrap();
        (found.level, found.seen)
    }

    #[test]
    fn files_are_judged() {
        let ca = Authority::create("one", 400).unwrap();
        let other = Authority::create("two", 400).unwrap();
        let names = ["*.example.org".to_owned()];
        let signed = |days| Authority::open(&ca).unwrap().server(&names, days, Maker::Person).unwrap();
        let (long, short) = (signed(300), signed(5));
        let files = Files(tempfile::tempdir().unwrap());
        let at = "queue.example.org:7070";
        let both = |pair: &Pair, ca: &Pair| pair.cert.clone() + &ca.cert;
        for (cert, key, listen, level, told) in [
            (&long.cert, &long.key, at, Level::Ok, "more days"),
            (&both(&long, &ca), &long.key, at, Level::Ok, "more days"),
            (&both(&long, &other), &long.key, at, Level::Problem, "is not signed by"),
            (&short.cert, &short.key, at, Level::Warning, "ends at"),
            (&long.cert, &long.key, "queue.example.com:7070", Level::Problem, "and not queue.example.com"),
            (&long.cert, &short.key, at, Level::Problem, "is not that of"),
            (&long.cert, &"no key".to_owned(), at, Level::Problem, "no private key"),
            (&String::new(), &long.key, at, Level::Problem, "no certificate"),
            (
                &"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned(),
                &long.key,
                at,
                Level::Problem,
                "",
            ),
        ] {
            let (found, seen) = files.check(cert, key, listen);
            assert!(found == level && seen.contains(told), "{told}: {found:?} {seen}");
        }
        let ended = read_certificate(short.cert.as_bytes()).unwrap();
        let later = SystemTime::now() + 6 * DAY;
        assert_eq!(expiry(Path::new("s.pem"), &ended, false, later).level, Level::Problem);
        let key = files.write("open.key", "", 0o640);
        assert!(key_of_others(Path::new(&key)).is_some());
        assert!(key_of_others(Path::new("/nowhere")).is_none());
    }

    #[test]
    fn certificates_that_the_server_makes_are_no_concern() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(&[
            ("tls", "auto".to_owned()),
            ("data_dir", folder.path().join("data").display().to_string()),
        ]);
        assert_eq!(worst(check(&config, None)).0, Level::Ok);
        let made = auto::folder(&config);
        made.make_ca("a CA", 100).unwrap();
        assert_eq!(worst(check(&config, None)).0, Level::Ok);
        let pair = made.open_ca().unwrap().server(&["localhost".to_owned()], 5, Maker::Server).unwrap();
        made.write(auto::SERVER, &pair, false).unwrap();
        assert_eq!(worst(check(&config, None)).0, Level::Ok);
        fs::remove_file(made.ca().key).unwrap();
        assert_eq!(worst(check(&config, None)).0, Level::Warning, "nobody can renew it");
        fs::write(made.ca().cert, "rubbish").unwrap();
        assert_eq!(worst(check(&config, None)).0, Level::Problem);
    }

    #[test]
    fn names_are_compared_as_clients_do() {
        for (name, host, is_covered) in [
            ("Queue.example.org", "queue.EXAMPLE.org", true),
            ("*.example.org", "a.example.org", true),
            ("*.example.org", "a.b.example.org", false),
            ("*.example.org", "example.org", false),
            ("10.0.0.7", "10.0.0.7", true),
            ("", "a", false),
        ] {
            assert_eq!(covers(name, host), is_covered, "{name} {host}");
        }
    }
}
