//! The client: addresses of the servers, namespace, timeouts and retries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method};

use crate::error::ClientError;
use crate::options::Options;
use crate::retry::{Safety, Tries, random};
use crate::servers::Servers;
use crate::transport::{Answer, Call, Download, Failure, Transport};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A client of one server or cluster, and one namespace; clones share its connections.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
    prefix: Arc<str>,
    /// Empty: `default`.
    namespace: Arc<str>,
    is_stale: bool,
}

#[derive(Debug)]
struct Shared {
    servers: Servers,
    options: Options,
    /// Idempotency keys: a random start, then counted, so that a key costs no system call.
    key_prefix: String,
    key_count: AtomicU64,
}

impl Client {
    /// A client of the server at `http://HOST:PORT` or `https://HOST:PORT`, in the namespace `default`. It
    /// connects at the first request. Several nodes of one cluster are separated by commas: it asks the
    /// first, and another one when that does not answer or does not lead.
    ///
    /// # Errors
    /// [`ClientError::InvalidUrl`].
    pub fn new(url: &str) -> Result<Client, ClientError> {
        Client::with_options(url, Options::default())
    }

    /// A client with these options.
    ///
    /// # Errors
    /// [`ClientError::InvalidUrl`], or [`ClientError::Credentials`] when a certificate, key or token cannot
    /// be used.
    pub fn with_options(url: &str, options: Options) -> Result<Client, ClientError> {
        let servers = Servers::new(url, &options)?;
        let key_prefix = format!("{:016x}{:016x}", random(), random());
        let shared = Shared { servers, options, key_prefix, key_count: AtomicU64::new(0) };
        Ok(Client { shared: Arc::new(shared), prefix: "/v1".into(), namespace: "".into(), is_stale: false })
    }

    /// A client of the same server in another namespace; it shares the connections.
    pub fn in_namespace(&self, namespace: &str) -> Client {
        let prefix = format!("/v1/namespaces/{}", encoded(namespace)).into();
        Client { prefix, namespace: namespace.into(), ..self.clone() }
    }

    /// The same client, whose calls that show state may be answered with one that is behind: the node of a
    /// cluster that is asked answers at once from what it has, also while there is no leader.
    #[must_use]
    pub fn stale(&self) -> Client {
        Client { is_stale: true, ..self.clone() }
    }

    /// The same client, whose answers are not behind.
    pub(crate) fn not_stale(&self) -> Client {
        Client { is_stale: false, ..self.clone() }
    }

    /// Address of the server that is asked at present, as `host:port`.
    pub fn server(&self) -> &str {
        &self.asked().address
    }

    /// The certificate that this server shows, as DER; `None`: it speaks clear text. Makes a connection for
    /// that, which is closed again.
    ///
    /// # Errors
    /// [`ClientError::Transport`]: there is no connection, or the certificate is not trusted.
    pub async fn shown_certificate(&self) -> Result<Option<Vec<u8>>, ClientError> {
        let asked = self.asked();
        asked.shown_certificate().await.map_err(|failure| failure.told(asked, 1))
    }

    /// Lets another server of the cluster be asked from now on, if the error of the server at this address is
    /// one after which that may help. True when another one is asked now.
    pub(crate) fn pass_on(&self, address: &str, error: &ClientError) -> bool {
        self.shared.servers.pass_on(address, error)
    }

    /// A new idempotency key: 128 random bits and a counter, so that no other client makes the same.
    pub fn idempotency_key(&self) -> String {
        let count = self.shared.key_count.fetch_add(1, Ordering::Relaxed);
        format!("{}-{count:x}", self.shared.key_prefix)
    }

    /// True if answers that show state may be behind.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// The namespace; empty: `default`.
    pub(crate) fn own_namespace(&self) -> &str {
        &self.namespace
    }

    /// The options.
    pub(crate) fn options(&self) -> &Options {
        &self.shared.options
    }

    /// The server to ask.
    pub(crate) fn asked(&self) -> &Transport {
        self.shared.servers.current()
    }

    /// Begins the tries of a request.
    pub(crate) fn tries(&self) -> Tries {
        Tries::new(self.shared.servers.others())
    }

    /// True if the client knows several servers, so that it may ask the one that leads.
    pub(crate) fn follows_leaders(&self) -> bool {
        self.shared.servers.others() > 0
    }

    /// A path within the namespace.
    pub(crate) fn path(&self, rest: &str) -> String {
        let mut path = String::with_capacity(self.prefix.len() + rest.len());
        path.push_str(&self.prefix);
        path.push_str(rest);
        path
    }

