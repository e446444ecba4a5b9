//! Size and refusal of what mailboxes carry: requests to shards, and completions to callers.

use sluice_engine::Error;

use super::{Answer, Completion, Request};
use crate::mailbox::Letter;

/// Estimate of a request's memory besides its record, in bytes.
const REQUEST_BYTES: usize = 256;
/// Estimate of the memory of a queue that a pull names, in bytes.
const PULL_QUEUE_BYTES: usize = 160;

impl Letter for Request {
    fn bytes(&self) -> usize {
        REQUEST_BYTES
            + match self {
                Request::Propose(proposal) => proposal.record.bytes(),
                Request::Pull(pull) => pull.queues.len() * PULL_QUEUE_BYTES,
                Request::Surely(record) => record.bytes(),
                Request::Attach(attaching) => attaching.bytes(),
                Request::Acquire(acquiring) => acquiring.record.bytes(),
                Request::Await(_)
                | Request::Watch(_)
                | Request::Unwatch(_)
                | Request::Cancel { .. }
                | Request::Forget { .. }
                | Request::Read(_)
                | Request::ReadStale(_)
                | Request::Advance(_)
                | Request::Drain
                | Request::Stop => 0,
            }
    }

    fn relieves(&self) -> bool {
        match self {
            Request::Propose(proposal) => proposal.relieves,
            Request::Surely(_)
            | Request::Cancel { .. }
            | Request::Forget { .. }
            | Request::Unwatch(_)
            | Request::Drain
            | Request::Stop => true,
            Request::Pull(_)
            | Request::Await(_)
            | Request::Attach(_)
            | Request::Acquire(_)
            | Request::Watch(_)
            | Request::Read(_)
            | Request::ReadStale(_)
            | Request::Advance(_) => false,
        }
    }

    fn refuse(self, why: &Error) {
        match self {
            Request::Propose(proposal) => {
                proposal.reply.send(Answer::refused(why.clone()));
            }
            Request::Pull(pull) => {
                let _ = pull.reply.send(Err(why.clone()));
            }
            Request::Await(wait) => {
                let _ = wait.reply.send(Err(why.clone()));
            }
            Request::Attach(attaching) => attaching.refuse(why),
            Request::Acquire(acquiring) => acquiring.refuse(why),
            Request::Watch(watch) => {
                let _ = watch.reply.send(Err(why.clone()));
            }
            Request::Read(read) | Request::ReadStale(read) => (read.0)(Err(why.clone())),
            Request::Advance(advance) => {
                let _ = advance.reply.send(Err(why.clone()));
            }
            Request::Surely(_)
            | Request::Cancel { .. }
            | Request::Forget { .. }
            | Request::Unwatch(_)
            | Request::Drain
            | Request::Stop => {}
        }
    }
}

/// There are as many as their caller has asked for: their number alone is bounded, and a refusal needs no
/// answer.
impl Letter for Completion {
    fn bytes(&self) -> usize {
        0
    }

    fn relieves(&self) -> bool {
        false
    }

    fn refuse(self, _why: &Error) {}
}
