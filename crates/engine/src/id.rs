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

/// Names one message for ever: namespace number and a sequence number that carries the epoch in its high
/// bits. Printed as 20 lower-case base32hex characters that sort as the ids do.
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
    /// Tag that [`ReceiptKey`] computes from the two: the holder of one receipt cannot compute another.
    pub tag: u64,
}

/// Proof of a grant, and its fencing token: the numbers of later grants are larger, and their printed forms
/// sort as the numbers do. Printed as 32 lower-case base32hex characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LockToken {
    /// The fencing token as a number.
    pub number: u64,
    /// Place of the grant in the state.
    pub(crate) slot: u32,
    /// Tag that only the server can make.
    pub(crate) tag: u64,
}

impl LockToken {
    fn to_bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&self.number.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.slot.to_be_bytes());
        bytes[12..].copy_from_slice(&self.tag.to_be_bytes());
        bytes
    }
}

impl fmt::Display for LockToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: [u8; 32] = encode_base32hex(self.to_bytes());
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl FromStr for LockToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = || {
            let given = clip(text);
            let expected = "expected 32 characters of 0-9 a-v, as given with the grant";
            let reason = format!("{given:?} is not the token of a lock: {expected}");
            Error::InvalidArgument { field: "token".to_owned(), reason }
        };
        let bytes = decode_base32hex::<20, 32>(text.as_bytes()).ok_or_else(invalid)?;
        let (number, rest) = bytes.split_first_chunk::<8>().ok_or_else(invalid)?;
        let (slot, tag) = rest.split_first_chunk::<4>().ok_or_else(invalid)?;
        let tag = tag.first_chunk::<8>().ok_or_else(invalid)?;
        Ok(LockToken {
            number: u64::from_be_bytes(*number),
            slot: u32::from_be_bytes(*slot),
            tag: u64::from_be_bytes(*tag),
        })
    }
}

/// Number of a claim: one while it waits, and another as the token of its grant; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LockTicket {
    /// The number.
    pub number: u64,
    pub(crate) slot: u32,
}

/// An upload: later ones have larger numbers, and their printed forms sort as the numbers do. Printed as 20
/// lower-case base32hex characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UploadId {
    /// The number, of the same sequence as fencing tokens.
    pub number: u64,
    /// Place of the upload in the state.
    pub(crate) slot: u32,
}

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.number.to_be_bytes());
        bytes[8..].copy_from_slice(&self.slot.to_be_bytes());
        let text: [u8; 20] = encode_base32hex(bytes);
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl FromStr for UploadId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = || {
            let given = clip(text);
            let expected = "expected 20 characters of 0-9 a-v, as given when it was begun";
            let reason = format!("{given:?} is not the id of an upload: {expected}");
            Error::InvalidArgument { field: "upload".to_owned(), reason }
        };
        let bytes = decode_base32hex::<12, 20>(text.as_bytes()).ok_or_else(invalid)?;
        let (number, slot) = bytes.split_first_chunk::<8>().ok_or_else(invalid)?;
        let slot = slot.first_chunk::<4>().ok_or_else(invalid)?;
        Ok(UploadId { number: u64::from_be_bytes(*number), slot: u32::from_be_bytes(*slot) })
    }
}

