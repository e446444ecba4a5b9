//! What every module of the engine stands on: time, namespaces, fencing tokens, blobs, the timer wheel.

pub(crate) mod namespace;
pub(crate) mod shared_blobs;
pub(crate) mod tokens;
pub(crate) mod wheel;

use crate::core::namespace::Namespace;
use crate::store::slab::Slab;

/// All namespaces.
pub(crate) type Namespaces = Slab<Namespace, 64>;
