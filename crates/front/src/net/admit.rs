//! Admission of requests: limits of requests in flight and of memory, and the checks of heads that protect
//! against ambiguous fields, foreign host names and pages of other sites.

use http::request::Parts;
use sluice_calls::operation::Trait;
use sluice_calls::{CallError, Operation};
use sluice_engine::Error;

use super::context::Context;
use super::head::{hosts, origin, well_formed};
use super::in_flight::InFlight;

/// Admits a request.
pub(crate) fn admit(
    context: &Context,
    head: &Parts,
    in_flight: &InFlight,
    operation: Option<Operation>,
) -> Result<(), CallError> {
    has_room(context, in_flight, operation)?;
    well_formed::check(head)?;
    hosts::check(&context.options.hosts, context.calls.access(), head)?;
    origin::check(head)
}

/// Checks the limits of requests in flight and of memory for answers. Operations that relieve the server have
/// a reserve of an eighth; health checks and figures are always admitted.
pub(crate) fn has_room(
    context: &Context,
    in_flight: &InFlight,
    operation: Option<Operation>,
) -> Result<(), CallError> {
    let is = |property| operation.is_some_and(|operation: Operation| operation.is(property));
    let requests_max = context.options.requests_max;
    // An eighth more for those that make less of what there is to do, as in the mailboxes of the shards.
    let most = if is(Trait::Relieves) { requests_max + requests_max / 8 } else { requests_max };
    if in_flight.rank > most && !is(Trait::Always) {
        return Err(Error::Overloaded { what: "requests", retry_after_ms: 1_000 }.into());
    }
    if is(Trait::Long) {
        in_flight.share.has_room()?;
    }
    Ok(())
}
