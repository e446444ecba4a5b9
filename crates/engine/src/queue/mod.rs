//! The module of queues: messages, and all that may happen to them.

pub(crate) mod change;
pub(crate) mod consequence;
pub(crate) mod consequences;
pub(crate) mod consumer;
pub(crate) mod dead;
pub(crate) mod defaults;
pub(crate) mod delivery;
pub(crate) mod events;
pub(crate) mod expiry;
pub(crate) mod fair;
pub(crate) mod flow;
pub(crate) mod length;
pub(crate) mod limit;
pub(crate) mod message;
pub(crate) mod namespace_index;
pub(crate) mod ordering;
pub(crate) mod queues;
pub(crate) mod schedule;
pub(crate) mod send;
pub(crate) mod state;
pub(crate) mod timers;
pub(crate) mod unique;
pub(crate) mod view;
pub(crate) mod work;

use crate::queue::message::state::Message;
use crate::queue::state::Queue;
use crate::store::slab::Slab;

/// All messages.
pub(crate) type Messages = Slab<Message, 4096>;
/// All queues.
pub(crate) type Queues = Slab<Queue, 64>;
