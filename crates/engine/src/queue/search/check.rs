//! Refusals of fills whatever the state is.

use crate::error::Error;
use crate::limits::{FILLED_MESSAGES_MAX, MESSAGE_TERMS_MAX};
use crate::rules::{at_most_of, invalid};
use crate::search::SearchFill;

pub(crate) fn check_fill(fill: &SearchFill<'_>) -> Result<(), Error> {
    at_most_of("messages", "messages", fill.messages.len() as u64, FILLED_MESSAGES_MAX as u64)?;
    if !fill.messages.is_sorted_by(|one, next| one.sequence < next.sequence) {
        return Err(invalid("messages", "expected messages by id, each once".to_owned()));
    }
    let most = MESSAGE_TERMS_MAX as u64;
    fill.messages
        .iter()
        .try_for_each(|message| at_most_of("terms", "terms", message.terms.len() as u64, most))
}
