//! Refusals of commands about locks whatever the state is.

use crate::error::Error;
use crate::limits::{
    LOCK_HOLDERS_MAX, LOCK_KEY_BYTES_MAX, LOCK_KEYS_MAX, LOCK_TTL_MS_MAX, LOCK_WAIT_MS_MAX, NAME_BYTES_MAX,
};
use crate::locks::{LockAcquire, LockMode};
use crate::rules::{at_most, at_most_of, between, between_of, invalid, key_rule};

pub(crate) fn check_acquire(acquire: &LockAcquire<'_>) -> Result<(), Error> {
    between_of("keys", "keys", acquire.keys.len() as u64, 1, LOCK_KEYS_MAX as u64)?;
    for (at, key) in acquire.keys.iter().enumerate() {
        let field = if acquire.keys.len() == 1 { "key".to_owned() } else { format!("keys[{at}]") };
        check_key(&field, key)?;
        if acquire.keys[..at].contains(key) {
            return Err(invalid(field, format!("{key:?} is given twice")));
        }
    }
    at_most_of("bytes", "owner", acquire.owner.len() as u64, NAME_BYTES_MAX as u64)?;
    if let LockMode::Counting { holders } = acquire.mode {
        between("holders", holders.into(), 1, LOCK_HOLDERS_MAX.into())?;
    }
    between("ttl_ms", acquire.ttl_ms.into(), 1, LOCK_TTL_MS_MAX.into())?;
    if acquire.if_absent && acquire.wait_ms > 0 {
        let reason = "a lock that is acquired only if nobody has it is not waited for: leave one of both out";
        return Err(invalid("wait_ms".to_owned(), reason.to_owned()));
    }
    at_most("wait_ms", acquire.wait_ms.into(), LOCK_WAIT_MS_MAX.into())
}

pub(crate) fn check_key(field: &str, key: &str) -> Result<(), Error> {
    key_rule(field, key, LOCK_KEY_BYTES_MAX)
}

pub(crate) fn check_renewal(ttl_ms: u32) -> Result<(), Error> {
    at_most("ttl_ms", ttl_ms.into(), LOCK_TTL_MS_MAX.into())
}

pub(crate) fn check_wait(wait_ms: u32) -> Result<(), Error> {
    between("wait_ms", wait_ms.into(), 1, LOCK_WAIT_MS_MAX.into())
}
