//! Fencing tokens: how they are given, and which of the latest have settled their message.
//!
//! A token is the number at which its epoch begins, plus a count. Whether its holder has settled is known for
//! the last 2^24 tokens (less up to 4,096) and the last 1,024 epochs in which any was given; of older ones it
//! is only known that they hold nothing any more.

use std::collections::VecDeque;

use crate::error::Error;
use crate::id::EPOCH_SHIFT;
use crate::store::slab::{Item, Slab};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// Tokens that one slot tells of.
const PER_SLOT: u64 = 4_096;
/// Slots of the ring.
const SLOTS: u64 = 4_096;
/// Epochs that are told apart.
const EPOCHS_MAX: usize = 1_024;

/// The error of a record for which there is no token.
#[cold]
pub(crate) fn none_left() -> Error {
    Error::Internal { reason: "there are no more fencing tokens".into() }
}

/// One bit per token: settled.
#[derive(Clone, Debug)]
pub(crate) struct Bits([u64; PER_SLOT as usize / 64]);

impl Item for Bits {
    const BLOCK: usize = 8;

    fn vacant(_next: Slot<Bits>) -> Self {
        Bits([0; PER_SLOT as usize / 64])
    }

    fn next_vacant(&self) -> Option<Slot<Bits>> {
        None
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|&word| out.u64(word));
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut bits = Bits::vacant(Slot::NIL);
        for word in &mut bits.0 {
            *word = reader.u64()?;
        }
        Some(bits)
    }
}

/// Gives tokens, and remembers which were used up.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    /// Tokens ever given.
    given: u64,
    /// The numbers above which the epochs in which tokens were given begin, and the tokens given before; the
    /// last is the current one.
    epochs: VecDeque<(u64, u64)>,
    pub(crate) settled: Slab<Bits, 64>,
}

impl HeadPart for Tokens {
    fn write_head(&self, out: &mut Vec<u8>) {
        out.u64(self.given);
        out.u32(self.epochs.len() as u32);
        for &(begin, before) in &self.epochs {
            out.u64(begin);
            out.u64(before);
        }
        self.settled.write_head(out);
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let mut tokens = Tokens { given: reader.u64()?, ..Tokens::default() };
        for _ in 0..reader.u32()? {
            tokens.epochs.push_back((reader.u64()?, reader.u64()?));
        }
        tokens.settled = Slab::read_head(reader)?;
        Some(tokens)
    }
}

impl Tokens {
    /// Tokens of a new epoch begin above it; it is larger than [`Tokens::latest`].
    pub(crate) fn begin(&mut self, epoch: u64) {
        if self.epochs.back().is_some_and(|&(_, before)| before == self.given) {
            self.epochs.pop_back();
        }
        self.epochs.push_back((epoch << EPOCH_SHIFT, self.given));
        if self.epochs.len() > EPOCHS_MAX {
            self.epochs.pop_front();
        }
    }

    /// True if so many tokens more can be given.
    pub(crate) fn has(&self, tokens: u64) -> bool {
        self.latest().checked_add(tokens).is_some() && !self.epochs.is_empty()
    }

    /// A token larger than every one before; `None` when there are no more.
    #[inline]
    pub(crate) fn give(&mut self) -> Option<u64> {
        let &(begin, before) = self.epochs.back()?;
        let token = begin.checked_add(self.given - before + 1)?;
        if self.given.is_multiple_of(PER_SLOT) {
            self.clear_slot();
        }
        self.given += 1;
        Some(token)
    }

    /// The last token given, or where its epoch begins if none was; 0: no epoch has begun.
    pub(crate) fn latest(&self) -> u64 {
        self.epochs.back().map_or(0, |&(begin, before)| begin + (self.given - before))
    }

    /// Tokens ever given.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// True if this token was given, as far as is remembered: not if the state went back to a time before, as
    /// by a backup, and tokens of a later epoch are given now.
    pub(crate) fn was_given(&self, token: u64) -> bool {
        self.epoch_of(token).is_some_and(|(begin, before, until)| token - begin <= until - before)
    }

