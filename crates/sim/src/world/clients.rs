//! Clients: their requests, the answers they get, and the checks of these answers.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use sluice_engine::command::Command;
use sluice_engine::id::{MessageId, NamespaceId, Receipt};
use sluice_engine::outcome::{Delivery, Reply};
use sluice_engine::transactions::OperationDone;
use sluice_engine::{BlobRef, Error};
use sluice_journal::{BlobError, BlobLocation, BlobRead, read_together, take_ahead};
use sluice_node::mailbox::Mailbox;
use sluice_node::shard::request::{
    Answer, Completion, Given, GivenDetails, Proposal, Pull, PullReply, ReplyTo, Request,
};

use super::World;
use super::bulks::Bulks;
use super::consumers::Reader;
use super::records::{bytes_of, give_back};
use super::watchers::Watchers;
use crate::across::requests::ACCOUNTS;
use crate::model::Checked;
use crate::workload::{AttachmentOp, ConsumerOp, DocumentOp, LockOp, Op, Wanted};

/// Capacity for answers that clients have not taken; more than one step can give.
const COMPLETIONS: usize = 4_096;
/// Upper limit of payloads read at once.
const READ_MAX: usize = 100;

type GivenReceiver = tokio::sync::oneshot::Receiver<Result<Vec<Given>, Error>>;

/// A payload to be read from disk.
#[derive(Debug)]
pub(super) struct PendingRead {
    delivery: Delivery,
    location: BlobLocation,
}

/// The clients.
pub(super) struct Clients {
    pub(super) completions: Mailbox<Completion>,
    next_tag: u64,
    /// Requests in flight, by tag.
    asked: BTreeMap<u64, Op>,
    /// Unanswered pulls, by tag.
    pub(super) pulls: BTreeMap<u64, Wanted>,
    pub(super) reads: Vec<PendingRead>,
    /// Pulls whose clients will go before they look at the answer, by ticket.
    leaving: Vec<(u64, GivenReceiver)>,
    /// Consumers that are attached, or about to be.
    pub(super) readers: Vec<Reader>,
    /// Clients that watch events.
    pub(super) watchers: Watchers,
    /// Bulks, running or about to.
    pub(super) bulks: Bulks,
    /// True when clients read all that has arrived at once.
    pub(super) reads_all: bool,
    /// All that clients were ever told, through all crashes: the payload of each id, and all tokens.
    ids: BTreeMap<MessageId, Vec<u8>>,
    /// Payloads sent to replace another with the same unique key.
    replacing: BTreeSet<Vec<u8>>,
    tokens: BTreeSet<u64>,
    /// Index after the last record that a client knows to be done.
    pub(super) acknowledged: u64,
}

impl Clients {
    pub(super) fn new() -> Clients {
        Clients {
            completions: Mailbox::new(COMPLETIONS),
            next_tag: 0,
            asked: BTreeMap::new(),
            pulls: BTreeMap::new(),
            reads: Vec::new(),
            leaving: Vec::new(),
            readers: Vec::new(),
            watchers: Watchers::default(),
            bulks: Bulks::default(),
            reads_all: false,
            ids: BTreeMap::new(),
            replacing: BTreeSet::new(),
            tokens: BTreeSet::new(),
            acknowledged: 0,
        }
    }

    fn tag(&mut self) -> u64 {
        self.next_tag += 1;
        self.next_tag
    }

    /// Forgets tokens: the shard began anew and gives them again, with other messages.
    pub(super) fn forget_tokens(&mut self) {
        self.tokens.clear();
        self.acknowledged = 0;
    }

    /// Drops everything in flight after the end of the server.
    pub(super) fn cut_off(&mut self) {
        self.asked.clear();
        self.pulls.clear();
        self.reads.clear();
        self.leaving.clear();
        self.readers.clear();
        self.watchers.cut_off();
        self.bulks = Bulks::default();
        while self.completions.pop().is_some() {}
    }
}

impl World {
    /// A client makes a random request.
    pub(super) fn client_asks(&mut self) -> Checked {
        let several = self.lanes.len() > 1;
        if several {
            self.tend_namespaces()?;
        }
        let lane = &mut self.lanes[self.at];
        let mut op = lane.generator.op(&lane.history.seen());
        op.look(lane.history.witness());
        if self.has_accounts(&op) {
            return Ok(());
        }
        if several && op.is_of_namespaces() {
            return self.change_namespace(op);
        }
        self.ask(op).map(|_| ())
    }

