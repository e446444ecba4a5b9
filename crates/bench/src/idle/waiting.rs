//! Sessions that wait, and one that sends to them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sluice_client::v1::client_frame::Frame;
use sluice_client::v1::server_frame::Frame as Told;
use sluice_client::v1::{Attach, Message, SendMany};
use sluice_client::{Client, Frames, Session};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::stream::{check, next};

/// Sessions that are being opened at a time.
const OPENING: usize = 32;
/// Time after which a message that was not delivered counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(30);

/// A message has come to a session.
#[derive(Debug)]
struct Came {
    session: u32,
    payload: Bytes,
    at: Instant,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Waiting {
    sender: Session,
    sender_frames: Frames,
    came: mpsc::UnboundedReceiver<Came>,
    sessions: JoinSet<Result<(), String>>,
    delivered: u64,
}

impl Waiting {
    /// Opens so many sessions, each on a connection of its own and attached to a queue of its own.
    pub(super) async fn open(client: &Client, sessions: u32) -> Result<Waiting, String> {
        let (sender, sender_frames) = client.session().await.map_err(|error| format!("session: {error}"))?;
        let (tell, came) = mpsc::unbounded_channel();
        let opening = Arc::new(Semaphore::new(OPENING));
        let (opened, mut all_opened) = mpsc::channel::<()>(1);
        let mut tasks = JoinSet::new();
        for session in 0..sessions {
            let (client, tell, opening, opened) =
                (client.clone(), tell.clone(), Arc::clone(&opening), opened.clone());
            tasks.spawn(async move {
                let permit = opening.acquire().await.map_err(|error| error.to_string())?;
                let held = attach(&client, session).await?;
                drop((permit, opened));
                wait(session, held, &tell).await
            });
        }
        drop(opened);
        tokio::select! {
            biased;
            // None ends before its session does, but by failing.
            Some(ended) = tasks.join_next() => {
                ended.map_err(|error| format!("a session failed: {error}"))??;
                return Err("a session ended while others were opened".to_owned());
            }
            // Nothing is ever sent: it resolves when the last of them is open.
            _ = all_opened.recv() => {}
        }
        Ok(Waiting { sender, sender_frames, came, sessions: tasks, delivered: 0 })
    }

    /// Sends a message to the queue of one session. The time from before it is sent until that session has
    /// it.
    pub(super) async fn deliver(&mut self, session: u32) -> Result<Duration, String> {
        let payload = Bytes::from(format!("to {session}"));
        let message = Message { payload: payload.clone(), ..Message::default() };
        let send = SendMany { queue: queue(session), messages: vec![message], idempotency_key: Bytes::new() };
        let began = Instant::now();
        self.sender.send(Frame::Send(send));
        let came = timeout(LOST_AFTER, self.came.recv()).await;
        let came =
            came.map_err(|_| format!("a message to session {session} did not come within {LOST_AFTER:?}"))?;
        let came = came.ok_or("every session has ended")?;
        if came.session != session || came.payload != payload {
            return Err(format!("a message to session {session} came to {}", came.session));
        }
        self.delivered += 1;
        done(&mut self.sender_frames).await?;
        Ok(came.at.duration_since(began))
    }

    /// Ends all sessions; tells how many messages were delivered. An error when one has ended before, or got
    /// more.
    pub(super) async fn close(mut self) -> Result<u64, String> {
        if let Some(ended) = self.sessions.try_join_next() {
            ended.map_err(|error| format!("a session failed: {error}"))??;
            return Err("a session ended by itself".to_owned());
        }
        if let Ok(more) = self.came.try_recv() {
            return Err(format!("session {} got a message that nobody sent", more.session));
        }
        self.sessions.shutdown().await;
        Ok(self.delivered)
    }
}

fn queue(session: u32) -> Bytes {
    Bytes::from(format!("idle-{session}"))
}

async fn attach(client: &Client, session: u32) -> Result<(Session, Frames), String> {
    let (own, mut frames) = client.session().await.map_err(|error| format!("session {session}: {error}"))?;
    let attach = Attach { consumer: 1, queues: vec![queue(session)], credit: 1, ..Attach::default() };
    own.send(Frame::Attach(attach));
    done(&mut frames).await.map_err(|error| format!("session {session}: {error}"))?;
    Ok((own, frames))
}

/// Waits for the result of the one frame that is not answered.
async fn done(frames: &mut Frames) -> Result<(), String> {
    loop {
        match next(frames).await? {
            Told::Result(result) => return check(&result),
            Told::KeepAlive(_) => {}
            other => return Err(format!("expected the result of a frame, got {other:?}")),
        }
    }
}

/// Acks each message, and tells of it when that is answered, for as long as the session lives.
async fn wait(
    session: u32,
    (own, mut frames): (Session, Frames),
    tell: &mpsc::UnboundedSender<Came>,
) -> Result<(), String> {
    let mut acking = VecDeque::new();
    loop {
        let told = frames.next().await.map_err(|error| format!("session {session}: {error}"))?;
        match told.ok_or_else(|| format!("session {session} has ended"))? {
            Told::Deliveries(deliveries) => {
                let at = Instant::now();
                for message in deliveries.messages {
                    own.ack(vec![message.receipt]);
                    acking.push_back(Came { session, payload: message.payload, at });
                }
            }
            Told::Result(result) => {
                check(&result)?;
                // Nobody listens any more when the run is over.
                let _ = acking.pop_front().map(|came| tell.send(came));
            }
            Told::KeepAlive(_) => {}
            other => return Err(format!("session {session}: did not expect {other:?}")),
        }
    }
}
