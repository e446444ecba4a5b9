//! Deliveries: receive, settle, extend and report, and what becomes of a result.

pub(crate) mod check;
pub(crate) mod progress;
pub(crate) mod receive;
pub(crate) mod results;
pub(crate) mod settle;
pub(crate) mod texts;
