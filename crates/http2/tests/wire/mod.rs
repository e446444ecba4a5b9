//! A client in the same thread, for tests that count what a connection takes from the allocator.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use sluice_http2::Connection;
use sluice_http2::drive::Wire;
use sluice_http2::frame::{PREFACE, Setting, write};

/// Has what is counted to itself: whether allocations are counted is the same for all threads.
pub(crate) fn counting_alone() -> MutexGuard<'static, ()> {
    static COUNTING: Mutex<()> = Mutex::new(());
    COUNTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a client says first.
pub(crate) fn hello(settings: &[Setting]) -> Vec<u8> {
    let mut hello = PREFACE.to_vec();
    write::settings(&mut hello, settings);
    write::settings_ack(&mut hello);
    hello
}

/// A client that sends its rounds, each once all before it is answered, and reads the answers, or does not.
pub(crate) struct Rounds {
    rounds: Vec<Vec<u8>>,
    next: usize,
    /// What is sent of the next.
    sent: usize,
    reads: Rc<Cell<bool>>,
}

impl Rounds {
    pub(crate) fn new(rounds: impl IntoIterator<Item = Vec<u8>>, reads: Rc<Cell<bool>>) -> Self {
        Self { rounds: rounds.into_iter().collect(), next: 0, sent: 0, reads }
    }
}

impl Wire for Rounds {
    fn poll_read(&mut self, _: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        let rest = self.rounds.get(self.next).map_or(&[][..], |round| &round[self.sent..]);
        let read = rest.len().min(bytes.len());
        bytes[..read].copy_from_slice(&rest[..read]);
        self.sent += read;
        if read == 0 { Poll::Pending } else { Poll::Ready(Ok(read)) }
    }

    fn poll_write(
        &mut self,
        _: &mut Context<'_>,
        connection: &mut Connection,
        now_us: u64,
    ) -> Poll<io::Result<()>> {
        loop {
            let bytes = connection.plan(now_us, usize::MAX).len();
            if bytes == 0 {
                break;
            }
            if !self.reads.get() {
                return Poll::Pending;
            }
            connection.wrote(bytes);
        }
        if self.rounds.get(self.next).is_some_and(|round| round.len() == self.sent) {
            (self.next, self.sent) = (self.next + 1, 0);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn written(&self) -> u64 {
        0
    }
}

/// Polls a connection so many times, which takes as many rounds.
pub(crate) fn turn(driver: &mut Pin<&mut impl Future<Output = io::Result<()>>>, times: u32) {
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..times {
        assert!(driver.as_mut().poll(&mut context).is_pending(), "the connection has ended");
    }
}
