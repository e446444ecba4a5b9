//! Settings of all pushes of a node.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use sluice_engine::id::NamespaceId;
use sluice_https::Tls;
use sluice_node::Node;

use crate::address::Allowed;
use crate::resolve::{LookUps, Resolve, System};

/// A note in the audit log, taken by whoever keeps that.
pub trait Auditor: Send + Sync + Debug {
    /// Notes that the server has paused the pushes of a queue, since its endpoint is gone.
    fn paused<'a>(
        &'a self,
        node: &'a Node,
        namespace: NamespaceId,
        queue: &'a str,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// The settings of all pushes of a node.
#[derive(Debug)]
pub struct Options {
    /// TLS to endpoints.
    pub tls: Tls,
    /// Ranges of addresses that are pushed to although they are refused otherwise, in clear text as well.
    pub allowed: Allowed,
    /// Value of the header `user-agent`.
    pub agent: String,
    /// Source of addresses.
    pub resolver: Arc<dyn Resolve>,
    /// The audit log; `None`: there is none.
    pub auditor: Option<Arc<dyn Auditor>>,
    pub(crate) look_ups: LookUps,
}

impl Options {
    /// The settings, with the resolver of the operating system and without an audit log.
    pub fn new(tls: Tls, allowed: Allowed, agent: String) -> Options {
        let resolver = Arc::new(System);
        Options { tls, allowed, agent, resolver, auditor: None, look_ups: LookUps::new() }
    }
}
