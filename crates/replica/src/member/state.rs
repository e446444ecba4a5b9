//! Bytes of a hard state in the journal: term and candidate voted for, `u64` each, little endian; the
//! candidate is 0 when there is none. The commit index is not among them, since the journal notes it itself.

use crate::entry::NodeId;
use crate::ready::HardState;

/// Length, in bytes.
pub(super) const LEN: usize = 16;

/// The hard state as bytes.
pub(super) fn encode(state: &HardState) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes[..8].copy_from_slice(&state.term.to_le_bytes());
    bytes[8..].copy_from_slice(&state.vote.map_or(0, NodeId::get).to_le_bytes());
    bytes
}

/// The bytes that a journal holds; `None`: they are no hard state. A journal of one node has none: the member
/// that it becomes begins with the term of its last batch.
pub(super) fn found(bytes: &[u8], last_term: u64) -> Option<[u8; LEN]> {
    if bytes.is_empty() {
        return Some(encode(&HardState { term: last_term, ..HardState::default() }));
    }
    bytes.try_into().ok()
}

/// The hard state of these bytes.
pub(super) fn decode(bytes: &[u8; LEN]) -> HardState {
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    HardState { term: number(0), vote: NodeId::new(number(8)), commit: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hard_state_comes_back() {
        let state = HardState { term: 7, vote: NodeId::new(3), commit: 0 };
        assert_eq!(found(&encode(&state), 1).map(|bytes| decode(&bytes)), Some(state));
        assert_eq!(found(b"short", 1), None);
    }

    #[test]
    fn a_journal_of_one_node_begins_with_its_last_term() {
        let begun = found(b"", 1_795_000_000_000_000).map(|bytes| decode(&bytes));
        assert_eq!(begun, Some(HardState { term: 1_795_000_000_000_000, vote: None, commit: 0 }));
    }
}
