//! The stack as a client sees it, through driver and adapter.

mod alike;
mod backlog;
mod credit;
mod differential;
mod direct;
#[path = "../frames/mod.rs"]
mod frames;
mod interop;
mod lifetime;
mod random;
mod readiness;
mod records;
mod script;
#[path = "../service/mod.rs"]
mod service;
mod simulated;
mod splits;
mod support;
mod tunnels;
mod urgency;
