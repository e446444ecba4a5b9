//! Deliveries on their way to whoever gets them.

use std::sync::Arc;

use sluice_engine::Engine;
use sluice_engine::command::{SettleItem, Settlement};
use sluice_engine::id::Receipt;
use sluice_engine::outcome::Delivery;
use sluice_engine::query::DeliveryDetails;
use sluice_journal::BlobRead;

use super::store::{self, Store};

/// One message for a pull; its bytes may still have to be read.
#[derive(Debug)]
pub struct Given {
    /// Receipt, attempt, times.
    pub delivery: Delivery,
    /// Name of its queue.
    pub queue: Arc<str>,
    /// Content type, headers and payload, or where to read them.
    pub blob: BlobRead,
    /// What it has beside the plain fields.
    pub details: Option<Box<GivenDetails>>,
}

/// What a message for a pull has beside the plain fields.
#[derive(Debug)]
pub struct GivenDetails {
    /// What the engine knows.
    pub known: DeliveryDetails,
    /// Checkpoint and tags, or where to read them.
    pub blobs: [Option<BlobRead>; 2],
}

/// A delivery with its bytes, or with where they are.
pub(super) fn read_given(
    engine: &Engine,
    store: &mut (impl Store + ?Sized),
    delivery: Delivery,
    queue: Arc<str>,
) -> Given {
    let blob = store::read(store, delivery.blob);
    let details = if delivery.has_details { engine.delivery_details(delivery.receipt.id) } else { None };
    let details = details.map(|known| {
        let blobs = [known.checkpoint, known.tags].map(|blob| Some(store::read(store, blob?)));
        Box::new(GivenDetails { known, blobs })
    });
    Given { delivery, queue, blob, details }
}

/// A release of one delivery.
pub(crate) fn release(receipt: Receipt) -> SettleItem<'static> {
    SettleItem { receipt, settlement: Settlement::Release { delay_ms: 0 }, error: "", result: None }
}
