//! What keeps the server from being asked for more than it can do, or by whom it must not.

use http::request::Parts;
use sluice_calls::CallError;
use sluice_engine::Error;

use super::table::{Operation, ROUTES};
use crate::net::context::Context;
use crate::net::head::{hosts, origin, well_formed};
use crate::net::in_flight::InFlight;

/// Whether a request is answered at all.
pub(crate) fn admit(
    context: &Context,
    head: &Parts,
    in_flight: &InFlight,
    route: Option<usize>,
) -> Result<(), CallError> {
    has_room(context, in_flight, route.map(|at| ROUTES[at].operation))?;
    well_formed::check(head)?;
    hosts::check(&context.options.hosts, &context.options.access, head)?;
    origin::check(head)
}

/// Whether one more can be answered. Those who look after the server get through when it is busy.
pub(crate) fn has_room(
    context: &Context,
    in_flight: &InFlight,
    operation: Option<Operation>,
) -> Result<(), CallError> {
    let watching = matches!(operation, Some(Operation::Health | Operation::Ready | Operation::Metrics));
    let requests_max = context.options.requests_max;
    let relieves = operation.is_some_and(Operation::relieves);
    // An eighth more for those that make less of what there is to do, as in the mailboxes of the shards.
    let most = if relieves { requests_max + requests_max / 8 } else { requests_max };
    if in_flight.rank > most && !watching {
        return Err(Error::Overloaded { what: "requests", retry_after_ms: 1_000 }.into());
    }
    if operation.is_some_and(Operation::answers_at_length) {
        in_flight.share.has_room()?;
    }
    Ok(())
}
