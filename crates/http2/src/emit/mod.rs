//! Output: heads and answers as they come, bodies by priority, all as one [`Plan`] a tick.
//!
//! The driver of a connection asks for a plan when the one before is written. It begins with the frames that
//! were written since (answers, heads, small whole responses), and goes on with bodies while the windows, the
//! priorities and the size of a plan allow. Small pieces of bodies are copied behind their headers; large
//! ones are referenced where they are.

mod output;
mod plan;
mod schedule;

pub use crate::streams::Priority;
pub use output::EmitMode;
pub(crate) use output::{Drained, Output, header_block};
pub use plan::Plan;
pub(crate) use schedule::Schedule;
