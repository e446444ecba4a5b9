//! Deliveries with the locations of their bytes.

use std::sync::Arc;

use sluice_engine::Engine;
use sluice_engine::command::{SettleItem, Settlement};
use sluice_engine::id::Receipt;
use sluice_engine::outcome::Delivery;
use sluice_engine::query::DeliveryDetails;
use sluice_journal::BlobRead;

use super::store::{self, Store};

/// A delivered message; its bytes may still have to be read.
#[derive(Debug)]
pub struct Given {
    /// Receipt, attempt, times.
    pub delivery: Delivery,
    /// Name of its queue.
    pub queue: Arc<str>,
    /// Content type, headers and payload, or their location on disk.
    pub blob: BlobRead,
    /// Optional fields.
    pub details: Option<Box<GivenDetails>>,
}

/// Optional fields of a delivered message.
#[derive(Debug)]
pub struct GivenDetails {
    /// Fields that the engine has.
    pub known: DeliveryDetails,
    /// Checkpoint and tags, or their locations on disk.
    pub blobs: [Option<BlobRead>; 2],
}

/// A delivery with its bytes, or their location on disk.
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

/// The settlement that releases a delivery at once.
pub(crate) fn release(receipt: Receipt) -> SettleItem<'static> {
    SettleItem {
        receipt,
        settlement: Settlement::GiveBack { delay_ms: 0 },
        error: "",
        result: None,
        add_cost: 0,
    }
}
