//! Versions of the protocol between nodes.
//!
//! All that two nodes say to each other behind their greetings has one version, which they choose for each
//! connection anew: the newest that both speak. So it is no record and needs nobody to put it into force, and
//! nothing of it is stored. What encodes or decodes a message is told the version of the connection.

use std::fmt;

/// Newest version that this program speaks.
pub const PROTOCOL_NEWEST: u8 = 1;

/// Oldest version that this program speaks: nodes with programs that know only older ones are refused.
///
/// | version | what it brings |
/// |---|---|
/// | 1 | the first |
pub const PROTOCOL_OLDEST: u8 = 1;

/// Versions of the protocol that a node speaks, all from the oldest to the newest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Protocols {
    oldest: u8,
    newest: u8,
}

impl Protocols {
    /// The versions that this program speaks.
    pub const OWN: Protocols = Protocols { oldest: PROTOCOL_OLDEST, newest: PROTOCOL_NEWEST };

    /// The versions between these two, themselves included; `None`: there are none. The first has the
    /// number 1.
    pub fn new(oldest: u8, newest: u8) -> Option<Protocols> {
        (0 < oldest && oldest <= newest).then_some(Protocols { oldest, newest })
    }

    /// The oldest version.
    pub fn oldest(self) -> u8 {
        self.oldest
    }

    /// The newest version.
    pub fn newest(self) -> u8 {
        self.newest
    }

    /// The newest version that both speak; `None`: one is too old for the other.
    pub fn common(self, other: Protocols) -> Option<u8> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }
}

impl fmt::Display for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Protocols { oldest, newest } if oldest == newest => write!(f, "version {newest}"),
            Protocols { oldest, newest } => write!(f, "the versions {oldest} to {newest}"),
        }
    }
}

const _: () = assert!(0 < PROTOCOL_OLDEST && PROTOCOL_OLDEST <= PROTOCOL_NEWEST);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_that_both_speak_is_chosen() {
        let speaks = |(oldest, newest)| Protocols::new(oldest, newest).unwrap();
        for (one, other, common) in [
            ((1, 1), (1, 1), Some(1)),
            ((1, 2), (1, 1), Some(1)),
            ((1, 2), (2, 3), Some(2)),
            ((1, 4), (2, 3), Some(3)),
            ((1, 1), (2, 2), None),
            ((1, 2), (3, 9), None),
        ] {
            let (one, other) = (speaks(one), speaks(other));
            assert_eq!([one.common(other), other.common(one)], [common; 2], "{one}, {other}");
        }
        assert_eq!([Protocols::new(0, 1), Protocols::new(2, 1)], [None; 2]);
    }
}
