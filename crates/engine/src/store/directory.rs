//! From growing numbers to slots: sparse pages, where an empty page is freed. No hash, and no growth because
//! one old number stays.

use std::collections::BTreeMap;

use crate::store::NIL;
use crate::store::arena::Arena;
use crate::store::slot::Slot;

/// Numbers of one page.
const PAGE: u64 = 256;
/// Pages that are found without the tree.
const CACHED: usize = 8;
/// Emptied pages whose memory is kept for the next.
const SPARE_MAX: usize = 16;

#[derive(Debug)]
struct Page<T> {
    used: u32,
    /// Empty when the page is not in use and its memory was given back.
    slots: Vec<Slot<T>>,
}

/// Slots by number.
#[derive(Debug)]
pub(crate) struct Directory<T> {
    tree: BTreeMap<u64, u32>,
    pages: Arena<Page<T>, 1024>,
    /// Unused pages which kept their memory, at most `SPARE_MAX`.
    spare: Vec<u32>,
    /// Unused pages which gave it back.
    bare: Vec<u32>,
    /// Page number and page, direct mapped.
    cache: [(u64, u32); CACHED],
    /// The page with the highest number given; it stays while empty, since it is about to be used.
    newest: u64,
}

impl<T> Default for Directory<T> {
    fn default() -> Self {
        Directory {
            tree: BTreeMap::new(),
            pages: Arena::default(),
            spare: Vec::new(),
            bare: Vec::new(),
            cache: [(u64::MAX, NIL); CACHED],
            newest: 0,
        }
    }
}

impl<T> Directory<T> {
    /// The slot of a number.
    #[inline]
    pub(crate) fn get(&self, number: u64) -> Option<Slot<T>> {
        let page = self.cached(number / PAGE).or_else(|| self.tree.get(&(number / PAGE)).copied())?;
        let slot = self.pages.get(page).slots[(number % PAGE) as usize];
        slot.some()
    }

    /// Like [`Directory::get`], and remembers the page for the next.
    #[inline]
    pub(crate) fn find(&mut self, number: u64) -> Option<Slot<T>> {
        let page = self.locate(number / PAGE)?;
        let slot = self.pages.get(page).slots[(number % PAGE) as usize];
        slot.some()
    }

    /// Enters a number.
    ///
    /// # Panics
    /// The number is in the directory.
    #[inline]
    pub(crate) fn insert(&mut self, number: u64, slot: Slot<T>) {
        let key = number / PAGE;
        let page = match self.locate(key) {
            Some(page) => page,
            None => self.add_page(key),
        };
        let page = self.pages.get_mut(page);
        let place = &mut page.slots[(number % PAGE) as usize];
        if std::mem::replace(place, slot) != Slot::NIL {
            given_twice(number);
        }
        page.used += 1;
    }

    /// Takes a number out.
    #[inline]
    pub(crate) fn remove(&mut self, number: u64) {
        let key = number / PAGE;
        let Some(index) = self.locate(key) else { return };
        let page = self.pages.get_mut(index);
        let place = &mut page.slots[(number % PAGE) as usize];
        if std::mem::replace(place, Slot::NIL) == Slot::NIL {
            return;
        }
        page.used -= 1;
        if page.used == 0 && key != self.newest {
            self.free_page(key, index);
        }
    }

    /// Numbers from `from` on and their slots, in order. Looks at no more than `pages` pages; also returns up
    /// to which number it has looked, `None` if there is nothing beyond.
    pub(crate) fn from(
        &self,
        from: u64,
        pages: usize,
    ) -> (impl Iterator<Item = (u64, Slot<T>)> + '_, Option<u64>) {
        let first = from / PAGE;
        let looked = self.tree.range(first..).nth(pages).map(|(&key, _)| key * PAGE - 1);
        let found = self
            .tree
            .range(first..)
            .take(pages)
            .flat_map(move |(&key, &page)| {
                let slots = self.pages.get(page).slots.iter();
                (key * PAGE..).zip(slots.copied())
            })
            .filter(move |&(number, slot)| number >= from && slot != Slot::NIL);
        (found, looked)
    }

    #[inline]
    fn cached(&self, key: u64) -> Option<u32> {
        let (cached, page) = self.cache[key as usize % CACHED];
        (cached == key).then_some(page)
    }

    #[inline]
    fn locate(&mut self, key: u64) -> Option<u32> {
        if let Some(page) = self.cached(key) {
            return Some(page);
        }
        let page = *self.tree.get(&key)?;
        self.cache[key as usize % CACHED] = (key, page);
        Some(page)
    }

    #[cold]
    fn add_page(&mut self, key: u64) -> u32 {
        let index = self.spare.pop().or_else(|| self.bare.pop()).unwrap_or_else(|| {
            self.pages.push(Page { used: 0, slots: Vec::new() });
            self.pages.len() as u32 - 1
        });
        let page = self.pages.get_mut(index);
        page.used = 0;
        page.slots.clear();
        page.slots.resize(PAGE as usize, Slot::NIL);
        self.tree.insert(key, index);
        self.cache[key as usize % CACHED] = (key, index);
        if key > self.newest {
            let passed = std::mem::replace(&mut self.newest, key);
            if let Some(page) = self.locate(passed)
                && self.pages.get(page).used == 0
            {
                self.free_page(passed, page);
            }
        }
        index
    }

    #[cold]
    fn free_page(&mut self, key: u64, index: u32) {
        self.tree.remove(&key);
        if self.cached(key).is_some() {
            self.cache[key as usize % CACHED] = (u64::MAX, NIL);
        }
        if self.spare.len() < SPARE_MAX {
            self.spare.push(index);
        } else {
            self.pages.get_mut(index).slots = Vec::new();
            self.bare.push(index);
        }
    }
}

/// Ends the process: two messages with one number would be worse.
#[cold]
#[inline(never)]
fn given_twice(number: u64) -> ! {
    panic!("the number {number} is given twice")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_pages_are_freed_and_one_old_number_keeps_one_page() {
        let mut directory = Directory::<()>::default();
        directory.insert(3, Slot::new(9));
        for number in 1_000..1_000_000 {
            directory.insert(number, Slot::new(number as u32));
            assert_eq!(directory.find(number), Some(Slot::new(number as u32)));
            directory.remove(number);
        }
        assert_eq!(directory.get(3), Some(Slot::new(9)));
        assert_eq!(directory.get(2_000), None);
        assert!(directory.tree.len() <= 3);
        assert!(directory.pages.len() <= 4);
    }

    #[test]
    #[should_panic(expected = "the number 7 is given twice")]
    fn a_number_is_given_once() {
        let mut directory = Directory::<()>::default();
        directory.insert(7, Slot::new(1));
        directory.insert(7, Slot::new(2));
    }

    #[test]
    fn walks_in_order_in_bounded_pieces() {
        let mut directory = Directory::<()>::default();
        let numbers = [1u64, 5, 255, 256, 4_000, 9_000_000, 1 << 40];
        for (slot, &number) in numbers.iter().enumerate() {
            directory.insert(number, Slot::new(slot as u32));
        }
        let (mut seen, mut after) = (Vec::new(), 0);
        loop {
            let (found, looked) = directory.from(after, 2);
            seen.extend(found.map(|(number, _)| number));
            match looked {
                Some(looked) => after = looked + 1,
                None => break,
            }
        }
        assert_eq!(seen, numbers);
    }
}
