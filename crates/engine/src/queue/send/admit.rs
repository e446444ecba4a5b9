//! Checks of a send before anything is changed: its queue, its namespace, and each of its items.

use crate::command::Deliver;
use crate::core::namespace::NamespaceSlot;
use crate::core::{Core, internal};
use crate::error::Error;
use crate::id::NamespaceId;
use crate::item::{Chain, SendOptions};
use crate::limit::Cost;
use crate::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, PRIORITY_MAX};
use crate::queue::QueueModule;
use crate::queue::limit::COSTS_SINCE;
use crate::queue::message::lookup::{queue_closed, queue_not_found};
use crate::queue::record::item::SendItemRecord;
use crate::queue::record::options::read_options;
use crate::queue::record::send::{ItemOptions, SendRecord};
use crate::queue::state::QueueSlot;
use crate::rules::name_rule;

/// The items of a send as a whole, after their checks.
#[derive(Default)]
pub(crate) struct Admitted {
    /// Bytes of their blobs.
    pub(crate) bytes: u64,
    /// True if one has a unique key.
    pub(crate) unique: bool,
    /// True if one waits for others, or carries steps.
    pub(crate) linked: bool,
}

impl QueueModule {
    /// Refuses a queue that must not be made by its first use.
    pub(crate) fn admit_new_queue(
        &self,
        namespace_slot: NamespaceSlot,
        name: &str,
        core: &Core,
    ) -> Result<(), Error> {
        self.admit_use_of_new(namespace_slot, name, core)?;
        self.admit_queues(namespace_slot, 1, core)
    }

    /// Like [`QueueModule::admit_new_queue`], whatever the number of queues.
    pub(crate) fn admit_use_of_new(
        &self,
        namespace_slot: NamespaceSlot,
        name: &str,
        core: &Core,
    ) -> Result<(), Error> {
        if !core.limits.auto_create {
            return Err(queue_not_found(name));
        }
        let namespace = core.namespaces.get(namespace_slot);
        if namespace.deleted {
            return Err(NamespaceId(namespace.number).not_found());
        }
        if self.settings_of_new(namespace_slot, name).closed {
            return Err(queue_closed(name));
        }
        name_rule("queue", name).map_err(internal)
    }

    /// Refuses what is sent to a closed queue; a missing one is not.
    #[inline]
    pub(crate) fn admit_to_queue(&self, queue_slot: Option<QueueSlot>) -> Result<(), Error> {
        let Some(queue) = queue_slot.map(|slot| self.queues.get(slot)) else { return Ok(()) };
        if queue.settings.closed { Err(queue_closed(&queue.name)) } else { Ok(()) }
    }

    /// Checks items of which some are more than plain.
    #[inline(never)]
    pub(crate) fn admit_items<'a>(
        &self,
        namespace_slot: NamespaceSlot,
        send: &SendRecord<'a>,
        options: &ItemOptions<'a>,
        core: &Core,
    ) -> Result<Admitted, Error> {
        let mut admitted = Admitted::default();
        for (at, item) in (0u32..).zip(send.items()) {
            admitted.bytes += u64::from(item.blob_len);
            self.admit_plain(&item, core).map_err(|error| error.within(&prefix(send, at)))?;
            if let Some(options) = options.get(at, &item, &mut None) {
                self.admit_optional(namespace_slot, send, (at, &item), options, &mut admitted, core)?;
            }
        }
        if send.count == 0 {
            return Err(Error::Internal { reason: "a send record without messages".into() });
        }
        Ok(admitted)
    }

    /// Checks the options of the item `at` of a send.
    #[inline(never)]
    fn admit_optional(
        &self,
        namespace_slot: NamespaceSlot,
        send: &SendRecord<'_>,
        (at, item): (u32, &SendItemRecord<'_>),
        options: &SendOptions<'_>,
        admitted: &mut Admitted,
        core: &Core,
    ) -> Result<(), Error> {
        self.admit_options(namespace_slot, item, options, core)
            .map_err(|error| error.within(&prefix(send, at)))?;
        admitted.unique |= options.unique.is_some();
        admitted.linked |= options.depends_on.is_some() || options.chain != Chain::None;
        self.admit_parents(at, send.namespace, options, || prefix(send, at), core)
    }

    /// Checks what one item is by itself; returns its options.
    pub(crate) fn admit_item<'a>(
        &self,
        namespace_slot: NamespaceSlot,
        item: &SendItemRecord<'a>,
        core: &Core,
    ) -> Result<Option<SendOptions<'a>>, Error> {
        self.admit_plain(item, core)?;
        let options = item.options.and_then(read_options);
        if let Some(options) = &options {
            self.admit_options(namespace_slot, item, options, core)?;
        }
        Ok(options)
    }

    /// Checks the plain fields of an item.
    fn admit_plain(&self, item: &SendItemRecord<'_>, core: &Core) -> Result<(), Error> {
        let sound = item.priority <= PRIORITY_MAX && item.max_attempts <= ATTEMPTS_MAX;
        if !sound {
            return Err(out_of_range(item));
        }
        if let Some(backoff) = &item.backoff {
            backoff.check("backoff").map_err(internal)?;
        }
        self.admit_time(item.deliver, core)
    }

    /// Checks the options of an item.
    #[inline(always)]
    fn admit_options(
        &self,
        namespace_slot: NamespaceSlot,
        item: &SendItemRecord<'_>,
        options: &SendOptions<'_>,
        core: &Core,
    ) -> Result<(), Error> {
        if options.cost != Cost::default() {
            core.expect_behaviour(COSTS_SINCE)?;
        }
        self.admit_reply_to(namespace_slot, options, core)?;
        self.admit_expiry(item.deliver, options.expires, core)?;
        if let Chain::Laid(laid) = options.chain {
            self.admit_chain(namespace_slot, laid, core)?;
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn admit_messages(&self, messages: u64, core: &Core) -> Result<(), Error> {
        if u64::from(self.messages.used()) + self.pins.reserved + messages > core.limits.messages {
            return Err(Error::LimitExceeded { what: "messages", limit: core.limits.messages });
        }
        Ok(())
    }

    pub(crate) fn admit_time(&self, deliver: Deliver, core: &Core) -> Result<(), Error> {
        let delay_ms = match deliver {
            Deliver::Now => return Ok(()),
            Deliver::AfterMs(delay_ms) => delay_ms,
            Deliver::AtUs(at_us) => at_us.saturating_sub(core.now_us) / 1_000,
        };
        if delay_ms <= DELAY_MS_MAX {
            return Ok(());
        }
        let reason = format!("{delay_ms} ms from now is too far: use at most {DELAY_MS_MAX} (ten years)");
        Err(Error::InvalidArgument { field: deliver.field().into(), reason })
    }
}

#[cold]
fn out_of_range(item: &SendItemRecord<'_>) -> Error {
    let reason = format!("priority {}, max_attempts {}", item.priority, item.max_attempts);
    Error::Internal { reason: format!("a send record is out of range: {reason}") }
}

/// Path of an item, with which the names of its fields begin.
fn prefix(send: &SendRecord<'_>, at: u32) -> String {
    if send.count == 1 { String::new() } else { format!("messages[{at}].") }
}
