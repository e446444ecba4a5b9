//! Layouts of the module's records, one file for each family of commands, and in `item`, `options` and
//! `chain` those of a message to send, which several of them hold; in `cost` that of a cost beside a number.
//! `encode` writes what `decode` reads; the table of kinds and versions is [`crate::record::table`]. Nothing
//! here looks at the state.

pub(crate) mod chain;
pub(crate) mod change;
pub(crate) mod consumer;
pub(crate) mod cost;
pub(crate) mod dead;
pub(crate) mod delivery;
pub(crate) mod group;
pub(crate) mod item;
pub(crate) mod options;
pub(crate) mod report;
pub(crate) mod schedule;
pub(crate) mod search;
pub(crate) mod send;

use crate::command::RecordSink;

/// The body of a record, or a piece of one, in memory.
pub(crate) struct Gathered(pub(crate) Vec<u8>);

impl RecordSink for Gathered {
    fn body(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn blob(&mut self, _pieces: &[&[u8]]) {}
}