    /// Makes a request; returns its tag if the server took it.
    pub(super) fn ask(&mut self, op: Op) -> Result<Option<u64>, String> {
        let checked = op.with(|command| command.check(&self.config.limits));
        if let Err(error) = checked {
            return if op.is_wrong() { Ok(None) } else { Err(format!("{op:?} was refused: {error}")) };
        }
        if op.is_wrong() {
            return Err(format!("{op:?} passed the check"));
        }
        if let Op::Consumer(consumer @ ConsumerOp::Attach { .. }) = &op {
            let tag = self.lanes[self.at].clients.tag();
            self.attach(tag, consumer);
            return Ok(None);
        }
        Ok(self.propose(op))
    }

    /// Proposes the record of a request; returns its tag if the server took it.
    pub(super) fn propose(&mut self, op: Op) -> Option<u64> {
        let lane = &mut self.lanes[self.at];
        let server = lane.server.as_ref()?;
        let tag = lane.clients.tag();
        let reply = ReplyTo::Mail(lane.clients.completions.clone(), tag);
        let proposal = op.with(|command| Proposal::new(command, reply));
        let record = bytes_of(&proposal.record);
        server.mailbox.push(Request::Propose(proposal)).ok()?;
        self.trace(|| format!("  #{tag} asks {op:?}"));
        let lane = &mut self.lanes[self.at];
        lane.clients.replacing.extend(op.replacing().map(<[u8]>::to_vec));
        lane.clients.asked.insert(tag, op.clone());
        lane.history.ask(tag, record, op);
        Some(tag)
    }

    /// Makes a client pull; some clients go away before the answer.
    pub(super) fn client_pulls(&mut self) {
        self.client_leaves();
        self.reader_leaves();
        let lane = &mut self.lanes[self.at];
        let wanted = lane.generator.pull(&lane.history.seen());
        let gone = self.rng.chance(1, 12);
        self.pull(wanted, gone);
    }

    /// Makes a client that pulls go away: the node withdraws the pull, or releases what it has delivered.
    fn client_leaves(&mut self) {
        let lane = &mut self.lanes[self.at];
        let Some(server) = &lane.server else { return };
        if lane.clients.leaving.is_empty() {
            return;
        }
        let at = self.rng.index(lane.clients.leaving.len());
        let (ticket, mut receiver) = lane.clients.leaving.swap_remove(at);
        receiver.close();
        server.mailbox.push_surely(Request::Cancel { ticket });
        let Ok(Ok(given)) = receiver.try_recv() else { return };
        give_back(&server.mailbox, given.iter().map(|given| given.delivery.receipt));
    }

    pub(super) fn pull(&mut self, wanted: Wanted, gone: bool) {
        let tag = self.lanes[self.at].clients.tag();
        self.trace(|| format!("  #{tag} pulls {wanted:?}{}", if gone { " and goes away" } else { "" }));
        let reply = if gone {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            self.lanes[self.at].clients.leaving.push((tag, receiver));
            PullReply::Once(sender)
        } else {
            PullReply::Mail(self.lanes[self.at].clients.completions.clone(), tag)
        };
        let max_messages = wanted.max_messages.min(self.config.limits.receive_messages);
        let pull = Pull {
            ticket: tag,
            namespace: wanted.namespace,
            queues: wanted.queues.clone().into(),
            max_messages,
            max_bytes: wanted.max_bytes,
            lease_ms: wanted.lease_ms,
            wait_us: wanted.wait_us,
            consumer: Box::default(),
            room: None,
            reply,
        };
        let Some(server) = &self.lanes[self.at].server else { return };
        if server.mailbox.push(Request::Pull(Box::new(pull))).is_ok() && !gone {
            self.lanes[self.at].clients.pulls.insert(tag, wanted);
        }
    }

    /// Checks that no pull waits for a message that is ready.
    pub(super) fn nobody_waits_in_vain(&self) -> Checked {
        let Some(server) = &self.lanes[self.at].server else { return Ok(()) };
        if server.shard.in_flight() > 0 || !server.mailbox.is_empty() {
            return Ok(());
        }
        let engine = server.shard.engine();
        // Pulls that wait for messages which a tick releases are served after the tick. Only a lack of disk
        // space may delay the tick.
        if engine.next_deadline().is_some_and(|due_us| due_us <= engine.time_us()) {
            let waits_for_room = server.shard.idle_us().is_some_and(|us| us > 0);
            return if waits_for_room {
                Ok(())
            } else {
                Err("a tick is due, and was not proposed".to_owned())
            };
        }
        for (tag, wanted) in &self.lanes[self.at].clients.pulls {
            let ready = |name: &str| {
                engine.queue_id(wanted.namespace, name).is_some_and(|queue| engine.ready_count(queue) > 0)
            };
            if let Some((name, _)) = wanted.queues.iter().find(|(name, _)| ready(name)) {
                return Err(format!("pull #{tag} waits for {name:?}, which has ready messages: {wanted:?}"));
            }
        }
        Ok(())
    }

