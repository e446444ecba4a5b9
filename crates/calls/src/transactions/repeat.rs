//! Names under which requests are remembered, so that a repeat gets the outcome of the first.

use sluice_engine::command::{Command, Transaction as Whole};
use sluice_engine::{Error, NamespaceId};
use sluice_node::Refused;

use crate::access::Caller;
use crate::digest::request_digest;

/// The name under which a request is remembered.
#[derive(Clone, Copy)]
pub(super) struct Repeat<'a> {
    pub(super) idempotency_key: &'a [u8],
    /// The same in the namespaces of the other parts than the first.
    pub(super) key_of_others: &'a [u8],
    pub(super) request_digest: u64,
    /// Numbers of the parts' namespaces.
    pub(super) namespaces: &'a [NamespaceId],
}

impl<'a> Repeat<'a> {
    pub(super) fn whole<'c>(self, part: usize, operations: &'c [Command<'c>]) -> Whole<'c>
    where
        'a: 'c,
    {
        let idempotency_key = if part == 0 { self.idempotency_key } else { self.key_of_others };
        let Repeat { request_digest, namespaces, .. } = self;
        Whole { namespace: namespaces[part], idempotency_key, request_digest, operations }
    }

    /// A refusal of any part, with the key that the caller has given.
    pub(super) fn as_given(self, mut refused: Refused) -> Refused {
        if let Error::IdempotencyMismatch { key } = &mut refused.error {
            *key = String::from_utf8_lossy(self.idempotency_key).into_owned();
        }
        refused
    }
}

/// The key under which the parts of a request but the first are remembered, which is the key of no request of
/// their namespaces; `namespaces`: those of all parts, the first in front. Empty: none.
pub(super) fn key_of_others(caller: &Caller, namespaces: &[NamespaceId], key: &[u8]) -> Vec<u8> {
    if key.is_empty() || namespaces.len() == 1 {
        return Vec::new();
    }
    let fields = [&namespaces[0].0.to_le_bytes()[..], key];
    let [first, second] = request_digest(caller, fields.into_iter());
    // A byte 0 is in no key of HTTP.
    [&[0][..], &first.to_le_bytes(), &second.to_le_bytes()].concat()
}
