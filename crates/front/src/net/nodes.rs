//! The other nodes of a cluster: how they are reached, and known as clients.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;

use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};

/// The other nodes of a cluster, as the network needs them.
pub trait Nodes: fmt::Debug + Send + Sync {
    /// Connects to the port for clients of the node with this number, by TLS with this node's certificate and
    /// `h2` as its protocol (RFC 7301).
    ///
    /// # Errors
    /// The node is unknown or not reached, or another one is there.
    fn connect(&self, node: u64) -> Connecting<'_>;

    /// Address of a node for clients, as `host:port`, if it is known.
    fn address(&self, node: u64) -> Option<String>;

    /// True when a client that has shown these certificates, its own first, is a node of the cluster: they
    /// are of the cluster's CA, and name it.
    fn is_node(&self, certificates: &[CertificateDer<'_>]) -> bool;
}

/// A connection to another node that is being made.
pub type Connecting<'n> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Wire>>> + Send + 'n>>;

/// The bytes of a connection.
pub trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}
