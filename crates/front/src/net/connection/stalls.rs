//! Counts the streams of HTTP/2 that end because their client is slow, while their connection goes on.

use std::sync::atomic::Ordering;
use std::task::Context;

use sluice_http2::connection::Half;
use sluice_http2::drive::Handler;
use sluice_http2::{Connection, Event, StreamKey};

use crate::net::metrics::HttpMetrics;

/// A handler whose stalled streams are counted.
pub(super) struct CountStalls<'m, H> {
    handler: H,
    metrics: &'m HttpMetrics,
}

impl<'m, H> CountStalls<'m, H> {
    pub(super) fn new(handler: H, metrics: &'m HttpMetrics) -> Self {
        CountStalls { handler, metrics }
    }
}

impl<H: Handler> Handler for CountStalls<'_, H> {
    fn on_event(&mut self, connection: &mut Connection, event: Event<'_>) {
        if let Event::Stalled { half, .. } = event {
            let count = match half {
                Half::Request => &self.metrics.bodies_cut,
                Half::Response => &self.metrics.answers_cut,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.handler.on_event(connection, event);
    }

    fn on_room(&mut self, stream: StreamKey) {
        self.handler.on_room(stream);
    }

    fn poll(&mut self, context: &mut Context<'_>, connection: &mut Connection) {
        self.handler.poll(context, connection);
    }
}
