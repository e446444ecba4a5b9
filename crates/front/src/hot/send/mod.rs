//! Sending: the messages of a request, decoded without an allocation per message.

mod batch;
mod fields;

use sluice_calls::{CallError, Permit};

use super::Answer;
use super::source::Source;

pub(crate) use batch::Batch;
pub use fields::MESSAGE_FIELDS;
#[cfg(test)]
pub(crate) use fields::{GROUP_FIELDS, GROUP_MESSAGE_FIELDS, SEND_FIELDS, STEP_FIELDS};

/// Sends a message or a list of them.
pub(super) async fn send<'b>(
    permit: &Permit<'_>,
    idempotency_key: &[u8],
    source: impl Source<'b>,
) -> Result<Answer, CallError> {
    let batch = Batch::read(source, &permit.calls().limits())?;
    let is_list = batch.is_list;
    // Mostly what a message leads to needs no look-up, and the items are made once.
    let begun = batch.with_items(|items| {
        permit.cleared_sends(items).map(|cleared| cleared.begin_send(idempotency_key, items))
    });
    let sending = match begun {
        Some(sending) => sending?,
        None => {
            let cleared = batch.with_items(|items| permit.onward(items))?.cleared().await?;
            batch.with_items(|items| cleared.begin_send(idempotency_key, items))?
        }
    };
    Ok(Answer::Sent { sent: sending.done().await?, is_list })
}
