//! Transactions: what is remembered of them, `check` of a command, and `record`, its layout in the log. How
//! they are applied concerns all modules: see [`crate::engine`].

pub(crate) mod check;
mod part;
pub(crate) mod record;
pub(crate) mod remembered;
pub(crate) mod two_phase;

/// The behaviour version since which there are transactions.
pub(crate) const TRANSACTIONS_SINCE: u16 = 13;

/// Names of operations, as requests and errors have them.
pub(crate) mod kind {
    pub(crate) const SEND: &str = "send";
    pub(crate) const SETTLE: &str = "settle";
    pub(crate) const PUT: &str = "put";
    pub(crate) const DELETE: &str = "delete";
    pub(crate) const CHECK: &str = "check";
    pub(crate) const ACQUIRE: &str = "acquire";
    pub(crate) const RELEASE: &str = "release";
    pub(crate) const ATTACH: &str = "attach";
    pub(crate) const DETACH: &str = "delete_attachment";
}

/// The path of an operation, with which the names of its fields begin.
pub(crate) fn path(at: usize, kind: &str) -> String {
    format!("operations[{at}].{kind}.")
}
