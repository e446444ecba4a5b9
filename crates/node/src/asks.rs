//! Questions of one node to another about shards and the namespaces on them. The leader of the shard answers.
//!
//! A question has 14 bytes: its kind, the shard (u32), the number of a namespace, node, version or hold
//! (u64), and 1 for a deletion with force; an answer has nine: its kind and a number (u64); all
//! little-endian. A node that does not know a question gives an empty answer.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sluice_engine::Error;
use sluice_engine::command::Command;
use sluice_engine::id::NamespaceId;
use sluice_replica::NodeId;
use tokio::time::sleep;

use crate::cluster::Link;
use crate::handle::Node;
use crate::shard::LEADER_WAIT_MAX;

/// Pause before it is.
const ASK_PAUSE: Duration = Duration::from_millis(20);
/// Pause before this node looks again whether it has applied enough.
const APPLY_PAUSE: Duration = Duration::from_millis(2);

const INDEX: u8 = 1;
const FOLLOW: u8 = 2;
const DELETE: u8 = 3;
const TRANSFER: u8 = 4;
const RAISE: u8 = 5;
const HOLD: u8 = 7;
const RELEASE: u8 = 8;

const DONE: u8 = 0;
const NOT_NOW: u8 = 1;
const NOT_EMPTY: u8 = 2;
const IN_DOUBT: u8 = 3;

/// Question to the leader of a shard. To ask again does no harm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    /// Asks for the index up to which the shard has to be applied so that it shows all that was acknowledged.
    Index { shard: u32 },
    /// Orders to bring the namespaces and limits of the shard into line with shard 0.
    Follow { shard: u32 },
    /// Orders to delete a namespace on the shard; without `force` only if it is empty.
    Delete { shard: u32, namespace: NamespaceId, force: bool },
    /// Orders to hand the leadership of the shard to a node.
    Transfer { shard: u32, to: NodeId },
    /// Orders to put a behaviour version into force on the shard.
    Raise { shard: u32, behaviour: u16 },
    /// Orders to hold the decisions of the shard.
    Hold { shard: u32, ticket: u64 },
    /// Orders to end the hold of the shard, and asks if it has lasted.
    Release { shard: u32, ticket: u64 },
}

/// Answer of the leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Done: for [`Question::Index`] the index, for [`Question::Release`] 1 if the hold has lasted, else 0.
    Done(u64),
    /// Nothing certain is known: the node does not lead, or is overloaded.
    NotNow,
    /// The namespace holds these numbers of queues and documents.
    NotEmpty { queues: u32, documents: u32 },
    /// A prepared part of a transaction is in the namespace.
    InDoubt,
}

impl Question {
    fn shard(self) -> u32 {
        match self {
            Question::Index { shard }
            | Question::Follow { shard }
            | Question::Delete { shard, .. }
            | Question::Transfer { shard, .. }
            | Question::Raise { shard, .. }
            | Question::Hold { shard, .. }
            | Question::Release { shard, .. } => shard,
        }
    }

    fn encode(self) -> Bytes {
        let (kind, number, force) = match self {
            Question::Index { .. } => (INDEX, 0, false),
            Question::Follow { .. } => (FOLLOW, 0, false),
            Question::Delete { namespace, force, .. } => (DELETE, u64::from(namespace.0), force),
            Question::Transfer { to, .. } => (TRANSFER, to.get(), false),
            Question::Raise { behaviour, .. } => (RAISE, behaviour.into(), false),
            Question::Hold { ticket, .. } => (HOLD, ticket, false),
            Question::Release { ticket, .. } => (RELEASE, ticket, false),
        };
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&self.shard().to_le_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.push(force.into());
        bytes.into()
    }

