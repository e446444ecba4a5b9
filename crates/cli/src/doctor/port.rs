//! The address to listen on: whether it is free, and who has it otherwise.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use sluice_calls::codes;
use sluice_client::{Client, ClientError, Options};
use tokio::net::TcpSocket;
use tokio::time::timeout;

use super::finding::Finding;

const CHECK: &str = "port";
/// Time for an answer of whoever listens.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// State of a socket that listens, in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// A process that has a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Holder {
    pub(super) pid: u32,
    /// Name of its program; empty: not known.
    pub(super) name: String,
}

/// State of the address in `listen`.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) listen: String,
    pub(super) address: SocketAddr,
    pub(super) bound: io::Result<()>,
    /// Process that listens on the port; `None`: none is seen.
    pub(super) holder: Option<Holder>,
    /// True when a server uses the data directory of the same configuration.
    pub(super) in_use: bool,
    /// True when a Sluice server answers at the address.
    pub(super) is_sluice: bool,
}

/// Looks at the address. Nothing listens on it for that.
///
/// # Errors
/// The name has no address: a finding.
pub(super) async fn look(listen: &str, in_use: bool) -> Result<Seen, Finding> {
    let found = tokio::net::lookup_host(listen).await.and_then(|mut found| {
        found.next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address"))
    });
    let address = found.map_err(|error| {
        let seen = format!("{listen} cannot be found: {error}");
        Finding::problem(CHECK, seen, "set `listen` to HOST:PORT with an address of this machine")
    })?;
    let bound = bind(address);
    let holder = if bound.is_err() { holder(address.port()) } else { None };
    let is_sluice = bound.is_err() && !in_use && is_sluice(address).await;
    Ok(Seen { listen: listen.to_owned(), address, bound, holder, in_use, is_sluice })
}

/// True when a Sluice server answers at an address, be it by a refusal. It gets no credentials.
async fn is_sluice(address: SocketAddr) -> bool {
    let options =
        Options { retry_for: Duration::ZERO, connect_retry_for: Duration::ZERO, ..Options::default() };
    let Ok(client) = Client::with_options(&format!("http://{address}"), options) else { return false };
    match timeout(ANSWER_MAX, client.status()).await {
        Ok(Ok(status)) => status["version"].is_string(),
        Ok(Err(ClientError::Server { code, .. })) => codes::find(&code).is_some(),
        Ok(Err(_)) | Err(_) => false,
    }
}

fn bind(address: SocketAddr) -> io::Result<()> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As the server does.
    socket.set_reuseaddr(true)?;
    socket.bind(address)
}

/// The finding about an address.
pub(super) fn judge(seen: &Seen) -> Finding {
    let (listen, port) = (&seen.listen, seen.address.port());
    let Err(error) = &seen.bound else {
        let free = if port == 0 { "any free port will be taken" } else { "free" };
        return Finding::ok(CHECK, format!("{listen}: {free}"));
    };
    let holder = seen.holder.as_ref().map(|it| format!("process {} ({})", it.pid, it.name));
    match (error.kind(), holder) {
        (io::ErrorKind::AddrInUse, holder) if seen.in_use => {
            let by = holder.map_or_else(String::new, |holder| format!(", {holder}"));
            Finding::ok(CHECK, format!("{listen}: in use, as the data directory is by a running server{by}"))
        }
        (io::ErrorKind::AddrInUse, holder) if seen.is_sluice => {
            let by = holder.map_or_else(String::new, |holder| format!(" ({holder})"));
            Finding::ok(
                CHECK,
                format!(
                    "{listen}: a Sluice server listens there{by}, with another data directory: name that with \
                     --data-dir if this server is the one you mean; a second one needs another port in `listen`"
                ),
            )
        }
        (io::ErrorKind::AddrInUse, Some(holder)) => Finding::problem(
            CHECK,
            format!("{listen} is in use by {holder}"),
            "stop that process, or set `listen` to another port",
        ),
        (io::ErrorKind::AddrInUse, None) => Finding::problem(
            CHECK,
            format!("{listen} is in use by a process that is not seen from here"),
            format!("look for it as root: ss -ltnp 'sport = :{port}'; or set `listen` to another port"),
        ),
        (io::ErrorKind::AddrNotAvailable, _) => Finding::problem(
            CHECK,
            format!("this machine has no address {}", seen.address.ip()),
            "set `listen` to 127.0.0.1:PORT, reached from this machine only, or to 0.0.0.0:PORT, all addresses",
        ),
        (io::ErrorKind::PermissionDenied, _) => Finding::problem(
            CHECK,
            format!("{listen}: ports below 1024 need root"),
            "set `listen` to a higher port",
        ),
        _ => Finding::problem(CHECK, format!("{listen}: {error}"), "set `listen` to another address"),
    }
}

