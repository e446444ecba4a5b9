//! Readers of attached consumers: they read at random times, and some are lost.

use std::sync::Arc;

use sluice_engine::Error;
use sluice_engine::command::Command;
use sluice_engine::id::{ConsumerId, NamespaceId, Receipt};
use sluice_engine::outcome::Reply;
use sluice_journal::Batch;
use sluice_node::shard::channel::{Channel, Handed, News};
use sluice_node::shard::request::Attaching;
use sluice_node::shard::request::Request;
use sluice_record::write_record;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use super::World;
use super::records::{bytes_of, give_back};
use crate::model::Checked;
use crate::workload::{ConsumerOp, Op};

/// Upper limits of messages and bytes that a reader takes at once.
const TAKE: (usize, u64) = (3, 1 << 20);
/// Upper limit of messages that a lost reader had taken last and not passed on.
const UNSENT_MAX: u64 = 2;

/// A client that is attached, or about to be.
pub(super) struct Reader {
    namespace: NamespaceId,
    grace_ms: u64,
    /// Channel of its messages.
    channel: Arc<Channel>,
    /// Tag of the attach request, and its answer; `None`: answered.
    asked: Option<(u64, oneshot::Receiver<Result<ConsumerId, Error>>)>,
    /// Receipts of the messages taken, in the order of their tokens.
    taken: Vec<Receipt>,
}

impl World {
    /// Attaches a client, if the server takes the request.
    pub(super) fn attach(&mut self, tag: u64, consumer: &ConsumerOp) {
        let channel = Arc::new(Channel::default());
        let (reply, receiver) = oneshot::channel();
        let attaching = consumer.attach(|attach| {
            let mut record = Batch::new();
            write_record(&mut record, &Command::Attach(*attach));
            let attaching = Attaching::new(attach, Arc::clone(&channel), reply);
            let (namespace, grace_ms) = (attach.namespace, attach.grace_ms);
            (namespace, grace_ms, bytes_of(&record), Request::Attach(Box::new(attaching)))
        });
        let lane = &mut self.lanes[self.at];
        let (Some((namespace, grace_ms, record, request)), Some(server)) = (attaching, &lane.server) else {
            return;
        };
        if server.mailbox.push(request).is_err() {
            return;
        }
        let op = Op::Consumer(consumer.clone());
        self.trace(|| format!("  #{tag} asks {op:?}"));
        let lane = &mut self.lanes[self.at];
        lane.history.ask(tag, record, op);
        let asked = Some((tag, receiver));
        lane.clients.readers.push(Reader { namespace, grace_ms, channel, asked, taken: Vec::new() });
    }

    /// Lets some readers take what has arrived; all, while `reads_all`.
    pub(super) fn readers_look(&mut self) -> Checked {
        let mut readers = std::mem::take(&mut self.lanes[self.at].clients.readers);
        let all = self.lanes[self.at].clients.reads_all;
        let mut left = Vec::new();
        for mut reader in readers.drain(..) {
            self.hears_answer(&mut reader)?;
            if (!all && self.rng.chance(1, 2)) || self.reads(&mut reader, all)? {
                left.push(reader);
            }
        }
        self.lanes[self.at].clients.readers = left;
        Ok(())
    }

    /// Checks the answer to an attachment against the log.
    fn hears_answer(&mut self, reader: &mut Reader) -> Checked {
        let Some((tag, receiver)) = &mut reader.asked else { return Ok(()) };
        let (tag, answer) = (*tag, receiver.try_recv());
        let answer = match answer {
            Err(TryRecvError::Empty) => return Ok(()),
            Err(TryRecvError::Closed) => Err(Error::OutcomeUnknown {}),
            Ok(answer) => answer.map(|consumer| Reply::Consumer { consumer }),
        };
        reader.asked = None;
        self.trace(|| format!("  #{tag} gets {answer:?}"));
        let lane = &mut self.lanes[self.at];
        let due = lane.history.take_due(tag, |due| due.result() == answer);
        let due = due.map(|due| (due.index, due.result()));
        match (due, answer) {
            (Some((index, due)), answer) if due == answer => {
                lane.clients.acknowledged = lane.clients.acknowledged.max(index + 1);
                Ok(())
            }
            (None, Err(_)) => Ok(()),
            (due, answer) => Err(format!("attach #{tag} was answered {answer:?}, by the log it is {due:?}")),
        }
    }

    /// Takes what has arrived, once or until nothing is left. Returns false at the end of the channel.
    fn reads(&mut self, reader: &mut Reader, all: bool) -> Result<bool, String> {
        while let Some(news) = reader.channel.take(TAKE.0, TAKE.1) {
            match news {
                News::Handed(handed) => self.handed(reader, handed)?,
                News::Cancelled(_) => {}
                News::Detached(_) => return Ok(false),
            }
            if !all {
                break;
            }
        }
        Ok(true)
    }

    fn handed(&mut self, reader: &mut Reader, handed: Vec<Handed>) -> Checked {
        for handed in handed {
            let receipt = handed.delivery().receipt;
            if reader.taken.last().is_some_and(|last| last.token >= receipt.token) {
                return Err(format!("{receipt} comes behind {:?}", reader.taken.last()));
            }
            reader.taken.push(receipt);
            match handed {
                Handed::Given(given) => self.given(0, vec![given])?,
                Handed::Bare(delivery) => {
                    return Err(format!("few bytes wait, and {delivery:?} comes without"));
                }
            }
        }
        Ok(())
    }

    /// Loses a reader: the node reports what it had passed on, and releases the rest.
    pub(super) fn reader_leaves(&mut self) {
        let lane = &mut self.lanes[self.at];
        if lane.clients.readers.is_empty() || !self.rng.chance(1, 10) {
            return;
        }
        let Some(server) = &lane.server else { return };
        let at = self.rng.index(lane.clients.readers.len());
        let Reader { namespace, grace_ms, channel, mut taken, .. } = lane.clients.readers.swap_remove(at);
        let unsent = self.rng.below(UNSENT_MAX + 1) as usize;
        let unsent = taken.split_off(taken.len().saturating_sub(unsent));
        if let Some(consumer) = channel.leave() {
            let reached = taken.last().map_or(0, |receipt| receipt.token);
            let detach = Command::Detach { namespace, consumer, grace_ms, reached };
            server.mailbox.push_surely(Request::surely(&detach));
        }
        give_back(&server.mailbox, unsent.into_iter());
    }
}