    fn decode(bytes: &[u8]) -> Option<Question> {
        let (kind, rest) = bytes.split_first()?;
        let (shard, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (shard, number) = (u32::from_le_bytes(*shard), u64::from_le_bytes(*number));
        match (*kind, rest) {
            (INDEX, [0]) => Some(Question::Index { shard }),
            (FOLLOW, [0]) => Some(Question::Follow { shard }),
            (DELETE, [force @ (0 | 1)]) => {
                let namespace = NamespaceId(u32::try_from(number).ok()?);
                Some(Question::Delete { shard, namespace, force: *force == 1 })
            }
            (TRANSFER, [0]) => Some(Question::Transfer { shard, to: NodeId::new(number)? }),
            (RAISE, [0]) => Some(Question::Raise { shard, behaviour: u16::try_from(number).ok()? }),
            (HOLD, [0]) => Some(Question::Hold { shard, ticket: number }),
            (RELEASE, [0]) => Some(Question::Release { shard, ticket: number }),
            _ => None,
        }
    }
}

impl Answer {
    fn encode(self) -> Bytes {
        let (kind, number) = match self {
            Answer::Done(index) => (DONE, index),
            Answer::NotNow => (NOT_NOW, 0),
            Answer::InDoubt => (IN_DOUBT, 0),
            Answer::NotEmpty { queues, documents } => {
                (NOT_EMPTY, u64::from(documents) << 32 | u64::from(queues))
            }
        };
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.into()
    }

    fn decode(bytes: &[u8]) -> Option<Answer> {
        let (kind, number) = bytes.split_first()?;
        let number = u64::from_le_bytes(number.try_into().ok()?);
        match *kind {
            DONE => Some(Answer::Done(number)),
            NOT_NOW => Some(Answer::NotNow),
            IN_DOUBT => Some(Answer::InDoubt),
            NOT_EMPTY => Some(Answer::NotEmpty { queues: number as u32, documents: (number >> 32) as u32 }),
            _ => None,
        }
    }
}

impl Node {
    /// Asks another node; it answers by [`Node::answer`] or, where the content is for its owner, otherwise.
    /// `None`: there is no such node, or no answer came in time.
    pub async fn ask(&self, node: u64, content: Bytes, within: Duration) -> Option<Bytes> {
        let cluster = self.inner.cluster.as_ref()?;
        cluster.transport.ask(NodeId::new(node)?, content, within).await
    }

    /// State of the connection with another node; `None`: the number is this node's, or the node is alone.
    pub fn link(&self, node: u64) -> Option<Link> {
        let cluster = self.inner.cluster.as_ref()?;
        let node = NodeId::new(node).filter(|node| *node != cluster.id)?;
        Some(cluster.transport.link(node))
    }

    /// States of the connections with all other nodes, by their numbers; empty where the node is alone.
    pub fn links(&self) -> Vec<(u64, Link)> {
        let nodes = self.inner.cluster.as_ref().map(|cluster| cluster.transport.nodes());
        let nodes = nodes.unwrap_or_default().into_iter().map(NodeId::get);
        nodes.filter_map(|node| Some((node, self.link(node)?))).collect()
    }

    /// Answer to a question that another node has asked by itself; `None`: the content is none.
    pub async fn answer(&self, content: &[u8]) -> Option<Bytes> {
        let Some(question) = Question::decode(content) else {
            return self.answer_part(content).await;
        };
        if question.shard() as usize >= self.leaders().len() {
            return None;
        }
        Some(self.answer_here(question).await.encode())
    }

    /// Asks the leader of a shard, which may be this node, until it answers.
    ///
    /// # Errors
    /// `no_leader` when it has not within 5 s; what was ordered may be done all the same.
    pub(crate) async fn ask_leader(&self, question: Question) -> Result<Answer, Error> {
        let until = Instant::now() + LEADER_WAIT_MAX;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let answer = match self.leaders()[question.shard() as usize].elsewhere() {
                None => Some(self.answer_here(question).await),
                Some(node) => {
                    let answer = self.ask(node, question.encode(), left).await;
                    answer.and_then(|answer| Answer::decode(&answer))
                }
            };
            match answer {
                Some(answer) if answer != Answer::NotNow => return Ok(answer),
                _ if left.is_zero() => return Err(Error::NoLeader {}),
                _ => sleep(ASK_PAUSE).await,
            }
        }
    }

