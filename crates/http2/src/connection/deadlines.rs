//! Deadlines of a connection and its streams, and the time of the next check.

use super::ending::Drain;
use super::{Connection, Event, Half};
use crate::error::{ErrorCode, Fault};
use crate::frame::write;
use crate::limits::{Limits, PROGRESS_BYTES};

const NEVER: u64 = u64::MAX;

/// Interval of the checks for stalled streams, in microseconds.
const WATCH_US: u64 = 1_000_000;

/// Time without an open stream after which storage kept for streams is freed, in microseconds.
const REST_US: u64 = 1_000_000;

/// Payload of the PING of keep-alive.
const LIFE_PING: [u8; 8] = *b"are you?";

/// The deadlines of a connection, in microseconds; [`NEVER`] while one does not apply.
#[derive(Debug)]
pub(super) struct Deadlines {
    /// The preface and the first settings.
    preface_us: u64,
    /// A frame or a header block that has begun.
    input_us: u64,
    /// Bytes of it that were there when that was set.
    input_bytes: usize,
    settings_ack_us: u64,
    drain_us: u64,
    idle_us: u64,
    /// Time to free storage kept for streams.
    rest_us: u64,
    /// Time of the next PING of keep-alive, and the deadline for its answer.
    ask_us: u64,
    life_us: u64,
    /// Time of the next check for stalled streams.
    watch_us: u64,
    /// Time of the last input.
    heard_us: u64,
    /// Time of the last output of bodies, and the number of bytes of bodies written by then.
    moved_us: u64,
    moved_bytes: u64,
}

impl Deadlines {
    pub(super) fn new(limits: &Limits, now_us: u64) -> Self {
        Self {
            preface_us: now_us.saturating_add(limits.preface_us),
            input_us: NEVER,
            input_bytes: 0,
            settings_ack_us: NEVER,
            drain_us: NEVER,
            idle_us: NEVER,
            rest_us: NEVER,
            ask_us: NEVER,
            life_us: NEVER,
            watch_us: NEVER,
            heard_us: now_us,
            moved_us: now_us,
            moved_bytes: 0,
        }
    }

    /// Something came in.
    pub(super) fn heard(&mut self, now_us: u64) {
        self.heard_us = now_us;
    }

    pub(super) fn preface_came(&mut self, limits: &Limits, now_us: u64) {
        self.preface_us = NEVER;
        self.settings_ack_us = now_us.saturating_add(limits.settings_ack_us);
        self.idle(limits, false, now_us);
    }

    /// Nothing more can be read for now: `bytes` of a frame are there, `in_block`: of one in the middle of a
    /// header block, which has its time as a whole.
    pub(super) fn wait_for_input(&mut self, bytes: usize, in_block: bool, limits: &Limits, now_us: u64) {
        if bytes == 0 && !in_block {
            self.input_us = NEVER;
            return;
        }
        let goes_on = !in_block && bytes >= self.input_bytes + PROGRESS_BYTES as usize;
        if self.input_us == NEVER || goes_on {
            self.input_us = now_us.saturating_add(limits.frame_us);
            self.input_bytes = bytes;
        }
    }

    /// A frame came whole that belongs to no header block which is not.
    pub(super) fn input_came(&mut self) {
        self.input_us = NEVER;
    }

    /// Nothing is read now. What is not there may lie in the transport, and has all its time again once it is
    /// read.
    fn put_input_off(&mut self, limits: &Limits, now_us: u64) {
        if self.input_us <= now_us {
            self.input_us = now_us.saturating_add(limits.frame_us);
        }
        if self.settings_ack_us <= now_us {
            self.settings_ack_us = now_us.saturating_add(limits.settings_ack_us);
        }
    }

    pub(super) fn settings_acknowledged(&mut self) {
        self.settings_ack_us = NEVER;
    }

    pub(super) fn drain(&mut self, limits: &Limits, now_us: u64) {
        self.drain_us = now_us.saturating_add(limits.drain_us);
    }

    pub(super) fn drained(&mut self) {
        self.drain_us = NEVER;
    }

    /// There is a stream.
    pub(super) fn busy(&mut self, limits: &Limits, now_us: u64) {
        (self.idle_us, self.rest_us) = (NEVER, NEVER);
        if self.ask_us == NEVER && self.life_us == NEVER {
            self.ask_us = now_us.saturating_add(limits.keep_alive_us);
        }
    }

    /// There is no stream. That the peer lives is not asked then: the connection will end soon enough.
    /// `keeps_much`: there is something to let go of.
    pub(super) fn idle(&mut self, limits: &Limits, keeps_much: bool, now_us: u64) {
        self.idle_us = now_us.saturating_add(limits.idle_us);
        self.rest_us = if keeps_much { now_us + REST_US } else { NEVER };
        (self.ask_us, self.life_us) = (NEVER, NEVER);
    }

    /// There is a stream that could stall.
    pub(super) fn watch_streams(&mut self, now_us: u64) {
        if self.watch_us == NEVER {
            self.watch_us = now_us + WATCH_US;
        }
    }

    pub(super) fn closed(&mut self) {
        *self = Self {
            preface_us: NEVER,
            input_us: NEVER,
            settings_ack_us: NEVER,
            drain_us: NEVER,
            idle_us: NEVER,
            rest_us: NEVER,
            ask_us: NEVER,
            life_us: NEVER,
            watch_us: NEVER,
            ..*self
        };
    }

