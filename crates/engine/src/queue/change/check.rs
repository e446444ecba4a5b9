//! Checks of changes that do not look at the state.

use crate::change::{BY_BYTES_MAX, CHANGE_ITEMS_MAX, Change, ChangeAction, NewFields, WHY_BYTES_MAX};
use crate::command::Deliver;
use crate::error::Error;
use crate::limit::COST_MAX;
use crate::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, PRIORITY_MAX};
use crate::rules::{at_most, at_most_of, between_of, check_tags, invalid, name_rule};

pub(crate) fn check_change(change: &Change<'_>) -> Result<(), Error> {
    between_of("messages", "messages", change.items.len() as u64, 1, CHANGE_ITEMS_MAX as u64)?;
    at_most_of("bytes", "by", change.by.len() as u64, BY_BYTES_MAX as u64)?;
    at_most_of("bytes", "why", change.why.len() as u64, WHY_BYTES_MAX as u64)?;
    if let Some((id, _)) = change.items.iter().find(|(id, _)| id.namespace != change.namespace) {
        return Err(Error::MessageNotFound { id: id.to_string() });
    }
    match change.action {
        ChangeAction::Move { to } => name_rule("to", to),
        ChangeAction::Set(fields) => check_fields(&fields),
        ChangeAction::Cancel
        | ChangeAction::Hold
        | ChangeAction::Approve
        | ChangeAction::Deny
        | ChangeAction::Retry => Ok(()),
    }
}

fn check_fields(fields: &NewFields<'_>) -> Result<(), Error> {
    if *fields == NewFields::default() {
        let reason =
            "nothing is to change: give priority, deliver_at_ms, delay_ms, max_attempts, tags or cost";
        return Err(invalid("change", reason.into()));
    }
    at_most("priority", fields.priority.unwrap_or(0).into(), PRIORITY_MAX.into())?;
    at_most("max_attempts", fields.max_attempts.unwrap_or(0).into(), ATTEMPTS_MAX.into())?;
    at_most("cost", fields.cost.unwrap_or_default().0.into(), COST_MAX.into())?;
    if let Some(Deliver::AfterMs(delay_ms)) = fields.deliver {
        at_most("delay_ms", delay_ms, DELAY_MS_MAX)?;
    }
    check_tags("tags", fields.tags.unwrap_or_default())
}
