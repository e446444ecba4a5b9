//! The calls that are not hot, one file for each group of them: what each reads from its request, asks of the
//! node, and answers.

pub(crate) mod admin;
pub(crate) mod bulk;
pub(crate) mod changes;
pub(crate) mod consumers;
pub(crate) mod dead;
pub(crate) mod flows;
pub(crate) mod groups;
pub(crate) mod keys;
pub(crate) mod limits;
pub(crate) mod messages;
pub(crate) mod namespaces;
pub(crate) mod prometheus;
pub(crate) mod queue_defaults;
pub(crate) mod queues;
pub(crate) mod results;
pub(crate) mod schedules;
pub(crate) mod tokens;
