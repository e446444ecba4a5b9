//! Every message that a benchmark has sent, by a number that stands at the beginning of its payload.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Digits of the number at the beginning of a payload.
pub(crate) const NUMBER_BYTES: usize = 16;

const CHUNK: u64 = 1 << 16;
/// 2³¹ messages: more than any run moves.
const CHUNKS: usize = 1 << 15;

/// The server has acknowledged the send.
const SENT: u64 = 1 << 63;
/// An ack was asked for; whether it took effect may not be known.
const ACK_ASKED: u64 = 1 << 62;
/// The server has acknowledged the ack.
const ACKED: u64 = 1 << 61;
/// Start of the send, in nanoseconds since the ledger was opened.
const TIME: u64 = ACKED - 1;

/// From when to when a send took, in nanoseconds since the ledger was opened.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct SendTime {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Ledger {
    opened: Instant,
    chunks: Vec<OnceLock<Box<[AtomicU64]>>>,
    next: AtomicU64,
    sent: AtomicU64,
    acked: AtomicU64,
    acked_twice: AtomicU64,
    given_after_ack: AtomicU64,
    foreign: AtomicU64,
    last_ack_ns: AtomicU64,
    /// Every send, when that is wanted.
    sends: OnceLock<Mutex<Vec<SendTime>>>,
}

impl Ledger {
    /// An empty ledger.
    pub(crate) fn new() -> Ledger {
        Ledger {
            opened: Instant::now(),
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
            next: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            acked: AtomicU64::new(0),
            acked_twice: AtomicU64::new(0),
            given_after_ack: AtomicU64::new(0),
            foreign: AtomicU64::new(0),
            last_ack_ns: AtomicU64::new(0),
            sends: OnceLock::new(),
        }
    }

    /// Nanoseconds since it was opened; never 0.
    pub(crate) fn now_ns(&self) -> u64 {
        self.opened.elapsed().as_nanos() as u64 + 1
    }

    /// The numbers of the next messages, up to `count` of them and none from `end` on; empty: all are taken.
    pub(crate) fn take(&self, count: u64, end: u64) -> Range<u64> {
        let end = end.min(CHUNK * CHUNKS as u64);
        let first = self.next.fetch_add(count, Ordering::Relaxed).min(end);
        first..(first + count).min(end)
    }

