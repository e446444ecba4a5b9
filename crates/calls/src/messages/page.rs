//! A page of the messages of a queue, as large as its memory allows.

use sluice_engine::query::{Page, State};
use sluice_node::Stored;

use super::{Message, Messages};
use crate::access::Right;
use crate::error::CallError;
use crate::permit::Permit;
use crate::room::written;

/// Largest page of messages, in bytes as it is written.
const PAGE_BYTES_MAX: usize = 16 << 20;
/// Bytes of a message in an answer, besides what its sender gave.
pub(super) const FIELDS_BYTES: usize = 1 << 10;
/// Messages that are loaded at once with their histories, whose texts no size tells beforehand.
const SLICE: usize = 64;
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
    if wanted.payload {
        let bytes_max = room_for(permit, wanted.limit)?;
        return fill(permit, wanted, bytes_max).await;
    }
    permit.room().reserve(wanted.limit * FIELDS_BYTES)?;
    let found = look(permit, wanted).await?;
    let receipts = shows_receipts(permit, permit.name());
    let messages = found.items.into_iter().map(|stored| Message::of(stored, receipts)).collect();
    Ok(Messages { messages, next: found.next.map(|next| next.to_string()) })
}

async fn look(permit: &Permit<'_>, wanted: Wanted) -> Result<Page<Stored>, CallError> {
    let Wanted { state, cursor, limit, payload } = wanted;
    let (namespace, queue) = (permit.namespace_id()?, permit.name());
    Ok(permit.node().messages(namespace, queue, state, cursor, limit, payload).await?)
}

/// Fills a page with messages and their contents, a slice at a time, until it is full.
async fn fill(permit: &Permit<'_>, wanted: Wanted, bytes_max: usize) -> Result<Messages, CallError> {
    let receipts = shows_receipts(permit, permit.name());
    let (mut shown, mut next) = (Shown::new(bytes_max), wanted.cursor);
    'full: while shown.messages.len() < wanted.limit {
        // The sizes first: large payloads are not even loaded when the page has no room for them.
        let asked = SLICE.min(wanted.limit - shown.messages.len());
        let slice = Wanted { cursor: next, limit: asked, ..wanted };
        let mut found = look(permit, Wanted { payload: false, ..slice }).await?;
        let all = found.items.len();
        let fit = fitting(&found, shown.bytes_left());
        if fit == 0 && !shown.messages.is_empty() && all > 0 {
            break;
        }
        if all > 0 {
            let limit = if fit == all { asked } else { fit.max(1) };
            found = look(permit, Wanted { limit, ..slice }).await?;
        }
        for stored in found.items {
            let sequence = stored.view.id.sequence;
            if !shown.add(Message::of(stored, receipts)) {
                break 'full;
            }
            next = Some(sequence);
        }
        next = found.next;
        if next.is_none() || fit < all || all < asked {
            break;
        }
    }
    Ok(Messages { messages: shown.messages, next: next.map(|next| next.to_string()) })
}

/// The messages of an answer, which has room for a number of bytes.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) messages: Vec<Message>,
    /// Bytes of them as JSON: those of a payload full of control characters are six times its own.
    bytes: usize,
    bytes_max: usize,
}

impl Shown {
    pub(super) fn new(bytes_max: usize) -> Shown {
        Shown { messages: Vec::new(), bytes: 0, bytes_max }
    }

    /// Bytes for which there is room.
    pub(super) fn bytes_left(&self) -> usize {
        self.bytes_max.saturating_sub(self.bytes)
    }

    /// Adds a message if there is room for it; the first one may be larger. Tells whether it was added.
    pub(super) fn add(&mut self, message: Message) -> bool {
        let bytes = written(&message);
        let fits = self.messages.is_empty() || self.bytes + bytes <= self.bytes_max;
        if fits {
            self.bytes += bytes;
            self.messages.push(message);
        }
        fits
    }
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
