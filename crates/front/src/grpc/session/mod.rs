//! A session: one stream of frames each way, as `proto/sluice/v1/session.proto` tells.
//!
//! One task reads the client's frames and gives their answers (`calls`, `attach`, `decode`, `plain`), those
//! for one consumer in their order (`consumers`), until another node leads (`moving`); each consumer that is
//! attached has another, which hands its messages on (`delivering`); both write frames (`encode`) into what
//! the connection takes from (`outbox`). A session that another node is to serve, of a client that does not
//! go there by itself, is passed on as a whole (`passing`). No message has a task or channel of its own, and
//! nothing waits in order to fill a frame: what gathers while the connection is busy goes with its next
//! bytes, and acks that came together are settled together.

mod attach;
mod calls;
mod consumers;
mod decode;
mod delivering;
mod encode;
mod moving;
mod outbox;
mod passing;
mod plain;
mod reading;

pub(super) use reading::open;
#[cfg(feature = "fuzzing")]
pub(super) use {
    decode::{messages_of, source},
    plain::Plain,
};

/// The path of the call.
pub(super) const PATH: &str = "/sluice.v1.Sessions/Session";