    /// Marks a token that was given as used up by its holder.
    #[inline]
    pub(crate) fn settle(&mut self, token: u64) {
        if let Some((slot, word, bit)) = self.find(token) {
            self.settled.get_mut(slot).0[word] |= bit;
        }
    }

    /// True if the holder of this token has settled with it, as far as is remembered.
    pub(crate) fn is_settled(&self, token: u64) -> bool {
        self.find(token).is_some_and(|(slot, word, bit)| self.settled.get(slot).0[word] & bit != 0)
    }

    #[cold]
    fn clear_slot(&mut self) {
        let slot = self.given / PER_SLOT % SLOTS;
        if slot == u64::from(self.settled.used()) {
            self.settled.insert(Bits::vacant(Slot::NIL));
        } else {
            *self.settled.get_mut(Slot::new(slot as u32)) = Bits::vacant(Slot::NIL);
        }
    }

    /// Slot, word and bit of a token, if it is within the window.
    #[inline]
    fn find(&self, token: u64) -> Option<(Slot<Bits>, usize, u64)> {
        let (begin, before, until) = self.epoch_of(token)?;
        let ordinal = before + (token - begin - 1);
        if ordinal >= until {
            return None;
        }
        // The slot of the newest token was cleared as a whole when it was entered.
        let newest_slot = (self.given - 1) / PER_SLOT;
        if ordinal / PER_SLOT + SLOTS <= newest_slot {
            return None;
        }
        let slot = ordinal / PER_SLOT % SLOTS;
        let within = ordinal % PER_SLOT;
        Some((Slot::new(slot as u32), within as usize / 64, 1 << (within % 64)))
    }

    /// Where the epoch of a token begins, the tokens given before it, and up to its end.
    #[inline]
    fn epoch_of(&self, token: u64) -> Option<(u64, u64, u64)> {
        match self.epochs.back() {
            Some(&(begin, before)) if begin < token => Some((begin, before, self.given)),
            _ => self.earlier_epoch(token),
        }
    }

    /// The same of a token that is not of the current epoch.
    #[cold]
    fn earlier_epoch(&self, token: u64) -> Option<(u64, u64, u64)> {
        let at = self.epochs.iter().rposition(|&(begin, _)| begin < token)?;
        let (begin, before) = self.epochs[at];
        let until = self.epochs.get(at + 1).map_or(self.given, |&(_, before)| before);
        Some((begin, before, until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_what_was_settled_across_epochs() {
        let mut tokens = Tokens::default();
        assert_eq!(tokens.give(), None, "no epoch has begun");
        tokens.begin(1);
        let first = tokens.give().unwrap();
        let second = tokens.give().unwrap();
        assert!(first < second);
        tokens.settle(first);
        tokens.begin(2);
        tokens.begin(3);
        let third = tokens.give().unwrap();
        assert!(third > second);
        tokens.settle(third);
        let settled = [first, second, third, third + 1, 2 << EPOCH_SHIFT | 1, 0, u64::MAX];
        assert_eq!(settled.map(|t| tokens.is_settled(t)), [true, false, true, false, false, false, false]);
    }

    #[test]
    fn a_count_may_go_on_into_the_bits_of_the_epoch() {
        let mut tokens = Tokens::default();
        tokens.begin(1);
        for _ in 0..1 << EPOCH_SHIFT {
            tokens.give().unwrap();
        }
        let token = tokens.give().unwrap();
        assert_eq!((token >> EPOCH_SHIFT, tokens.latest()), (2, token));
        tokens.settle(token);
        tokens.begin(3);
        assert!(tokens.is_settled(token) && !tokens.is_settled(token - 1));
    }

    #[test]
    fn forgets_only_what_is_older_than_the_window() {
        let mut tokens = Tokens::default();
        tokens.begin(1);
        let first = tokens.give().unwrap();
        tokens.settle(first);
        let window = PER_SLOT * SLOTS;
        for _ in 1..window {
            tokens.give().unwrap();
        }
        assert!(tokens.is_settled(first));
        let newest = tokens.give().unwrap();
        assert!(!tokens.is_settled(first) && !tokens.is_settled(newest));
    }
}
