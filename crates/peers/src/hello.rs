//! The greeting with which each side of a connection begins, and reasons to refuse a peer.
//!
//! It is the same in every version of the protocol, which it is there to agree upon: fields never change, and
//! new ones come behind the last. So nodes with programs of different age understand each other as far as
//! they have to, and say who is to be upgraded.

use std::fmt;

use sluice_replica::{NodeId, Protocols};

use crate::identity::{ClusterId, Identity, NoIdentity};
use crate::table::NodeTable;

/// First bytes of a greeting.
const MAGIC: [u8; 4] = *b"SLUP";

/// Format versions that a node knows: of what it writes to disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Formats {
    /// Highest version that the node can read and write.
    pub highest: u32,
    /// Version in force in the cluster, as far as the node knows.
    pub in_force: u32,
}

/// Greeting of a node.
///
/// Layout, little endian: `SLUP`, oldest and newest version of the protocol `u8` each, cluster, node, start
/// and wall clock `u64` each, highest and in-force format version `u32` each. What stands behind them is of a
/// newer program, and not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The sender, which is the node of its certificate.
    pub identity: Identity,
    /// Versions of the protocol that the sender speaks.
    pub protocols: Protocols,
    /// Number that the sender's process has chosen at random when it started.
    pub start: u64,
    /// The sender's wall clock, in microseconds since the Unix epoch.
    pub wall_us: u64,
    /// Format versions of the sender.
    pub formats: Formats,
}

/// Reason for which bytes are no greeting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoHello {
    /// The bytes are too few, or do not begin with the magic.
    Other,
    /// The newest version of the protocol is 0, or older than the oldest.
    Protocols,
    /// The node has the number 0.
    Node,
}

/// Reason for which a peer is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The certificate names no node.
    Certificate(NoIdentity),
    /// The certificate is not signed by the cluster's CA, or is not valid now.
    Untrusted(String),
    /// The connection is not TLS 1.3 with certificates of both sides.
    Insecure,
    /// The greeting names another node than the certificate.
    Impostor(Identity, Identity),
    /// The peer belongs to another cluster.
    OtherCluster(ClusterId),
    /// The peer belongs to the cluster from which this one was recovered, without it.
    Recovered {
        /// The peer.
        former: Identity,
        /// This cluster.
        present: ClusterId,
    },
    /// The peer has the number of this node: it is this node, or another uses a copy of its data.
    Itself,
    /// The peer was removed from the cluster.
    Removed(NodeId),
    /// The address of one node has led to another.
    OtherNode(NodeId),
    /// The two sides speak no common version of the protocol.
    Protocol {
        /// Node whose program is older.
        older: (NodeId, Protocols),
        /// Node whose program is newer.
        newer: (NodeId, Protocols),
    },
    /// The format in force on one side is not known to the other.
    Format {
        /// Version in force.
        in_force: u32,
        /// Node that does not know it.
        node: NodeId,
        /// Highest version that this node knows.
        highest: u32,
    },
    /// Another process with the same identity is connected.
    Twin(NodeId),
}

impl Hello {
    /// Length of a greeting, in bytes.
    pub const LEN: usize = 46;

    /// Length of the longest greeting of newer programs, in bytes.
    pub const LEN_MAX: usize = 1024;

