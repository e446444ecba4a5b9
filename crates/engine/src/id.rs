//! Identities that leave the engine: messages, receipts, and the numbers behind names.

use std::fmt;
use std::str::FromStr;

use siphasher::sip::SipHasher13;

use crate::error::Error;

/// Bits of an id or token below its epoch. An epoch is a number of milliseconds, so that a start may give
/// 2^22 ids in each millisecond before it reaches the epoch of a later one; a count that is larger goes on
/// into the bits of the epoch.
pub const EPOCH_SHIFT: u32 = 22;

/// The number of a namespace: never reused. 0 is `$sys`, 1 is `default`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NamespaceId(pub u32);

impl NamespaceId {
    /// The namespace that holds placement, identities and audit; always on shard 0.
    pub const SYS: NamespaceId = NamespaceId(0);
    /// The namespace that callers get who name none.
    pub const DEFAULT: NamespaceId = NamespaceId(1);
}

/// The number of a queue within its engine: never reused, so a deleted queue's number finds nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct QueueId(pub u32);

/// The number of a consumer within its engine: never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConsumerId(pub u64);

/// Names one message for ever: namespace number and a sequence number that carries the epoch in its high bits.
/// Printed as 20 lower-case base32hex characters that sort as the ids do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MessageId {
    /// The namespace that the message lives in.
    pub namespace: NamespaceId,
    /// The epoch (above [`EPOCH_SHIFT`] bits) plus a count that begins at 1.
    pub sequence: u64,
}

/// Proof of one delivery: the message, the fencing token of its lease, and a tag that only the server can
/// make. Printed as 45 lower-case base32hex characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Receipt {
    /// The message that was delivered.
    pub id: MessageId,
    /// The fencing token of the delivery; tokens only grow.
    pub token: u64,
    /// What [`ReceiptKey`] makes of the two: who holds one receipt cannot compute another.
    pub tag: u64,
}

/// The secret of a log from which the tags of receipts are made; all zero: none yet. It is a record of the
/// log, so that receipts survive restarts.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiptKey(pub [u8; 16]);

impl ReceiptKey {
    /// The receipt of a delivery.
    #[inline]
    pub(crate) fn receipt(&self, id: MessageId, token: u64) -> Receipt {
        // In whole words, which hash faster.
        let mut bytes = [0; 24];
        let words = [id.namespace.0.into(), id.sequence, token];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&u64::to_le_bytes(word));
        }
        Receipt { id, token, tag: SipHasher13::new_with_key(&self.0).hash(&bytes) }
    }

    /// Whether a receipt was made with this key. Tags are compared as one word, which takes the same time
    /// wherever they differ.
    #[inline]
    pub(crate) fn made(&self, receipt: &Receipt) -> bool {
        self.receipt(receipt.id, receipt.token).tag ^ receipt.tag == 0
    }
}

impl fmt::Debug for ReceiptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiptKey")
    }
}

/// Where a variable-size field lies: record index in the log and item within the record. It stays valid when
/// compaction moves the bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlobRef {
    /// Index of the record in the shard's log.
    pub index: u64,
    /// Which blob of the record.
    pub item: u32,
    /// Length in bytes.
    pub len: u32,
}