    pub(crate) fn call(&self, method: Method, path: String, body: impl Into<Bytes>) -> Call {
        let timeout = self.options().request_timeout;
        Call { method, path, body: body.into(), headers: HeaderMap::new(), timeout }
    }

    /// Sends a request, repeated until it succeeds, fails with an error that does not pass, or the time for
    /// repeating has passed.
    pub(crate) async fn run(&self, call: Call, safety: Safety) -> Result<Answer, ClientError> {
        let (mut tries, mut repeated) = (self.tries(), false);
        loop {
            tries.count += 1;
            let asked = self.asked();
            let error = match asked.exchange(&call).await {
                Ok(answer) => match answer.into_success() {
                    Ok(answer) => return Ok(Answer { repeated, ..answer }),
                    Err(error) => error,
                },
                Err(failure) => failure.told(asked, tries.count),
            };
            repeated |= error.may_have_taken_effect();
            self.before_next(&mut tries, &asked.address, error, safety).await?;
        }
    }

    /// Waits before the next try of a request, which another server may be asked, after an error of the one
    /// at this address.
    ///
    /// # Errors
    /// That error, if it is final.
    pub(crate) async fn before_next(
        &self,
        tries: &mut Tries,
        address: &str,
        error: ClientError,
        safety: Safety,
    ) -> Result<(), ClientError> {
        tries.passes_on(self.shared.servers.pass_on(address, &error));
        let delay = tries.next_delay(&error, safety, self.options()).ok_or(error)?;
        tokio::time::sleep(delay).await;
        Ok(())
    }

    /// Begins to read an answer piece by piece, repeated until it succeeds, fails with an error that does not
    /// pass, or the time for repeating has passed.
    pub(crate) async fn open_again(&self, call: &Call) -> Result<Download, ClientError> {
        let mut tries = self.tries();
        loop {
            tries.count += 1;
            let asked = self.asked();
            match open(asked, call).await {
                Ok(download) => return Ok(download),
                Err(error) => {
                    self.before_next(&mut tries, &asked.address, error, Safety::Repeatable).await?;
                }
            }
        }
    }
}

async fn open(asked: &Transport, call: &Call) -> Result<Download, ClientError> {
    match asked.download(call).await {
        Ok(Ok(download)) => Ok(download),
        Ok(Err(answer)) => {
            let status = answer.status;
            let reason = "neither a success nor an error".to_owned();
            Err(answer.into_success().err().unwrap_or(ClientError::Protocol { status, reason }))
        }
        Err(failure) => Err(failure.told(asked, 1)),
    }
}

impl Failure {
    /// The error of a call, after so many tries.
    pub(crate) fn told(self, asked: &Transport, tried: u32) -> ClientError {
        let Failure { kind, reason } = self;
        ClientError::Transport { kind, server: asked.address.clone(), tried, reason }
    }
}

/// A name as one segment of a path, or one value of a query.
pub(crate) fn encoded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~$".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Gives a request an idempotency key.
///
/// # Errors
/// `invalid_argument`: no header can carry it.
pub(crate) fn put_key(call: &mut Call, key: &str) -> Result<(), ClientError> {
    let value = HeaderValue::from_str(key).map_err(|_| {
        let message = format!("idempotency key {key:?}: only visible ASCII characters can be sent");
        ClientError::refused(400, "invalid_argument", message)
    })?;
    call.headers.insert(IDEMPOTENCY_KEY, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        assert_eq!(Client::new("http://localhost:7070/").unwrap().server(), "localhost:7070");
        assert_eq!(Client::new("localhost:7070").unwrap().server(), "localhost:7070");
        assert_eq!(Client::new("https://localhost").unwrap().server(), "localhost:443");
        assert_eq!(Client::new("http://[::1]:99").unwrap().server(), "[::1]:99");
        for bad in ["ftp://a", "http://a:99999", "http://a/b", "", "http://"] {
            assert!(Client::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_escaped_in_paths() {
        let client = Client::new("http://localhost:1").unwrap().in_namespace("a/b c");
        assert_eq!(client.path("/x"), "/v1/namespaces/a%2Fb%20c/x");
    }

    #[test]
    fn keys_differ() {
        let (a, b) = (Client::new("http://a:1").unwrap(), Client::new("http://a:1").unwrap());
        let keys = [a.idempotency_key(), a.idempotency_key(), b.idempotency_key()];
        assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
    }
}