    /// The greeting as bytes.
    pub fn encode(&self) -> [u8; Hello::LEN] {
        let mut bytes = [0; Hello::LEN];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&[self.protocols.oldest(), self.protocols.newest()]);
        let numbers = [self.identity.cluster.0, self.identity.node.get(), self.start, self.wall_us];
        for (place, number) in bytes[6..38].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[38..42].copy_from_slice(&self.formats.highest.to_le_bytes());
        bytes[42..].copy_from_slice(&self.formats.in_force.to_le_bytes());
        bytes
    }

    /// The greeting of these bytes, which may be of a newer program.
    ///
    /// # Errors
    ///
    /// Bytes with which no greeting begins.
    pub fn decode(bytes: &[u8]) -> Result<Hello, NoHello> {
        let bytes = bytes.first_chunk::<{ Hello::LEN }>().filter(|bytes| bytes[..4] == MAGIC);
        let bytes = bytes.ok_or(NoHello::Other)?;
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let protocols = Protocols::new(bytes[4], bytes[5]).ok_or(NoHello::Protocols)?;
        let node = NodeId::new(u64_at(14)).ok_or(NoHello::Node)?;
        Ok(Hello {
            identity: Identity { cluster: ClusterId(u64_at(6)), node },
            protocols,
            start: u64_at(22),
            wall_us: u64_at(30),
            formats: Formats { highest: u32_at(38), in_force: u32_at(42) },
        })
    }

    /// Checks the greeting of a peer, which `certificate` names, against that of this node, and gives the
    /// version of the protocol that the connection has.
    ///
    /// # Errors
    ///
    /// The reason for which the peer is refused.
    pub fn check(&self, certificate: Identity, own: &Hello, nodes: &NodeTable) -> Result<u8, Refusal> {
        check_identity(certificate, own.identity, nodes)?;
        if self.identity != certificate {
            return Err(Refusal::Impostor(self.identity, certificate));
        }
        let protocol = self.common_protocol(own)?;
        for (one, other) in [(self, own), (own, self)] {
            let (in_force, highest) = (one.formats.in_force, other.formats.highest);
            if in_force > highest {
                return Err(Refusal::Format { in_force, node: other.identity.node, highest });
            }
        }
        Ok(protocol)
    }

    /// The newest version of the protocol that the nodes of both greetings speak.
    fn common_protocol(&self, other: &Hello) -> Result<u8, Refusal> {
        let speaks = |hello: &Hello| (hello.identity.node, hello.protocols);
        let common = self.protocols.common(other.protocols);
        common.ok_or_else(|| {
            let is_older = self.protocols.newest() < other.protocols.newest();
            let (older, newer) = if is_older { (self, other) } else { (other, self) };
            Refusal::Protocol { older: speaks(older), newer: speaks(newer) }
        })
    }
}

/// Checks that a certificate names another node of this node's cluster, which may have joined it since this
/// one has last heard of the others.
///
/// # Errors
///
/// The reason for which the peer is refused.
pub fn check_identity(certificate: Identity, own: Identity, nodes: &NodeTable) -> Result<(), Refusal> {
    let Identity { cluster, node } = certificate;
    if cluster != own.cluster {
        return Err(Refusal::OtherCluster(cluster));
    }
    if node == own.node {
        return Err(Refusal::Itself);
    }
    if nodes.is_removed(node) {
        return Err(Refusal::Removed(node));
    }
    Ok(())
}

