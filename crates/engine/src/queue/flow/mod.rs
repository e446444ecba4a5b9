//! Flows: messages that wait for others (parents, groups), and messages that follow others (chains).

pub(crate) mod chains;
pub(crate) mod groups;
pub(crate) mod parents;
pub(crate) mod recount;
pub(crate) mod view;
