//! Sessions: one stream of frames each way, as `proto/sluice/v1/session.proto` tells. This is the plain way
//! to them, without waiting for answers: who sends a frame gets its number, and whoever reads the frames of
//! the server sees its result.
//!
//! Map: `convert` from and to the types of the client, `status` how a session ended.

mod convert;
mod status;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::Response;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use sluice_proto::framing::Deframer;
use sluice_proto::v1::{ClientFrame, Open, SendMany, ServerFrame, SettleMany, client_frame, server_frame};
use tokio::time::timeout;

use crate::client::Client;
use crate::error::ClientError;
use crate::outgoing::{FrameQueue, Outgoing};
use crate::retry::Safety;
use crate::transport::Transport;
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
    /// The client, which makes keys for sends; `None`: none gets one.
    keys: Option<Client>,
    unanswered: Arc<Unanswered>,
}

/// Sends with a key that the server has not answered, by the numbers of their frames.
#[derive(Debug, Default)]
struct Unanswered(Mutex<BTreeMap<u64, SendMany>>);

impl Unanswered {
    fn sends(&self) -> MutexGuard<'_, BTreeMap<u64, SendMany>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    unanswered: Arc<Unanswered>,
}

impl Client {
    /// Opens a session in the client's namespace, on a connection of its own: with the node that leads it, if
    /// the client knows several, else with the one that it knows, which passes the session on to the leader.
    /// Repeated like any call that looks. The first frame of the session has been answered; those that are
    /// sent have numbers from 2 on.
    ///
    /// # Errors
    /// [`ClientError::Transport`] when no server can be reached; [`ClientError::Protocol`] when it does not
    /// speak gRPC; the server's error, of a namespace that does not exist for one.
    pub async fn session(&self) -> Result<(Session, Frames), ClientError> {
        let mut tries = self.tries();
        loop {
            tries.count += 1;
            let asked = self.asked();
            match self.session_with(asked, tries.count).await {
                Ok(session) => return Ok(session),
                Err(error) => self.before_next(&mut tries, &asked.address, error, Safety::Repeatable).await?,
            }
        }
    }

    /// Opens a session with the server that is asked at present, in one try.
    pub(crate) async fn session_once(&self) -> Result<(Session, Frames), ClientError> {
        self.session_with(self.asked(), 1).await
    }

    async fn session_with(&self, asked: &Transport, tried: u32) -> Result<(Session, Frames), ClientError> {
        let queue = Arc::new(FrameQueue::new(self.options().gather_frames));
        let keys = self.options().key_sends.then(|| self.clone());
        let unanswered: Arc<Unanswered> = Arc::default();
        let shared = Sending {
            queue: Arc::clone(&queue),
            last_number: AtomicU64::new(0),
            keys,
            unanswered: Arc::clone(&unanswered),
        };
        let session = Session { shared: Arc::new(shared) };
        let namespace = self.own_namespace().to_owned().into();
        let open = session
            .send(client_frame::Frame::Open(Open { namespace, follows_leaders: self.follows_leaders() }));
        let response = asked.stream(PATH, Outgoing::new(queue)).await;
        let response = response.map_err(|failure| failure.told(asked, tried))?;
        check(&response)?;
        let (incoming, server) = (response.into_body(), asked.address.clone());
        let mut frames = Frames { incoming, deframer: Deframer::new(FRAME_BYTES_MAX), server, unanswered };
        let opened = timeout(self.options().request_timeout, frames.opened(open)).await;
        opened.unwrap_or_else(|_| Err(frames.broken("the session was not opened in time".to_owned())))?;
        Ok((session, frames))
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
    /// memory until then: who sends without end has to look at the results. Messages that have no idempotency
    /// key get one.
    pub fn send(&self, mut frame: client_frame::Frame) -> u64 {
        let Sending { queue, last_number, keys, unanswered } = &*self.shared;
        if let (client_frame::Frame::Send(send), Some(keys)) = (&mut frame, keys)
            && send.idempotency_key.is_empty()
        {
            send.idempotency_key = keys.idempotency_key().into();
        }
        queue.add(|| {
            // Numbered under the lock of the queue, so that numbers grow as frames do.
            let number = last_number.fetch_add(1, Ordering::Relaxed) + 1;
            if let client_frame::Frame::Send(send) = &frame
                && !send.idempotency_key.is_empty()
            {
                unanswered.sends().insert(number, send.clone());
            }
            ClientFrame { number, frame: Some(frame) }
        })
    }

    /// Takes the sends with a key that the server has not answered, the oldest first. Once the session has
    /// ended they may be sent in another one: none of them takes effect twice.
    pub fn take_unanswered(&self) -> Vec<SendMany> {
        std::mem::take(&mut *self.shared.unanswered.sends()).into_values().collect()
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
                if let server_frame::Frame::Result(result) = &frame {
                    self.unanswered.sends().remove(&result.number);
                }
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

    /// Waits for the result of the first frame.
    async fn opened(&mut self, open: u64) -> Result<(), ClientError> {
        loop {
            match self.next().await? {
                Some(server_frame::Frame::Result(result)) if result.number == open => {
                    return result.error.as_ref().map_or(Ok(()), |error| Err(error_of(error)));
                }
                Some(server_frame::Frame::KeepAlive(_)) => {}
                // It is about to stop, or has ended the session.
                _ => return Err(self.broken("the server has not opened the session".to_owned())),
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
