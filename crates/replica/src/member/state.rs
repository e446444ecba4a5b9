//! Hard state of a member in its journal.
//!
//! Layout, little endian: number of the node, term, candidate voted for (0: none) and index of a record,
//! `u64` each; what is kept of that which the node acknowledged, `u8` (0: all of it, 1: what was written in
//! the boot, 2: not all of it), and the boot, 16 bytes, zeros where it does not count; and the members in
//! force behind that record; nothing, where they are not known. The commit index is not part of it, since the
//! journal notes it by itself.

use super::memory::{BootId, Kept};
use crate::entry::NodeId;
use crate::members::Members;
use crate::ready::HardState;
use crate::wire;

const ALL: u8 = 0;
const WRITTEN: u8 = 1;
const LESS: u8 = 2;

/// State of a member that its journal keeps besides the log. The default is that of a journal which was never
/// a member's.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Saved {
    /// The node that has written it; `None`: none has.
    pub(super) id: Option<NodeId>,
    /// Highest term seen.
    pub(super) term: u64,
    /// Candidate that got the vote in `term`.
    pub(super) vote: Option<NodeId>,
    /// Part of what the node has acknowledged that the journal keeps.
    pub(super) kept: Kept,
    /// Index of a record.
    pub(super) since: u64,
    /// Members in force behind that record; none: they are those of the newest snapshot.
    pub(super) members: Members,
}

impl Saved {
    /// The replica's part. A journal of one node has none: the member that it becomes begins with the term of
    /// its last batch.
    pub(super) fn hard_state(&self, last_term: u64) -> HardState {
        let term = if self.id.is_some() { self.term } else { last_term };
        HardState { term, vote: self.vote, commit: 0 }
    }

    /// The state as bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [number(self.id), self.term, number(self.vote), self.since] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let (kind, BootId(boot)) = match self.kept {
            Kept::All => (ALL, BootId::NONE),
            Kept::Written(boot) => (WRITTEN, boot),
            Kept::Less => (LESS, BootId::NONE),
        };
        bytes.push(kind);
        bytes.extend_from_slice(&boot);
        if !self.members.voters().is_empty() {
            bytes.extend_from_slice(&wire::encode_members(&self.members));
        }
        bytes
    }

    /// The state of these bytes; `None`: no member has written them.
    pub(super) fn decode(bytes: &[u8]) -> Option<Saved> {
        if bytes.is_empty() {
            return Some(Saved::default());
        }
        let (numbers, rest) = bytes.split_first_chunk::<32>()?;
        let ([kind], rest) = rest.split_first_chunk()?;
        let (boot, members) = rest.split_first_chunk()?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| numbers[at + byte]));
        Some(Saved {
            id: Some(NodeId::new(number(0))?),
            term: number(8),
            vote: NodeId::new(number(16)),
            kept: match (*kind, BootId(*boot)) {
                (WRITTEN, boot) => Kept::Written(boot),
                (ALL, BootId::NONE) => Kept::All,
                (LESS, BootId::NONE) => Kept::Less,
                _ => return None,
            },
            since: number(24),
            members: match members {
                [] => Members::default(),
                members => wire::decode_members(members).ok()?,
            },
        })
    }
}

fn number(node: Option<NodeId>) -> u64 {
    node.map_or(0, NodeId::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(kept: Kept, members: Members) -> Saved {
        Saved { id: NodeId::new(2), term: 7, vote: NodeId::new(3), kept, since: 5, members }
    }

    #[test]
    fn a_saved_state_comes_back_and_no_other_bytes_do() {
        let members = Members::new((1..=3).filter_map(NodeId::new).collect(), Vec::new(), 3);
        let written = Kept::Written(BootId([5; 16]));
        for state in [
            saved(Kept::All, members.unwrap()),
            saved(Kept::Less, Members::default()),
            saved(written, Members::default()),
        ] {
            let bytes = state.encode();
            assert_eq!(Saved::decode(&bytes), Some(state));
            assert_eq!(Saved::decode(&[&bytes[..], b"!"].concat()), None);
        }
        let mut of_no_boot = saved(Kept::All, Members::default()).encode();
        of_no_boot[40] = 1;
        assert_eq!(Saved::decode(&of_no_boot), None);
        assert_eq!(Saved::decode(b"short"), None);
        assert_eq!(Saved::decode(b""), Some(Saved::default()));
    }
}
