//! The life of a connection after the greetings: frames in and out until it ends.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sluice_replica::{Envelope, NodeId, StateMessage};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::decoder::Decoder;
use crate::frame::{Frame, FrameError};
use crate::link::Link;
use crate::writer::Writer;
use crate::{CONTENT_BYTES_MAX, REQUESTS_BYTES_MAX, REQUESTS_MAX, SILENCE_MAX, SILENT_AFTER};

/// Receiver of messages and requests of other nodes.
pub trait Receiver: fmt::Debug + Send + Sync {
    /// Takes in a message between the replicas of a shard, whose sender is the node that has sent it. Must
    /// not block: what finds no room is dropped. There may be no such shard.
    fn envelope(&self, shard: u16, envelope: Envelope);

    /// Takes in a message about a state of a shard, under the same conditions.
    fn state(&self, shard: u16, message: StateMessage);

    /// Answers a request of a node, with at most [`CONTENT_BYTES_MAX`]. The future is dropped when the answer
    /// comes too late.
    fn request(&self, from: NodeId, content: Bytes) -> Answering;

    /// Takes in that this node was removed from the cluster, as a node of it says.
    fn removed(&self, by: NodeId);

    /// Takes in a doubt about a node: nothing has come from it for [`SILENT_AFTER`] though the connection
    /// stands, or a connection has begun, behind which may be another process than before. Must not block.
    fn doubt(&self, node: NodeId);

    /// Takes in that the connection with a node is lost, and that no newer one has taken its place. Must not
    /// block.
    fn lost(&self, node: NodeId);
}

/// Answer to a request, under way.
pub type Answering = Pin<Box<dyn Future<Output = Bytes> + Send>>;

/// Cause of the end of a connection.
#[derive(Debug)]
pub(crate) enum End {
    /// The peer has closed the connection.
    Closed,
    /// Nothing has come from the peer for [`SILENCE_MAX`].
    Silent,
    /// The operating system or TLS has failed.
    Broken(io::Error),
    /// The peer's bytes are no frames.
    Frame(FrameError),
    /// The peer has ended the connection, with its reason.
    Refused(String),
    /// This node was removed from the cluster, says the peer.
    Removed,
    /// The peer was removed from the cluster.
    PeerRemoved,
    /// A format version has come into force that the peer does not know.
    Outdated,
    /// A message of one node for another has come.
    Foreign {
        /// Sender of the message.
        from: NodeId,
        /// Receiver of the message.
        to: NodeId,
    },
    /// A greeting has come that is not the first frame, or another first frame.
    Greeting,
    /// The peer's process has connected again.
    Replaced,
    /// This node stops.
    Stopping,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Closed => f.write_str("the peer has closed it"),
            End::Silent => write!(f, "nothing has come for {} s", SILENCE_MAX.as_secs()),
            End::Broken(error) => error.fmt(f),
            End::Frame(error) => error.fmt(f),
            End::Refused(reason) => write!(f, "the peer refuses it: {reason}"),
            End::Removed => f.write_str("this node was removed from the cluster"),
            End::PeerRemoved => f.write_str("the peer was removed from the cluster"),
            End::Outdated => f.write_str("the format version in force is too new for the peer: upgrade it"),
            End::Foreign { from, to } => {
                write!(f, "a message from node {} to node {} came over it", from.get(), to.get())
            }
            End::Greeting => f.write_str("a greeting came too late, or something else instead of one"),
            End::Replaced => f.write_str("the peer has connected again"),
            End::Stopping => f.write_str("the server stops"),
        }
    }
}

