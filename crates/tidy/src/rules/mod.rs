//! The rules, one file each, with its reasons at the head.

pub(crate) mod banned;
pub(crate) mod circles;
pub(crate) mod layers;
pub(crate) mod lines;
pub(crate) mod openings;
pub(crate) mod orphans;
pub(crate) mod sizes;
pub(crate) mod wildcards;
