//! The only caller of a process that speaks stdio, who is gone when the input ends.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

/// The caller's end of the input: there as long as the input has not ended.
#[derive(Clone, Debug)]
pub(super) struct Caller(watch::Receiver<()>);

impl Caller {
    /// Waits until the caller is gone.
    pub(super) async fn gone(&self) {
        let mut open = self.0.clone();
        // Nothing is ever sent: the sender is dropped.
        while open.changed().await.is_ok() {}
    }
}

/// An input that notes its own end, since calls go on for some seconds after it: the library lets them.
#[derive(Debug)]
pub(super) struct Input<R> {
    read: R,
    /// Dropped at the end.
    open: Option<watch::Sender<()>>,
}

impl<R> Input<R> {
    /// An input, and its end for others.
    pub(super) fn new(read: R) -> (Input<R>, Caller) {
        let (open, caller) = watch::channel(());
        (Input { read, open: Some(open) }, Caller(caller))
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let (before, room) = (into.filled().len(), into.remaining());
        let polled = Pin::new(&mut self.read).poll_read(context, into);
        let has_ended = match &polled {
            Poll::Ready(Ok(())) => room > 0 && into.filled().len() == before,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if has_ended {
            self.open = None;
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_caller_is_gone_when_the_input_ends_and_not_before() {
        let (mut other, end) = tokio::io::duplex(64);
        let (mut input, caller) = Input::new(end);
        other.write_all(b"line").await.unwrap();
        assert_eq!(input.read(&mut []).await.unwrap(), 0, "no room is no end");
        let mut text = [0; 4];
        input.read_exact(&mut text).await.unwrap();
        assert!(timeout(Duration::from_millis(20), caller.gone()).await.is_err());
        drop(other);
        assert_eq!(input.read(&mut text).await.unwrap(), 0);
        timeout(Duration::from_secs(5), caller.gone()).await.unwrap();
    }
}
