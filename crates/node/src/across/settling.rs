//! Settlements at the leader of a shard, for whoever got the messages while another node led it.
//!
//! The answer of another node is that of [`Told`]: behind [`DONE`] each item has the length of its error
//! (u32, little-endian; 0: it was settled) and the error; behind [`REFUSED`] is the error of all.

use std::time::{Duration, Instant};

use bytes::Bytes;
use sluice_engine::Error;
use sluice_engine::command::{Command, SettleItem};
use sluice_engine::id::NamespaceId;
use sluice_engine::limits::SLICE_ITEMS;

use super::part::{DONE, Part, REFUSED, Told};
use crate::handle::Node;
use crate::shard::request::Answer;

/// Result of each item, in order, or why all were refused.
pub(super) type Settled = Result<Vec<Result<(), Error>>, Error>;

impl Node {
    /// Settles deliveries as [`Node::settle`] does, at the leader of their shard, whichever node that is by
    /// now; waits so long for one. One result per item, in order; `no_leader`: there was none in time.
    pub async fn settle_at_leader(
        &self,
        namespace: NamespaceId,
        items: &[SettleItem<'_>],
        within: Duration,
    ) -> Vec<Result<(), Error>> {
        let until = Instant::now() + within;
        let mut results = Vec::with_capacity(items.len());
        for items in items.chunks(SLICE_ITEMS) {
            let part = self.inner.placement.shard_of(namespace);
            let part = part.and_then(|shard| self.part(shard, &Command::Settle { namespace, items }));
            let left = until.saturating_duration_since(Instant::now());
            let settled: Settled = match part {
                Ok(part) => self.at_leader(&part, left).await,
                Err(error) => Err(error),
            };
            match settled {
                Ok(of_slice) => results.extend(of_slice),
                Err(error) => results.extend(std::iter::repeat_n(Err(error), items.len())),
            }
        }
        results
    }
}

impl Told for Settled {
    fn of(part: &Part, answer: Answer) -> Settled {
        answer.into_item_results(part.settles().unwrap_or_default())
    }

    fn failed(error: Error) -> Settled {
        Err(error)
    }

    fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            Ok(results) => {
                out.push(DONE);
                for result in results {
                    let mut told = Vec::new();
                    if let Err(error) = result {
                        error.encode(&mut told);
                    }
                    out.extend_from_slice(&(told.len() as u32).to_le_bytes());
                    out.extend_from_slice(&told);
                }
            }
            Err(error) => {
                out.push(REFUSED);
                error.encode(&mut out);
            }
        }
        out.into()
    }

    fn decode(bytes: &[u8]) -> Option<Settled> {
        let (first, mut rest) = bytes.split_first()?;
        match *first {
            DONE => {
                let mut results = Vec::new();
                while !rest.is_empty() {
                    let (len, behind) = rest.split_first_chunk()?;
                    let (told, behind) = behind.split_at_checked(u32::from_le_bytes(*len) as usize)?;
                    results.push(if told.is_empty() { Ok(()) } else { Err(Error::decode(told)?) });
                    rest = behind;
                }
                Some(Ok(results))
            }
            REFUSED => Some(Err(Error::decode(rest)?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_back_as_they_were_and_nothing_else_does() {
        let lost = || Err(Error::LeaseLost { receipt: "r".to_owned() });
        for settled in
            [Ok(Vec::new()), Ok(vec![Ok(()), lost(), Ok(())]), Ok(vec![lost()]), Err(Error::ShuttingDown {})]
        {
            let bytes = settled.encode();
            assert!(!bytes.is_empty());
            assert_eq!(Settled::decode(&bytes), Some(settled));
        }
        let whole = Ok(vec![lost()]).encode();
        for cut in [&b""[..], &[9], &whole[..whole.len() - 1], &whole[..3]] {
            assert_eq!(Settled::decode(cut), None, "{cut:?}");
        }
    }
}
