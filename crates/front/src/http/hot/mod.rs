//! Send, receive, settle and extend over HTTP: their JSON, decoded without an allocation per message, their
//! raw forms (`raw`), and the short way that they take over HTTP/2 when they go well (`direct`).

pub(crate) mod direct;
pub(crate) mod extend;
pub(crate) mod raw;
pub(crate) mod receive;
pub(crate) mod send;
pub(crate) mod settle;
