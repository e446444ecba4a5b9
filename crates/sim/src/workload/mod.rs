//! The clients: what they know, and what they ask next.
//!
//! Most of what they ask makes sense. The rest is what real clients do: they are late, repeat themselves,
//! forge receipts, name queues that are not there, and go away while the answer is on its way.

mod admin;
mod bounds;
mod bulks;
mod change;
mod consumers;
mod decode;
mod flows;
mod generate;
mod keys;
mod op;
mod queues;
mod results;
mod schedules;
mod seen;

pub use bulks::{BulkChange, BulkOp};
pub use change::ChangeOp;
pub use consumers::ConsumerOp;
pub use decode::decode;
pub use flows::{GroupOp, Relations};
pub use generate::{Generator, QUEUES, Wanted};
pub use keys::LimitOp;
pub use op::{Item, Lend, NodeOp, Op, SentBlob, Settled, Told};
pub use queues::QueueOp;
pub use schedules::{Missed, ScheduleOp, Times};
pub use seen::Seen;