impl fmt::Display for NoHello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoHello::Other => f.write_str("the connection does not begin with a node's greeting"),
            NoHello::Protocols => f.write_str("the greeting names no version of the protocol between nodes"),
            NoHello::Node => f.write_str("the greeting names node 0, which no cluster has"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Certificate(reason) => reason.fmt(f),
            Refusal::Untrusted(reason) => write!(f, "the certificate is not one of this cluster: {reason}"),
            Refusal::Insecure => f.write_str("the connection is not TLS 1.3 with both certificates"),
            Refusal::Impostor(said, shown) => {
                write!(f, "the peer says that it is {said}, and its certificate that it is {shown}")
            }
            Refusal::OtherCluster(cluster) => write!(f, "the peer belongs to the cluster {cluster}"),
            Refusal::Recovered { former, present } => write!(
                f,
                "the cluster {} was recovered without node {}, and goes on as {present}: the node can join that \
                 as a new one, with an empty data directory",
                former.cluster,
                former.node.get()
            ),
            Refusal::Itself => f.write_str(
                "the peer has the number of this node: its address leads back here, or a copy of this \
                 node's files is in use elsewhere",
            ),
            Refusal::Removed(node) => write!(f, "node {} was removed from the cluster", node.get()),
            Refusal::OtherNode(node) => write!(f, "the address belongs to node {}", node.get()),
            Refusal::Protocol { older: (older, its), newer: (newer, other) } => write!(
                f,
                "node {older} speaks {its} of the protocol between nodes, and node {newer} {other}: upgrade \
                 node {older}",
                older = older.get(),
                newer = newer.get()
            ),
            Refusal::Format { in_force, node, highest } => write!(
                f,
                "format version {in_force} is in force, and node {node} knows none above {highest}: upgrade \
                 node {node}",
                node = node.get()
            ),
            Refusal::Twin(node) => write!(
                f,
                "node {} is connected already: two processes use the same identity, or the former \
                 connection is not yet known to be over",
                node.get()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u64) -> NodeId {
        NodeId::new(number).unwrap()
    }

    fn speaks(oldest: u8, newest: u8) -> Protocols {
        Protocols::new(oldest, newest).unwrap()
    }

    fn hello(number: u64) -> Hello {
        let identity = Identity { cluster: ClusterId(7), node: node(number) };
        Hello {
            identity,
            protocols: speaks(2, 3),
            start: 99,
            wall_us: 1_700_000_000_000_000,
            formats: Formats { highest: 3, in_force: 2 },
        }
    }

    fn check(peer: &Hello, certificate: Identity) -> Result<u8, Refusal> {
        let addresses = [1, 2, 4].map(|number| (node(number), String::new())).into();
        peer.check(certificate, &hello(1), &NodeTable { addresses, highest: 5 })
    }

    #[test]
    fn a_greeting_comes_back() {
        let bytes = hello(2).encode();
        assert_eq!(Hello::decode(&bytes), Ok(hello(2)));
        for len in 0..bytes.len() {
            assert_eq!(Hello::decode(&bytes[..len]), Err(NoHello::Other));
        }
        let changed = |at: usize, value: u8| {
            let mut bytes = bytes;
            bytes[at] = value;
            Hello::decode(&bytes)
        };
        assert_eq!(changed(0, b'X'), Err(NoHello::Other));
        assert_eq!([changed(4, 0), changed(4, 9), changed(5, 1)], [Err(NoHello::Protocols); 3]);
        assert_eq!(changed(14, 0), Err(NoHello::Node));
    }

    #[test]
    fn nodes_of_the_cluster_are_taken_and_none_that_was_removed() {
        let of = |number: u64| hello(number).identity;
        assert_eq!(check(&hello(2), of(2)), Ok(3));
        assert_eq!(check(&hello(1), of(1)), Err(Refusal::Itself));
        assert_eq!(check(&hello(3), of(3)), Err(Refusal::Removed(node(3))));
        assert_eq!(check(&hello(6), of(6)), Ok(3), "it may have joined since");
        let unlisted = NodeTable::of([1, 2, 4].map(|number| (node(number), String::new())).into());
        assert_eq!(hello(3).check(of(3), &hello(1), &unlisted), Ok(3), "without the list nobody was removed");
        assert_eq!(check(&hello(4), of(2)), Err(Refusal::Impostor(of(4), of(2))));
        let elsewhere = Identity { cluster: ClusterId(8), node: node(2) };
        assert_eq!(check(&hello(2), elsewhere), Err(Refusal::OtherCluster(ClusterId(8))));
    }

    #[test]
    fn what_a_newer_program_has_added_is_read_over() {
        let longer = [&hello(2).encode()[..], b"of a newer program"].concat();
        assert_eq!(Hello::decode(&longer), Ok(hello(2)));
    }

    #[test]
    fn who_speaks_no_common_version_is_told_which_node_to_upgrade() {
        let with = |protocols| {
            let checked = check(&Hello { protocols, ..hello(4) }, hello(4).identity);
            checked.map_err(|refusal| refusal.to_string())
        };
        assert_eq!([with(speaks(1, 2)), with(speaks(2, 2)), with(speaks(1, 9))], [Ok(2), Ok(2), Ok(3)]);
        let told = "node 4 speaks version 1 of the protocol between nodes, and node 1 the versions 2 to 3: \
                    upgrade node 4";
        assert_eq!(with(speaks(1, 1)), Err(told.to_owned()));
        let told = "node 1 speaks the versions 2 to 3 of the protocol between nodes, and node 4 the versions \
                    4 to 9: upgrade node 1";
        assert_eq!(with(speaks(4, 9)), Err(told.to_owned()));
    }

    #[test]
    fn a_format_that_one_side_does_not_know_is_refused_by_both() {
        for (highest, in_force, refused) in
            [(1, 1, Some((2, 2, 1))), (4, 4, Some((4, 1, 3))), (2, 2, None), (3, 3, None), (9, 1, None)]
        {
            let peer = Hello { formats: Formats { highest, in_force }, ..hello(2) };
            let refusal = refused.map(|(in_force, number, highest)| {
                let node = node(number);
                Refusal::Format { in_force, node, highest }
            });
            assert_eq!(check(&peer, peer.identity).err(), refusal);
        }
    }
}