    /// Clients take and check their answers.
    pub(super) fn clients_look(&mut self) -> Checked {
        while let Some(completion) = self.lanes[self.at].clients.completions.pop() {
            match completion {
                Completion::Answer(tag, answer) => self.answered(tag, &answer)?,
                Completion::Given(tag, given) => {
                    self.lanes[self.at].clients.pulls.remove(&tag);
                    match given {
                        Ok(given) => self.given(tag, given)?,
                        Err(error) => self.trace(|| format!("  #{tag} gets {error}")),
                    }
                }
            }
        }
        self.readers_look()?;
        self.watchers_look()
    }

    fn answered(&mut self, tag: u64, answer: &Answer) -> Checked {
        self.trace(|| format!("  #{tag} gets {answer:?}"));
        self.stats.answers += 1;
        self.step_of_change_answered(tag, answer);
        self.across_answered(tag, answer);
        let op = self.lanes[self.at].clients.asked.remove(&tag);
        if let Some(Op::Bulk(_)) = &op {
            self.lanes[self.at].clients.bulks.answered(tag, answer);
        }
        let Some(due) = self.lanes[self.at].history.take_due(tag, |due| due.is(answer)) else {
            return match &answer.result {
                Err(Error::DiskFull { .. } | Error::OutcomeUnknown {} | Error::JournalFailed { .. }) => {
                    Ok(())
                }
                other => Err(format!("{op:?} was answered {other:?}, and its record is not committed")),
            };
        };
        self.lanes[self.at].clients.acknowledged =
            self.lanes[self.at].clients.acknowledged.max(due.index + 1);
        if !due.is(answer) {
            return Err(format!("{op:?} was answered {answer:?}, by the log it is {due:?}"));
        }
        match (&answer.result, &op) {
            (Ok(Reply::Sent { first, duplicate: false, .. }), Some(Op::Send { items, .. })) => {
                let known = answer.duplicates.as_deref();
                for (number, item) in items.iter().enumerate() {
                    let id = known
                        .map_or(MessageId { sequence: first.sequence + number as u64, ..*first }, |known| {
                            known.ids[number]
                        });
                    if !known.is_some_and(|known| known.items.contains(&(number as u32))) {
                        self.id_means(id, &item.payload)?;
                    }
                }
                Ok(())
            }
            (Ok(Reply::LockGranted { grant }), Some(Op::Lock(LockOp::Acquire { namespace, .. }))) => {
                self.lanes[self.at].generator.granted(*namespace, *grant);
                Ok(())
            }
            (
                Ok(Reply::DocumentWritten { version, .. }),
                Some(Op::Document(DocumentOp::Put { namespace, key, .. })),
            ) if !ACCOUNTS.contains(key) => {
                self.lanes[self.at].generator.written(*namespace, key, *version);
                Ok(())
            }
            (
                Ok(Reply::UploadBegun { upload }),
                Some(Op::Attachment(AttachmentOp::Begin { namespace, key, name })),
            ) => {
                self.lanes[self.at].generator.begun(*namespace, key, name, *upload);
                Ok(())
            }
            (Ok(Reply::Committed { duplicate: false }), Some(Op::Transaction(whole))) => {
                let done = answer.operations.iter().flat_map(|operations| &operations.done);
                for (operation, done) in whole.operations.iter().zip(done) {
                    self.operation_answered(whole.namespace, operation, done)?;
                }
                Ok(())
            }
            (Ok(Reply::LockWaits { ticket, .. }), _) => {
                self.lanes[self.at].generator.waits_for_lock(*ticket);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Notes what came of an operation of a transaction.
    fn operation_answered(&mut self, namespace: NamespaceId, op: &Op, done: &OperationDone) -> Checked {
        match (op, *done) {
            (Op::Send { items, .. }, OperationDone::Sent { id }) => self.id_means(id, &items[0].payload)?,
            (_, OperationDone::Granted { grant }) => self.lanes[self.at].generator.granted(namespace, grant),
            (Op::Document(DocumentOp::Put { key, .. }), OperationDone::Written { version, .. }) => {
                self.lanes[self.at].generator.written(namespace, key, version);
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks that an id belongs to one message for ever, whatever is lost; its payload may be replaced.
    fn id_means(&mut self, id: MessageId, payload: &[u8]) -> Checked {
        let clients = &mut self.lanes[self.at].clients;
        let before = clients.ids.entry(id).or_insert_with(|| payload.to_vec());
        let replaced = clients.replacing.contains(before) || clients.replacing.contains(payload);
        if before != payload && !replaced {
            return Err(format!("id {id} was given to two messages"));
        }
        *before = payload.to_vec();
        Ok(())
    }

    pub(super) fn given(&mut self, tag: u64, given: Vec<Given>) -> Checked {
        self.trace(|| format!("  #{tag} is given {} messages", given.len()));
        for Given { delivery, blob, details, .. } in given {
            let receipt = delivery.receipt;
            let Some((index, told)) = self.lanes[self.at].history.take_handed(receipt) else {
                return Err(format!(
                    "{delivery:?} was handed out; the log does not tell of it, or it was before"
                ));
            };
            if told != delivery {
                return Err(format!("{delivery:?} was handed out, by the log it is {told:?}"));
            }
            if !self.lanes[self.at].clients.tokens.insert(receipt.token) {
                return Err(format!("token {} was given twice", receipt.token));
            }
            self.lanes[self.at].clients.acknowledged =
                self.lanes[self.at].clients.acknowledged.max(index + 1);
            if let Some(details) = details {
                self.has_checkpoint(&details)?;
            }
            self.take_payload(delivery, blob)?;
        }
        Ok(())
    }

    /// Checks that the checkpoint of a delivery is that of an earlier attempt.
    fn has_checkpoint(&self, details: &GivenDetails) -> Checked {
        match (details.known.checkpoint, &details.blobs[0]) {
            (Some(checkpoint), Some(BlobRead::Cached(bytes))) => {
                self.lanes[self.at].history.check_blob(checkpoint, bytes)
            }
            (None, Some(_)) => Err(format!("{details:?} comes with a checkpoint of nobody")),
            _ => Ok(()),
        }
    }

    fn take_payload(&mut self, delivery: Delivery, blob: BlobRead) -> Checked {
        match blob {
            BlobRead::Cached(bytes) => self.has_payload(delivery, &bytes),
            BlobRead::OnDisk(location) => {
                self.lanes[self.at].clients.reads.push(PendingRead { delivery, location });
                Ok(())
            }
            BlobRead::Missing => Err(format!("the payload of {delivery:?} is missing")),
        }
    }

    /// Reads payloads from the disk as the server's blob reader does: one, or several that were delivered at
    /// the same time; payloads that were read ahead need no read.
    pub(super) fn read_blobs(&mut self) -> Checked {
        let waiting = self.lanes[self.at].clients.reads.len();
        if waiting == 0 {
            return Ok(());
        }
        let first = self.rng.index(waiting);
        let count = self.rng.weighted(&[(1, 1), (1, 5), (1, READ_MAX)]).min(waiting - first);
        let pending: Vec<PendingRead> =
            self.lanes[self.at].clients.reads.drain(first..first + count).collect();
        let mut blobs: Vec<_> =
            pending.iter().map(|pending| BlobRead::OnDisk(pending.location.clone())).collect();
        if !take_ahead(&mut blobs) {
            read_together(&mut blobs);
        }
        for (pending, blob) in pending.into_iter().zip(blobs) {
            let read = match blob {
                BlobRead::Cached(bytes) => Ok(bytes),
                _ => pending.location.read(),
            };
            self.has_read(pending, read)?;
        }
        Ok(())
    }

    fn has_read(&mut self, pending: PendingRead, read: Result<Bytes, BlobError>) -> Checked {
        match read {
            Ok(bytes) => self.has_payload(pending.delivery, &bytes),
            // The process may also die between two reads of one blob.
            Err(BlobError::Io(_)) if self.armed || self.disk.is_halted() => {
                self.lanes[self.at].clients.reads.push(pending);
                Ok(())
            }
            Err(BlobError::Damaged(_)) if self.tainted => {
                self.hold_damaged(pending.delivery.receipt, pending.delivery.blob);
                Ok(())
            }
            Err(error) => Err(format!("the payload of {:?} cannot be read: {error:?}", pending.delivery)),
        }
    }

    fn has_payload(&mut self, delivery: Delivery, bytes: &Bytes) -> Checked {
        self.lanes[self.at].history.check_blob(delivery.blob, bytes)?;
        let Some(read) = sluice_engine::blob::MessageBlob::parse(bytes) else { return Ok(()) };
        self.id_means(delivery.receipt.id, read.payload)?;
        self.lanes[self.at].generator.delivered(delivery.receipt);
        self.stats.delivered += 1;
        Ok(())
    }

    /// Holds a message whose payload does not verify, as the node does.
    fn hold_damaged(&mut self, receipt: Receipt, blob: BlobRef) {
        self.trace(|| format!("  the payload of {receipt} is damaged"));
        if let Some(server) = &self.lanes[self.at].server {
            let hold = Command::HoldDamaged { id: receipt.id, blob };
            server.mailbox.push_surely(Request::surely(&hold));
        }
    }
}