    /// The number that is taken next.
    pub(crate) fn next_number(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// From here on each send is noted.
    pub(crate) fn note_sends(&self) {
        self.sends.get_or_init(Mutex::default);
    }

    /// The sends that were noted.
    pub(crate) fn noted_sends(&self) -> Vec<SendTime> {
        let take = |sends: &Mutex<Vec<SendTime>>| {
            std::mem::take(&mut *sends.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.sends.get().map(take).unwrap_or_default()
    }

    /// Their send begins, at `now`.
    pub(crate) fn sending(&self, numbers: Range<u64>, now: u64) {
        for number in numbers {
            self.entry(number).store(now, Ordering::Relaxed);
        }
    }

    /// The server has acknowledged their send, which took that time.
    pub(crate) fn sent_within(&self, numbers: Range<u64>, time: SendTime) {
        self.sent(numbers);
        if let Some(sends) = self.sends.get() {
            sends.lock().unwrap_or_else(PoisonError::into_inner).push(time);
        }
    }

    /// The server has acknowledged their send.
    pub(crate) fn sent(&self, numbers: Range<u64>) {
        self.sent.fetch_add(numbers.end - numbers.start, Ordering::Relaxed);
        for number in numbers {
            self.entry(number).fetch_or(SENT, Ordering::Relaxed);
        }
    }

    /// Reads the number of a delivered payload, and notes when it should not have come: because it is not
    /// ours, or because its ack has been acknowledged.
    pub(crate) fn given(&self, payload: &[u8]) -> Option<u64> {
        let number = read_number(payload).filter(|number| *number < self.next_number());
        let Some(number) = number else {
            self.foreign.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        if self.entry(number).load(Ordering::Relaxed) & ACKED != 0 {
            self.given_after_ack.fetch_add(1, Ordering::Relaxed);
        }
        Some(number)
    }

    /// Nanoseconds since the send of a message began.
    pub(crate) fn since_sending(&self, number: u64, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.entry(number).load(Ordering::Relaxed) & TIME)
    }

    /// An ack is about to be asked for.
    pub(crate) fn ack_asked(&self, number: u64) {
        self.entry(number).fetch_or(ACK_ASKED, Ordering::Relaxed);
    }

    /// The server has acknowledged the ack. Nanoseconds since the send began; `None`: it was acked before.
    pub(crate) fn acked(&self, number: u64, now_ns: u64) -> Option<u64> {
        let before = self.entry(number).fetch_or(ACKED | ACK_ASKED, Ordering::Relaxed);
        if before & ACKED != 0 {
            self.acked_twice.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.acked.fetch_add(1, Ordering::Relaxed);
        self.last_ack_ns.fetch_max(now_ns, Ordering::Relaxed);
        Some(now_ns.saturating_sub(before & TIME))
    }

    /// Messages whose send was acknowledged.
    pub(crate) fn sent_count(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Messages whose ack was acknowledged.
    pub(crate) fn acked_count(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }

    /// Messages that came again after their ack had been acknowledged.
    pub(crate) fn given_after_ack(&self) -> u64 {
        self.given_after_ack.load(Ordering::Relaxed)
    }

    /// Deliveries of messages that are not in this ledger.
    pub(crate) fn foreign(&self) -> u64 {
        self.foreign.load(Ordering::Relaxed)
    }

    /// Time of the latest acknowledged ack, in nanoseconds since the ledger was opened.
    pub(crate) fn last_ack_ns(&self) -> u64 {
        self.last_ack_ns.load(Ordering::Relaxed)
    }

    /// Messages whose send was acknowledged, and of which nothing was seen after.
    pub(crate) fn lost(&self) -> u64 {
        self.entries().filter(|entry| entry & SENT != 0 && entry & ACK_ASKED == 0).count() as u64
    }

    /// Looks at every message: each that was sent is to have been acked exactly once, and nothing else may
    /// have come.
    pub(crate) fn verify(&self) -> Result<(), String> {
        let unacked = self.entries().filter(|entry| entry & SENT != 0 && entry & ACKED == 0).count();
        let twice = self.acked_twice.load(Ordering::Relaxed);
        let foreign = self.foreign();
        let again = self.given_after_ack();
        if unacked == 0 && twice == 0 && foreign == 0 && again == 0 {
            return Ok(());
        }
        Err(format!(
            "of {} messages sent, {unacked} were not acked, {twice} were acked twice, {again} came again after their \
             ack; {foreign} that came were not of this run",
            self.sent_count()
        ))
    }

    fn entries(&self) -> impl Iterator<Item = u64> + '_ {
        let written = self.chunks.iter().filter_map(OnceLock::get);
        written.flat_map(|chunk| chunk.iter().map(|entry| entry.load(Ordering::Relaxed)))
    }

    fn entry(&self, number: u64) -> &AtomicU64 {
        let chunk = self.chunks[(number / CHUNK) as usize]
            .get_or_init(|| (0..CHUNK).map(|_| AtomicU64::new(0)).collect());
        &chunk[(number % CHUNK) as usize]
    }
}

/// Writes a number to the beginning of a payload, which has room for it.
pub(crate) fn write_number(number: u64, payload: &mut [u8]) {
    for (at, digit) in payload[..NUMBER_BYTES].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(number >> (60 - 4 * at)) as usize & 15];
    }
}

/// The number at the beginning of a payload; `None`: there is none.
pub(crate) fn read_number(payload: &[u8]) -> Option<u64> {
    payload.get(..NUMBER_BYTES)?.iter().try_fold(0, |number, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(number: u64) -> [u8; 20] {
        let mut payload = [b'.'; 20];
        write_number(number, &mut payload);
        payload
    }

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 0x1234_5678_9abc_def0, u64::MAX] {
            assert_eq!(read_number(&payload(number)), Some(number));
        }
        assert_eq!(read_number(b"short"), None);
        assert_eq!(read_number(b"not a number at all"), None);
    }

    #[test]
    fn what_was_sent_and_acked_once_is_well() {
        let ledger = Ledger::new();
        let numbers = ledger.take(100_000, u64::MAX);
        ledger.sending(numbers.clone(), 1);
        ledger.sent(numbers.clone());
        assert_eq!(ledger.lost(), 100_000);
        for number in numbers {
            assert_eq!(ledger.given(&payload(number)), Some(number));
            ledger.ack_asked(number);
            assert!(ledger.acked(number, ledger.now_ns()).is_some());
        }
        assert_eq!(ledger.verify(), Ok(()));
        assert_eq!((ledger.lost(), ledger.sent_count(), ledger.acked_count()), (0, 100_000, 100_000));
    }

    #[test]
    fn what_goes_wrong_is_counted() {
        let ledger = Ledger::new();
        let numbers = ledger.take(3, u64::MAX);
        ledger.sending(numbers.clone(), 1);
        ledger.sent(numbers);
        ledger.acked(0, 5);
        ledger.acked(0, 6);
        ledger.given(&payload(0));
        ledger.given(&payload(99));
        let failure = ledger.verify().unwrap_err();
        assert_eq!(
            failure,
            "of 3 messages sent, 2 were not acked, 1 were acked twice, 1 came again after their ack; 1 that came were \
             not of this run"
        );
    }

    #[test]
    fn an_ack_of_unknown_fate_is_not_a_loss() {
        let ledger = Ledger::new();
        ledger.sent(ledger.take(1, u64::MAX));
        ledger.ack_asked(0);
        assert_eq!(ledger.lost(), 0);
    }

    #[test]
    fn numbers_end_where_told() {
        let ledger = Ledger::new();
        assert_eq!(ledger.take(64, 100), 0..64);
        assert_eq!(ledger.take(64, 100), 64..100);
        assert!(ledger.take(64, 100).is_empty());
    }
}