/// Name of a transaction over several namespaces. Printed as 20 lower-case base32hex characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TransactionId {
    /// Namespace on whose shard it is decided.
    pub coordinator: NamespaceId,
    /// Number that no other transaction of this namespace has: it is picked at random.
    pub number: u64,
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.coordinator.0.to_be_bytes());
        bytes[4..].copy_from_slice(&self.number.to_be_bytes());
        let text: [u8; 20] = encode_base32hex(bytes);
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl FromStr for TransactionId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = || {
            let expected = "expected 20 characters of 0-9 a-v, as lists of what is in doubt have it";
            let reason = format!("{:?} is not the id of a transaction: {expected}", clip(text));
            Error::InvalidArgument { field: "transaction".to_owned(), reason }
        };
        let bytes = decode_base32hex::<12, 20>(text.as_bytes()).ok_or_else(invalid)?;
        let (coordinator, number) = bytes.split_first_chunk::<4>().ok_or_else(invalid)?;
        let number = number.first_chunk::<8>().ok_or_else(invalid)?;
        let coordinator = NamespaceId(u32::from_be_bytes(*coordinator));
        Ok(TransactionId { coordinator, number: u64::from_be_bytes(*number) })
    }
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

    /// The token of a grant.
    pub(crate) fn lock_token(&self, namespace: NamespaceId, number: u64, slot: u32) -> LockToken {
        // That of a delivery of which there is none: the sequence of a message has its epoch above the bits
        // of a slot.
        let id = MessageId { namespace, sequence: slot.into() };
        LockToken { number, slot, tag: self.receipt(id, number).tag }
    }

    /// True if a receipt was made with this key. Tags are compared as one word, which takes the same time
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
    /// Number of the blob in the record.
    pub item: u32,
    /// Length in bytes.
    pub len: u32,
}

impl BlobRef {
    /// An empty payload without content type and headers, which lies in no log: that of a reply to an ack
    /// without result.
    pub const EMPTY: BlobRef = BlobRef { index: 0, item: 0, len: 0 };
    /// The bytes of [`BlobRef::EMPTY`].
    pub const EMPTY_BYTES: &'static [u8] = &[0, 0];
}

/// A byte in each of the eight bytes of a word.
const fn in_each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Number of characters between the digits and the letters in ASCII.
const FROM_DIGITS_TO_LETTERS: u64 = (b'a' - b'9' - 1) as u64;

/// The eight characters of base32hex (RFC 4648 §7, in lower case) for the lowest 40 bits of a word: five bits
/// in each byte, to which the offset of its character is added.
#[inline]
fn chars_of(bits: u64) -> [u8; 8] {
    let pairs = ((bits >> 20) << 32) | (bits & 0xf_ffff);
    let quads = ((pairs & 0x000f_fc00_000f_fc00) << 6) | (pairs & 0x0000_03ff_0000_03ff);
    let values = ((quads & 0x03e0_03e0_03e0_03e0) << 3) | (quads & 0x001f_001f_001f_001f);
    let letters = at_least(values, 10) >> 7;
    (values + in_each(b'0') + letters * FROM_DIGITS_TO_LETTERS).to_be_bytes()
}

/// The 40 bits that eight characters stand for; `None`: one of them stands for nothing.
#[inline]
fn bits_of(chars: [u8; 8]) -> Option<u64> {
    let chars = u64::from_be_bytes(chars);
    let digits = at_least(chars, b'0') & !at_least(chars, b'9' + 1);
    let letters = at_least(chars, b'a') & !at_least(chars, b'v' + 1);
    if chars & in_each(0x80) != 0 || digits | letters != in_each(0x80) {
        return None;
    }
    let values = chars - in_each(b'0') - (letters >> 7) * FROM_DIGITS_TO_LETTERS;
    let quads = ((values >> 3) & 0x03e0_03e0_03e0_03e0) | (values & 0x001f_001f_001f_001f);
    let pairs = ((quads >> 6) & 0x000f_fc00_000f_fc00) | (quads & 0x0000_03ff_0000_03ff);
    Some(((pairs >> 32) << 20) | (pairs & 0xf_ffff))
}

/// The highest bit of each byte that is `least` or more; of bytes below 128.
#[inline]
fn at_least(bytes: u64, least: u8) -> u64 {
    ((bytes & in_each(0x7f)) + in_each(0x80 - least)) & in_each(0x80)
}