    fn first(&self) -> u64 {
        let Self {
            preface_us,
            input_us,
            settings_ack_us,
            drain_us,
            idle_us,
            rest_us,
            ask_us,
            life_us,
            watch_us,
            ..
        } = *self;
        let of_all = preface_us.min(input_us).min(settings_ack_us).min(drain_us);
        of_all.min(idle_us).min(rest_us).min(ask_us).min(life_us).min(watch_us)
    }
}

impl Connection {
    /// Time at which [`Connection::expire`] is to be called, in microseconds; `None`: no deadline. It may
    /// move to later without notice; a call that is too early does nothing.
    pub fn next_deadline(&self) -> Option<u64> {
        Some(self.deadlines.first()).filter(|&deadline_us| deadline_us != NEVER)
    }

    /// Enforces one deadline that has passed, if any. It is called until it returns `None`.
    pub fn expire(&mut self, now_us: u64) -> Option<Event<'static>> {
        self.now_us = now_us;
        if self.deadlines.first() > self.now_us {
            return None;
        }
        if !self.wants_input() {
            self.deadlines.put_input_off(&self.limits, self.now_us);
        }
        let deadlines = &self.deadlines;
        let calm = ErrorCode::ENHANCE_YOUR_CALM;
        let fault = if deadlines.preface_us <= self.now_us {
            Fault::connection(calm, "the preface and the first settings take too long")
        } else if deadlines.input_us <= self.now_us {
            Fault::connection(calm, "a frame or a header block takes too long")
        } else if deadlines.settings_ack_us <= self.now_us {
            Fault::connection(ErrorCode::SETTINGS_TIMEOUT, "our settings were not acknowledged in time")
        } else if deadlines.life_us <= self.now_us && self.is_lifeless() {
            Fault::connection(ErrorCode::NO_ERROR, "the peer gives no sign of life")
        } else {
            return self.expire_in_peace();
        };
        Some(self.close(fault))
    }

    /// Enforces the deadlines that are no error of the connection.
    fn expire_in_peace(&mut self) -> Option<Event<'static>> {
        if self.deadlines.drain_us <= self.now_us {
            self.finish_drain();
        }
        if self.deadlines.life_us <= self.now_us {
            self.deadlines.life_us = NEVER;
            self.deadlines.ask_us = self.deadlines.heard_us.saturating_add(self.limits.keep_alive_us);
        }
        if self.deadlines.ask_us <= self.now_us {
            self.ask_for_life();
        }
        if self.deadlines.idle_us <= self.now_us {
            self.deadlines.idle_us = NEVER;
            if self.drain == Drain::No {
                self.shut_down(self.now_us);
            }
        }
        if self.deadlines.rest_us <= self.now_us {
            self.deadlines.rest_us = NEVER;
            self.rest();
            return Some(Event::Idle);
        }
        if self.deadlines.watch_us <= self.now_us { self.look_for_stalls() } else { None }
    }

    /// True when nothing came since it was asked. While nothing is read, nothing can come: then the peer's
    /// reading is what counts.
    fn is_lifeless(&self) -> bool {
        let asked_us = self.deadlines.life_us - self.limits.keep_alive_us;
        self.deadlines.heard_us < asked_us && self.wants_input()
    }

    /// Asks for a sign of life, or puts it off because there was one.
    fn ask_for_life(&mut self) {
        let due_us = self.deadlines.heard_us.saturating_add(self.limits.keep_alive_us);
        if due_us > self.now_us {
            self.deadlines.ask_us = due_us;
            return;
        }
        write::ping(&mut self.output.ready, false, LIFE_PING);
        self.deadlines.ask_us = NEVER;
        self.deadlines.life_us = self.now_us.saturating_add(self.limits.keep_alive_us);
    }

    /// When bodies last went out: less than the least progress is none, and while the transport is still at
    /// the last plan, it is the transport's progress that counts.
    fn bodies_moved_us(&mut self) -> u64 {
        let bytes = self.output.sent.bytes;
        if bytes - self.deadlines.moved_bytes >= PROGRESS_BYTES.into() || !self.output.plan.is_empty() {
            (self.deadlines.moved_us, self.deadlines.moved_bytes) = (self.now_us, bytes);
        }
        self.deadlines.moved_us
    }

    /// Ends the first stream that has stalled; when there is none, looks again later, as long as any could.
    fn look_for_stalls(&mut self) -> Option<Event<'static>> {
        let moved_us = self.bodies_moved_us();
        let mut from = 0;
        let mut any_could = false;
        while let Some(slot) = self.streams.next_live(from) {
            from = slot + 1;
            let stream = &mut self.streams[slot];
            // Only a body whose end is known is known to be late.
            let receives = stream.receiving && stream.body_left.is_some();
            if stream.unconsumed > 0 || !self.receive.is_open() {
                // It is not the peer who has to go on. Once it is, it has all its time.
                stream.receive_progress.restart(self.now_us);
            }
            let sends = stream.queued > 0;
            if stream.waits_for_others() && stream.send_progress.since_us < moved_us {
                stream.send_progress.restart(moved_us);
            }
            any_could |= sends || receives;
            let received_us = stream.receive_progress.since_us.saturating_add(self.limits.body_stall_us);
            let sent_us = stream.send_progress.since_us.saturating_add(self.limits.read_stall_us);
            let half = match () {
                () if sends && sent_us <= self.now_us => Half::Response,
                () if receives && received_us <= self.now_us => Half::Request,
                () => continue,
            };
            let stream = self.streams.key(slot);
            self.reset(stream, ErrorCode::CANCEL);
            return Some(Event::Stalled { stream, half });
        }
        self.deadlines.watch_us = if any_could { self.now_us + WATCH_US } else { NEVER };
        None
    }
}
