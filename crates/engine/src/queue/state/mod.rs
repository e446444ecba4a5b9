//! State of queues and messages, and its layout in a snapshot. Each type keeps its own fields
//! consistent; what changes several of them at once is a method of
//! [`QueueModule`](crate::queue::QueueModule), in the room of its concern. Nothing here uses a room.
//!
//! - A message: `message` the slot that every message has; `extras` the optional fields of some, among them
//!   `options`, `results`, `changed` and `origin`.
//! - A queue: `queue`, with its `redrive` and its `trim`; `defaults` for new ones.
//! - Keys: `ordering`, `fair`, `unique`, `limit` and `limit_key`, `sticky`; `sent` for repeats.
//! - Relations: `flow` parents and children, `chain` steps, `pending` sends, `schedule`, `consumer`.
//! - What is to be done: `consequence`, `work`, `expiry`.
//! - `namespace_index`: where all of it is found by name and number; `search`: messages by their terms.
//!
//! Slots name what they lead to, so they stand here: a message names its queue, and a queue its messages.

pub(crate) mod chain;
pub(crate) mod changed;
pub(crate) mod consequence;
pub(crate) mod consumer;
pub(crate) mod defaults;
pub(crate) mod expiry;
pub(crate) mod extras;
pub(crate) mod fair;
pub(crate) mod flow;
pub(crate) mod limit;
pub(crate) mod limit_key;
pub(crate) mod message;
pub(crate) mod namespace_index;
pub(crate) mod options;
pub(crate) mod ordering;
pub(crate) mod origin;
pub(crate) mod pending;
pub(crate) mod queue;
pub(crate) mod redrive;
pub(crate) mod results;
pub(crate) mod schedule;
pub(crate) mod search;
pub(crate) mod sent;
pub(crate) mod sticky;
pub(crate) mod trim;
pub(crate) mod unique;
pub(crate) mod work;

use crate::limits::PRIORITY_MAX;
use crate::store::slot::Slot;

/// Levels of priority.
pub(crate) const PRIORITIES: usize = PRIORITY_MAX as usize + 1;

pub(crate) type BlockSlot = Slot<search::Block>;
pub(crate) type ChainSlot = Slot<chain::Chain>;
pub(crate) type ChangedSlot = Slot<changed::Changed>;
pub(crate) type ConsumerSlot = Slot<consumer::Consumer>;
pub(crate) type HoldSlot = Slot<consumer::Hold>;
pub(crate) type DefaultsSlot = Slot<defaults::Defaults>;
pub(crate) type ExpirySlot = Slot<expiry::Expiry>;
pub(crate) type EntrySlot = Slot<extras::Entry>;
pub(crate) type ExtrasSlot = Slot<extras::Extras>;
pub(crate) type LaneSlot = Slot<fair::Lane>;
pub(crate) type EdgeSlot = Slot<flow::Edge>;
pub(crate) type FlowSlot = Slot<flow::Flow>;
pub(crate) type ParentSlot = Slot<flow::Parent>;
pub(crate) type LimitSlot = Slot<limit::Limit>;
pub(crate) type LimitKeySlot = Slot<limit_key::LimitKey>;
pub(crate) type LineSlot = Slot<limit_key::KeyLine>;
pub(crate) type MessageSlot = Slot<message::Message>;
pub(crate) type OptionsSlot = Slot<options::Options>;
pub(crate) type OrderingSlot = Slot<ordering::OrderingKey>;
pub(crate) type OriginSlot = Slot<origin::Origin>;
pub(crate) type PendingSlot = Slot<pending::PendingSend>;
pub(crate) type QueueSlot = Slot<queue::Queue>;
pub(crate) type ResultsSlot = Slot<results::Results>;
pub(crate) type ScheduleSlot = Slot<schedule::Schedule>;
pub(crate) type SearchSlot = Slot<search::SearchIndex>;
pub(crate) type StickySlot = Slot<sticky::StickyKey>;
pub(crate) type UniqueSlot = Slot<unique::UniqueKey>;
