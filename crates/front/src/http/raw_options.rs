//! Optional fields of a raw send, by their headers.

use sluice_engine::item::{Expires, SendOptions, WINDOW_MS_MAX};
use sluice_engine::limit::{COST_MAX, Cost};
use sluice_engine::limits::DELAY_MS_MAX;

use crate::hot::options::{AT_MS_MAX, plain_unique};
use crate::json::number::integer;
use crate::json::{Fault, Read, Reader};

/// Reads the value of a `sluice-...` header of a raw send; false if the header is none of these.
pub(super) fn header<'h>(options: &mut SendOptions<'h>, name: &str, value: &'h str) -> Read<bool> {
    let both = || Fault::conflict("Sluice-Ttl-Ms", "Sluice-Expires-At-Ms");
    match name {
        "sluice-ordering-key" => options.ordering_key = given(value)?.as_bytes(),
        "sluice-fair-key" => options.fair_key = given(value)?.as_bytes(),
        "sluice-limit-key" => options.limit_key = given(value)?.as_bytes(),
        "sluice-cost" => options.cost = Cost(integer(value, 0, COST_MAX.into())? as u32),
        "sluice-unique" => options.unique = Some(plain_unique(Reader::new(value.as_bytes())?)?),
        "sluice-ttl-ms" | "sluice-expires-at-ms" if options.expires != Expires::Never => return Err(both()),
        "sluice-ttl-ms" => options.expires = Expires::AfterMs(integer(value, 1, DELAY_MS_MAX)?),
        "sluice-expires-at-ms" => options.expires = Expires::AtUs(integer(value, 1, AT_MS_MAX)? * 1_000),
        "sluice-result-ttl-ms" => options.result_ttl_ms = integer(value, 0, WINDOW_MS_MAX)?,
        "sluice-correlation-id" => options.correlation_id = given(value)?.as_bytes(),
        "sluice-reply-to" => options.reply_to = given(value)?,
        "sluice-hold" => match value {
            "true" | "false" => options.hold = value == "true",
            _ => return Err(Fault::one_of(&["true", "false"], value)),
        },
        _ => return Ok(false),
    }
    Ok(true)
}

fn given(value: &str) -> Read<&str> {
    if value.is_empty() {
        return Err(Fault::invalid("expected at least one character (leave the header out instead)"));
    }
    Ok(value)
}
