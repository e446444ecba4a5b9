//! What the state is made of: messages, queues, namespaces and what hangs on them. Each kind lies in a slab.

pub(crate) mod consequences;
pub(crate) mod defaults;
pub(crate) mod queue;
pub(crate) mod trim;

use crate::store::slab::Slab;

/// All messages.
pub(crate) type Messages = Slab<crate::queue::message::state::Message, 4096>;
/// All queues.
pub(crate) type Queues = Slab<crate::state::queue::Queue, 64>;
/// All namespaces.
pub(crate) type Namespaces = Slab<crate::core::namespace::Namespace, 64>;
