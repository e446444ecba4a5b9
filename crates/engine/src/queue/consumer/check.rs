//! Checks of commands about consumers that do not look at the state.

use crate::command::{Attach, DETACH_GRACE_MS_MAX};
use crate::error::Error;
use crate::limits::{CREDIT_MAX, LEASE_MS_MAX, NAME_BYTES_MAX, RECEIVE_QUEUES_MAX};
use crate::rules::{at_most, at_most_of, between_of, invalid, name_rule};

pub(crate) fn check_attach(attach: &Attach<'_>) -> Result<(), Error> {
    at_most_of("bytes", "consumer", attach.name.len() as u64, NAME_BYTES_MAX as u64)?;
    check_credit(attach.credit)?;
    at_most("lease_ms", attach.lease_ms, LEASE_MS_MAX)?;
    check_grace(attach.grace_ms)?;
    between_of("queues", "queues", attach.queues.len() as u64, 1, RECEIVE_QUEUES_MAX as u64)?;
    for (at, name) in attach.queues.iter().enumerate() {
        name_rule("queue", name)?;
        if attach.queues[..at].contains(name) {
            return Err(invalid("queues", format!("{name:?} is there twice: name each queue once")));
        }
    }
    Ok(())
}

pub(crate) fn check_credit(credit: u32) -> Result<(), Error> {
    at_most("credit", credit.into(), CREDIT_MAX.into())
}

pub(crate) fn check_grace(grace_ms: u64) -> Result<(), Error> {
    at_most("grace_ms", grace_ms, DETACH_GRACE_MS_MAX)
}
