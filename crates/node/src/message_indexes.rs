//! Caller's side of the indexes of messages: the terms of messages are read and told, a few at a time.

use std::time::Duration;

use bytes::Bytes;
use sluice_engine::blob::MessageBlob;
use sluice_engine::command::{Command, FilledMessage, SearchFill};
use sluice_engine::search::{SearchKind, SearchMessage, SearchTerm, SearchWork};
use sluice_engine::{Error, error_fingerprint};
use sluice_journal::BlobRead;
use tokio::time::sleep;

use crate::blobs::{self, ReadFailure};
use crate::handle::Node;
use crate::log_limiter::LogLimiter;
use crate::shard::request::ShardView;
use crate::shard::store;

/// Pause before shards are looked at again in which nothing was to be done, or could be.
const PAUSE: Duration = Duration::from_millis(500);
/// Most messages whose terms are told together.
const MESSAGES: usize = 500;
/// Most bytes that are read for them; the first message may have more.
const BYTES_MAX: u64 = 4 << 20;

/// Work of an index, with what its terms are read from.
struct Found {
    work: SearchWork,
    reads: Vec<BlobRead>,
}

impl Node {
    /// Tells the indexes of messages of the shards that this node leads the terms of messages that they do
    /// not know, for ever.
    pub async fn keep_message_indexes(&self) {
        let limiter = LogLimiter::new();
        let mut places = vec![0; self.shards() as usize];
        loop {
            let mut has_more = false;
            for (shard, place) in (0..).zip(&mut places) {
                let done = self.index_messages(shard, place).await;
                has_more |= *done.as_ref().unwrap_or(&false);
                if let Err(error @ Error::LimitExceeded { .. }) = done
                    && let Some(unsaid) = limiter.due()
                {
                    tracing::warn!(shard, unsaid, %error, "cannot index messages");
                }
            }
            if !has_more {
                sleep(PAUSE).await;
            }
        }
    }

    /// Tells the terms of some messages, in the first index from number `place` on that does not know them;
    /// the next call begins behind it. False: there are none.
    ///
    /// # Errors
    /// Those of a node that does not lead; `limit_exceeded`: there is no room for so many terms.
    pub async fn index_messages(&self, shard: u32, place: &mut u32) -> Result<bool, Error> {
        let from = *place;
        // As far as this node knows: one that does not lead asks no other.
        let look = move |at: &mut ShardView<'_>| at.engine.search_work(from, 1);
        let (work, next) = self.stale().look(shard, look).await?;
        *place = next.unwrap_or(0);
        if work.is_none() {
            return Ok(next.is_some());
        }
        let Some(Found { work, reads }) = self.look(shard, move |at| found(at, from)).await? else {
            return Ok(next.is_some());
        };
        let read = blobs::load(reads).await;
        if read.contains(&Err(ReadFailure::Later)) {
            return Err(blobs::overloaded());
        }
        let messages = filled(&work, read);
        let SearchWork { namespace, queue, began, from, until, .. } = work;
        let fill = SearchFill { namespace, queue, began, from, until, messages: &messages };
        self.propose(namespace, &Command::SearchFill(fill)).await?.result?;
        Ok(true)
    }
}

/// The next messages of an index from number `from` on, as many as are read together.
fn found(at: &mut ShardView<'_>, from: u32) -> Option<Found> {
    let mut work = at.engine.search_work(from, MESSAGES).0?;
    let (mut count, mut bytes) = (0, 0);
    let fits = |message: &&SearchMessage| {
        count += 1;
        bytes += message.tags.iter().chain(&message.error).map(|blob| u64::from(blob.len)).sum::<u64>();
        count == 1 || bytes <= BYTES_MAX
    };
    let fitting = work.messages.iter().take_while(fits).count();
    if fitting < work.messages.len() {
        work.messages.truncate(fitting);
        let last = work.messages.last().map_or(work.from, |message| message.id.sequence);
        work.until = last.max(work.from);
    }
    let places = work.messages.iter().flat_map(|message| message.tags.into_iter().chain(message.error));
    let reads = places.map(|blob| store::read(at.journal, blob)).collect();
    Some(Found { work, reads })
}

/// The messages with their terms, of which these bytes were read. Where they cannot be read, the message has
/// a term that every search finds.
fn filled(work: &SearchWork, read: Vec<Result<Bytes, ReadFailure>>) -> Vec<FilledMessage> {
    let mut read = read.into_iter();
    let mut all = Vec::with_capacity(work.messages.len());
    for message in &work.messages {
        let mut terms = Vec::new();
        if message.tags.is_some() {
            let bytes = read.next().and_then(Result::ok);
            match bytes.as_deref().map(MessageBlob::parse) {
                Some(Some(blob)) => terms.extend(blob.tags().map(SearchTerm::of_tag)),
                _ => terms.push(SearchTerm::any(SearchKind::Tags)),
            }
        }
        if message.error.is_some() {
            let error = read.next().and_then(Result::ok);
            let term = error.map(|error| SearchTerm::of_error(error_fingerprint(&error)));
            terms.push(term.unwrap_or(SearchTerm::any(SearchKind::Errors)));
        }
        if message.is_dirty || !terms.is_empty() {
            all.push(FilledMessage { sequence: message.id.sequence, source: message.source, terms });
        }
    }
    all
}
