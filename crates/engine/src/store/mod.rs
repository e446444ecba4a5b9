//! The containers that the state lies in: all grow in fixed chunks, so that nothing moves or rehashes at
//! once.

pub(crate) mod arena;
pub(crate) mod directory;
pub(crate) mod hash_index;
pub(crate) mod idle;
pub(crate) mod key;
pub(crate) mod key_index;
pub(crate) mod key_order;
pub(crate) mod list;
pub(crate) mod slab;
pub(crate) mod slot;
pub(crate) mod sorted_index;

/// No number or index.
pub(crate) const NIL: u32 = u32::MAX;
