//! Sessions: one stream of frames each way, as `proto/sluice/v1/session.proto` tells. This is the plain way
//! to them, without waiting for answers: who sends a frame gets its number, and whoever reads the frames of
//! the server sees its result.
//!
//! Map: `convert` from and to the types of the client, `status` how a session ended.

mod convert;
mod status;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::Response;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use sluice_proto::framing::Deframer;
use sluice_proto::v1::{ClientFrame, Open, ServerFrame, SettleMany, client_frame, server_frame};

use crate::client::Client;
use crate::error::ClientError;
use crate::outgoing::{FrameQueue, Outgoing};
pub(crate) use convert::{delivered, error_of, item_results, settlement};
use status::ended;

/// Longest frame of a server that is taken, in bytes: far above what it sends at once.
const FRAME_BYTES_MAX: usize = 256 << 20;
/// The path of the call.
const PATH: &str = "/sluice.v1.Sessions/Session";

/// The sending side of a session; clones share it. The session ends when all of them are dropped.
#[derive(Clone, Debug)]
pub struct Session {
    shared: Arc<Sending>,
}

#[derive(Debug)]
struct Sending {
    queue: Arc<FrameQueue>,
    last_number: AtomicU64,
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.queue.end();
    }
}

/// The receiving side of a session: the frames of the server, in order.
#[derive(Debug)]
pub struct Frames {
    incoming: Incoming,
    deframer: Deframer,
    server: String,
}

impl Client {
    /// Opens a session in the client's namespace, on a connection of its own. The result of its first frame
    /// has number 1.
    ///
    /// # Errors
    /// [`ClientError::Transport`] when the server cannot be reached; [`ClientError::Protocol`] when it does
    /// not speak gRPC. Everything else, a namespace that does not exist for one, comes with the first frame
    /// that is read.
    pub async fn session(&self) -> Result<(Session, Frames), ClientError> {
        let queue = Arc::new(FrameQueue::new(self.gathers_frames()));
        let sending = Sending { queue: Arc::clone(&queue), last_number: AtomicU64::new(0) };
        let session = Session { shared: Arc::new(sending) };
        let namespace = self.own_namespace().to_owned().into();
        session.send(client_frame::Frame::Open(Open { namespace, ..Open::default() }));
        let response = self.stream(PATH, Outgoing::new(queue)).await?;
        check(&response)?;
        let incoming = response.into_body();
        let server = self.server().to_owned();
        Ok((session, Frames { incoming, deframer: Deframer::new(FRAME_BYTES_MAX), server }))
    }
}

/// A server without gRPC answers like one that knows no such path.
fn check(response: &Response<Incoming>) -> Result<(), ClientError> {
    let status = response.status().as_u16();
    let grpc = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
    if status != 200 || !grpc {
        let reason = "the server does not speak gRPC at this port".to_owned();
        return Err(ClientError::Protocol { status, reason });
    }
    // What could not even begin has its status here.
    if response.headers().contains_key("grpc-status") {
        return Err(ended(response.headers()).unwrap_or_else(|| ClientError::Protocol {
            status,
            reason: "the session ended before it began".to_owned(),
        }));
    }
    Ok(())
}

impl Session {
    /// Sends a frame; tells its number. It goes with whatever else the connection takes next, and waits in
    /// memory until then: who sends without end has to look at the results.
    pub fn send(&self, frame: client_frame::Frame) -> u64 {
        self.shared.queue.add(|| {
            // Numbered under the lock of the queue, so that numbers grow as frames do.
            let number = self.shared.last_number.fetch_add(1, Ordering::Relaxed) + 1;
            ClientFrame { number, frame: Some(frame) }
        })
    }

    /// Acks deliveries by their receipts; at most as many as a settle may have (10,000).
    pub fn ack(&self, receipts: Vec<Bytes>) -> u64 {
        self.send(client_frame::Frame::Settle(SettleMany { items: Vec::new(), acks: receipts }))
    }

    /// Number of bytes of frames that wait for the connection.
    pub fn unsent_bytes(&self) -> usize {
        self.shared.queue.len()
    }
}

impl Frames {
    /// The next frame; `None` when the session has ended in the orderly way. The future may be dropped and
    /// made anew.
    ///
    /// # Errors
    /// The error with which the session ended; no frames follow.
    pub async fn next(&mut self) -> Result<Option<server_frame::Frame>, ClientError> {
        loop {
            let next = self.deframer.next().map_err(|error| not_understood(error.to_string()))?;
            if let Some(bytes) = next {
                let frame =
                    ServerFrame::decode_lists(bytes).map_err(|error| not_understood(error.to_string()))?;
                // A kind of frame that is newer than this client.
                let Some(frame) = frame.frame else { continue };
                return Ok(Some(frame));
            }
            match self.incoming.frame().await {
                None => return Err(self.broken("the stream ended without a status".to_owned())),
                Some(Err(error)) => return Err(self.broken(error.to_string())),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.deframer.push(data),
                    Err(frame) => match frame.into_trailers() {
                        Ok(trailers) => return ended(&trailers).map_or(Ok(None), Err),
                        Err(_) => continue,
                    },
                },
            }
        }
    }

    fn broken(&self, reason: String) -> ClientError {
        ClientError::Transport {
            kind: crate::TransportKind::Broken,
            server: self.server.clone(),
            tried: 1,
            reason,
        }
    }
}

fn not_understood(reason: String) -> ClientError {
    ClientError::Protocol { status: 200, reason }
}
