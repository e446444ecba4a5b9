//! The details of an error: the fields beside its code and message.

use sluice_calls::error::{Detail, Details};

use super::{Object, push_text};

/// Appends the details of an error to an object, in their order.
pub(crate) fn write_details(details: &Details, o: &mut Object<'_>) {
    for (name, value) in details.iter() {
        match value {
            Detail::Text(text) => o.text(name, text),
            Detail::Number(number) => o.number(name, *number),
            Detail::Words(words) => o.list(name, words, |out, word| push_text(out, word)),
        }
    }
}
