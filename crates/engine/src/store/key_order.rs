//! Items of each scope in the order of their keys. Derived.

use crate::store::arena::Arena;
use crate::store::key_index::Keyed;
use crate::store::slab::Slab;
use crate::store::slot::Slot;
use crate::store::sorted_index::SortedIndex;

/// Items by scope, which is a small number, and key.
#[derive(Debug)]
pub(crate) struct KeyOrder<T>(Arena<SortedIndex<T>, 64>);

impl<T> Default for KeyOrder<T> {
    fn default() -> Self {
        KeyOrder(Arena::default())
    }
}

impl<T: Keyed> KeyOrder<T> {
    /// Adds empty indexes until there is one for each scope below `scopes`.
    pub(crate) fn cover(&mut self, scopes: u32) {
        while self.0.len() < scopes as usize {
            self.0.push(SortedIndex::default());
        }
    }

    pub(crate) fn insert<const CHUNK: usize>(&mut self, slot: Slot<T>, items: &Slab<T, CHUNK>) {
        let item = items.get(slot);
        let of_scope = self.0.get_mut(item.scope() as u32);
        of_scope.insert(slot, |other| items.get(other).key().cmp(item.key()));
    }

    pub(crate) fn remove<const CHUNK: usize>(&mut self, slot: Slot<T>, items: &Slab<T, CHUNK>) {
        let item = items.get(slot);
        let of_scope = self.0.get_mut(item.scope() as u32);
        of_scope.remove(|other| items.get(other).key().cmp(item.key()));
    }

    /// Number of items of a scope.
    pub(crate) fn len(&self, scope: u32) -> usize {
        self.0.get(scope).len()
    }

    /// Items of a scope in the order of their keys, from this key on.
    pub(crate) fn from<'a, const CHUNK: usize>(
        &'a self,
        scope: u32,
        key: &[u8],
        items: &'a Slab<T, CHUNK>,
    ) -> impl Iterator<Item = Slot<T>> + 'a {
        self.0.get(scope).from(|other| items.get(other).key().cmp(key))
    }

    /// Items of a scope whose keys begin with `prefix`, in the order of their keys after `after`.
    pub(crate) fn page<'a, const CHUNK: usize>(
        &'a self,
        scope: u32,
        prefix: &'a str,
        after: Option<&'a str>,
        items: &'a Slab<T, CHUNK>,
    ) -> impl Iterator<Item = Slot<T>> + 'a {
        let (prefix, after) = (prefix.as_bytes(), after.map(str::as_bytes));
        let from = after.map_or(prefix, |after| after.max(prefix));
        self.from(scope, from, items)
            .skip_while(move |slot| Some(items.get(*slot).key()) == after)
            .take_while(move |slot| items.get(*slot).key().starts_with(prefix))
    }

    /// Checks that each item is in order and in its scope; returns their number.
    ///
    /// # Errors
    /// A sentence that tells what is not.
    pub(crate) fn recount<const CHUNK: usize>(&self, items: &Slab<T, CHUNK>) -> Result<u64, String> {
        let mut count = 0;
        for scope in 0..self.0.len() as u32 {
            let slots: Vec<Slot<T>> = self.from(scope, &[], items).collect();
            if !slots.is_sorted_by(|one, next| items.get(*one).key() < items.get(*next).key()) {
                return Err(format!("keys of scope {scope} are not in order"));
            }
            if slots.iter().any(|slot| items.get(*slot).scope() != u64::from(scope)) {
                return Err(format!("the order of scope {scope} has a key of another"));
            }
            count += slots.len() as u64;
        }
        Ok(count)
    }
}
