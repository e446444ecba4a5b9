//! The stack as a client sees it, through driver and adapter.

mod interop;
mod lifetime;
mod support;