/// A connection whose sides have greeted each other, or are about to.
pub(crate) struct Greeted<S> {
    pub(crate) stream: S,
    pub(crate) decoder: Decoder,
    pub(crate) writer: Writer,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Greeted<S> {
    /// A connection on which nothing was said yet.
    pub(crate) fn new(stream: S) -> Greeted<S> {
        Greeted { stream, decoder: Decoder::default(), writer: Writer::default() }
    }

    /// Writes one frame.
    pub(crate) async fn say(&mut self, frame: &Frame) -> Result<(), End> {
        self.writer.put(frame);
        let Greeted { stream, writer, .. } = self;
        poll_fn(|cx| writer.poll_write(cx, Pin::new(&mut *stream))).await.map_err(End::Broken)
    }

    /// Reads the next frame.
    pub(crate) async fn hear(&mut self) -> Result<Frame, End> {
        hear(&mut self.stream, &mut self.decoder, SILENCE_MAX).await
    }

    /// Carries frames both ways until the connection ends. `own` is this node.
    pub(crate) async fn run(self, link: &Arc<Link>, receiver: &Arc<dyn Receiver>, own: NodeId) -> End {
        let Greeted { stream, mut decoder, mut writer } = self;
        decoder.agree(link.protocol);
        writer.agree(link.protocol);
        let (read, write) = tokio::io::split(stream);
        let end = tokio::select! {
            end = Inbound::new(link, receiver, own).run(read, decoder) => end,
            end = link.outbound.run(write, writer) => end.map_err(End::Broken),
            () = link.replaced() => Err(End::Replaced),
        };
        match end {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }
}

/// Result of what goes on until it fails.
type Endless = Result<std::convert::Infallible, End>;

/// Reads the next frame. `within` is the longest time in which nothing comes.
async fn hear(
    read: &mut (impl AsyncRead + Unpin),
    decoder: &mut Decoder,
    within: Duration,
) -> Result<Frame, End> {
    loop {
        if let Some(frame) = decoder.next_frame().map_err(End::Frame)? {
            return Ok(frame);
        }
        match timeout(within, read.read_buf(decoder.buffer())).await {
            Ok(Ok(0)) => return Err(End::Closed),
            Ok(Ok(_)) => {}
            // Without the last word of TLS: the peer's process was killed.
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(End::Closed),
            Ok(Err(error)) => return Err(End::Broken(error)),
            Err(_) => return Err(End::Silent),
        }
    }
}

/// The direction from the peer.
struct Inbound<'l> {
    link: &'l Arc<Link>,
    receiver: &'l Arc<dyn Receiver>,
    own: NodeId,
    /// Requests that are being answered; given up when the connection ends.
    answers: JoinSet<()>,
    /// Bytes of further requests that may be answered at the same time.
    room: Arc<Semaphore>,
}

impl<'l> Inbound<'l> {
    fn new(link: &'l Arc<Link>, receiver: &'l Arc<dyn Receiver>, own: NodeId) -> Inbound<'l> {
        let room = Arc::new(Semaphore::new(REQUESTS_BYTES_MAX));
        Inbound { link, receiver, own, answers: JoinSet::new(), room }
    }

    async fn run(mut self, mut read: impl AsyncRead + Unpin, mut decoder: Decoder) -> Endless {
        loop {
            // A frame that has come in part is kept by the decoder.
            let heard = timeout(SILENT_AFTER, hear(&mut read, &mut decoder, SILENCE_MAX)).await;
            let frame = match heard {
                Ok(frame) => frame?,
                Err(_) => {
                    self.receiver.doubt(self.link.node());
                    hear(&mut read, &mut decoder, SILENCE_MAX - SILENT_AFTER).await?
                }
            };
            self.take(frame)?;
        }
    }

    fn take(&mut self, frame: Frame) -> Result<(), End> {
        match frame {
            Frame::Envelope { shard, envelope } => {
                self.check_nodes(envelope.message.from, envelope.message.to)?;
                self.receiver.envelope(shard, envelope);
            }
            Frame::State { shard, message } => {
                self.check_nodes(message.from, message.to)?;
                self.receiver.state(shard, message);
            }
            Frame::Request { number, within_ms, content } => self.answer(number, within_ms, content),
            Frame::Answer { number, content } => self.link.calls.answered(number, content),
            Frame::Alive => {}
            Frame::Refused(reason) => return Err(End::Refused(reason)),
            Frame::Removed => return Err(End::Removed),
            Frame::Hello(_) => return Err(End::Greeting),
        }
        Ok(())
    }

    /// Checks that a message is of the two nodes of this connection.
    fn check_nodes(&self, from: NodeId, to: NodeId) -> Result<(), End> {
        let is_ours = from == self.link.node() && to == self.own;
        if is_ours { Ok(()) } else { Err(End::Foreign { from, to }) }
    }

    /// Begins to answer a request. One beyond the limit is dropped: the peer has given up others, which are
    /// still being answered.
    fn answer(&mut self, number: u64, within_ms: u32, content: Bytes) {
        while self.answers.try_join_next().is_some() {}
        if self.answers.len() >= REQUESTS_MAX {
            return;
        }
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(content.len() as u32) else { return };
        let (link, answer) = (Arc::clone(self.link), self.receiver.request(self.link.node(), content));
        self.answers.spawn(async move {
            let within = Duration::from_millis(within_ms.into());
            if let Ok(content) = timeout(within, answer).await
                && content.len() <= CONTENT_BYTES_MAX
            {
                link.outbound.put_call(Frame::Answer { number, content });
            }
            drop(room);
        });
    }
}