impl BlobRef {
    /// An empty payload without content type and headers, which lies in no log: that of a reply to an ack without result.
    pub const EMPTY: BlobRef = BlobRef { index: 0, item: 0, len: 0 };
    /// The bytes of [`BlobRef::EMPTY`].
    pub const EMPTY_BYTES: &'static [u8] = &[0, 0];
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// The value of each character; 255 where it is none.
const VALUES: [u8; 256] = {
    let mut values = [255; 256];
    let mut value = 0;
    while value < ALPHABET.len() {
        values[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// Eight characters for five bytes at a time.
fn encode_base32hex<const BYTES: usize, const CHARS: usize>(bytes: [u8; BYTES]) -> [u8; CHARS] {
    let mut text = [b'0'; CHARS];
    for (group, chars) in bytes.chunks(5).zip(text.chunks_mut(8)) {
        let mut word = [0; 8];
        word[3..3 + group.len()].copy_from_slice(group);
        let word = u64::from_be_bytes(word);
        for (at, char) in chars.iter_mut().enumerate() {
            *char = ALPHABET[(word >> (35 - 5 * at)) as usize & 31];
        }
    }
    text
}

fn decode_base32hex<const BYTES: usize>(text: &[u8]) -> Option<[u8; BYTES]> {
    if text.len() != (BYTES * 8).div_ceil(5) {
        return None;
    }
    let mut bytes = [0u8; BYTES];
    let mut seen = 0;
    for (chars, group) in text.chunks(8).zip(bytes.chunks_mut(5)) {
        let mut word = 0u64;
        for char in chars {
            let value = VALUES[usize::from(*char)];
            seen |= value;
            word = (word << 5) | u64::from(value & 31);
        }
        let word = (word << (5 * (8 - chars.len()))).to_be_bytes();
        let (whole, rest) = word[3..].split_at(group.len());
        group.copy_from_slice(whole);
        // Bits behind the last byte would give one id many spellings.
        if rest.iter().any(|byte| *byte != 0) {
            return None;
        }
    }
    (seen < 32).then_some(bytes)
}

fn id_bytes(id: &MessageId) -> [u8; 12] {
    let mut bytes = [0u8; 12];
    bytes[..4].copy_from_slice(&id.namespace.0.to_be_bytes());
    bytes[4..].copy_from_slice(&id.sequence.to_be_bytes());
    bytes
}

fn id_from(bytes: &[u8; 12]) -> MessageId {
    let (namespace, sequence) = bytes.split_at(4);
    MessageId {
        namespace: NamespaceId(u32::from_be_bytes(namespace.try_into().expect("split at 4"))),
        sequence: u64::from_be_bytes(sequence.try_into().expect("12 - 4 = 8")),
    }
}

impl MessageId {
    /// The printed form, on the stack.
    pub fn to_text(&self) -> [u8; 20] {
        encode_base32hex(id_bytes(self))
    }
}

impl Receipt {
    /// The printed form, on the stack.
    pub fn to_text(&self) -> [u8; 45] {
        let mut bytes = [0u8; 28];
        bytes[..12].copy_from_slice(&id_bytes(&self.id));
        bytes[12..20].copy_from_slice(&self.token.to_be_bytes());
        bytes[20..].copy_from_slice(&self.tag.to_be_bytes());
        encode_base32hex(bytes)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.to_text()).unwrap_or_default())
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.to_text()).unwrap_or_default())
    }
}

impl FromStr for MessageId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bytes = decode_base32hex::<12>(text.as_bytes())
            .ok_or_else(|| Error::InvalidMessageId { id: clip(text) })?;
        Ok(id_from(&bytes))
    }
}

impl FromStr for Receipt {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bytes = decode_base32hex::<28>(text.as_bytes())
            .ok_or_else(|| Error::InvalidReceipt { receipt: clip(text) })?;
        let (id, rest) = bytes.split_at(12);
        let (token, tag) = rest.split_at(8);
        Ok(Receipt {
            id: id_from(id.try_into().expect("split at 12")),
            token: u64::from_be_bytes(token.try_into().expect("split at 8")),
            tag: u64::from_be_bytes(tag.try_into().expect("28 - 12 - 8 = 8")),
        })
    }
}

/// Foreign text in an error is cut, so that an error never grows with its cause.
fn clip(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_and_parse_and_sort() {
        let a = MessageId { namespace: NamespaceId(1), sequence: 7 };
        let b = MessageId { namespace: NamespaceId(1), sequence: 1 << EPOCH_SHIFT };
        assert!(a < b && a.to_string() < b.to_string());
        assert_eq!(a.to_string().parse::<MessageId>().ok(), Some(a));
        let receipt = Receipt { id: b, token: u64::MAX, tag: 0x0123_4567_89ab_cdef };
        assert_eq!(receipt.to_string().len(), 45);
        assert_eq!(receipt.to_string().parse::<Receipt>().ok(), Some(receipt));
    }

    #[test]
    fn a_receipt_is_made_with_one_key_for_one_delivery() {
        let (key, other) = (ReceiptKey([1; 16]), ReceiptKey([2; 16]));
        let id = MessageId { namespace: NamespaceId(1), sequence: 7 };
        let receipt = key.receipt(id, 5);
        assert!(key.made(&receipt) && !other.made(&receipt));
        assert!(!key.made(&Receipt { token: 6, ..receipt }));
        let next = MessageId { sequence: 8, ..id };
        assert!(!key.made(&Receipt { id: next, ..receipt }));
        assert!((0..64).all(|bit| !key.made(&Receipt { tag: receipt.tag ^ 1 << bit, ..receipt })));
    }

    #[test]
    fn a_second_spelling_of_an_id_is_refused() {
        let text = MessageId { namespace: NamespaceId(1), sequence: 7 }.to_string();
        let mut other = text.into_bytes();
        other[19] += 1; // sets one of the four bits beyond the 96
        assert!(std::str::from_utf8(&other).unwrap_or_default().parse::<MessageId>().is_err());
    }
}
