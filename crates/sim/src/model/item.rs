//! Properties of a single item: the length of its blob, valid names, the code of its result.

use sluice_engine::Error;
use sluice_engine::blob::BlobHead;
use sluice_engine::command::SendItem;

/// Length of a message's blob, in bytes.
pub(super) fn blob_len(item: &SendItem<'_>) -> u32 {
    (BlobHead::len_tagged(item.content_type, item.headers, item.tags) + item.payload.len()) as u32
}

/// True for a name that clients may use.
pub(super) fn valid_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty() && name.len() <= 128 && name.chars().all(allowed)
}

/// The code of an item's result; `ok` for success.
pub(super) fn code(result: &Result<(), Error>) -> &'static str {
    result.as_ref().map_or_else(Error::code, |()| "ok")
}
