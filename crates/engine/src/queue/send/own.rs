//! Messages that the engine itself sends, as a consequence of another record: replies, steps of chains, and
//! what schedules send.

use crate::command::Deliver;
use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::error::Error;
use crate::id::{BlobRef, MessageId, NamespaceId};
use crate::item::SendOptions;
use crate::outcome::Outcome;
use crate::queue::QueueModule;
use crate::queue::record::item::SendItemRecord;
use crate::queue::record::options::read_options;
use crate::queue::send::Place;
use crate::queue::state::QueueSlot;
use crate::queue::state::chain::Chain;
use crate::queue::state::origin::Origin;

/// One message that the engine sends; its blob lies in the log already.
#[derive(Clone, Copy)]
pub(crate) struct OwnSend<'a> {
    /// Name of the queue.
    pub(crate) queue: &'a str,
    /// Content type, headers and payload; the message's own from then on.
    pub(crate) blob: BlobRef,
    /// The other fields.
    pub(crate) item: SendItemRecord<'a>,
    /// Its correlation id, if the item brings none.
    pub(crate) correlation_id: &'a [u8],
}

/// The result of an own send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnSent {
    pub(crate) id: MessageId,
    /// True if that message was there already, with the same unique key.
    pub(crate) duplicate: bool,
}

/// Fields of a step that a caller's send does not have.
pub(crate) struct Beside {
    /// The steps that it carries on.
    pub(crate) chain: Chain,
    /// Failure that it follows.
    pub(crate) origin: Option<Origin>,
}

impl<'a> OwnSend<'a> {
    /// One that is ready at once, and follows its queue's settings.
    pub(crate) fn plain(queue: &'a str, blob: BlobRef, correlation_id: &'a [u8]) -> OwnSend<'a> {
        let item = SendItemRecord {
            blob_len: blob.len,
            priority: 0,
            max_attempts: 0,
            deliver: Deliver::Now,
            backoff: None,
            options: None,
        };
        OwnSend { queue, blob, item, correlation_id }
    }

    fn options(&self) -> SendOptions<'a> {
        let mut options = self.item.options.and_then(read_options).unwrap_or_default();
        if options.correlation_id.is_empty() {
            options.correlation_id = self.correlation_id;
        }
        options
    }
}

/// One message of the engine's own that was admitted: where it belongs, and its id.
#[derive(Clone, Copy)]
pub(crate) struct Admitted {
    namespace_slot: NamespaceSlot,
    /// Slot of the queue; `None`: it is to be made.
    found: Option<QueueSlot>,
    room: Room,
    bounded: bool,
    sequence: u64,
}

/// The rule for a queue that is full.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// The queue's `overflow` decides, as for a caller's send.
    ByQueue,
    /// The send is refused: it makes no room.
    Needed,
}

impl QueueModule {
    /// Sends one message. All limits and quotas hold as for a caller's send, and nothing is changed when one
    /// refuses it.
    pub(crate) fn send_of_engine(
        &mut self,
        namespace: NamespaceId,
        send: &OwnSend<'_>,
        beside: Option<Beside>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<OwnSent, Error> {
        let namespace_slot = core.find_namespace(namespace)?;
        let options = send.options();
        if let (Some(queue), Some(unique)) = (self.find_queue(namespace_slot, send.queue), &options.unique) {
            self.admit_to_queue(Some(queue))?;
            self.admit_own_options(namespace_slot, send, core)?;
            if let Some(sequence) = self.meet_unique(queue, unique, &send.item, send.blob, core, out)? {
                return Ok(OwnSent { id: MessageId { namespace, sequence }, duplicate: true });
            }
        }
        let room = if beside.is_some() { Room::Needed } else { Room::ByQueue };
        let admitted = self.admit_own(namespace_slot, send, room, 1, core)?;
        self.place_own(admitted, send, beside, core, out);
        Ok(OwnSent { id: MessageId { namespace, sequence: admitted.sequence }, duplicate: false })
    }

    fn admit_own_options(
        &self,
        namespace_slot: NamespaceSlot,
        send: &OwnSend<'_>,
        core: &Core,
    ) -> Result<(), Error> {
        let options = send.options();
        self.admit_reply_to(namespace_slot, &options, core)?;
        self.admit_expiry(send.item.deliver, options.expires, core)
    }

    /// Admits one message, and reserves its id. `places`: how many more messages the shard will hold, 0 or 1.
    ///
    /// # Errors
    /// The limit, quota or queue that refuses it. Nothing is changed.
    pub(crate) fn admit_own(
        &mut self,
        namespace_slot: NamespaceSlot,
        send: &OwnSend<'_>,
        room: Room,
        places: u64,
        core: &mut Core,
    ) -> Result<Admitted, Error> {
        let name = send.queue.as_bytes();
        let found = self.find_queue(namespace_slot, send.queue);
        self.admit_to_queue(found)?;
        self.admit_own_options(namespace_slot, send, core)?;
        let bytes = u64::from(send.blob.len);
        self.admit_messages(places, core)?;
        core.admit_to_namespace(namespace_slot, 1, bytes)?;
        let bounded = self.is_bounded(namespace_slot, found, name);
        if bounded && room == Room::Needed {
            self.admit_step_to_bounded(namespace_slot, found, name, bytes, send.item.deliver, core)?;
        } else if bounded {
            let delays = std::iter::once((None, send.item.deliver));
            self.admit_to_bounded(namespace_slot, found, name, (1, bytes), delays, core)?;
        }
        if found.is_none() {
            self.admit_new_queue(namespace_slot, send.queue, core)?;
        }
        let sequence = self.reserve_sequences(namespace_slot, 1, core)?;
        Ok(Admitted { namespace_slot, found, room, bounded, sequence })
    }

    /// Sends a message that [`QueueModule::admit_own`] has admitted.
    pub(crate) fn place_own(
        &mut self,
        admitted: Admitted,
        send: &OwnSend<'_>,
        beside: Option<Beside>,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        let Admitted { namespace_slot, found, room, bounded, sequence } = admitted;
        let queue_slot = found.unwrap_or_else(|| self.make_queue(namespace_slot, send.queue, core));
        self.count_sent(namespace_slot, queue_slot, 1, u64::from(send.blob.len), core);
        self.insert_own(Place { namespace_slot, queue_slot, sequence }, send, beside, core, out);
        if bounded {
            self.begin_ages(queue_slot, sequence..sequence + 1, core);
        }
        if bounded && room == Room::ByQueue {
            self.list_trim(queue_slot, 1);
        }
    }

    fn insert_own(
        &mut self,
        place: Place,
        send: &OwnSend<'_>,
        beside: Option<Beside>,
        core: &Core,
        out: &mut Outcome,
    ) {
        let (item, options) = (&send.item, send.options());
        let slot = self.place_message(place, send.blob, item, core, out);
        let given = options.given();
        if given.is_some() || item.backoff.is_some() {
            self.add_extras(slot, item.backoff, given, core);
        }
        if let Some(beside) = beside {
            self.attach_chain(slot, beside.chain);
            if let Some(origin) = beside.origin {
                let extras = self.extras_slot(slot);
                self.extras.set_origin(extras, origin);
            }
        }
        let due_us = self.due_us(item.deliver, core);
        if options.hold {
            self.begin_held(slot, due_us, core, out);
        } else {
            self.admit(slot, due_us, core, out);
        }
    }
}