/// The process that listens on a port, as far as this user may see it.
fn holder(port: u16) -> Option<Holder> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let inodes: Vec<u64> = tables.iter().flat_map(|table| listening(table, port)).collect();
    if inodes.is_empty() {
        return None;
    }
    let sockets: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let processes = fs::read_dir("/proc").ok()?.filter_map(|entry| {
        let entry = entry.ok()?;
        let pid = entry.file_name().to_str()?.parse::<u32>().ok()?;
        Some((pid, entry.path()))
    });
    let mut held = processes.filter(|(_, path)| has_one_of(path, &sockets));
    let (pid, path) = held.next()?;
    let name = fs::read_to_string(path.join("comm")).unwrap_or_default().trim().to_owned();
    Some(Holder { pid, name })
}

fn has_one_of(process: &Path, sockets: &[String]) -> bool {
    let Ok(files) = fs::read_dir(process.join("fd")) else { return false };
    files
        .filter_map(|file| fs::read_link(file.ok()?.path()).ok())
        .any(|target| target.to_str().is_some_and(|target| sockets.iter().any(|socket| socket == target)))
}

/// The inodes of the sockets that listen on a port, in a table of Linux (proc(5), `/proc/net/tcp`).
fn listening(table: &str, port: u16) -> Vec<u64> {
    let rows = table.lines().skip(1).filter_map(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let (_, own) = fields.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(own, 16) == Ok(port) && *fields.get(3)? == LISTENING;
        if is_it { fields.get(9)?.parse().ok() } else { None }
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn sockets_that_listen_are_found_in_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1B9E 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 4711 1\n\
            1: 0100007F:1B9E 0100007F:9999 01 00000000:00000000 00:00000000 00000000 1000 0 4712 1\n\
            2: 0100007F:1B9F 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 4713 1\n\
            3: nonsense\n\n";
        assert_eq!(listening(table, 7070), [4711]);
        assert_eq!(listening(table, 80), Vec::<u64>::new());
        assert_eq!(listening("", 7070), Vec::<u64>::new());
    }

    fn seen(error: Option<io::ErrorKind>, holder: Option<Holder>, in_use: bool) -> Finding {
        let listen = "127.0.0.1:7070".to_owned();
        let address = listen.parse().unwrap();
        let bound = error.map_or(Ok(()), |it| Err(it.into()));
        judge(&Seen { listen, address, bound, holder, in_use, is_sluice: false })
    }

    #[test]
    fn another_sluice_server_is_no_reason_to_stop_it() {
        let listen = "127.0.0.1:7070".to_owned();
        let (address, bound) = (listen.parse().unwrap(), Err(io::ErrorKind::AddrInUse.into()));
        let holder = Some(Holder { pid: 7, name: "sluice".to_owned() });
        let told = judge(&Seen { listen, address, bound, holder, in_use: false, is_sluice: true });
        assert!(told.level == Level::Ok && told.seen.contains("--data-dir"), "{told:?}");
    }

    #[test]
    fn a_port_that_is_taken_names_who_has_it() {
        let holder = Some(Holder { pid: 7, name: "nginx".to_owned() });
        assert_eq!(seen(None, None, false).level, Level::Ok);
        let taken = seen(Some(io::ErrorKind::AddrInUse), holder.clone(), false);
        assert!(taken.level == Level::Problem && taken.seen.ends_with("process 7 (nginx)"), "{taken:?}");
        assert_eq!(seen(Some(io::ErrorKind::AddrInUse), holder, true).level, Level::Ok);
        assert_eq!(seen(Some(io::ErrorKind::AddrInUse), None, true).level, Level::Ok);
        for kind in [
            io::ErrorKind::AddrInUse,
            io::ErrorKind::AddrNotAvailable,
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::Other,
        ] {
            let found = seen(Some(kind), None, false);
            assert!(found.level == Level::Problem && found.to_do.is_some(), "{found:?}");
        }
    }

    #[tokio::test]
    async fn a_port_of_this_process_is_seen() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = listener.local_addr().unwrap().to_string();
        let found = look(&listen, false).await.unwrap();
        assert_eq!(found.holder.as_ref().map(|it| it.pid), Some(std::process::id()));
        assert_eq!(judge(&found).level, Level::Problem);
        assert_eq!(judge(&look("127.0.0.1:0", false).await.unwrap()).level, Level::Ok);
        let nowhere = look("no-such-host.invalid:7070", false).await.unwrap_err();
        assert_eq!(nowhere.level, Level::Problem);
    }
}
