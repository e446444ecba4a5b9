//! Header fields of requests that one node of a cluster passes on to another: whose they are. They count on
//! the connection of a node alone; what a client sends of them is never passed on.

use std::net::IpAddr;
use std::sync::Arc;

use data_encoding::BASE64;
use http::header::{
    CONNECTION, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    TE, TRANSFER_ENCODING, UPGRADE,
};
use sluice_calls::access::{Forwarded, Peer};

/// Address of the client; each request that is passed on has it.
const FOR: HeaderName = HeaderName::from_static("sluice-forwarded-for");
/// Certificate that the client has shown in its handshake, in DER, as base64.
const CERTIFICATE: HeaderName = HeaderName::from_static("sluice-forwarded-certificate");
/// A request that has it was passed on by two nodes, of which the first took the second for the leader.
const LAST: HeaderName = HeaderName::from_static("sluice-forwarded-last");
/// A request that has it was passed on by a node that stops, and is answered without a wait.
const AT_ONCE: HeaderName = HeaderName::from_static("sluice-forwarded-at-once");
/// Beginning of the names of all such fields.
const PREFIX: &str = "sluice-forwarded-";

/// Fields that are about one connection (RFC 9110 §7.6.1), and those that stand elsewhere in HTTP/2.
const HOP_BY_HOP: [HeaderName; 10] = [
    CONNECTION,
    EXPECT,
    HOST,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// The fields of a request as it is passed on for a client, `at_once` if this node stops.
pub(super) fn fields_for(peer: &Peer, headers: &HeaderMap, at_once: bool) -> HeaderMap {
    let mut fields = headers.clone();
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    for name in named.flat_map(|value| value.split(',')) {
        fields.remove(name.trim());
    }
    for name in HOP_BY_HOP {
        fields.remove(name);
    }
    remove_forwarding(&mut fields);
    // gRPC asks for it of every hop; here trailers are always passed back.
    if headers.contains_key(TE) {
        fields.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Ok(address) = HeaderValue::from_str(&peer.address().to_string()) {
        fields.insert(FOR, address);
    }
    if peer.is_forwarded() {
        fields.insert(LAST, HeaderValue::from_static("1"));
    }
    if at_once || peer.is_answered_at_once() {
        fields.insert(AT_ONCE, HeaderValue::from_static("1"));
    }
    if let Some(shown) = peer.certificate()
        && let Ok(shown) = HeaderValue::from_str(&BASE64.encode(shown))
    {
        fields.insert(CERTIFICATE, shown);
    }
    fields
}

/// Takes the fields of a forwarding node out of a request: those of a client say nothing.
fn remove_forwarding(fields: &mut HeaderMap) {
    let found = fields.keys().filter(|name| name.as_str().starts_with(PREFIX));
    for name in found.cloned().collect::<Vec<_>>() {
        fields.remove(name);
    }
}

/// Takes out of a request whose it is: the client that a node has passed it on for, or the peer itself. A
/// call sees the fields that the client has sent, as at the node that was asked.
pub(crate) fn take_sender(peer: Arc<Peer>, headers: &mut HeaderMap) -> Arc<Peer> {
    if !peer.is_node() {
        return peer;
    }
    let sender = sender_of(peer, headers);
    remove_forwarding(headers);
    sender
}

fn sender_of(peer: Arc<Peer>, headers: &HeaderMap) -> Arc<Peer> {
    let Some(address) = headers.get(FOR) else { return peer };
    let address = address.to_str().ok().and_then(|text| text.parse::<IpAddr>().ok());
    // One that cannot be read is a certificate of nobody.
    let shown = headers.get(CERTIFICATE).map(|value| BASE64.decode(value.as_bytes()).unwrap_or_default());
    let forwarded = Forwarded { is_last: headers.contains_key(LAST), at_once: headers.contains_key(AT_ONCE) };
    peer.client(address.unwrap_or(peer.address()), shown.as_deref(), forwarded).unwrap_or(peer)
}
