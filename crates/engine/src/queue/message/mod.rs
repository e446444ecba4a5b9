//! A message: what is kept of it, how it goes from one state into another, and how it is found.

pub(crate) mod blobs;
pub(crate) mod damage;
pub(crate) mod extras;
pub(crate) mod lookup;
pub(crate) mod options;
pub(crate) mod origin;
pub(crate) mod results;
pub(crate) mod state;
pub(crate) mod transitions;
