//! The servers of a client: one, or the nodes of a cluster, of which it asks one after another.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{ClientError, TransportKind};
use crate::options::Options;
use crate::transport::Transport;

/// Codes of answers after which another node of the cluster may do better. An outcome is unknown to a node
/// when the leader is lost, to which it had passed the request on.
const ASK_ANOTHER: [&str; 4] = ["not_leader", "no_leader", "shutting_down", "outcome_unknown"];

/// The servers, and which of them is asked.
#[derive(Debug)]
pub(crate) struct Servers {
    all: Vec<Transport>,
    current: AtomicUsize,
}

impl Servers {
    /// The servers at these URLs, which are separated by commas. The first is asked first.
    pub(crate) fn new(urls: &str, options: &Options) -> Result<Servers, ClientError> {
        let each = urls.split(',').map(|url| Transport::new(url.trim(), options));
        let all: Vec<Transport> = each.collect::<Result<_, _>>()?;
        if all.iter().any(|one| one.is_encrypted() != all[0].is_encrypted()) {
            let reason = "all nodes of a cluster are asked with TLS, or none".to_owned();
            return Err(ClientError::InvalidUrl { url: urls.to_owned(), reason });
        }
        Ok(Servers { all, current: AtomicUsize::new(0) })
    }

    /// The server to ask.
    pub(crate) fn current(&self) -> &Transport {
        &self.all[self.current.load(Ordering::Relaxed)]
    }

    /// Number of other servers.
    pub(crate) fn others(&self) -> u32 {
        self.all.len() as u32 - 1
    }

    /// Takes another server for later requests when the error of the server at `address` is one after which
    /// that may help: the leader that it names, else the next. True when another one is asked now.
    pub(crate) fn pass_on(&self, address: &str, error: &ClientError) -> bool {
        if self.all.len() == 1 || !may_do_better(error) {
            return false;
        }
        let Some(asked) = self.place(address) else { return false };
        let next = self.leader(error).unwrap_or((asked + 1) % self.all.len());
        // Another request may have passed on already.
        let _ = self.current.compare_exchange(asked, next, Ordering::Relaxed, Ordering::Relaxed);
        self.current.load(Ordering::Relaxed) != asked
    }

    fn place(&self, address: &str) -> Option<usize> {
        self.all.iter().position(|server| server.address == address)
    }

    /// The server that an error names as the leader.
    fn leader(&self, error: &ClientError) -> Option<usize> {
        let ClientError::Server { details, .. } = error else { return None };
        self.place(details.get("address")?.as_str()?)
    }
}

fn may_do_better(error: &ClientError) -> bool {
    match error {
        ClientError::Transport { kind, .. } => !matches!(kind, TransportKind::Tls(_)),
        ClientError::Server { code, .. } => ASK_ANOTHER.contains(&code.as_str()),
        ClientError::Protocol { .. } | ClientError::Credentials { .. } | ClientError::InvalidUrl { .. } => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn servers() -> Servers {
        Servers::new("http://a:1, http://b:2,c:3", &Options::default()).expect("three URLs")
    }

    fn answer(code: &str, details: Value) -> ClientError {
        let (code, message) = (code.to_owned(), String::new());
        ClientError::Server { status: 503, code, message, details, retry_after: None }
    }

    #[test]
    fn the_leader_that_is_named_is_asked_next_or_else_the_next_server() {
        let servers = servers();
        assert!(servers.pass_on("a:1", &answer("not_leader", json!({"address": "c:3"}))));
        assert_eq!(servers.current().address, "c:3");
        assert!(servers.pass_on("c:3", &answer("no_leader", Value::Null)));
        assert_eq!(servers.current().address, "a:1");
        assert!(servers.pass_on("a:1", &answer("outcome_unknown", Value::Null)));
        assert_eq!(servers.current().address, "b:2");
        assert!(servers.pass_on("b:2", &answer("not_leader", json!({"address": "a:1"}))));
        assert!(servers.pass_on("a:1", &answer("not_leader", json!({"address": "x:9"}))));
        assert_eq!(servers.current().address, "b:2");
    }

    #[test]
    fn two_requests_that_fail_together_pass_one_server_by() {
        let servers = servers();
        assert!(servers.pass_on("a:1", &answer("no_leader", Value::Null)));
        assert!(servers.pass_on("a:1", &answer("no_leader", Value::Null)));
        assert_eq!(servers.current().address, "b:2");
    }

    #[test]
    fn an_error_of_the_request_is_that_of_every_server() {
        let servers = servers();
        assert!(!servers.pass_on("a:1", &answer("queue_not_found", Value::Null)));
        assert_eq!(servers.current().address, "a:1");
    }

    #[test]
    fn all_servers_are_asked_with_tls_or_none() {
        let error = Servers::new("https://a:1,http://b:2", &Options::default()).unwrap_err();
        assert!(error.to_string().contains("with TLS, or none"), "{error}");
        assert!(Servers::new("http://a:1,", &Options::default()).is_err());
    }
}
