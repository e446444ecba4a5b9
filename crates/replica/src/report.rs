//! Report of a node on its disk and its clocks, which goes with each message to another member.
//!
//! Bytes, little endian: room `u8` (0: none; 1: for draining batches; 2: for copies; 3: for growing ones; 4
//! more where the time of the log is known, 8 more for one that is quiet), wall clock, time of the log and
//! term of that time `u64` each, 0 where the time is not known, and the CRC-32 of all that.

use sluice_journal::DiskRoom;

use crate::wire::WireError;

/// Rooms by their numbers.
const ROOMS: [DiskRoom; 4] = [DiskRoom::None, DiskRoom::Draining, DiskRoom::Copies, DiskRoom::Growing];
const KNOWS_TIME: u8 = 4;
const IS_QUIET: u8 = 8;

/// Latest time, in microseconds since the Unix epoch: a later one is refused.
const TIME_US_MAX: u64 = 1 << 60;

/// Report of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// A follower: batches for which its disk has room. A leader: batches that it takes, for which a majority
    /// has room.
    pub room: DiskRoom,
    /// True: a follower is quiet, a leader is or offers to be ([`crate::Member::is_quiet`]).
    pub is_quiet: bool,
    /// Clocks, read before the message was sent.
    pub clocks: Clocks,
}

/// Clocks of a node, in microseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clocks {
    /// Wall clock.
    pub wall_us: u64,
    /// Time of the log, if the node knows it: it leads, or has heard it from a leader since it started.
    pub log: Option<LogTime>,
}

/// Time of a log. Of two, the one that is greater is that of the later leader, or came with less delay.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LogTime {
    /// Term of the leader whose time it is.
    pub term: u64,
    /// The time, in microseconds since the Unix epoch.
    pub now_us: u64,
}

impl Report {
    /// Length of its bytes.
    pub const LEN: usize = 29;

    /// The bytes.
    pub fn encode(&self) -> [u8; Report::LEN] {
        let Report { room, is_quiet, clocks: Clocks { wall_us, log } } = *self;
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = room as u8 | flag(log.is_some(), KNOWS_TIME) | flag(is_quiet, IS_QUIET);
        let LogTime { term, now_us } = log.unwrap_or(LogTime { term: 0, now_us: 0 });
        let mut bytes = [0; Report::LEN];
        bytes[0] = flags;
        for (at, value) in [(1, wall_us), (9, now_us), (17, term)] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let checksum = crc32fast::hash(&bytes[..Report::LEN - 4]);
        bytes[Report::LEN - 4..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The report of these bytes.
    ///
    /// # Errors
    /// Bytes that [`Report::encode`] does not write.
    pub fn decode(bytes: &[u8; Report::LEN]) -> Result<Report, WireError> {
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let (content, checksum) = bytes.split_last_chunk::<4>().ok_or(WireError::Length)?;
        if crc32fast::hash(content) != u32::from_le_bytes(*checksum) {
            return Err(WireError::Checksum);
        }
        let flags = bytes[0];
        let time = LogTime { now_us: u64_at(9), term: u64_at(17) };
        let log = (flags & KNOWS_TIME != 0).then_some(time);
        let clocks = Clocks { wall_us: u64_at(1), log };
        if let Some(beyond) = [clocks.wall_us, time.now_us].into_iter().find(|time_us| *time_us > TIME_US_MAX)
        {
            return Err(WireError::Value(beyond));
        }
        let is = |flag: u8| flags & flag != 0;
        let room = ROOMS[usize::from(flags % KNOWS_TIME)];
        let report = Report { room, is_quiet: is(IS_QUIET), clocks };
        if report.encode() == *bytes { Ok(report) } else { Err(WireError::Value(flags.into())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_comes_back_and_no_other_bytes_are_one() {
        let log = Some(LogTime { term: 7, now_us: 1_795_000_000_000_001 });
        for clocks in [Clocks { wall_us: 5, log: None }, Clocks { wall_us: 1_795_000_000_000_000, log }] {
            for room in ROOMS {
                let report = Report { room, is_quiet: room < DiskRoom::Copies, clocks };
                let bytes = report.encode();
                assert_eq!(Report::decode(&bytes), Ok(report));
                for bit in 0..8 * Report::LEN {
                    let mut damaged = bytes;
                    damaged[bit / 8] ^= 1 << (bit % 8);
                    assert!(Report::decode(&damaged).is_err(), "bit {bit}");
                }
            }
        }
    }

    #[test]
    fn a_time_that_is_told_not_to_be_known_is_refused() {
        let mut bytes = Report::default().encode();
        bytes[9] = 1;
        let checksum = crc32fast::hash(&bytes[..Report::LEN - 4]);
        bytes[Report::LEN - 4..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(Report::decode(&bytes), Err(WireError::Value(0)));
    }
}