/// Up to five bytes as the highest of 40 bits.
#[inline]
fn bits_from(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[3..3 + bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(word)
}

/// Eight characters for five bytes at a time; fewer for the last ones, if they are fewer.
#[inline]
fn encode_base32hex<const BYTES: usize, const CHARS: usize>(bytes: [u8; BYTES]) -> [u8; CHARS] {
    let mut text = [b'0'; CHARS];
    let ((groups, last), (texts, end)) = (bytes.as_chunks::<5>(), text.as_chunks_mut::<8>());
    for (group, chars) in groups.iter().zip(texts) {
        *chars = chars_of(bits_from(group));
    }
    end.copy_from_slice(&chars_of(bits_from(last))[..end.len()]);
    text
}

#[inline]
fn decode_base32hex<const BYTES: usize, const CHARS: usize>(text: &[u8]) -> Option<[u8; BYTES]> {
    let text: &[u8; CHARS] = text.try_into().ok()?;
    let mut bytes = [0u8; BYTES];
    let ((texts, end), (groups, last)) = (text.as_chunks::<8>(), bytes.as_chunks_mut::<5>());
    for (chars, group) in texts.iter().zip(groups) {
        group.copy_from_slice(&bits_of(*chars)?.to_be_bytes()[3..]);
    }
    let mut chars = [b'0'; 8];
    chars[..end.len()].copy_from_slice(end);
    let word = bits_of(chars)?.to_be_bytes();
    let (whole, rest) = word[3..].split_at(last.len());
    last.copy_from_slice(whole);
    // Bits behind the last byte would give one id many spellings.
    rest.iter().all(|byte| *byte == 0).then_some(bytes)
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
        let bytes = decode_base32hex::<12, 20>(text.as_bytes())
            .ok_or_else(|| Error::InvalidMessageId { id: clip(text) })?;
        Ok(id_from(&bytes))
    }
}

impl FromStr for Receipt {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bytes = decode_base32hex::<28, 45>(text.as_bytes())
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
        let id = TransactionId { coordinator: NamespaceId(7), number: u64::MAX - 1 };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("01ba4f2c3d8-5a0c41e7".parse::<TransactionId>().is_err());
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
    fn each_value_has_its_character_and_others_are_refused() {
        let alphabet = *b"0123456789abcdefghijklmnopqrstuv";
        for place in 0..8 {
            for (value, char) in alphabet.iter().enumerate() {
                let (mut chars, bits) = ([b'0'; 8], (value as u64) << (35 - 5 * place));
                chars[place] = *char;
                assert_eq!((chars_of(bits), bits_of(chars)), (chars, Some(bits)));
            }
            for byte in (0..=255).filter(|byte| !alphabet.contains(byte)) {
                let mut chars = *b"0a9v0a9v";
                chars[place] = byte;
                assert_eq!(bits_of(chars), None, "{byte} at {place}");
            }
        }
        assert_eq!(chars_of(u64::MAX >> 24), [b'v'; 8]);
    }

    #[test]
    fn a_second_spelling_of_an_id_is_refused() {
        let text = MessageId { namespace: NamespaceId(1), sequence: 7 }.to_string();
        let mut other = text.into_bytes();
        other[19] += 1; // sets one of the four bits beyond the 96
        assert!(std::str::from_utf8(&other).unwrap_or_default().parse::<MessageId>().is_err());
    }

    #[test]
    fn tokens_print_and_parse_and_sort_by_their_numbers() {
        let earlier = LockToken { number: 7 << 22, slot: 9, tag: u64::MAX };
        let later = LockToken { number: (7 << 22) + 1, slot: 3, tag: 5 };
        for token in [earlier, later] {
            assert_eq!(token.to_string().parse::<LockToken>(), Ok(token));
            assert_eq!(token.to_string().len(), 32);
        }
        assert!(earlier.to_string() < later.to_string());
        for bad in ["", "0", &"w".repeat(32), &"0".repeat(33)] {
            assert!(bad.parse::<LockToken>().is_err(), "{bad}");
            assert!(bad.parse::<UploadId>().is_err(), "{bad}");
        }
    }
}
