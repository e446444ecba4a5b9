//! The stack as a client sees it, through driver and adapter.

mod credit;
mod differential;
mod direct;
mod interop;
mod lifetime;
mod readiness;
mod records;
#[path = "../service/mod.rs"]
mod service;
mod simulated;
mod splits;
mod support;
mod tunnels;
mod urgency;