    /// Waits until this node's copy of a shard shows all that was acknowledged before the call, whoever
    /// leads. Reads of [`Node::stale`] are not older then.
    ///
    /// # Errors
    /// `no_leader` after 5 s; `shutting_down`, `overloaded`.
    pub async fn catch_up(&self, shard: u32) -> Result<(), Error> {
        let Answer::Done(index) = self.ask_leader(Question::Index { shard }).await? else {
            return Err(Error::NoLeader {});
        };
        let until = Instant::now() + LEADER_WAIT_MAX;
        while self.stale().look(shard, |at| at.engine.applied_index()).await? < index {
            if Instant::now() >= until {
                return Err(Error::NoLeader {});
            }
            sleep(APPLY_PAUSE).await;
        }
        Ok(())
    }

    /// The answer of this node. Boxed, since it may ask the leader of shard 0 in turn.
    fn answer_here(&self, question: Question) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        Box::pin(async move {
            match question {
                Question::Index { shard } => {
                    let index = self.look(shard, |at| at.engine.applied_index()).await;
                    index.map_or(Answer::NotNow, Answer::Done)
                }
                Question::Follow { shard } => {
                    self.follow_placement(shard).await.map_or(Answer::NotNow, |()| Answer::Done(0))
                }
                Question::Delete { shard, namespace, force } => {
                    match self.pressing(shard, &Command::NamespaceDelete { namespace, force }).await {
                        Ok(_) | Err(Error::NamespaceNotFound { .. }) => Answer::Done(0),
                        Err(Error::NamespaceNotEmpty { queues, documents, .. }) => {
                            Answer::NotEmpty { queues: queues as u32, documents: documents as u32 }
                        }
                        Err(Error::InDoubt { .. }) => Answer::InDoubt,
                        Err(_) => Answer::NotNow,
                    }
                }
                Question::Transfer { shard, to } => done_or_not(self.hand_to(shard, to).await),
                Question::Raise { shard, behaviour } => done_or_not(self.raise_here(shard, behaviour).await),
                Question::Hold { shard, ticket } => done_or_not(self.hold_here(shard, ticket).await),
                Question::Release { shard, ticket } => {
                    let released = self.release_here(shard, ticket).await;
                    released.map_or(Answer::NotNow, |has_lasted| Answer::Done(has_lasted.into()))
                }
            }
        })
    }
}

fn done_or_not(is_done: bool) -> Answer {
    if is_done { Answer::Done(0) } else { Answer::NotNow }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_come_back_as_they_were_and_nothing_else_does() {
        let (shard, namespace) = (7, NamespaceId(300));
        let delete = |force| Question::Delete { shard, namespace, force };
        let transfer = Question::Transfer { shard, to: NodeId::new(u64::MAX).unwrap() };
        let raise = Question::Raise { shard, behaviour: u16::MAX };
        let (hold, release) =
            (Question::Hold { shard, ticket: u64::MAX }, Question::Release { shard, ticket: 1 });
        let others = [Question::Index { shard }, Question::Follow { shard }, transfer, raise, hold, release];
        for question in others.into_iter().chain([delete(false), delete(true)]) {
            let bytes = question.encode();
            assert_eq!(Question::decode(&bytes), Some(question));
            assert_eq!(Question::decode(&bytes[1..]), None);
            assert_eq!(Question::decode(&[&bytes[..], b"x"].concat()), None);
        }
        let not_empty = Answer::NotEmpty { queues: 3, documents: u32::MAX };
        for answer in [Answer::Done(u64::MAX), Answer::NotNow, not_empty, Answer::InDoubt] {
            assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }
        assert_eq!(Answer::decode(&[]), None);
    }
}
