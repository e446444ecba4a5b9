//! The wire format of protobuf, and what is said of bytes that are not in it.

use sluice_calls::{Fault, Read};
use sluice_proto::wire::{self, WireError};

pub(super) use sluice_proto::wire::{Raw, begin_bytes, put_bytes, put_message, put_number};

/// The code of bytes that are no message.
pub(super) const INVALID: &str = "invalid_protobuf";

/// Takes the next field: its number and value; `None` at the end.
pub(super) fn next_field<'b>(bytes: &mut &'b [u8]) -> Read<Option<(u32, Raw<'b>)>> {
    wire::next_field(bytes).map_err(fault)
}

/// Takes a number of variable length.
pub(super) fn varint(bytes: &mut &[u8]) -> Read<u64> {
    wire::varint(bytes).map_err(fault)
}

fn fault(error: WireError) -> Box<Fault> {
    Fault::new(INVALID, error.to_string())
}
