//! A message: how it goes from one state into another, and how it is found.

pub(crate) mod blobs;
pub(crate) mod damage;
pub(crate) mod lookup;
pub(crate) mod transitions;
