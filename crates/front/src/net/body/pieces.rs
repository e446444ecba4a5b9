//! Bodies that are read piece by piece, however long they are.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::HeaderMap;
use sluice_calls::CallError;
use tokio::time::Instant;

use super::{Inbound, encoded, is_plain, next_data};
use crate::net::memory::bodies::{BodyBudget, no_room};

/// A body on its way, of which one piece is in memory.
#[derive(Debug)]
pub(crate) struct Pieces<'b> {
    body: &'b mut Inbound,
    /// Bytes that came with those of the piece before.
    begun: BytesMut,
    budget: &'b BodyBudget,
    piece_bytes: usize,
    /// Longest time that a piece may take, and what its bytes allow beyond that.
    timeout: Duration,
}

impl<'b> Pieces<'b> {
    /// The body of a request in pieces of so many bytes, the last one perhaps of fewer. Takes the memory of a
    /// piece from the budget.
    ///
    /// # Errors
    /// `overloaded`; `unsupported_content_encoding`.
    pub(crate) fn of(
        body: &'b mut Inbound,
        headers: &HeaderMap,
        piece_bytes: usize,
        timeout: Duration,
        budget: &'b BodyBudget,
    ) -> Result<Pieces<'b>, CallError> {
        if !is_plain(headers) {
            return Err(encoded(headers));
        }
        let pieces = Pieces { body, begun: BytesMut::new(), budget, piece_bytes, timeout };
        if budget.take(piece_bytes) { Ok(pieces) } else { Err(no_room().into()) }
    }

    /// The next piece; `None`: the body is over.
    ///
    /// # Errors
    /// `incomplete_body`, `request_timeout`.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        let started = Instant::now();
        while self.begun.len() < self.piece_bytes {
            let so_far = (started, self.begun.len());
            let Some(data) = next_data(self.body, so_far, self.timeout).await? else { break };
            self.begun.extend_from_slice(&data);
        }
        let length = self.begun.len().min(self.piece_bytes);
        Ok((length > 0).then(|| self.begun.split_to(length).freeze()))
    }
}

impl Drop for Pieces<'_> {
    fn drop(&mut self) {
        self.budget.give_back(self.piece_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pieces_have_their_length_and_the_last_one_the_rest() {
        let budget = BodyBudget::new(4);
        let mut body = Inbound::Read(Bytes::from("abcdefghij"));
        let time = Duration::from_secs(1);
        let mut pieces = Pieces::of(&mut body, &HeaderMap::new(), 4, time, &budget).unwrap();
        assert_eq!(budget.used(), 4);
        let mut read = Vec::new();
        while let Some(piece) = pieces.next().await.unwrap() {
            read.push(piece);
        }
        assert_eq!(read, [&b"abcd"[..], b"efgh", b"ij"]);
        let other = Pieces::of(&mut Inbound::Read(Bytes::new()), &HeaderMap::new(), 4, time, &budget).err();
        assert_eq!(other.map(|error| error.code()), Some("overloaded"));
        drop(pieces);
        assert_eq!(budget.used(), 0);
    }
}
