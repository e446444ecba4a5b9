//! A session that many loops share. Each of their requests is a frame of its own with a result of its own,
//! for which the loop waits; frames go to the connection one by one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sluice_client::v1::client_frame::Frame;
use sluice_client::v1::server_frame::Frame as Told;
use sluice_client::v1::{Delivered, FrameResult};
use sluice_client::{Client, Frames, Session};
use tokio::sync::{mpsc, oneshot};

/// Deliveries for one consumer, in order. Its credit bounds how many wait.
pub(crate) type Deliveries = mpsc::UnboundedReceiver<Delivered>;

/// See the module.
#[derive(Debug)]
pub(crate) struct Link {
    session: Session,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Senders that wait for the result of a frame, by its number.
    waiting: HashMap<u64, oneshot::Sender<FrameResult>>,
    consumers: HashMap<u32, mpsc::UnboundedSender<Delivered>>,
}

impl Link {
    /// Opens a session on a connection of its own.
    pub(crate) async fn open(client: &Client) -> Result<(Arc<Link>, Frames), String> {
        let (session, frames) = client.session().await.map_err(|error| format!("session: {error}"))?;
        Ok((Arc::new(Link { session, state: Mutex::default() }), frames))
    }

    /// Hands on what the server sends, for as long as the session lives.
    pub(crate) async fn hand_on(self: Arc<Link>, mut frames: Frames) -> Result<(), String> {
        while let Some(told) = frames.next().await.map_err(|error| format!("session: {error}"))? {
            match told {
                Told::Result(result) => {
                    let waiting = self.lock().waiting.remove(&result.number);
                    let waiting = waiting.ok_or("a result of a frame that nobody sent")?;
                    // A loop that has ended waits for nothing.
                    let _ = waiting.send(result);
                }
                Told::Deliveries(deliveries) => {
                    let to = self.lock().consumers.get(&deliveries.consumer).cloned();
                    let to = to.ok_or("deliveries for a consumer that is not there")?;
                    for message in deliveries.messages {
                        let _ = to.send(message);
                    }
                }
                Told::KeepAlive(_) => {}
                other => return Err(format!("did not expect {other:?}")),
            }
        }
        Err("a session ended".to_owned())
    }

    /// Sends a request and waits for its result.
    pub(crate) async fn ask(&self, frame: Frame) -> Result<FrameResult, String> {
        let (tell, told) = oneshot::channel();
        {
            // Under the lock, so that the result does not come before somebody waits for it.
            let mut state = self.lock();
            let number = self.session.send(frame);
            state.waiting.insert(number, tell);
        }
        told.await.map_err(|_| "the session ended before the result".to_owned())
    }

    /// From here on a consumer's deliveries are handed on.
    pub(crate) fn consumer(&self, number: u32) -> Deliveries {
        let (to, deliveries) = mpsc::unbounded_channel();
        self.lock().consumers.insert(number, to);
        deliveries
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
