//! The memory for the answers of calls, which the front counts until clients have read them.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;
use sluice_engine::Error;

/// The memory of one answer.
pub trait AnswerRoom: fmt::Debug + Send + Sync {
    /// Sets aside `bytes` for the answer, instead of what was set aside before.
    ///
    /// # Errors
    /// `overloaded`; then what was set aside before stays.
    fn reserve(&self, bytes: usize) -> Result<(), Error>;

    /// Sets aside up to `bytes` for an answer that can be cut short; tells how many.
    ///
    /// # Errors
    /// `overloaded`.
    fn reserve_up_to(&self, bytes: usize) -> Result<usize, Error>;
}

/// The memory of answers of a few bytes, which is not counted.
#[derive(Clone, Copy, Debug)]
pub struct Uncounted;

impl AnswerRoom for Uncounted {
    fn reserve(&self, _: usize) -> Result<(), Error> {
        Ok(())
    }

    fn reserve_up_to(&self, bytes: usize) -> Result<usize, Error> {
        Ok(bytes)
    }
}

/// Bytes of a part of an answer as JSON.
pub(crate) fn written(part: &impl Serialize) -> usize {
    let mut count = Count(0);
    // A part that cannot be written is an error of the answer, which is written next.
    let _ = serde_json::to_writer(&mut count, part);
    count.0
}

/// Counts the bytes that are written.
struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
