//! A page of the messages of a queue, as large as its memory allows.

use sluice_engine::query::{Page, State};
use sluice_node::Stored;

use super::{Message, Messages};
use crate::access::Right;
use crate::error::CallError;
use crate::permit::Permit;

/// Largest contents of a page of messages together, in bytes.
const PAGE_BYTES_MAX: usize = 16 << 20;
/// Bytes of a message in an answer, besides what its sender gave.
const FIELDS_BYTES: usize = 1 << 10;
/// Messages that are loaded at once with their histories, whose texts no size tells beforehand.
const SLICE: usize = 64;
/// Bytes of an ended attempt in an answer, besides its error text.
const ATTEMPT_BYTES: usize = 128;

/// The page that is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Only messages in this state.
    pub(super) state: Option<State>,
    /// Where it begins.
    pub(super) cursor: Option<u64>,
    /// Most messages.
    pub(super) limit: usize,
    /// True when payloads and histories are shown.
    pub(super) payload: bool,
}

/// Reads a page of the queue that the call names.
///
/// # Errors
/// `queue_not_found`; `overloaded` when there is no memory for the answer, or what is stored cannot be read
/// now.
pub(super) async fn page(permit: &Permit<'_>, wanted: Wanted) -> Result<Messages, CallError> {
    let receipts = shows_receipts(permit, permit.name());
    let found = match wanted.payload {
        true => {
            let bytes_max = room_for(permit, wanted.limit)?;
            fill(permit, wanted, bytes_max).await?
        }
        false => {
            permit.room().reserve(wanted.limit * FIELDS_BYTES)?;
            look(permit, wanted).await?
        }
    };
    let messages = found.items.into_iter().map(|stored| Message::of(stored, receipts)).collect();
    Ok(Messages { messages, next: found.next.map(|next| next.to_string()) })
}

async fn look(permit: &Permit<'_>, wanted: Wanted) -> Result<Page<Stored>, CallError> {
    let Wanted { state, cursor, limit, payload } = wanted;
    let (namespace, queue) = (permit.namespace_id()?, permit.name());
    Ok(permit.node().messages(namespace, queue, state, cursor, limit, payload).await?)
}

/// Fills a page with messages and their contents, a slice at a time, until `bytes_max` bytes are loaded; the
/// first message may be larger.
async fn fill(permit: &Permit<'_>, wanted: Wanted, bytes_max: usize) -> Result<Page<Stored>, CallError> {
    let mut page = Page { items: Vec::new(), next: wanted.cursor };
    let mut bytes = 0;
    while page.items.len() < wanted.limit {
        // The sizes first: large payloads are not even loaded when the page has no room for them.
        let asked = SLICE.min(wanted.limit - page.items.len());
        let slice = Wanted { cursor: page.next, limit: asked, ..wanted };
        let mut found = look(permit, Wanted { payload: false, ..slice }).await?;
        let all = found.items.len();
        let fit = fitting(&found, bytes_max.saturating_sub(bytes));
        if fit == 0 && !page.items.is_empty() && all > 0 {
            break;
        }
        if all > 0 {
            let limit = if fit == all { asked } else { fit.max(1) };
            found = look(permit, Wanted { limit, ..slice }).await?;
        }
        bytes += found.items.iter().map(bytes_of).sum::<usize>();
        page.items.append(&mut found.items);
        page.next = found.next;
        if page.next.is_none() || fit < all || all < asked {
            break;
        }
    }
    Ok(page)
}

/// Number of messages of a page whose payloads have at most so many bytes together.
fn fitting(page: &Page<Stored>, bytes_max: usize) -> usize {
    let mut bytes = 0;
    let fit = page.items.iter().take_while(|stored| {
        bytes += stored.view.blob.len as usize;
        bytes <= bytes_max
    });
    fit.count()
}

/// Bytes of a message in an answer: its payload, its fields and its history.
fn bytes_of(stored: &Stored) -> usize {
    let errors: usize = stored.errors.iter().flatten().map(|error| error.len()).sum();
    FIELDS_BYTES + stored.view.blob.len as usize + errors + ATTEMPT_BYTES * stored.view.history.len()
}

/// True if the caller may see receipts of a queue: without the right to settle there is no use for the
/// secret.
pub(super) fn shows_receipts(permit: &Permit<'_>, queue: &str) -> bool {
    permit.may_queue(Right::Receive, queue)
}

/// Sets memory aside for an answer with up to so many messages; tells how many bytes it may have.
///
/// # Errors
/// `overloaded`.
pub(crate) fn room_for(permit: &Permit<'_>, messages: usize) -> Result<usize, CallError> {
    let limits = permit.node().limits();
    let each = limits.payload_bytes as usize + limits.headers_bytes as usize + FIELDS_BYTES;
    Ok(permit.room().reserve_up_to(messages.saturating_mul(each).min(PAGE_BYTES_MAX))?)
}
